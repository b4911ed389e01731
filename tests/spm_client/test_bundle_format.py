"""The form of a bundle: one spelling for each header, and every extent in its place."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import ContentError, FileSetMismatch, NotCanonical, SpmError, TooBig, UsageError
from spm_client.bundle_format import (
    MAGIC,
    PREAMBLE,
    BundledRelease,
    BundleHeader,
    Part,
    SignatureFile,
    header_size,
    spec_text,
)
from spm_client.resolve import parse_spec

SHA = "0123456789abcdef" * 4


def part(path: str, size: int = 10) -> Part:
    return Part(path=path, size=size)


def header(*shards: str, roots: tuple[int, ...] = (1,), asked: tuple[str, ...] = ("alpha",)) -> BundleHeader:
    paths = [f"{version}.root.json" for version in roots]
    paths += ["timestamp.json", "7.snapshot.json", "1.targets.json", "3.bin-0a.json", f"targets/{SHA}.keyring.json"]
    paths += [f"targets/index/{SHA}.{name}.json" for name in shards or ("alpha",)]
    jws = SignatureFile(name="manifest.jws", size=900)
    release = BundledRelease(manifest_sha256=SHA, size=500, signatures=(jws,))
    return BundleHeader(registry="team.example", asked=asked, parts=tuple(map(part, paths)), releases=(release,))


@pytest.mark.property
@given(
    names=st.sets(st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True), min_size=1, max_size=5),
    first=st.integers(1, 12),
    count=st.integers(1, 12),
)
def test_a_header_is_read_as_it_was_written(names: set[str], first: int, count: int) -> None:
    made = header(*sorted(names), roots=tuple(range(first, first + count)), asked=tuple(sorted(names)))
    data = made.to_bytes()

    assert header_size(data[:PREAMBLE]) == len(data) - PREAMBLE
    assert BundleHeader.from_bytes(data[PREAMBLE:]) == made
    assert made.plugins == tuple(sorted(names))


def test_everything_lies_end_to_end_in_the_headers_order() -> None:
    made = header("alpha", "beta")
    places = dict(made.documents(1000))

    assert list(places)[-2:] == [f"/v1/manifests/{SHA}", f"/v1/manifests/{SHA}/manifest.jws"]
    assert next(iter(places.values())).offset == 1000
    assert all(before.end == after.offset for before, after in pairwise(places.values()))
    assert list(places.values())[-1].end == 1000 + 8 * 10 + 500 + 900


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("alpha", "alpha"),
        ("Alpha", "alpha"),
        ("alpha@*", "alpha"),
        ("alpha==1.0.0", "alpha==1.0.0"),
        ("alpha-v1.0.0", "alpha==1.0.0"),
        ("alpha@^1.2", "alpha@^1.2"),
        ("alpha^1.2", "alpha@^1.2"),
        ("alpha>=1,<2", "alpha>=1,<2"),
        ("alpha@1.0.0 - 2.0.0", "alpha@1.0.0 - 2.0.0"),
    ],
)
def test_a_specifier_has_one_spelling_that_is_read_as_itself(text: str, spelled: str) -> None:
    wish = parse_spec(text)

    assert spec_text(wish) == spelled
    assert parse_spec(spelled) == wish
    assert spec_text(parse_spec(spelled)) == spelled


@pytest.mark.parametrize(
    ("made", "kind", "message"),
    [
        (
            lambda: header(roots=(1, 3)),
            FileSetMismatch,
            "the bundle carries the roots [1, 3], which are no chain",
        ),
        (lambda: header(roots=()), FileSetMismatch, "the bundle carries the roots [], which are no chain"),
        (lambda: header("alpha", "alpha"), FileSetMismatch, f"'targets/index/{SHA}.alpha.json' stands twice in the "
            "bundle's header, among the parts"),
        (lambda: header("beta", "alpha"), NotCanonical, "the parts are not in order in the bundle's header"),
        (lambda: header(asked=()), FileSetMismatch, "the bundle carries no release"),
    ],
)  # fmt: skip
def test_no_other_header_can_be_written(made: object, kind: type[SpmError], message: str) -> None:
    assert callable(made)

    with pytest.raises(kind) as refused:
        made().to_bytes()

    assert refused.value.message == message


@pytest.mark.parametrize(
    "missing", ["timestamp.json", "7.snapshot.json", "1.targets.json", f"targets/{SHA}.keyring.json"]
)
def test_each_top_level_file_is_there_once(missing: str) -> None:
    made = header()
    bare = BundleHeader(
        registry=made.registry,
        asked=made.asked,
        parts=tuple(one for one in made.parts if one.path != missing),
        releases=made.releases,
    )

    with pytest.raises(FileSetMismatch) as refused:
        bare.to_bytes()

    name = missing.removesuffix(".json").rpartition(".")[2] or missing
    assert refused.value.message == f"the bundle carries 0 files `{name}.json` of the index, not one"


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("1.root.json", 512_000),
        ("timestamp.json", 16_384),
        ("7.snapshot.json", 4_000_000),
        ("3.bin-0a.json", 16_000_000),
        (f"targets/{SHA}.keyring.json", 1 << 20),
        (f"targets/index/{SHA}.alpha.json", 32 << 20),
    ],
)
def test_every_part_has_a_bound(path: str, limit: int) -> None:
    made = header()
    parts = tuple(part(one.path, limit + 1 if one.path == path else 10) for one in made.parts)

    with pytest.raises(TooBig) as refused:
        BundleHeader(registry=made.registry, asked=made.asked, parts=parts, releases=made.releases).to_bytes()

    assert refused.value.message == (
        f"the bundle says that `/v1/tuf/{path}` has {limit + 1} bytes, more than the {limit} allowed"
    )


@pytest.mark.property
@given(data=st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise_than_by_a_refusal(data: bytes) -> None:
    for read in (header_size, BundleHeader.from_bytes):
        for made in (data, MAGIC + data):
            try:
                read(made)
            except (ContentError, UsageError):
                continue
