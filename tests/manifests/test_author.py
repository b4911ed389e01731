"""The author's YAML: text stays text, surprises of YAML are refused, and `host` is filled in."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.author import MAX_YAML_BYTES, compile_manifest, read_yaml
from manifests.errors import TooBig, TypeMismatch
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from manifests.target import Target, TorchFacts
from tests.manifests.builders import (
    AUTHOR,
    CREATED,
    DIGEST,
    FILE,
    UNHURRIED,
    holds_or_refuses,
    manifest,
    refused,
    target,
)


def compiled(author: bytes, host: Target | None = None, files: tuple[FileEntry, ...] = (FILE,)) -> Manifest:
    return compile_manifest(
        author,
        registry="team.example",
        publisher="audio-team",
        created=CREATED,
        files=files,
        host=host or target(),
    )


def test_author_is_compiled_to_the_manifest() -> None:
    assert compiled(AUTHOR) == manifest()


def test_files_are_sorted() -> None:
    table = tuple(replace(FILE, path=path) for path in ("b", "a/c", "C"))

    assert [entry.path for entry in compiled(AUTHOR, files=table).files] == ["C", "a/c", "b"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a: 2.10", "2.10"),
        ("a: no", "no"),
        ("a: 012", "012"),
        ("a: 0x1F", "0x1F"),
        ("a: 1e3", "1e3"),
        ("a: 1_000", "1_000"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 2026-01-31", "2026-01-31"),
        ("a: null", "null"),
        ("a: ~", "~"),
        ("a:", ""),
        ("a: .inf", ".inf"),
        ("a: true", "true"),
        ("a: =", "="),
        ("a: [1, two]", ["1", "two"]),
        ("memory_fraction: 0.50", "0.50"),
        ("network: true", True),
        ("exec: false", False),
        ("allow_growth: yes", "yes"),
        ("allow_growth: True", "True"),
        ("allow_growth: 'true'", "true"),
        ("processes: 3", 3),
        ("processes: 0", 0),
        ("processes: -1", -1),
        ("processes: '3'", "3"),
        ("processes: 012", "012"),
        ("processes: 00", "00"),
        ("processes: +3", "+3"),
        ("processes: 3.0", "3.0"),
        ("processes: 0x3", "0x3"),
        ("processes: ٣", "٣"),
        ("processes: ²", "²"),
        ("processes: --3", "--3"),
        ("processes: " + "9" * 5000, "9" * 5000),
        ("shape: [-1, 80]", [-1, 80]),
        ("<<: {a: b}", {"a": "b"}),
    ],
)
def test_scalar_is_read_as_written(line: str, value: object) -> None:
    assert read_yaml(line.encode()) == {line.partition(":")[0]: value}


@pytest.mark.parametrize(
    ("author", "message"),
    [
        (b"", "manifest.yaml is not a table"),
        (b"# nothing", "manifest.yaml is not a table"),
        (b"text", "manifest.yaml is not a table"),
        (b"- a", "manifest.yaml is not a table"),
        (b"a: 1\na: 2", "manifest.yaml line 2: the key 'a' is written twice"),
        (b"a: {b: 1, 'b': 2}", "manifest.yaml line 1: the key 'b' is written twice"),
        (b"a: &x 1", "manifest.yaml line 1: anchors and aliases are refused"),
        (b"a: &x 1\nb: *x", "manifest.yaml line 1: anchors and aliases are refused"),
        (b"a: *x", "manifest.yaml line 1: anchors and aliases are refused"),
        (
            b"a: !!python/object/apply:os.system [ls]",
            "manifest.yaml line 1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is refused",
        ),
        (b"a: !!str 1", "manifest.yaml line 1: the tag 'tag:yaml.org,2002:str' is refused"),
        (b"a: ! 1", "manifest.yaml line 1: the tag '!' is refused"),
        (b"a: !!binary aGk=", "manifest.yaml line 1: the tag 'tag:yaml.org,2002:binary' is refused"),
        (b"? [a]\n: 1", "manifest.yaml line 1: a key is not plain text"),
        (b"? {a: b}\n: 1", "manifest.yaml line 1: a key is not plain text"),
        (b"a: " + b"[" * 17 + b"]" * 17, "manifest.yaml is nested deeper than 16 levels"),
        (
            b"a: 1\n---\nb: 2",
            'manifest.yaml is not YAML: expected a single document in the stream in "<unicode string>", line 1, '
            'column 1 but found another document in "<unicode string>", line 2, column 1',
        ),
        (
            b"a: [",
            "manifest.yaml is not YAML: while parsing a flow node did not find expected node content in "
            '"<unicode string>", line 2, column 1',
        ),
        (
            b"a: \xff",
            "manifest.yaml is not YAML: 'utf-8' codec can't decode byte 0xff in position 3: invalid start byte",
        ),
        (
            "a: b".encode("utf-16"),
            "manifest.yaml is not YAML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
def test_surprises_of_yaml_are_refused(author: bytes, message: str) -> None:
    assert refused(lambda: read_yaml(author), TypeMismatch) == message


@pytest.mark.parametrize("author", [b"a: " + b"[" * 30_000, b"- " * 30_000, b"? " * 30_000, b"{a: " * 15_000])
def test_very_deep_nesting_is_refused(author: bytes) -> None:
    assert len(refused(lambda: read_yaml(author), TypeMismatch)) < 300


def test_bomb_of_aliases_is_refused_before_it_grows() -> None:
    lines = [b"a0: &a0 [x, x]"] + [b"a%d: &a%d [*a%d, *a%d]" % (n, n, n - 1, n - 1) for n in range(1, 60)]

    assert refused(lambda: read_yaml(b"\n".join(lines))) == "manifest.yaml line 1: anchors and aliases are refused"


def test_file_beyond_its_bound_is_refused() -> None:
    message = refused(lambda: read_yaml(b"#" * (MAX_YAML_BYTES + 1)), TypeMismatch)

    assert message == "manifest.yaml has 65537 bytes, more than the 65536 allowed"


@pytest.mark.parametrize("author", [b"%s: 1\n%s: 2", b"a: !<%s> 1\n#%s"])
def test_long_words_are_cut_in_messages(author: bytes) -> None:
    word = b"k" * 30_000

    assert len(refused(lambda: read_yaml(author % (word, word)))) < 150


def test_long_unknown_members_are_cut_in_messages() -> None:
    author = AUTHOR + b"\n".join(b"%05d%b: 1" % (place, b"x" * 100) for place in range(500))

    assert len(refused(lambda: compiled(author), TypeMismatch)) < 7000


def test_every_problem_is_told_at_once() -> None:
    author = b"""
name: Audio
version: 2.0
type: plugin
summary: ""
entry: audio
seedance_version: 2.0.0
device_affinity: [gpu]
batch_policy: {mode: adaptive, max_batch_size: 0}
capabilities: {network: yes, processes: 012}
inputs: [{name: x, dtype: float, shape: [-1]}]
colour: red
"""

    with pytest.raises(TypeMismatch) as caught:
        compiled(author)

    assert caught.value.context["problems"] == [
        "`name`: 'Audio' is not a plugin name: names are lower-case words of a-z and 0-9 joined by single hyphens, "
        "64 characters at most",
        "`version`: '2.0' is not a version: write `X.Y.Z`, with `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N` "
        "for a pre-release",
        "`type`: 'plugin' is not one of `core`, `ext`",
        "`summary`: '' is not plain text of 1 to 4096 characters",
        "`license` is missing",
        "`entry`: 'audio' is not `module:factory`",
        "`seedance_version`: the range '2.0.0' has the bare number `2.0.0`, which would have to be interpreted "
        "(write `==2.0.0`, `~2.0` or `>=2.0,<3`)",
        "`device_affinity`: 'gpu' is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, "
        "`xpu` or `mps`",
        "`batch_policy`: batch_policy.max_batch_size is '0', not a whole number from 1 to 65536",
        "`inputs`: item 0: `dtype`: 'float' is not one of `float64`, `float32`, `float16`, `bfloat16`, "
        "`float8_e4m3fn`, `float8_e5m2`, `complex64`, `complex128`, `int64`, `int32`, `int16`, `int8`, `uint64`, "
        "`uint32`, `uint16`, `uint8`, `bool`",
        "`capabilities`: `network`: 'yes' is neither true nor false, `processes`: '012' is not a whole number "
        "from 0 to 4096",
        "`colour` is not a known member",
    ]


@pytest.mark.parametrize("member", ["registry", "publisher", "created", "files", "_type"])
def test_author_cannot_say_what_the_packer_says(member: str) -> None:
    assert refused(lambda: compiled(AUTHOR + f"{member}: x\n".encode()), TypeMismatch) == (
        f"manifest.yaml is refused: `{member}` is not a known member"
    )


def with_variant(**members: str) -> bytes:
    return AUTHOR + b"variant:\n" + "".join(f"  {name}: {value}\n" for name, value in members.items()).encode()


@pytest.mark.parametrize(
    ("torch", "members", "filled"),
    [
        (
            TorchFacts(version="2.13.0+cpu"),
            ["os", "cpu", "python", "torch"],
            {"os": "linux", "cpu": "x86_64", "python": "~3.11.4", "torch": "~2.13.0"},
        ),
        (TorchFacts(version="2.10.1", cuda="12.6"), ["torch", "cuda"], {"torch": "~2.10.1", "cuda": "~12.6"}),
        (None, ["os"], {"os": "linux"}),
    ],
)
def test_host_is_filled_from_the_packing_machine(
    torch: TorchFacts | None, members: list[str], filled: dict[str, str]
) -> None:
    made = compiled(with_variant(**dict.fromkeys(members, "host")), target(torch=torch))

    assert made.variant is not None
    assert made.variant.to_dict() == filled


def test_written_variant_is_kept() -> None:
    made = compiled(with_variant(os="darwin", cpu="host", torch="'>=2.6,<3'"))

    assert made.variant is not None
    assert made.variant.to_dict() == {"os": "darwin", "cpu": "x86_64", "torch": ">=2.6,<3"}


@pytest.mark.parametrize(
    ("member", "changes", "message"),
    [
        ("torch", {"torch": None}, "`variant.torch` is `host`, but this machine does not tell its torch"),
        ("cuda", {}, "`variant.cuda` is `host`, but this machine does not tell its cuda"),
        ("accelerator", {}, "`variant.accelerator` is `host`, but this machine does not tell its accelerator"),
        (
            "torch",
            {"torch": TorchFacts(version="2.14.0.dev20260801+cpu")},
            "`variant.torch` is `host`, but this machine has 2.14.0.dev20260801+cpu, a pre-release: "
            "write the range instead",
        ),
        (
            "python",
            {"python": "3.14.0rc1"},
            "`variant.python` is `host`, but this machine has 3.14.0rc1, a pre-release: write the range instead",
        ),
    ],
)
def test_fact_that_the_packing_machine_lacks_is_told(member: str, changes: dict[str, Any], message: str) -> None:
    assert refused(lambda: compiled(with_variant(**{member: "host"}), target(**changes)), TypeMismatch) == message


def test_manifest_beyond_its_bound_is_not_made() -> None:
    table = tuple(
        FileEntry(path=f"{'x' * 200}/{'y' * 100}{place:04}", size=1, sha256=DIGEST, mode="r") for place in range(4000)
    )

    assert "more than the 1048576 allowed" in refused(lambda: compiled(AUTHOR, files=table), TooBig)


@pytest.mark.property
@UNHURRIED
@given(
    st.binary(max_size=80)
    | st.text(st.sampled_from("ab: -\n[]{},#&*!|>'\"?%\t012~<@`\\x\0é"), max_size=120).map(str.encode)
)
def test_any_bytes_are_yaml_or_refused(data: bytes) -> None:
    holds_or_refuses(lambda: read_yaml(data))
    holds_or_refuses(lambda: compiled(AUTHOR + data))


@pytest.mark.property
@UNHURRIED
@given(st.data())
def test_any_change_of_an_author_is_compiled_or_refused(data: st.DataObject) -> None:
    lines = AUTHOR.splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    name = lines[place].partition(b":")[0]
    value = data.draw(
        st.sampled_from(["", "[]", "{}", "[[a]]", "{a: b}", "null", "1", "- a", "'\\0'", '"\\0"', "host", "*"])
    )
    lines[place] = name + b": " + value.encode()

    holds_or_refuses(lambda: compiled(b"\n".join(lines)))
