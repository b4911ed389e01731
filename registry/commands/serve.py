"""`spm-registry serve`: runs the registry in the foreground until a signal. Answers no request itself."""

import argparse
import http.client
import json
import logging
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.server import Server

from keys.keyring import LoaderConf
from manifests.errors import RegistryUnreachable, UsageError
from registry.api.gateway import Gateway
from registry.app import load_app
from registry.log import log_to_stderr
from registry.services.endings import endings
from registry.services.index_signing import require_root
from registry.services.online_key import tidy_online_keys
from registry.services.pins import pin_root
from registry.services.trust import trust
from registry.storage.site import using_site

# Requests whose body is awaited hold a thread: `MAX_SENDERS`, `MAX_OPENERS` and `MAX_YANKERS` leave some for the rest.
_THREADS = 128
_STOP_SECONDS = 10
_POLL_SECONDS = 0.05
_QUIET = {
    "formatters": {},
    "handlers": {},
    "loggers": {
        "_granian": {"level": "ERROR", "handlers": [], "propagate": True},
        "granian.access": {"level": "INFO", "handlers": [], "propagate": True},
    },
}
_REQUEST = "%(addr)s %(method)s %(path)s %(status)d %(dt_ms).1f ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """Return the URL of this address."""
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    log_to_stderr()
    conf = _check_site(options.root)
    root, address = options.root.resolve(), _free_address(_parse_bind(options.bind))
    server = _server(address, options)
    announce = partial(_announce, address, conf, root, options)
    server.on_startup(lambda: threading.Thread(target=announce, daemon=True).start())
    server.serve(target_loader=partial(_load_worker, root, os.getpid()), wrap_loader=False)
    # The workers end without closing their connections, which leaves commits in the write-ahead log alone.
    with using_site(root) as site:
        site.database.settle()
    return 0


def _check_site(root: Path) -> LoaderConf:
    # The workers are forked: they must not share this process's connections.
    with using_site(root) as site:
        site.parts.prepare()
        with site.database.reading() as records:
            conf = trust(site, records)
            require_root(site, records)
            said = endings(records, root, int(time.time()))
        # A ceremony that was cut short after its root was adopted has left both as they were.
        pin_root(site)
        tidy_online_keys(site)
    for text in said:
        logging.getLogger("registry").warning("%s", text)
    return conf


def _parse_bind(text: str) -> Address:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{text!r:.80} is not an address: write `HOST:PORT`, such as `127.0.0.1:8080`")
    return Address(host=host, port=int(port))


def _free_address(address: Address) -> Address:
    """Return the address if nobody listens there; port 0 becomes a free one.

    The workers share the port, which a second server of the same user could then join unseen.
    """
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
            probe.listen(1)
            return Address(host=address.host, port=probe.getsockname()[1])
    except OSError as error:
        raise RegistryUnreachable(
            f"cannot listen on {address.host}:{address.port}: {error.strerror}",
            reason="bind",
            hint="stop what listens there, or choose another address with `--bind`",
        ) from error


def _server(address: Address, options: argparse.Namespace) -> Any:
    return Server(
        "registry.app",
        address=address.host,
        port=address.port,
        interface=Interfaces.RSGI,
        workers=options.workers,
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.error,
        log_dictconfig=_QUIET,
        log_access=options.log_requests,
        log_access_format=_REQUEST,
        respawn_failed_workers=True,
        workers_kill_timeout=_STOP_SECONDS,
    )


def _load_worker(root: Path, parent: int) -> Any:
    log_to_stderr()
    threading.Thread(target=_stop_with_parent, args=(parent,), daemon=True).start()
    return Gateway(load_app(root), _THREADS)


def _stop_with_parent(parent: int) -> None:
    # A killed parent cannot stop its workers, and they would keep the port.
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _announce(address: Address, conf: LoaderConf, root: Path, options: argparse.Namespace) -> None:
    while not _is_healthy(address):
        time.sleep(_POLL_SECONDS)
    workers = options.workers
    if options.json:
        value = {"id": conf.registry_id, "url": address.url, "client_url": conf.registry_url, "root": str(root)}
        line = json.dumps({**value, "workers": workers, "pid": os.getpid()})
    else:
        count = "1 worker" if workers == 1 else f"{workers} workers"
        # A proxy may stand between, so that a difference is no fault; but it is what a client that finds nobody asks.
        there = "" if conf.registry_url == address.url else f"; loader.conf sends clients to {conf.registry_url}"
        line = (
            f"Serving the registry `{conf.registry_id}` from {root} at {address.url} ({count}){there}; Ctrl-C stops it"
        )
    print(line, flush=True)


def _is_healthy(address: Address) -> bool:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    connection = http.client.HTTPConnection(host, address.port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
