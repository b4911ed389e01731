"""A registry as its own process: started, asked over a socket, stopped. No claims."""

import http.client
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    data: bytes


def start(root: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "registry.cli", "serve", "--root", str(root), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.terminate()
    _, errors = process.communicate(timeout=20)
    return process.returncode, errors


def ask(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()
