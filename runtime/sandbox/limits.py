"""What a worker may use, as kernel resource limits. Applies them to the calling process only."""

import resource
from dataclasses import dataclass
from typing import Any

ROOM_FOR_TORCH = 1 << 30
DESCRIPTORS = 1024
THREADS_AND_CHILDREN = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes of address space (None: no limit), open descriptors, and threads with processes together."""

    address_space: int | None
    descriptors: int
    processes: int

    @classmethod
    def of(cls, memory_bytes: int | None, processes: int) -> "Limits":
        """Return the limits for a plugin that may use so much memory and so many child processes.

        torch itself maps some 800 MB, and its thread pools count as processes.
        """
        return cls(
            address_space=None if memory_bytes is None else memory_bytes + ROOM_FOR_TORCH,
            descriptors=DESCRIPTORS,
            processes=THREADS_AND_CHILDREN + processes,
        )

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Limits":
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        return {"address_space": self.address_space, "descriptors": self.descriptors, "processes": self.processes}

    def apply(self, *, is_in_user_namespace: bool) -> None:
        """Lower this process's limits for good."""
        for kind, value in self._wanted(is_in_user_namespace=is_in_user_namespace).items():
            resource.setrlimit(kind, (value, value))

    def exceeded(self, *, is_in_user_namespace: bool) -> list[str]:
        """Return what is not in force in this process."""
        wanted = self._wanted(is_in_user_namespace=is_in_user_namespace)
        loose = [kind for kind, value in wanted.items() if resource.getrlimit(kind) != (value, value)]
        problems = [f"{_NAMES[kind]} is {resource.getrlimit(kind)}, not {wanted[kind]}" for kind in loose]
        if not is_in_user_namespace:
            problems.append("NPROC would count the whole host's processes without a user namespace")
        return problems + _raised()

    def _wanted(self, *, is_in_user_namespace: bool) -> dict[int, int]:
        wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: self.descriptors}
        if self.address_space is not None:
            wanted[resource.RLIMIT_AS] = self.address_space
        # Outside a user namespace the count is that of the uid on the whole host: it would fail at random.
        if is_in_user_namespace:
            wanted[resource.RLIMIT_NPROC] = self.processes
        return wanted


_NAMES = {
    resource.RLIMIT_CORE: "CORE",
    resource.RLIMIT_NOFILE: "NOFILE",
    resource.RLIMIT_AS: "AS",
    resource.RLIMIT_NPROC: "NPROC",
}


def _raised() -> list[str]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
    except (ValueError, PermissionError):
        return []
    return [f"NOFILE could be raised from {hard} to {hard + 1}"]
