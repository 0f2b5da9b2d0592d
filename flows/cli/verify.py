"""``dprelease verify``: check a bundle."""

import os
from pathlib import Path
from typing import Annotated, Any

from flows.cli.arguments import LEDGER_ANSWER, Bundle, LedgerOutput, file_option


def verify(
    bundle: Bundle,
    /,
    *,
    public_key: Annotated[
        Path | None, file_option("also check the signature with this Ed25519 key in PEM form")
    ] = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Check that a bundle is complete and unchanged, and charged to the ledger."""
    from tasks.bundle.sign import read_public_key, verify_signature
    from tasks.bundle.verify import read_manifest, verify_budget, verify_files, verify_seal
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    manifest = read_manifest(bundle)
    files = verify_files(bundle, manifest)
    said = [f"digests and schemas: {files} files are unchanged"]
    found: dict[str, Any] = {"bundle": bundle, "files": files, "signature": None, "charged": None}
    try:
        if public_key:
            verify_signature(bundle, read_public_key(public_key))
            said.append("signature: made with the private key of this public key")
            found["signature"] = True
        if os.environ.get("DPRELEASE_LEDGER") or _ledger_knows(manifest.dataset):
            known = Ledger(ledger_url(), create=False)
            spent = verify_budget(manifest, known)
            verify_seal(bundle, manifest, known)
            said.append(
                f"budget: the ledger charged {spent}, as in the manifest, and lists this bundle"
            )
            found["charged"] = spent.as_strings()
        else:
            said.append(
                "budget: not checked, as no ledger here has the dataset (name one with --ledger)"
            )
    finally:  # results before a fault are printed too
        output.answer("\n".join(said), found)


def _ledger_knows(dataset: str) -> bool:
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    return ledger_exists() and dataset in Ledger(ledger_url(), create=False).datasets()
