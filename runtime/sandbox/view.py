"""Which files of this host a worker gets to see: interpreter, libraries, our own code, plugins. Decides no policy."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import manifests
import runtime
from runtime.sandbox.bwrap import Bind, View

PLUGINS = "/spm/plugins"
_LIBRARIES = ("/lib", "/lib64", "/lib32", "/libx32")
_CODE = (manifests, runtime)


def code_folder() -> str:
    """Return the folder that the worker imports our packages from."""
    return str(Path(runtime.__path__[0]).parent)


def view_of(trees: Sequence[Bind], *, hidden: Sequence[str], environment: Mapping[str, str]) -> View:
    """Return a view with the plugin trees, and without the hidden folders even where they lie in a granted one."""
    binds = _distinct([*_interpreter(), *_own_code(), *trees], hidden)
    masks = tuple(path for path in hidden if any(_is_within(path, bind.target) for bind in binds))
    links = tuple((os.readlink(path), path) for path in _LIBRARIES if os.path.islink(path))
    return View(binds=binds, links=links, masks=masks, environment=environment)


def _interpreter() -> list[Bind]:
    paths = ["/usr", *(path for path in _LIBRARIES if not os.path.islink(path)), "/etc/ld.so.cache"]
    paths += [sys.base_prefix, sys.prefix]
    return [Bind(source=path, target=path) for path in paths if os.path.exists(path)]


def _own_code() -> list[Bind]:
    # Package by package: the folder they share may hold anything in a source checkout.
    folders = [str(Path(package.__path__[0])) for package in _CODE]
    return [Bind(source=folder, target=folder) for folder in folders]


def _distinct(binds: Sequence[Bind], hidden: Sequence[str]) -> tuple[Bind, ...]:
    """Leave out what an earlier bind shows already, at the same place."""
    kept: list[Bind] = []
    for bind in binds:
        if bind.source != bind.target or not any(_shows(other.target, bind.target, hidden) for other in kept):
            kept.append(bind)
    return tuple(kept)


def _shows(folder: str, path: str, hidden: Sequence[str]) -> bool:
    is_masked = any(_is_within(mask, folder) and _is_within(path, mask) for mask in hidden)
    return _is_within(path, folder) and not is_masked


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
