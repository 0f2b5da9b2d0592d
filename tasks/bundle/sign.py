"""Signs bundles and verifies signatures: Ed25519 over SHA256SUMS, which lists every file's digest.

The signature is the bundle's file SHA256SUMS.sig, 64 bytes, and is not listed in SHA256SUMS.  Keys
are PEM files as OpenSSL makes and reads them, so a signature can be checked without dprelease:

    openssl genpkey -algorithm ed25519 -out private.pem
    openssl pkey -in private.pem -pubout -out public.pem
    openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in SHA256SUMS -sigfile SHA256SUMS.sig

    DPRELEASE_SIGNING_KEY         the private key that ``dprelease run`` signs with
    DPRELEASE_SIGNING_PASSPHRASE  its passphrase, if it is encrypted
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpcore.errors import BundleError, InputError
from tasks.bundle.digests import DIGESTS, SIGNATURE
from tasks.bundle.folders import has_file, readable
from tasks.workplace.places import place

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )


def signing_key() -> "Ed25519PrivateKey | None":
    """The key that the environment names, or None; raises ``InputError`` if it cannot be read."""
    path = place("DPRELEASE_SIGNING_KEY")
    return read_private_key(path) if path else None


def read_private_key(path: Path) -> "Ed25519PrivateKey":
    """An Ed25519 private key in PEM form."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    passphrase = os.environ.get("DPRELEASE_SIGNING_PASSPHRASE")
    content = _content(path)
    try:
        key = load_pem_private_key(content, passphrase.encode() if passphrase else None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{path}: is not an Ed25519 private key in PEM form, or DPRELEASE_SIGNING_PASSPHRASE does"
            " not open it; make one with: openssl genpkey -algorithm ed25519"
        )
    return key


def read_public_key(path: Path) -> "Ed25519PublicKey":
    """An Ed25519 public key in PEM form."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _content(path)
    try:
        key = load_pem_public_key(content)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{path}: is not an Ed25519 public key in PEM form")
    return key


def sign(bundle: Path, key: "Ed25519PrivateKey") -> None:
    """Write the signature into the bundle in one step; an earlier one is replaced."""
    signature = key.sign(_content(bundle / DIGESTS))
    # Outside the bundle: a file that a crash left inside would make it invalid.
    beside = bundle.parent / f".{bundle.name}.signature"
    beside.write_bytes(signature)
    beside.chmod((bundle / DIGESTS).stat().st_mode & 0o777)  # readable for the same users
    os.replace(beside, bundle / SIGNATURE)


def verify_signature(bundle: Path, key: "Ed25519PublicKey") -> None:
    """Raise ``BundleError`` unless the bundle's signature belongs to this public key."""
    from cryptography.exceptions import InvalidSignature

    if not has_file(bundle, SIGNATURE):
        raise BundleError(f"{bundle}: is not signed: it has no {SIGNATURE}")
    try:
        key.verify(_content(bundle / SIGNATURE), _content(bundle / DIGESTS))
    except InvalidSignature:
        raise BundleError(
            f"{bundle}: {SIGNATURE} was not made with this key, or {DIGESTS} was changed"
        ) from None


def _content(path: Path) -> bytes:
    with readable(path):
        return path.read_bytes()
