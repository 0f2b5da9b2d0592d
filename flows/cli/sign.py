"""``dprelease sign``: sign a published bundle."""

from pathlib import Path
from typing import Annotated

from dpcore.errors import InputError
from flows.cli.arguments import ANSWER, Bundle, Output, file_option


def sign(
    bundle: Bundle,
    /,
    *,
    key: Annotated[
        Path | None,
        file_option("an Ed25519 private key in PEM form; default: DPRELEASE_SIGNING_KEY"),
    ] = None,
    output: Output = ANSWER,
) -> None:
    """Check that a bundle is complete and unchanged, and sign it."""
    from tasks.bundle import sign as signing
    from tasks.bundle.verify import read_manifest, verify_files

    private = signing.read_private_key(key) if key else signing.signing_key()
    if private is None:
        raise InputError("there is no key: give --key, or set DPRELEASE_SIGNING_KEY")
    verify_files(bundle, read_manifest(bundle))
    signing.sign(bundle, private)
    output.answer(f"{bundle}: signed", {"bundle": bundle, "signed": True})
