"""From the author's manifest.yaml to the document that is signed. Reads no file, signs nothing."""

import re
from typing import Any

import yaml

from manifests import fields
from manifests.errors import TypeMismatch
from manifests.fields import Fields
from manifests.manifest import Manifest, read_shared
from manifests.parts import FileEntry
from manifests.target import Target

MAX_YAML_BYTES = 64 * 1024
MAX_YAML_DEPTH = 16

_BOOLEANS = {"true": True, "false": False}
_BOOLEAN_PATHS = {"allow_growth", "network", "exec"}
_INTEGER_PATHS = {"processes", "max_batch_size", "max_latency_ms", "shape"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_HOST_VERSION = re.compile(r"(?P<release>(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){1,2})(?:\+[0-9A-Za-z.-]+)?")
_SHOWN = 64


def compile_manifest(
    author: bytes,
    *,
    registry: str,
    publisher: str,
    created: str,
    files: tuple[FileEntry, ...],
    host: Target,
) -> Manifest:
    """Compile the author's YAML into the manifest to sign.

    `created` is RFC 3339 UTC; `files` any order; a variant member written `host` is filled from `host`.
    Raises: TypeMismatch listing every problem of the YAML; TooBig when the manifest would have more than 1 MiB.
    """
    value = _fill_host(read_yaml(author), host)
    with fields.document("manifest.yaml") as problems:
        reader = Fields(value, "", problems)
        shared = read_shared(reader)
        reader.close()
    manifest = Manifest(
        registry=registry,
        publisher=publisher,
        created=created,
        files=tuple(sorted(files, key=lambda entry: entry.path)),
        **shared,
    )
    return Manifest.from_bytes(manifest.to_bytes())


def read_yaml(data: bytes) -> dict[str, Any]:
    """Return YAML with every scalar as the text it was written as, except members that are booleans or numbers.

    Raises: TypeMismatch on bytes beyond 64 KiB or not UTF-8, invalid YAML, duplicate keys, anchors, aliases, tags or
    deep nesting.
    """
    if len(data) > MAX_YAML_BYTES:
        raise TypeMismatch(
            f"manifest.yaml has {len(data)} bytes, more than the {MAX_YAML_BYTES} allowed", reason="too-big"
        )
    try:
        written = data.decode("utf-8")
        _refuse_anchors(written)
        node = yaml.compose(written, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TypeMismatch(f"manifest.yaml is not YAML: {' '.join(str(error).split())}") from error
    value = _plain(node, "", 0)
    if not isinstance(value, dict):
        raise TypeMismatch("manifest.yaml is not a table")
    return value


def _refuse_anchors(written: str) -> None:
    for event in yaml.parse(written, Loader=yaml.CSafeLoader):
        if getattr(event, "anchor", None) is not None:
            raise TypeMismatch(f"manifest.yaml line {_line(event)}: anchors and aliases are refused")
        if (tag := getattr(event, "tag", None)) is not None:
            raise TypeMismatch(f"manifest.yaml line {_line(event)}: the tag {tag[:_SHOWN]!r} is refused")


def _line(marked: Any) -> int:
    return int(marked.start_mark.line) + 1


def _plain(node: Any, member: str, depth: int) -> Any:
    if depth > MAX_YAML_DEPTH:
        raise TypeMismatch(f"manifest.yaml is nested deeper than {MAX_YAML_DEPTH} levels")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, depth)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, member, depth + 1) for item in node.value]
    return None if node is None else _scalar(node, member)


def _mapping(node: yaml.MappingNode, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, inner in node.value:
        line = _line(key)
        if not isinstance(key, yaml.ScalarNode):
            raise TypeMismatch(f"manifest.yaml line {line}: a key is not plain text")
        if key.value in value:
            raise TypeMismatch(f"manifest.yaml line {line}: the key {key.value[:_SHOWN]!r} is written twice")
        value[key.value] = _plain(inner, key.value, depth + 1)
    return value


def _scalar(node: yaml.ScalarNode, member: str) -> Any:
    """Keep the text as written (`2.10` stays `2.10`), except where the member is a boolean or a number."""
    written = str(node.value)
    if not node.style and member in _BOOLEAN_PATHS and written in _BOOLEANS:
        return _BOOLEANS[written]
    if not node.style and member in _INTEGER_PATHS and _INTEGER.fullmatch(written):
        return int(written)
    return written


def _fill_host(value: dict[str, Any], host: Target) -> dict[str, Any]:
    variant = value.get("variant")
    if not isinstance(variant, dict):
        return value
    filled = {name: _host_fact(name, host) if written == "host" else written for name, written in variant.items()}
    return value | {"variant": filled}


def _host_fact(name: str, host: Target) -> str:
    """Return what the packing machine says of one member of a variant, a version as the range of its minor version."""
    torch = host.torch
    match name:
        case "os" | "cpu":
            return str(getattr(host, name))
        case "python":
            return _minor(name, host.python)
        case "torch" if torch is not None:
            return _minor(name, torch.version)
        case "cuda" if torch is not None and torch.cuda is not None:
            return _minor(name, torch.cuda)
        case _:
            shown = name[:_SHOWN]
            raise TypeMismatch(f"`variant.{shown}` is `host`, but this machine does not tell its {shown}")


def _minor(name: str, version: str) -> str:
    """Return the range of one minor version: `2.13.0+cpu` gives `~2.13.0`."""
    match = _HOST_VERSION.fullmatch(version)
    if match is None:
        raise TypeMismatch(
            f"`variant.{name}` is `host`, but this machine has {version}, a pre-release: write the range instead"
        )
    return f"~{match['release']}"
