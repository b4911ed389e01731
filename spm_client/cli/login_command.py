"""`spm login`."""

import argparse
import getpass
import sys

from manifests.errors import UsageError
from spm_client.adapters.config import Credentials
from spm_client.adapters.http import RegistryClient
from spm_client.cli.session import Session

MAX_TOKEN = 512


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The token is asked for on a terminal and read from standard input elsewhere; never an argument."


def run(_options: argparse.Namespace, session: Session) -> int:
    conf = session.conf()
    token = _token(conf.registry_url)
    with RegistryClient(conf.registry_url, token=token) as client:
        who = client.call("GET", "/v1/whoami")
    credentials = Credentials(session.environment)
    credentials.keep(conf.registry_url, token)
    label, role = who.get("label"), who.get("role")
    session.emit({"registry": conf.registry_id, "url": conf.registry_url, "label": label, "role": role})
    if not session.is_json:
        print(f"logged in to {conf.registry_id} as {label} ({role}); the token is kept in {credentials.path}")
    return 0


def _token(url: str) -> str:
    token = (_asked(url) if sys.stdin.isatty() else sys.stdin.readline(MAX_TOKEN + 1)).strip()
    if not token:
        raise UsageError("no token was given", hint="`spm-registry token new` makes one")
    return token


def _asked(url: str) -> str:
    try:
        return getpass.getpass(f"Token for {url}: ")
    except EOFError:
        return ""
