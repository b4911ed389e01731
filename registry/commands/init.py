"""`spm-registry init`: makes a registry and shows its token once."""

import argparse
import re
import shlex
import time

from registry.commands.output import note, show, show_json
from registry.services.setup import DEFAULT_ID, DEFAULT_URL, NewRegistry, make_registry
from registry.services.times import moment_text
from registry.services.tokens import DEFAULT_DAYS


def run(options: argparse.Namespace) -> int:
    """Make the registry and say what to do next."""
    new = make_registry(options.root, options.id or DEFAULT_ID, options.url or DEFAULT_URL, int(time.time()))
    if options.json:
        show_json(_value(new))
    else:
        show(_text(new))
        note("The token is not stored and cannot be shown again.")
    return 0


def _bind(url: str) -> str:
    """Return the option that serves where a plain loopback URL points; elsewhere a proxy does."""
    found = re.fullmatch(r"http://(127\.0\.0\.1:[0-9]+)/?", url)
    return f" --bind {found[1]}" if found else ""


def _value(new: NewRegistry) -> dict[str, str]:
    return {
        "root": str(new.root),
        "id": new.registry_id,
        "url": new.url,
        "token": new.token,
        "token_expires": moment_text(new.token_ends),
        "loader_conf": new.loader_conf,
    }


def _text(new: NewRegistry) -> str:
    root = shlex.quote(str(new.root))
    return "\n".join(
        (
            f"Made the registry `{new.registry_id}` in {new.root}",
            f"  URL          {new.url} (where clients look for it; another by `--url`)",
            f"  admin token  {new.token}",
            f"  valid until  {moment_text(new.token_ends)} ({DEFAULT_DAYS} days); "
            "`spm-registry token new` makes the next",
            "",
            f"Each client needs {new.root}/loader.conf, once the root of trust is in it:",
            "",
            *(f"  {line}".rstrip() for line in new.loader_conf.splitlines()),
            "",
            "Next:",
            "  1. `spm keys new --role root`, on your own machine, makes a root key: root.key and root.pub",
            f"  2. `spm-registry root init root.pub --root {root}` drafts the root of trust",
            f"  3. `spm-registry root sign root.key --root {root}` signs it;",
            "     where root.key is not to come here, `docs/guides/root-ceremony.md` says how",
            f"  4. `spm-registry key add FILE.pub --root {root}` lets somebody's plugins be loaded",
            f"  5. `spm-registry loader-conf --root {root} --output loader.conf` writes what each client needs",
            f"  6. `spm-registry serve --root {root}{_bind(new.url)}` runs the registry",
        )
    )
