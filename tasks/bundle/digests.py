"""The files at the top of a bundle, and the digests that show a change."""

import hashlib
from pathlib import Path

from dpcore.errors import BundleError, InputError

MANIFEST = "manifest.json"
DIGESTS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"


def manifest_bytes(bundle: Path) -> bytes:
    """What the manifest's file holds.

    Raises ``InputError`` if this is no bundle, and ``BundleError`` if a bundle lacks its manifest.
    """
    try:
        return (bundle / MANIFEST).read_bytes()
    except OSError:
        if (bundle / DIGESTS).exists():
            raise BundleError(f"{bundle}: {MANIFEST} is missing") from None
        raise InputError(f"{bundle}: is not a bundle: it has no {MANIFEST}") from None


def verify_digests(bundle: Path) -> dict[str, str]:
    """Check that every file is there and unchanged, and no other; returns their digests by path."""
    for entry in bundle.rglob("*"):
        if entry.is_symlink():
            raise BundleError(
                f"{bundle}: {entry.relative_to(bundle)} is a symbolic link, not a file"
            )
    digests = _read_digests(bundle)
    folders = {(bundle / path).parent for path in digests}
    for folder in bundle.rglob("*"):
        if folder.is_dir() and not any(folder in (each, *each.parents) for each in folders):
            raise BundleError(
                f"{bundle}: {folder.relative_to(bundle)} is a folder without its files"
            )
    present = {
        path.relative_to(bundle).as_posix()
        for path in bundle.rglob("*")
        if not path.is_dir() and path not in (bundle / DIGESTS, bundle / SIGNATURE)
    }
    for path in sorted(present ^ set(digests)):
        state = "is missing" if path in digests else f"is not listed in {DIGESTS}"
        raise BundleError(f"{bundle}: {path} {state}")
    for path, digest in digests.items():
        if sha256_of(bundle / path) != digest:
            raise BundleError(f"{bundle}: {path} was changed after publication")
    return digests


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bundle_digest(bundle: Path) -> str:
    """The SHA-256 of ``SHA256SUMS``, and so of the whole bundle."""
    try:
        return sha256_of(bundle / DIGESTS)
    except OSError:
        raise BundleError(f"{bundle}: {DIGESTS} is missing or cannot be read") from None


def _read_digests(bundle: Path) -> dict[str, str]:
    try:
        lines = (bundle / DIGESTS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise BundleError(f"{bundle}: {DIGESTS} is missing or cannot be read") from None
    digests = {}
    for line in lines:
        digest, separator, path = line.partition("  ")
        if not separator or not path or len(digest) != 64:
            raise BundleError(f"{bundle}: {DIGESTS} does not have the form of sha256sum")
        digests[path] = digest
    return digests
