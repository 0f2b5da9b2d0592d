"""``dprelease sign``: sign a published bundle."""

import argparse
from pathlib import Path
from typing import Any

from dpcore.errors import InputError
from flows.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "sign", _sign, "sign a bundle, after checking that it is whole")
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the folder of a release")
    parser.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        help="an Ed25519 private key in PEM form; default: DPRELEASE_SIGNING_KEY",
    )


def _sign(options: argparse.Namespace) -> None:
    from tasks.bundle.sign import read_private_key, sign, signing_key
    from tasks.bundle.verify import read_manifest, verify_files

    key = read_private_key(options.key) if options.key else signing_key()
    if key is None:
        raise InputError("there is no key: give --key, or set DPRELEASE_SIGNING_KEY")
    verify_files(options.bundle, read_manifest(options.bundle))
    sign(options.bundle, key)
    print(f"{options.bundle}: signed")
