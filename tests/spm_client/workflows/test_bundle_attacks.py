"""Whoever carries a bundle may change it: every change is refused, or changes nothing of what was proven."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manifests.errors import (
    ContentError,
    DigestMismatch,
    FileSetMismatch,
    NotCanonical,
    SizeMismatch,
    SpmError,
    TooBig,
    TypeMismatch,
    Unsigned,
    UsageError,
)
from spm_client.adapters.bundle import BundleFile
from spm_client.bundle_format import MAGIC, MAX_HEADER_BYTES, PREAMBLE, BundleHeader, Part, SignatureFile
from spm_client.workflows.bundle_check import CheckedBundle
from tests.spm_client.workflows.bundles import Pair, publish_files

ALTERED = "the file was damaged or altered after its export: copy it anew; nothing of it was used"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Give two machines and a bundle of `alpha`, which requires `beta`; the second one has seen nothing yet."""
    made = Pair(tmp_path_factory.mktemp("attacks"))
    publish_files(made.registry, "beta", {"shared.bin": b"s" * 300})
    made.registry.publish("alpha", requires=["beta"])
    made.there.export(made.bundle, "alpha")
    return made


@pytest.fixture
def altered(pair: Pair, tmp_path: Path) -> Path:
    return tmp_path / "altered.bundle"


def refused(pair: Pair, path: Path, kind: type[SpmError]) -> SpmError:
    """Assert that verify and import refuse the file alike and leave the store as it is."""
    with pair.here.unchanged(), pytest.raises(kind) as verified:
        pair.here.verify(path)
    with pair.here.unchanged(), pytest.raises(kind) as taken:
        pair.here.take(path)
    assert verified.value.reason == taken.value.reason
    return verified.value


def opened(path: Path) -> tuple[BundleHeader, bytes]:
    """Return the header and all that follows it."""
    with BundleFile(path) as bundle:
        end = min(extent.offset for extent in bundle.documents.values())
        return bundle.header, path.read_bytes()[end:]


def place(pair: Pair, path: str) -> tuple[int, int]:
    """Return where a document begins and ends in the bundle."""
    with BundleFile(pair.bundle) as bundle:
        extent = bundle.documents[path]
    return extent.offset, extent.end


def without(pair: Pair, path: str) -> bytes:
    """Return all behind the header, but for one document."""
    header, rest = opened(pair.bundle)
    shift = len(header.to_bytes())
    begin, end = (offset - shift for offset in place(pair, path))
    return rest[:begin] + rest[end:]


# Every byte


def proven(checked: CheckedBundle) -> object:
    """Return all that was proven of a bundle."""
    return (
        [(one.verified.sha256, one.verified.keyids) for one in checked.carried],
        [(sha256, blob.entry) for sha256, blob in checked.blobs.items()],
        checked.trust.state.keyring,
        checked.trust.state.targets,
        checked.trust.state.snapshot,
    )


@pytest.fixture(scope="module")
def sound(pair: Pair) -> object:
    return proven(pair.here.verify(pair.bundle))


def holds(pair: Pair, data: bytes, sound: object) -> None:
    """Assert that a file is refused, or proves what the sound one proves; the store is as it was."""
    path = pair.folder / "fuzzed.bundle"
    path.write_bytes(data)
    with pair.here.unchanged():
        try:
            checked = pair.here.verify(path)
        except SpmError:
            with pytest.raises(SpmError):
                pair.here.take(path)
            return
    assert proven(checked) == sound


FUZZ = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.property
@FUZZ
@given(data=st.data())
def test_a_bit_that_is_another_is_refused_or_proves_the_same(pair: Pair, sound: object, data: st.DataObject) -> None:
    whole = bytearray(pair.bundle.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))

    holds(pair, bytes(whole), sound)


@pytest.mark.property
@FUZZ
@given(data=st.data())
def test_a_header_that_is_altered_anywhere_is_refused_or_proves_the_same(
    pair: Pair, sound: object, data: st.DataObject
) -> None:
    header, rest = opened(pair.bundle)
    whole = bytearray(header.to_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    length = len(whole) - PREAMBLE
    if at >= PREAMBLE and length > 0:
        whole[len(MAGIC) : PREAMBLE] = f"{length:08d}\n".encode()

    holds(pair, bytes(whole) + rest, sound)


@pytest.mark.property
@FUZZ
@given(data=st.data())
def test_a_cut_bundle_is_refused(pair: Pair, data: st.DataObject) -> None:
    whole = pair.bundle.read_bytes()
    path = pair.folder / "cut.bundle"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])

    with pair.here.unchanged(), pytest.raises(ContentError):
        pair.here.take(path)


def test_a_bundle_that_is_cut_at_any_byte_of_its_head_or_tail_is_refused(pair: Pair, altered: Path) -> None:
    whole = pair.bundle.read_bytes()
    tail = len(whole) - 320
    for end in (*range(PREAMBLE + 40), *range(tail, len(whole), 16)):
        altered.write_bytes(whole[:end])
        with pytest.raises(ContentError):
            pair.here.verify(altered)


@pytest.mark.property
@FUZZ
@given(extra=st.binary(min_size=1, max_size=64))
def test_bytes_behind_the_end_are_refused(pair: Pair, extra: bytes) -> None:
    path = pair.folder / "long.bundle"
    whole = pair.bundle.read_bytes()
    path.write_bytes(whole + extra)

    with pair.here.unchanged(), pytest.raises(SizeMismatch) as refusal:
        pair.here.take(path)

    assert refusal.value.message == (
        f"the bundle `{path}` has {len(whole) + len(extra)} bytes, {len(extra)} more than belong to it"
    )
    assert refusal.value.hint == ALTERED


# By name


def test_a_changed_blob_is_refused_by_its_digest(pair: Pair, altered: Path) -> None:
    whole = pair.bundle.read_bytes()
    assert whole.count(b"s" * 300) == 1
    changed = b"t" + b"s" * 299
    altered.write_bytes(whole.replace(b"s" * 300, changed))

    refusal = refused(pair, altered, DigestMismatch)

    assert (refusal.exit_code, refusal.reason, refusal.hint) == (25, "digest", ALTERED)
    assert refusal.message == (
        f"`shared.bin` of `beta` 1.0.0 in the bundle has the digest sha256:{hashlib.sha256(changed).hexdigest()}, "
        f"but the signed manifest says sha256:{hashlib.sha256(b's' * 300).hexdigest()}"
    )


def test_a_changed_manifest_is_refused_by_its_digest(pair: Pair, altered: Path) -> None:
    header, _ = opened(pair.bundle)
    begin, _ = place(pair, header.releases[0].path)
    whole = pair.bundle.read_bytes()
    altered.write_bytes(whole[: begin + 9] + b"X" + whole[begin + 10 :])

    assert refused(pair, altered, DigestMismatch).reason == "digest"


def test_a_changed_signature_is_refused(pair: Pair, altered: Path) -> None:
    header, _ = opened(pair.bundle)
    begin, end = place(pair, f"{header.releases[0].path}/manifest.jws")
    whole = pair.bundle.read_bytes()
    middle = (begin + end) // 2
    altered.write_bytes(whole[:middle] + bytes([whole[middle] ^ 3]) + whole[middle + 1 :])

    assert refused(pair, altered, SpmError).exit_code == 20


def test_a_manifest_whose_signature_was_left_out_is_unsigned(pair: Pair, altered: Path) -> None:
    header, _ = opened(pair.bundle)
    first = header.releases[0]
    rest = without(pair, f"{first.path}/manifest.jws")
    bare = replace(header, releases=(replace(first, signatures=()), *header.releases[1:]))
    altered.write_bytes(bare.to_bytes() + rest)

    assert refused(pair, altered, Unsigned).reason == "unsigned"


def test_a_signature_of_which_the_index_does_not_speak_is_refused(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    last = header.releases[-1]
    extra = SignatureFile(name=f"manifest.sig.{'a' * 64}", size=3)
    more = replace(header, releases=(*header.releases[:-1], replace(last, signatures=(*last.signatures, extra))))
    _, end = place(pair, f"{last.path}/manifest.jws")
    end -= len(header.to_bytes())
    altered.write_bytes(more.to_bytes() + rest[:end] + b"sig" + rest[end:])

    refusal = refused(pair, altered, FileSetMismatch)

    assert refusal.message == f"the bundle `{altered}` carries `{last.path}/{extra.name}`, which nothing in it needs"


def test_a_shard_that_was_left_out_is_missing(pair: Pair, altered: Path) -> None:
    header, _ = opened(pair.bundle)
    shard = next(part for part in header.parts if part.plugin == "beta")
    bare = replace(header, parts=tuple(part for part in header.parts if part != shard))
    altered.write_bytes(bare.to_bytes() + without(pair, f"/v1/tuf/{shard.path}"))

    assert refused(pair, altered, FileSetMismatch).reason == "file-set"


def test_a_release_that_was_left_out_is_missing(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    first, second = header.releases
    with BundleFile(pair.bundle) as bundle:
        start = len(header.to_bytes())
        begin = bundle.documents[second.path].offset - start
        end = bundle.documents_end - start
    altered.write_bytes(replace(header, releases=(first,)).to_bytes() + rest[:begin] + rest[end:])

    assert refused(pair, altered, ContentError).reason in {"file-set", "size"}


def test_a_file_that_nothing_needs_is_refused(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    shard = header.parts[-1]
    extra = Part(path=f"targets/index/{'f' * 64}.zzz.json", size=2)
    more = replace(header, parts=(*header.parts, extra))
    _, end = place(pair, f"/v1/tuf/{shard.path}")
    end -= len(header.to_bytes())
    altered.write_bytes(more.to_bytes() + rest[:end] + b"{}" + rest[end:])

    refusal = refused(pair, altered, FileSetMismatch)

    assert refusal.message == f"the bundle `{altered}` carries `/v1/tuf/{extra.path}`, which nothing in it needs"


def test_what_was_asked_for_must_be_what_is_there(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    for asked, message in (
        (("alpha", "gamma"), "the bundle asks for `gamma` `*`, but the bundle does not carry it"),
        (("alpha@^2.0",), "the bundle asks for `alpha` `^2.0`, but the bundle carries 1.0.0"),
        (("beta",), "the bundle carries `alpha`, which nothing in it asks for"),
    ):
        altered.write_bytes(replace(header, asked=asked).to_bytes() + rest)

        assert refused(pair, altered, FileSetMismatch).message == message


# The header


def head(text: bytes) -> bytes:
    return MAGIC + f"{len(text):08d}\n".encode() + text


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", TypeMismatch, "it is no bundle: a bundle begins with the line `spm bundle 1`"),
        (b"PK\x03\x04", TypeMismatch, "it is no bundle: a bundle begins with the line `spm bundle 1`"),
        (b"spm bun", SizeMismatch, "the bundle is cut: it ends after 7 bytes, within its first lines"),
        (
            MAGIC + b"+0000002\n{}",
            TypeMismatch,
            "the bundle's second line is not the length of a header in eight digits",
        ),
        (
            MAGIC + b"99999999\n{}",
            TooBig,
            f"the bundle's header has 99999999 bytes, more than the {MAX_HEADER_BYTES} allowed",
        ),
        (head(b"[]"), NotCanonical, "the bundle's header is not a JSON object"),
        (head(b"{ }"), NotCanonical, "the bundle's header is not in RFC 8785 canonical form"),
        (
            head(b'{"_type":"spm.bundle/1","_type":"spm.bundle/1"}'),
            NotCanonical,
            "the bundle's header has the member '_type' twice",
        ),
    ],
)
def test_what_is_no_bundle_is_refused(
    pair: Pair, altered: Path, data: bytes, kind: type[SpmError], message: str
) -> None:
    altered.write_bytes(data)

    refusal = refused(pair, altered, kind)

    assert refusal.exit_code == 25
    assert refusal.message.removeprefix(f"`{altered}` is refused: ") == message


def test_a_header_that_tells_too_much_is_too_big(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    text = header.to_bytes()
    size = header.parts[0].size
    changed = text[PREAMBLE:].replace(b'"1.root.json","size":%d' % size, b'"1.root.json","size":512001')
    altered.write_bytes(head(changed) + rest)

    refusal = refused(pair, altered, TooBig)

    assert refusal.message == (
        f"`{altered}` is refused: the bundle says that `/v1/tuf/1.root.json` has 512001 bytes, "
        "more than the 512000 allowed"
    )


def test_entries_that_stand_twice_or_out_of_order_are_refused(pair: Pair, altered: Path) -> None:
    header, rest = opened(pair.bundle)
    text = header.to_bytes()[PREAMBLE:]
    for before, after, kind in (
        (b'"asked":["alpha"]', b'"asked":["alpha","alpha"]', FileSetMismatch),
        (b'"asked":["alpha"]', b'"asked":["beta","alpha"]', NotCanonical),
        (b'"asked":["alpha"]', b'"asked":["alpha@*"]', TypeMismatch),
        (b'"2.root.json"', b'"1.root.json"', FileSetMismatch),
        (b'"2.root.json"', b'"3.root.json"', FileSetMismatch),
        (b'"path":"timestamp.json"', b'"path":"../timestamp.json"', TypeMismatch),
        (b'"registry":', b'"more":1,"registry":', NotCanonical),
    ):
        assert text.count(before) == 1
        altered.write_bytes(head(text.replace(before, after)) + rest)
        assert isinstance(refused(pair, altered, ContentError), kind), before


def test_what_is_no_regular_file_is_refused_at_once(pair: Pair, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path / "pipe", f"the bundle `{tmp_path / 'pipe'}` is not a regular file"),
        (tmp_path, f"the bundle `{tmp_path}` is not a regular file"),
        (tmp_path / "none", f"the bundle `{tmp_path / 'none'}` cannot be read: No such file or directory"),
    ):
        assert refused(pair, path, UsageError).message == message
