"""`spm pack`."""

import argparse
from pathlib import Path

from manifests.errors import UsageError
from manifests.names import parse_publisher
from manifests.sources import parse_registry_id
from spm_client.adapters.config import keys_folder
from spm_client.cli.session import Session, timestamp
from spm_client.render import count, size
from spm_client.workflows.pack import pack, plugin_class


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="DIR", help="a source folder: `manifest.yaml`, `plugin/`, maybe `build.py`")
    parser.add_argument("--out", metavar="DIR", default="dist", help="where the packed folder goes (default: dist)")
    parser.add_argument("--publisher", metavar="NAME", help="who publishes it (default: that of your keys)")
    parser.add_argument("--registry-id", metavar="ID", help="the registry it is for (default: that of loader.conf)")
    parser.add_argument("--keys", metavar="DIR", help="where keys lie (default: the user's configuration folder)")


def run(options: argparse.Namespace, session: Session) -> int:
    packed = pack(
        Path(options.source),
        Path(options.out),
        registry=parse_registry_id(options.registry_id) if options.registry_id else session.conf().registry_id,
        publisher=_publisher(options, session),
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
        print(f"packed {manifest.name} {manifest.release}: {count(len(manifest.files), 'file')}, {size(manifest.size)}")
        print(f"  manifest sha256:{packed.sha256}")
        print(f"  sign it: spm sign {packed.folder} --key NAME")
    return 0


def _publisher(options: argparse.Namespace, session: Session) -> str:
    """Return the publisher that was named, else the one that all keys of the plugin's class speak for."""
    if options.publisher is not None:
        return parse_publisher(options.publisher)
    from keys.key_files import list_keys

    role = plugin_class(Path(options.source))
    keys = [key for key in list_keys(keys_folder(options.keys, session.environment)) if key.role.value == role]
    publishers = sorted({key.publisher for key in keys})
    if len(publishers) == 1:
        return publishers[0]
    known = (
        f"your {role} keys speak for {', '.join(f'`{name}`' for name in publishers)}"
        if keys
        else f"you have no {role} key"
    )
    raise UsageError(f"the publisher must be named: {known}", hint="add `--publisher NAME`")
