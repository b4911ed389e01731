"""The process that runs plugins: opens a store, verifies, places, and keeps one instance per plugin and device.

Imports no torch; the caller who hands tensors has done so.
"""

import os
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from keys.keyring import LoaderConf
from manifests.devices import parse_device
from manifests.errors import ConfigMissing, LayerMissing, LimitReached, UsageError
from manifests.lockfile import Generation, InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName, parse_name
from manifests.parts import PluginType
from manifests.target import Target
from runtime import run_record
from runtime.batcher import NO_BATCHING
from runtime.controls import effective, policy_of
from runtime.generation import current_generation, current_number
from runtime.in_use import mark
from runtime.installed import StoreTrust, dependencies, find_entry, open_entry, read_manifest
from runtime.instance import Blueprint, Instance
from runtime.launch import Surroundings, launch_of
from runtime.placement import place, require_fit
from runtime.probe import probe_target
from runtime.process import Handshake, Launch
from runtime.sandbox import bwrap
from runtime.sandbox.bwrap import Bubblewrap
from runtime.torch_here import no_torch

__all__ = ["Host", "Instance"]

START_SECONDS = 120.0
_MARK_ROUNDS = 64


class Host:
    """Run the plugins of one store.

    `with Host(root) as host: host.load("audio-encoder")(x)`. Entering starts core plugins; leaving ends all workers.
    `threads` is what each worker computes with; `call_deadline` ends a worker whose call takes longer.
    Raises: ConfigError when the store's loader.conf is not there or not as it must be.
    """

    def __init__(
        self,
        root: Path | str,
        *,
        start_deadline: float = START_SECONDS,
        call_deadline: float | None = None,
        threads: int = 1,
        bubblewrap: Path | None = None,
    ) -> None:
        self._root = Path(root).resolve()
        self._start_seconds = start_deadline
        self._call_seconds = call_deadline
        self._threads = threads
        self._bubblewrap = bubblewrap
        self._lock = threading.Lock()
        self._is_closed = False
        self._instances: dict[tuple[str, str], Instance] = {}
        self._target: Target | None = None
        self._conf().require_root()

    def __enter__(self) -> "Host":
        generation = current_generation(self._root)
        try:
            for entry in generation.plugins:
                if entry.type is PluginType.CORE:
                    self.load(entry.name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def load(self, name: str, device: str | None = None) -> Instance:
        """Return the plugin's instance on the device that its affinity gives it, started and ready.

        Signature and tree are verified before its worker starts, and again whenever it is started anew.
        Raises: NotFound; the refusals of verification; IncompatibleTarget; LayerMissing; PluginFailed; WorkerDied.
        """
        trust = self._trusted()
        with ExitStack() as marks:
            generation, entry = self._marked(parse_name(name), marks)
            manifest = read_manifest(self._root, entry, trust.of(entry)).manifest
            placed = self._place(manifest, entry, device)
            with self._lock:
                self._require_open()
                instance = self._instances.get((entry.manifest_sha256, placed))
                if instance is None or instance.is_closed:
                    instance = Instance(self._blueprint(generation, entry, manifest, placed), marks)
                    self._instances[entry.manifest_sha256, placed] = instance
        instance.wait_ready()
        return instance

    def describe(self, name: str) -> Manifest:
        """Return the manifest of an installed plugin, its signature verified now. Starts nothing.

        Raises: NotFound; the refusals of verification.
        """
        entry = find_entry(self._root, current_generation(self._root), parse_name(name))
        return read_manifest(self._root, entry, self._trusted().of(entry)).manifest

    def close(self) -> None:
        """End every worker and wait until all are gone."""
        with self._lock:
            self._is_closed = True
            instances, self._instances = list(self._instances.values()), {}
        # Each is ended, and what of it could not be ended is told by the first error.
        with ExitStack() as stack:
            for instance in instances:
                stack.callback(instance.close)

    def _require_open(self) -> None:
        if self._is_closed:
            raise UsageError(f"the host of {self._root} is closed", hint="make a new one: `Host(root)`")

    def _conf(self) -> LoaderConf:
        try:
            return LoaderConf.read(self._root / "loader.conf")
        except ConfigMissing as error:
            # That the file is not there is all that its cause says, too.
            raise error from None

    def _trusted(self) -> StoreTrust:
        """Return what may be trusted at this very load."""
        return StoreTrust(self._root, self._conf(), datetime.now(UTC))

    def _marked(self, name: PluginName, marks: ExitStack) -> tuple[Generation, InstalledEntry]:
        """Mark a plugin and all that it requires as run, and return what is installed once they are marked."""
        for _ in range(_MARK_ROUNDS):
            generation = current_generation(self._root)
            entry = find_entry(self._root, generation, name)
            mark(self._root, (one.manifest_sha256 for one in generation.closure(name)), marks)
            # Before it was marked, another command may have taken it away.
            if current_number(self._root) == generation.number:
                return generation, entry
            marks.close()
        raise LimitReached(
            f"other commands changed `{self._root}` {_MARK_ROUNDS} times while `{name}` was loaded",
            reason="limit:races",
            hint="load it again",
        )

    def _place(self, manifest: Manifest, entry: InstalledEntry, device: str | None) -> str:
        target = self._probed()
        if target.torch is None:
            raise no_torch(f"`{entry.name}`", plugin=entry.name)
        affinity = entry.bindings.affinity or manifest.device_affinity
        placed = place(entry.name, affinity, target, wanted=parse_device(device) if device else None)
        if placed.is_accelerator:
            raise LayerMissing(
                f"`{entry.name}` belongs on `{placed.id}`, and this version of spm gives device nodes to no worker",
                reason="layer-missing:L9",
                hint=f"bind it to the CPU: `spm install {entry.name} --affinity cpu`",
                plugin=entry.name,
                device=placed.id,
            )
        return placed.id

    def _probed(self) -> Target:
        if self._target is None:
            self._target = probe_target()
        return self._target

    def _blueprint(self, generation: Generation, entry: InstalledEntry, manifest: Manifest, device: str) -> Blueprint:
        policy = entry.bindings.batch_policy or manifest.batch_policy or NO_BATCHING
        bubblewrap = self._find_bubblewrap()
        in_force = {
            "controls": effective(manifest, self._conf().memory_bytes).controls,
            "policy": policy_of(manifest.capabilities),
        }

        def prepare() -> Launch:
            return self._prepare(generation, entry, device, bubblewrap)

        def record(handshake: Handshake) -> str:
            told = _describe(entry, device, handshake) | {"batch_policy": policy.to_value()} | in_force
            return run_record.append(self._root, told)

        return Blueprint(
            manifest=manifest,
            device=device,
            policy=policy,
            start_seconds=self._start_seconds,
            call_seconds=self._call_seconds,
            effective=in_force,
            prepare=prepare,
            record=record,
        )

    def _prepare(self, generation: Generation, entry: InstalledEntry, device: str, bubblewrap: Bubblewrap) -> Launch:
        trust = self._trusted()
        plugin = open_entry(self._root, entry, trust.of(entry))
        required = tuple(
            open_entry(self._root, other, trust.of(other)) for other in dependencies(generation, entry.name)
        )
        for one in (plugin, *required):
            require_fit(one.manifest, self._probed())
        around = Surroundings(
            root=self._root,
            conf=trust.of(entry),
            bubblewrap=bubblewrap,
            environment=os.environ,
            home=os.path.expanduser("~"),
            threads=self._threads,
        )
        return launch_of(plugin, required, device, around)

    def _find_bubblewrap(self) -> Bubblewrap:
        if self._bubblewrap is not None:
            return Bubblewrap(path=self._bubblewrap, folder=self._bubblewrap.parent)
        return bwrap.find(os.environ.get("PATH", os.defpath))


def _describe(entry: InstalledEntry, device: str, handshake: Handshake) -> dict[str, Any]:
    return {
        "started": run_record.timestamp(time.time()),
        "plugin": entry.name,
        "version": str(entry.version),
        "release": entry.release,
        "manifest_sha256": entry.manifest_sha256,
        "keyids": list(entry.keyids),
        "type": entry.type.value,
        "fallback": entry.fallback,
        "device": device,
        "pid": handshake.pid,
        "torch": handshake.torch,
        "threads": handshake.threads,
        "isolation": "reduced" if handshake.accepted_missing else "full",
        "layers": [layer.to_dict() for layer in handshake.layers],
        "accepted_missing": list(handshake.accepted_missing),
    }
