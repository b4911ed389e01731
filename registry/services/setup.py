"""A new registry: its folder, its identity, its first admin token and the loader.conf to hand out."""

import re
from dataclasses import dataclass
from pathlib import Path

from keys.keyring import LoaderConf
from manifests.errors import UsageError
from manifests.names import REGISTRY_ID
from registry.services import tokens
from registry.services.online_key import new_online_pem
from registry.services.policy import Role
from registry.services.tokens import TokenRequest
from registry.storage.rows import AuditRow, TokenRow
from registry.storage.site import Site, new_site, write_public_file

DEFAULT_ID = "team.local"
DEFAULT_URL = "http://127.0.0.1:8080"
OPERATOR = "spm-registry"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRegistry:
    """What the operator needs: the token is shown only now."""

    root: Path
    registry_id: str
    url: str
    token: str
    token_ends: int
    loader_conf: str


def make_registry(root: Path, registry_id: str, url: str, now: int) -> NewRegistry:
    """Make a registry in a folder that holds none.

    Raises:
        UsageError: one is there, or the id cannot stand in a manifest; nothing was changed.
        ConfigSyntax: the id or the URL cannot stand in a loader.conf; nothing was changed.
    """
    if not re.fullmatch(REGISTRY_ID, registry_id):
        raise UsageError(
            f"{registry_id!r:.80} is not a registry id: write a-z, 0-9, `.` and `-`, such as `{DEFAULT_ID}`"
        )
    text = _first_conf(registry_id, url)
    if LoaderConf.parse(text).registry_url != url.rstrip("/"):
        raise UsageError(f"{url!r:.200} is not the URL of a registry")
    with new_site(root, new_online_pem()) as site:
        token, row = _first_rows(site, registry_id, url, now)
        site.database.settle()
        site.database.close()
        write_public_file(site.loader_conf, text)
    return NewRegistry(
        root=root, registry_id=registry_id, url=url, token=token, token_ends=row.expires_at, loader_conf=text
    )


def _first_rows(site: Site, registry_id: str, url: str, now: int) -> tuple[str, TokenRow]:
    request = TokenRequest(label="admin", role=Role.ADMIN, names=("*",))
    with site.database.writing() as records:
        records.add_registry(registry_id, now)
        records.add_audit(AuditRow(at=now, actor=OPERATOR, action="init", subject=registry_id, detail=url, serial=0))
        return tokens.issue(records, request, secret=site.secret, actor=OPERATOR, now=now)


def _first_conf(registry_id: str, url: str) -> str:
    return (
        f'[registry]\nid = "{registry_id}"\nurl = "{url}"\n\n'
        "[core]\n# How many distinct core keys must have signed a core plugin.\nthreshold = 1\n"
    )
