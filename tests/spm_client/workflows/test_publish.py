"""Publishing against a registry that misbehaves or is shared: what is sent, and what is refused before it is."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from keys.key_files import KeyRole, load_private, new_key
from manifests.errors import BadResponse, SizeMismatch, Unsigned, UsageError
from spm_client.adapters.http import RegistryClient
from spm_client.progress import Advance
from spm_client.workflows.packed import PackedFolder
from spm_client.workflows.publish import Published, publish
from spm_client.workflows.sign import sign
from tests.fakes.answering_server import AnsweringServer, send
from tests.spm_client.workflows.sources import packed, write_source


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as running:
        yield running


@pytest.fixture
def client(server: AnsweringServer) -> Iterator[RegistryClient]:
    with RegistryClient(server.url, token="spm_token") as opened:
        yield opened


@pytest.fixture
def release(tmp_path: Path) -> PackedFolder:
    folder = packed(write_source(tmp_path / "tone"), tmp_path / "dist").folder
    public = new_key(tmp_path / "keys", "ext", KeyRole.EXT, "audio-team", None)
    sign(PackedFolder.read(folder), public, load_private(tmp_path / "keys" / "ext.key", None))
    return PackedFolder.read(folder)


def silent(_label: str, _total: int) -> Advance:
    return lambda _: None


def registry(server: AnsweringServer, missing: list[str], offset: int = 0) -> None:
    """Have the server accept an upload that lacks these blobs and has `offset` bytes of each."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path == "/v1/uploads":
            send(201, json.dumps({"upload": "7", "missing": missing}).encode())(handler)
        else:
            send(200, b"" if handler.command == "HEAD" else b"{}", Upload_Offset=str(offset))(handler)

    server.answer = answer


def steps(server: AnsweringServer) -> list[tuple[str, str]]:
    return [(method, path) for method, path, _, _ in server.seen]


def test_what_the_registry_lacks_is_sent_and_committed(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    digest = release.manifest.files[0].sha256
    registry(server, [digest])

    published = publish((release,), client, silent)

    assert published == Published(name="tone", version="1.0.0", was_there=False, uploaded_blobs=1)
    blob = f"/v1/uploads/7/blobs/{digest}"
    assert steps(server) == [
        ("POST", "/v1/uploads"),
        ("HEAD", blob),
        ("PUT", blob),
        ("POST", "/v1/uploads/7/commit"),
    ]
    assert server.seen[2][3] == b"\x00\x01"


def test_a_blob_that_another_upload_has_brought_meanwhile_is_not_sent(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    entry = release.manifest.files[0]
    registry(server, [entry.sha256], offset=entry.size)

    publish((release,), client, silent)

    assert [method for method, _ in steps(server)] == ["POST", "HEAD", "POST"]


def test_a_blob_that_was_changed_after_packing_is_not_sent(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    entry = release.manifest.files[0]
    release.blob(entry.sha256).write_bytes(b"\x00")
    registry(server, [entry.sha256])

    with pytest.raises(SizeMismatch) as refused:
        publish((release,), client, silent)

    assert (refused.value.message, refused.value.hint) == (
        f"`{release.blob(entry.sha256)}` has 1 bytes, but the manifest says 2: it was changed after packing",
        "pack and sign it again",
    )
    assert [method for method, _ in steps(server)] == ["POST", "HEAD"]


def test_a_blob_that_is_not_of_the_release_is_not_sent(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    registry(server, ["../../../etc/passwd"])

    with pytest.raises(BadResponse) as refused:
        publish((release,), client, silent)

    assert refused.value.message == (
        "the registry asks for the blob '../../../etc/passwd', which is not in the release"
    )


@pytest.mark.parametrize("answer", [{}, {"upload": 7, "missing": []}, {"upload": "7"}, {"upload": "7", "missing": "x"}])
def test_an_answer_without_its_members_is_refused(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder, answer: dict[str, object]
) -> None:
    server.answer = send(201, json.dumps(answer).encode())

    with pytest.raises(BadResponse) as refused:
        publish((release,), client, silent)

    assert refused.value.message == "the registry answered an upload without its id and missing blobs"


def test_a_release_that_is_there_is_not_sent_again(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    server.answer = send(200, b'{"published": true}')

    assert publish((release,), client, silent).was_there
    assert steps(server) == [("POST", "/v1/uploads")]


def test_an_unsigned_release_is_refused_before_anything_is_sent(
    server: AnsweringServer, client: RegistryClient, release: PackedFolder
) -> None:
    (release.folder / "manifest.jws").unlink()

    with pytest.raises(Unsigned):
        publish((PackedFolder.read(release.folder),), client, silent)

    assert server.seen == []


def test_two_releases_are_not_one_publish(client: RegistryClient, release: PackedFolder, tmp_path: Path) -> None:
    source = write_source(tmp_path / "other")
    text = (source / "manifest.yaml").read_text()
    (source / "manifest.yaml").write_text(text.replace("1.0.0", "1.1.0"))
    other = PackedFolder.read(packed(source, tmp_path / "dist").folder)

    with pytest.raises(UsageError) as refused:
        publish((release, other), client, silent)

    assert refused.value.message == "one publish is one release with its variants, not tone 1.0.0, tone 1.1.0"
