"""The parts that manifests and index shards are made of, each with its reader and its form. No whole document."""

from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from manifests import fields
from manifests.batching import BatchPolicy
from manifests.devices import read_affinity as read_affinity
from manifests.errors import UsageError
from manifests.fields import Fields
from manifests.names import PluginName, parse_name
from manifests.paths import check_path
from manifests.plugin_type import PluginType as PluginType
from manifests.ranges import Range

MAX_FILE_BYTES = 1 << 36
MAX_TAG_LENGTH = 120
MIN_REASON_LENGTH = 12
ACCELERATORS = ("cpu", "cuda", "npu", "xpu", "mps")
TRAPS = ("affinity-unbound", "range-unbounded", "batch-policy-missing")

_FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128")
_INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")
_PACKAGE = fields.matching(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9.+!_-]+", "`name==version`")
_ENV = fields.matching(r"[A-Za-z_][A-Za-z0-9_]{0,127}", "the name of an environment variable")
# They say which code the loader, the C library or the interpreter runs, or undo what the worker is started with.
_STEERING = fields.matching(
    r"(?!((LD_|PYTHON|MALLOC_|TORCH_FORCE_).*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH|PATH|HOME|BASH_ENV|ENV|IFS)\Z).*",
    "a variable that a plugin may ask for: it steers the process that the plugin runs in",
)
_PATH = fields.matching(r"(/(?!\.{1,2}(/|\Z))[A-Za-z0-9._+-]{1,200}){1,16}", "an absolute path without `.` or `..`")
_SIZE = fields.whole(0, MAX_FILE_BYTES)
_MODE = fields.one_of("r", "x")
# A variant's tag joins its members, so no system may be called as another member begins.
_TAG = fields.matching(
    rf"(?!any\Z|{'|'.join(ACCELERATORS)}|sm_|torch|python)[a-z0-9_]{{1,32}}",
    "a word of a-z, 0-9 and `_` that begins unlike `any`, `sm_`, `torch`, `python` and the accelerators",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """What must be there: plugins by name and range, torch and python ranges, exact Python packages."""

    plugins: tuple[tuple[PluginName, Range], ...] = ()
    torch: Range | None = None
    python: Range | None = None
    packages: tuple[str, ...] = ()

    @classmethod
    def read(cls, reader: Fields) -> "Requires":
        return cls(
            plugins=reader.optional("plugins", _read_plugins) or (),
            torch=reader.optional("torch", Range.parse),
            python=reader.optional("python", Range.parse),
            packages=reader.optional("packages", fields.many(_PACKAGE, 256)) or (),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = (
            {"plugins": {name: wanted.text for name, wanted in self.plugins}} if self.plugins else {}
        )
        value |= {name: getattr(self, name).text for name in ("torch", "python") if getattr(self, name)}
        return value | ({"packages": list(self.packages)} if self.packages else {})


def _read_plugins(value: Any) -> tuple[tuple[PluginName, Range], ...]:
    if not isinstance(value, dict) or len(value) > 256:
        raise UsageError("it is not a table of at most 256 `name: range`")
    return tuple(sorted((parse_name(name), Range.parse(wanted)) for name, wanted in value.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The kind of target that one build is for. A member that is None is not restricted."""

    os: str | None = None
    cpu: str | None = None
    accelerator: str | None = None
    cuda: Range | None = None
    sm: tuple[str, ...] = ()
    torch: Range | None = None
    python: Range | None = None

    @classmethod
    def read(cls, reader: Fields) -> "Variant":
        variant = cls(
            os=reader.optional("os", _TAG),
            cpu=reader.optional("cpu", _TAG),
            accelerator=reader.optional("accelerator", fields.one_of(*ACCELERATORS)),
            cuda=reader.optional("cuda", Range.parse),
            sm=reader.optional("sm", fields.many(fields.matching(r"sm_[1-9][0-9]{1,2}[af]?", "a capability"), 32))
            or (),
            torch=reader.optional("torch", Range.parse),
            python=reader.optional("python", Range.parse),
        )
        if len(variant.tag) > MAX_TAG_LENGTH:
            raise UsageError(
                f"its tag `{variant.tag[:40]}...` has {len(variant.tag)} characters, more than {MAX_TAG_LENGTH}"
            )
        return variant

    def to_dict(self) -> dict[str, Any]:
        value = {name: getattr(self, name) for name in ("os", "cpu", "accelerator") if getattr(self, name)}
        value |= {name: getattr(self, name).text for name in ("cuda", "torch", "python") if getattr(self, name)}
        return value | ({"sm": list(self.sm)} if self.sm else {})

    @property
    def tag(self) -> str:
        """The variant's name in paths and messages, such as `linux-x86_64-torch2.13.0`."""
        machine = (self.os or "any", self.cpu) if self.cpu else (self.os,)
        words = [word for word in (*machine, self.accelerator, *self.sm) if word]
        words += [f"{kind}{_spell(wanted)}" for kind in ("cuda", "torch", "python") if (wanted := getattr(self, kind))]
        return "-".join(words) or "any"


# Longer signs first. Only `~` is silent: no two signs of different meaning may share a spelling.
_SIGNS = {">=": "ge", "<=": "le", "==": "eq", "!=": "ne", "~=": "co"}
_SIGNS |= {">": "gt", "<": "lt", "^": "c", "=": "eq", "||": "or", "~": ""}


def _spell(wanted: Range) -> str:
    spelled = wanted.text.replace(" ", "").replace(",", "_")
    for sign, word in _SIGNS.items():
        spelled = spelled.replace(sign, word)
    return "".join(letter if letter.isalnum() or letter in "._-" else "x" for letter in spelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """Resource controls that the worker applies. A number with a fraction is text, since documents hold no floats."""

    memory_fraction: str | None = None
    allow_growth: bool | None = None
    memory: str | None = None
    compute_capability_override: str | None = None
    tensor_core_policy: str | None = None
    precision: str | None = None

    @classmethod
    def read(cls, reader: Fields) -> "Controls":
        return cls(
            memory_fraction=reader.optional(
                "memory_fraction",
                fields.matching(r"(?!0\.0+\Z)0\.[0-9]{1,4}|1(\.0{1,4})?", "a fraction above 0 such as `0.75`"),
            ),
            allow_growth=reader.optional("allow_growth", fields.boolean),
            memory=reader.optional(
                "memory", fields.matching(r"[1-9][0-9]{0,6}(KiB|MiB|GiB)", "a size such as `512MiB`")
            ),
            compute_capability_override=reader.optional(
                "compute_capability_override", fields.matching(r"sm_[1-9][0-9]{1,2}", "a compute capability")
            ),
            tensor_core_policy=reader.optional("tensor_core_policy", fields.one_of("auto", "force", "off")),
            precision=reader.optional(
                "precision", fields.matching(r"[a-z0-9-]{1,32}", "a precision such as `float32`")
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        members = {member.name: getattr(self, member.name) for member in dataclass_fields(self)}
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output: its name, dtype, and shape with -1 where the size is free (the batch at dimension 0)."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def read(cls, reader: Fields) -> "TensorSpec":
        return cls(
            name=reader.required("name", fields.matching(r"[a-z][a-z0-9_]{0,63}", "a tensor's name")),
            dtype=reader.required("dtype", fields.one_of(*_FLOATS, *_INTEGERS)),
            shape=reader.required("shape", fields.many(fields.whole(-1, 2**40), 32)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}


def _read_env(value: Any) -> str:
    return _STEERING(_ENV(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a plugin may do beyond computing; everything is off unless written. `processes` counts children."""

    network: bool = False
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    processes: int = 0
    exec: bool = False

    @classmethod
    def of(cls, reader: Fields) -> "Capabilities":
        return cls(
            network=reader.optional("network", fields.boolean) or False,
            read=reader.optional("read", fields.many(_PATH, 64)) or (),
            write=reader.optional("write", fields.many(_PATH, 64)) or (),
            env=reader.optional("env", fields.many(_read_env, 64)) or (),
            processes=reader.optional("processes", fields.whole(0, 4096)) or 0,
            exec=reader.optional("exec", fields.boolean) or False,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "network": self.network,
            "read": list(self.read),
            "write": list(self.write),
            "env": list(self.env),
            "processes": self.processes,
            "exec": self.exec,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a release: its path, size in bytes, SHA-256, and mode (`r` data, `x` executable)."""

    path: str
    size: int
    sha256: str
    mode: str

    @classmethod
    def read(cls, reader: Fields) -> "FileEntry":
        return cls(
            path=reader.required("path", check_path),
            size=reader.required("size", _SIZE),
            sha256=reader.required("sha256", fields.sha256),
            mode=reader.required("mode", _MODE),
        )

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size, "sha256": self.sha256, "mode": self.mode}


def read_batch_policy(value: Any) -> BatchPolicy:
    return BatchPolicy.from_value(value)


def read_waivers(value: Any) -> tuple[tuple[str, str], ...]:
    """Read `trap: reason` where the reason is a sentence that somebody wrote (12 characters at least)."""
    if not isinstance(value, dict) or any(trap not in TRAPS for trap in value):
        raise UsageError("it is not a table of " + ", ".join(f"`{trap}`" for trap in TRAPS) + " with written reasons")
    if short := [trap for trap, reason in value.items() if len(fields.text(reason).strip()) < MIN_REASON_LENGTH]:
        raise UsageError(f"the reason for `{short[0]}` is too short to be one")
    return tuple(sorted(value.items()))
