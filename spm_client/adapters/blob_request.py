"""A blob over HTTP from a byte on, also where it lies in an object store. Verifies nothing, and retries no transfer.

1. Ask for what is missing by `Range`. An answer with all of it has its first bytes passed over; one that is neither
   (416, another part) is put aside, and all of it is asked for, once.
2. Follow a redirect, as registries answer that keep their blobs in an object store, at most `MAX_HOPS` times and never
   from https to http. No request carries the token or anything else of this host, and whoever asked holds the bytes
   to their digest: so where they lie needs no trust. Documents and metadata follow none.
"""

import re
import time
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import urllib3

from manifests.errors import BadResponse
from spm_client.adapters import wire
from spm_client.adapters.wire import Opened, Wire, shown

MAX_HOPS = 2
_REDIRECTS = {301, 302, 303, 307, 308}
_PARTIAL, _NOT_SATISFIABLE = 206, 416
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")


def blob_chunks(over: Wire, url: str, *, size: int, offset: int) -> Iterator[bytes]:
    """Yield the bytes from `offset` to one more than `size` says, at no less than the minimum rate.

    Raises: BadResponse; TransferCut, TransferStalled; the refusal that the registry names.
    """
    response, url = _asked(over, url, size, offset)
    with Opened(response):
        over.require_ok(response, url, is_read=True)
        passed_over = 0 if response.status == _PARTIAL else offset
        coming = size - offset + passed_over
        deadline = time.monotonic() + wire.READ_SECONDS + coming / wire.MINIMUM_RATE
        for chunk in over.chunks(response, url, coming + 1, deadline):
            if passed_over < len(chunk):
                yield chunk[passed_over:] if passed_over else chunk
            passed_over = max(passed_over - len(chunk), 0)


def _asked(over: Wire, url: str, size: int, offset: int) -> tuple[urllib3.BaseHTTPResponse, str]:
    if offset:
        response, found = _followed(over, url, {"Range": f"bytes={offset}-"})
        is_other = response.status == _PARTIAL and not _is_rest(response, size, offset)
        if not is_other and response.status != _NOT_SATISFIABLE:
            return response, found
        response.close()
    return _followed(over, url, {})


def _is_rest(response: urllib3.BaseHTTPResponse, size: int, offset: int) -> bool:
    told = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    return told is not None and (int(told[1]), int(told[2])) == (offset, size - 1) and told[3] in (str(size), "*")


def _followed(over: Wire, url: str, headers: dict[str, str]) -> tuple[urllib3.BaseHTTPResponse, str]:
    """Return what answers at the end of the redirects, and where that is."""
    asked = url
    for _ in range(MAX_HOPS + 1):
        response = over.read(url, headers)
        if response.status not in _REDIRECTS or "Location" not in response.headers:
            return response, url
        response.close()
        url = _target(url, response.headers["Location"])
    raise BadResponse(
        f"`{shown(asked)}` points to another place, and so on, more than {MAX_HOPS} times",
        hint="ask the registry's administrator",
        url=shown(asked),
    )


def _target(url: str, location: str) -> str:
    """Return where a redirect points; what it carries in its query is its own, what stands before an `@` is not."""
    try:
        target = urljoin(url, location)
        parts = urlsplit(target)
        is_followed = parts.scheme in ("https", urlsplit(url).scheme) and parts.hostname and "@" not in parts.netloc
        target = parts._replace(path=parts.path or "/", fragment="").geturl()
    except ValueError:
        target, is_followed = location, None
    if is_followed:
        return target
    raise BadResponse(
        f"`{shown(url)}` points to {shown(target)[:200]!r}, where spm does not go",
        hint="a blob's redirect leads to an address with https, or with http from http, and without a user's name",
        url=shown(url),
    )
