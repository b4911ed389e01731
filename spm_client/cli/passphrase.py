"""The option that says where a passphrase comes from. How it is read is in `keys.passphrase`."""

import argparse

from keys.passphrase import read
from spm_client.cli.parser import whole

__all__ = ["add_option", "read"]


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", metavar="N", type=whole, help="read the passphrase from file descriptor N (default: ask)"
    )
