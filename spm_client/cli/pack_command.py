"""`spm pack`."""

import argparse
from pathlib import Path

from manifests.errors import UsageError
from manifests.names import parse_name
from spm_client.adapters.config import keys_folder
from spm_client.cli.session import Session, timestamp
from spm_client.render import size
from spm_client.workflows.pack import pack


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="DIR", help="a source folder: `manifest.yaml`, `plugin/`, maybe `build.py`")
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the packed folder goes (default: dist)")
    parser.add_argument("--publisher", metavar="NAME", help="who publishes it (default: the one your keys name)")
    parser.add_argument("--registry-id", metavar="ID", help="the registry it is for (default: that of loader.conf)")
    parser.add_argument("--keys", metavar="DIR", help="where keys lie (default: the user's configuration folder)")


def run(options: argparse.Namespace, session: Session) -> int:
    packed = pack(
        Path(options.source),
        Path(options.out),
        registry=options.registry_id or session.conf().registry_id,
        publisher=(options.publisher and parse_name(options.publisher)) or _only_publisher(options.keys, session),
        created=timestamp(session.environment),
        host=session.target(None),
    )
    manifest = packed.manifest
    session.emit(
        {
            "name": manifest.name,
            "version": manifest.version.text,
            "release": manifest.release,
            "type": manifest.type.value,
            "publisher": manifest.publisher,
            "manifest_sha256": packed.sha256,
            "files": len(manifest.files),
            "path": str(packed.folder),
        }
    )
    if not session.is_json:
        print(f"packed {manifest.name} {manifest.release}: {len(manifest.files)} files, {size(manifest.size)}")
        print(f"  manifest sha256:{packed.sha256}")
        print(f"  sign it: spm sign {packed.folder} --key NAME")
    return 0


def _only_publisher(named: str | None, session: Session) -> str:
    from keys.key_files import list_keys

    publishers = sorted({public.publisher for public in list_keys(keys_folder(named, session.environment))})
    if len(publishers) != 1:
        known = ", ".join(f"`{publisher}`" for publisher in publishers) or "none"
        raise UsageError(f"the publisher must be named: your keys speak for {known}", hint="add `--publisher NAME`")
    return publishers[0]
