"""``dprelease verify``: check a bundle."""

import argparse
import os
from pathlib import Path
from typing import Any

from flows.cli.arguments import add_command, add_ledger_argument


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "verify", _verify, "check that a bundle is whole and charged to the ledger"
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE", help="the folder of a release")
    parser.add_argument(
        "--public-key",
        type=Path,
        metavar="FILE",
        help="also check the signature with this Ed25519 key in PEM form",
    )
    add_ledger_argument(parser)


def _verify(options: argparse.Namespace) -> None:
    from tasks.bundle.sign import read_public_key, verify_signature
    from tasks.bundle.verify import read_manifest, verify_budget, verify_files, verify_seal
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    manifest = read_manifest(options.bundle)
    files = verify_files(options.bundle, manifest)
    print(f"digests and schemas: {files} files are unchanged")
    if options.public_key:
        verify_signature(options.bundle, read_public_key(options.public_key))
        print("signature: made with the private key of this public key")
    if os.environ.get("DPRELEASE_LEDGER") or _ledger_knows(manifest.dataset):
        ledger = Ledger(ledger_url(), create=False)
        spent = verify_budget(manifest, ledger)
        verify_seal(options.bundle, manifest, ledger)
        print(f"budget: the ledger charged {spent}, as the manifest says, and knows this bundle")
    else:
        print("budget: not checked: no ledger here knows the dataset (name one with --ledger)")


def _ledger_knows(dataset: str) -> bool:
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    return ledger_exists() and dataset in Ledger(ledger_url(), create=False).datasets()
