"""`spm publish`."""

import argparse
from pathlib import Path

from spm_client.cli.session import Session
from spm_client.render import ProgressLine, count, warn
from spm_client.workflows.packed import PackedFolder
from spm_client.workflows.publish import publish


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packed", nargs="+", metavar="PACKED", help="signed folders: all variants of one release")


def run(options: argparse.Namespace, session: Session) -> int:
    conf = session.conf()
    packed = tuple(PackedFolder.read(Path(folder)) for folder in options.packed)
    with session.client(conf, is_authorized=True) as client:
        published = publish(packed, client, ProgressLine(is_wanted=session.wants_progress))
    session.emit(
        {
            "name": published.name,
            "version": published.version,
            "registry": conf.registry_id,
            "was_there": published.was_there,
            "uploaded_blobs": published.uploaded_blobs,
            "warnings": list(published.warnings),
        }
    )
    for warning in published.warnings:
        warn(f"warning: {warning}")
    if not session.is_json:
        how = "already there" if published.was_there else f"{count(published.uploaded_blobs, 'blob')} sent"
        print(f"published {published.name} {published.version} to {conf.registry_id} ({how})")
    return 0
