"""From a verified plugin to the command that starts its worker. Starts nothing, decides no placement."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keys.keyring import LoaderConf
from keys.verified import InstalledPlugin
from manifests.errors import PolicyDenied
from runtime.controls import effective, ungranted
from runtime.process import Launch
from runtime.sandbox.bwrap import SCRATCH_BYTES, Bind, Bubblewrap, Identity, command
from runtime.sandbox.layers import SCRATCH, Facts, own_namespaces
from runtime.sandbox.limits import Limits
from runtime.sandbox.view import PLUGINS, code_folder, view_of

_NOBODY = 65534
_START = """import sys
sys.path.insert(0, {folder!r})
from runtime.sandbox.first_process import split
split()
from runtime.worker import main
sys.path.pop(0)
main(int(sys.argv[1]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the host process brings: store, loader.conf, bubblewrap, environment, home, and threads for each worker."""

    root: Path
    conf: LoaderConf
    bubblewrap: Bubblewrap
    environment: Mapping[str, str]
    home: str
    threads: int


def launch_of(
    plugin: InstalledPlugin, required: tuple[InstalledPlugin, ...], device: str, around: Surroundings
) -> Launch:
    """Return what starts the plugin's worker on a device.

    Raises: PolicyDenied when the plugin asks for a capability that a worker cannot be given.
    """
    manifest = plugin.manifest
    _require_grantable(plugin)
    trees = [Bind(source=str(one.directory), target=f"{PLUGINS}/{one.manifest.name}") for one in (plugin, *required)]
    hidden = _hidden(around)
    view = view_of(trees, hidden=hidden, environment=_environment(plugin, around))
    inner = [sys.executable, "-I", "-B", "-u", "-c", _START.format(folder=code_folder())]
    limits = Limits.of(effective(manifest, around.conf.memory_bytes).memory_bytes, manifest.capabilities.processes)
    return Launch(
        plugin=manifest.name,
        command=command(around.bubblewrap, view, inner, _identity()),
        facts=Facts(
            namespaces=own_namespaces(),
            hidden=hidden,
            granted=view.granted,
            scratch_bytes=SCRATCH_BYTES,
            limits=limits,
        ),
        order={
            "name": manifest.name,
            "version": str(manifest.version),
            "entry": manifest.entry,
            "trees": [tree.target for tree in trees],
            "device": device,
            "threads": around.threads,
        },
        accept_missing=around.conf.accept_missing,
    )


def _require_grantable(plugin: InstalledPlugin) -> None:
    manifest = plugin.manifest
    if asked := ungranted(manifest.capabilities):
        raise PolicyDenied(
            f"`{manifest.name}` {manifest.version} asks for {', '.join(f'`{name}`' for name in asked)}: "
            "no worker of this version of spm can be given that",
            hint="ask its publisher for a release that does without it",
            plugin=manifest.name,
            capabilities=asked,
        )


def _hidden(around: Surroundings) -> tuple[str, ...]:
    folders = [os.path.realpath(around.root), os.path.realpath(around.home)]
    return tuple(dict.fromkeys(folder for folder in folders if folder != "/"))


def _environment(plugin: InstalledPlugin, around: Surroundings) -> dict[str, str]:
    threads = str(around.threads)
    granted = {
        name: around.environment[name] for name in plugin.manifest.capabilities.env if name in around.environment
    }
    return granted | {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "HOME": SCRATCH,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # torch.load then refuses pickled code even where a plugin asks for it.
        "TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1",
    }


def _identity() -> Identity | None:
    return Identity(uid=_NOBODY, gid=_NOBODY) if os.geteuid() == 0 else None
