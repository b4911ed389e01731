"""The registries that a store knows: its own, and those in `registries/<id>/`. Verifies nothing and asks none of them.

Such a folder has a `loader.conf` and a `trust/` of its own, and the same layout as a store has them, so that all that
reads a store's trust reads it too. What a host allows (layers, limits, the budget of full hashing) is no registry's to
say: it comes from the store's own loader.conf alone, and another one that says it is refused.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from keys.keyring import FULL_HASH_BYTES, LoaderConf
from manifests.errors import AmbiguousSource, ConfigMissing, ConfigSyntax, LinkRefused, SpmError, Undecided
from manifests.names import REGISTRY_ID
from manifests.sources import Claim, Sources, parse_registry_id
from runtime.generation import listed
from runtime.guard import require_guarded_registry

FOLDER = "registries"
_COMMAND = re.compile(r"`(spm trust (?:init|update|show|import|export)\b[^`]*)`")
_CONF = re.compile(r"(?<![/\w])loader\.conf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registries:
    """A store's own registry, and the others by id."""

    own: LoaderConf
    others: Mapping[str, LoaderConf]

    @property
    def sources(self) -> Sources:
        confs = (self.own, *self.others.values())
        claims = tuple(Claim(registry=conf.registry_id, names=conf.registry_names or ()) for conf in confs)
        return Sources(own=self.own.registry_id, claims=tuple(claim for claim in claims if claim.names))

    def conf(self, registry: str) -> LoaderConf:
        return self.own if registry == self.own.registry_id else self.others[registry]


def registry_root(root: Path, registry: str | None) -> Path:
    """Return where the loader.conf and the trust of a registry lie: in the store itself for its own."""
    return root if registry is None else root / FOLDER / registry


def read_registries(root: Path, own: LoaderConf) -> Registries:
    """Read which registries a store knows, and what each claims.

    Raises: as `read_registry`; ConfigSyntax for what is no registry's folder: it may be a misspelt one, whose names
    would then go to another registry.
    """
    ids = registry_ids(root)
    return Registries(own=own, others={registry: read_registry(root, own, registry) for registry in ids})


def registry_ids(root: Path) -> list[str]:
    """Return the ids of the other registries that a store knows, by the names of their folders.

    Raises: ConfigSyntax for what is no registry's folder; LinkRefused where a link stands for all of them; Undecided
    where they cannot be listed.
    """
    folder = root / FOLDER
    try:
        names = listed(folder)
    except LinkRefused as error:
        error.hint = f"put the folder itself there; if there are no other registries, `rm {folder}`"
        raise
    except OSError as error:
        raise Undecided(
            f"{folder} cannot be read, so that nothing says which names belong to other registries: {error.strerror}",
            reason="unknown:registries",
            hint="run as the store's owner",
            path=str(folder),
        ) from error
    for name in names:
        if not re.fullmatch(REGISTRY_ID, name) or not (folder / name).is_dir():
            raise ConfigSyntax(
                f"{folder / name} is no folder of a registry: such a folder is named for the registry's id, and holds "
                "its loader.conf",
                hint="move it elsewhere, or give it the id that its loader.conf has as `registry.id`",
                path=str(folder / name),
            )
    return names


def read_registry(root: Path, own: LoaderConf, registry: str) -> LoaderConf:
    """Return the loader.conf of another registry, with what the store's own one says of this host.

    Raises: ConfigMissing, ConfigPermissions or ConfigSyntax naming its path; LinkRefused.
    """
    path = registry_root(root, registry) / "loader.conf"
    require_guarded_registry(root, registry)
    conf = LoaderConf.read(path)
    _require_named(conf, registry, own, path)
    _require_own_affairs(conf, root, path)
    return replace(
        conf,
        accept_missing=own.accept_missing,
        memory_bytes=own.memory_bytes,
        full_hash_bytes=own.full_hash_bytes,
    )


def require_known(root: Path, own: LoaderConf, registry: str) -> LoaderConf:
    """Return the loader.conf of the registry that a person names: the store's own, or another.

    Raises: UsageError for what is no id; as `read_registry`; ConfigMissing naming those that the store knows.
    """
    if parse_registry_id(registry) == own.registry_id:
        return own
    if registry not in (ids := registry_ids(root)):
        known = ", ".join(f"`{one}`" for one in (own.registry_id, *ids))
        raise ConfigMissing(
            f"this store knows no registry `{registry}`: it knows {known}",
            hint="get its loader.conf from whoever runs it, and put it at `registries/ID/loader.conf` in the store",
            registries=[registry],
        )
    return read_registry(root, own, registry)


@contextmanager
def of_registry(registry: str | None) -> Iterator[None]:
    """Have the refusals of another registry than the store's own say whose they are; None names the store's own."""
    try:
        yield
    except SpmError as error:
        if registry is not None and not isinstance(error, AmbiguousSource) and not error.context.get("registry"):
            error.context["registry"] = registry
            if f"`{registry}`" not in error.message and f"{FOLDER}/{registry}/" not in error.message:
                error.message = f"registry `{registry}`: {error.message}"
            error.hint = _COMMAND.sub(rf"`\1 --registry {registry}`", error.hint)
            error.hint = _CONF.sub(f"{FOLDER}/{registry}/loader.conf", error.hint)
        raise


def _require_named(conf: LoaderConf, registry: str, own: LoaderConf, path: Path) -> None:
    if conf.registry_id != registry:
        raise ConfigSyntax(
            f"{path} is of the registry `{conf.registry_id}`, but its folder is named `{registry}`",
            hint=f"name the folder `{conf.registry_id}`, or get the loader.conf of `{registry}`",
            path=str(path),
        )
    if registry == own.registry_id:
        raise ConfigSyntax(
            f"{path} is of the registry `{registry}`, which is the store's own already",
            hint=f"remove the folder; what `{registry}` claims stands in the store's own loader.conf",
            path=str(path),
        )
    if conf.registry_names is None:
        raise ConfigSyntax(
            f"{path} does not say which names belong to `{registry}`: `registry.names` is missing",
            hint='write the patterns of its names below `[registry]`, as in `names = ["px-*"]`; it alone is asked for '
            "them",
            path=str(path),
        )


def _require_own_affairs(conf: LoaderConf, root: Path, path: Path) -> None:
    """Refuse what would be ignored: a loader.conf that came with a registry says nothing of this host."""
    said = {
        "sandbox.accept_missing": bool(conf.accept_missing),
        "limits.memory_bytes": conf.memory_bytes is not None,
        "load.full_hash_bytes": conf.full_hash_bytes != FULL_HASH_BYTES,
    }
    if members := [f"`{member}`" for member, is_said in said.items() if is_said]:
        raise ConfigSyntax(
            f"{path} sets {', '.join(members)}, which is this host's own affair and no registry's",
            hint=f"take it out; if it is meant, write it in {root / 'loader.conf'}",
            path=str(path),
        )
