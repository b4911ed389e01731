"""An immutable object as an HTTP answer: whole, in part, or not at all. Finds no object."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO

from manifests.errors import RegistryRefused
from registry.api.conditions import RangeNotSatisfiable, Span, matches, span_of
from registry.api.problems import Problem, problem_of

StartResponse = Callable[..., Any]
Headers = list[tuple[str, str]]

CHUNK = 256 << 10
# Up to this size an answer is handed to the server at once; beyond it, the server sends it from its file.
MAX_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An object that may be sent whole, in part, or not at all."""

    etag: str
    caching: str
    content_type: str
    size: int
    data: bytes | None = None
    file: BinaryIO | None = None

    def send(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer as the request's conditions and range ask."""
        headers: Headers = [("ETag", self.etag), ("Cache-Control", self.caching)]
        if matches(environ.get("HTTP_IF_NONE_MATCH", ""), self.etag):
            return self._without_body(HTTPStatus.NOT_MODIFIED, headers, start_response)
        headers += [
            ("Content-Type", self.content_type),
            ("Accept-Ranges", "bytes"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        try:
            span = self._span(environ)
        except RangeNotSatisfiable:
            return self._unsatisfiable(start_response)
        length = self.size if span is None else span.length
        headers.append(("Content-Length", str(length)))
        status = HTTPStatus.OK
        if span is not None:
            status = HTTPStatus.PARTIAL_CONTENT
            headers.append(("Content-Range", f"bytes {span.first}-{span.last}/{self.size}"))
        if environ["REQUEST_METHOD"] == "HEAD":
            return self._without_body(status, headers, start_response)
        body = self._body(0 if span is None else span.first, length)
        start_response(status_line(status), headers)
        return body

    def _span(self, environ: dict[str, Any]) -> Span | None:
        asked = environ.get("HTTP_RANGE")
        if asked is None or environ.get("HTTP_IF_RANGE", self.etag) != self.etag:
            return None
        return span_of(asked, self.size)

    def _body(self, first: int, length: int) -> Iterable[bytes]:
        if self.data is not None:
            return [self.data[first : first + length]]
        assert self.file is not None
        if length > MAX_AT_ONCE:
            return FileSpan(self.file, first, length)
        with self.file as file:
            file.seek(first)
            return [_exactly(file, length)]

    def _without_body(self, status: HTTPStatus, headers: Headers, start_response: StartResponse) -> Iterable[bytes]:
        self._close()
        start_response(status_line(status), headers)
        return []

    def _unsatisfiable(self, start_response: StartResponse) -> Iterable[bytes]:
        self._close()
        error = RegistryRefused(f"the range lies outside the {self.size} bytes there are", reason="range")
        return send_problem(problem_of(error, ("Content-Range", f"bytes */{self.size}")), start_response)

    def _close(self) -> None:
        if self.file is not None:
            self.file.close()


class FileSpan:
    """Part of an open file, chunk by chunk, so that memory stays bounded whatever its size."""

    def __init__(self, file: BinaryIO, first: int, length: int) -> None:
        self.path = str(file.name)
        self.first = first
        self.length = length
        self._file = file
        self._left = length
        file.seek(first)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self._left:
            self.close()
            raise StopIteration
        chunk = _exactly(self._file, min(CHUNK, self._left))
        self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        """Close the file; WSGI calls this also when the client went away."""
        self._file.close()


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise OSError("a blob ended before its size")
    return data


def status_line(status: HTTPStatus) -> str:
    """Return a status as WSGI wants it."""
    return f"{status.value} {status.phrase}"


def send_problem(problem: Problem, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with a refusal."""
    start_response(problem.status_line, list(problem.headers))
    return [problem.body]
