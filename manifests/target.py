"""A host as a value: what it is and which devices it has. Never looks at the machine it runs on."""

from dataclasses import dataclass
from typing import Any

from manifests import fields
from manifests.fields import Fields

CONTRACT_VERSION = "2.0.5"
"""The Seedance runtime contract that this spm's workers keep; manifests bound it by `seedance_version`."""

_VERSION = fields.matching(r"[0-9]+(\.[0-9]+)*([a-z+._-][0-9A-Za-z+._-]*)?", "a version")
_SM = fields.matching(r"sm_[1-9][0-9]{1,2}[af]?", "a compute capability such as `sm_86`")
_DEVICE_ID = fields.matching(r"(cpu|mps)|(cuda|npu|xpu):(0|[1-9][0-9]{0,2})", "a device such as `cuda:0`")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFacts:
    """The torch of a target. `cuda` is None for a CPU build; an unknown ABI is None."""

    version: str
    cuda: str | None = None
    cxx11_abi: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDevice:
    """One device of a target; an unknown compute capability or memory size (bytes) is None."""

    id: str
    name: str
    sm: str | None = None
    memory_bytes: int | None = None

    @property
    def kind(self) -> str:
        return self.id.partition(":")[0]

    @property
    def is_accelerator(self) -> bool:
        return self.kind != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One host. `torch` None means that none is installed; `glibc` and `driver` None mean none or unknown."""

    os: str
    cpu: str
    python: str
    contract: str
    devices: tuple[TargetDevice, ...]
    glibc: str | None = None
    torch: TorchFacts | None = None
    driver: str | None = None

    @property
    def accelerators(self) -> tuple[TargetDevice, ...]:
        return tuple(device for device in self.devices if device.is_accelerator)

    @classmethod
    def from_dict(cls, value: Any) -> "Target":
        """Read a target document.

        Raises: TypeMismatch listing every problem.
        """
        with fields.document("the target") as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", fields.one_of("spm.target/1"))
            target = cls(
                os=reader.required("os", fields.matching(r"[a-z0-9_]{1,32}", "an operating system")),
                cpu=reader.required("cpu", fields.matching(r"[a-z0-9_]{1,32}", "a cpu")),
                python=reader.required("python", _VERSION),
                contract=reader.required("contract", _VERSION),
                devices=reader.required("devices", fields.many(fields.nested(_read_device), 256)),
                glibc=reader.optional("glibc", _VERSION),
                torch=reader.optional("torch", fields.nested(_read_torch)),
                driver=reader.optional("driver", _VERSION),
            )
            reader.close()
            if not problems and len({device.id for device in target.devices}) != len(target.devices):
                problems.append("`devices` lists a device twice")
        return target

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "_type": "spm.target/1",
            "os": self.os,
            "cpu": self.cpu,
            "python": self.python,
            "contract": self.contract,
            "devices": [_present(id=d.id, name=d.name, sm=d.sm, memory_bytes=d.memory_bytes) for d in self.devices],
        }
        torch = self.torch
        facts = torch and _present(version=torch.version, cuda=torch.cuda, cxx11_abi=torch.cxx11_abi)
        return value | _present(glibc=self.glibc, torch=facts, driver=self.driver)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _read_torch(reader: Fields) -> TorchFacts:
    return TorchFacts(
        version=reader.required("version", _VERSION),
        cuda=reader.optional("cuda", _VERSION),
        cxx11_abi=reader.optional("cxx11_abi", fields.boolean),
    )


def _read_device(reader: Fields) -> TargetDevice:
    return TargetDevice(
        id=reader.required("id", _DEVICE_ID),
        name=reader.required("name", fields.text),
        sm=reader.optional("sm", _SM),
        memory_bytes=reader.optional("memory_bytes", fields.whole(0, 2**53 - 1)),
    )
