"""The files at the top of a bundle, and digests that reveal changes to them."""

import hashlib
import json
import stat
from pathlib import Path, PurePath
from typing import Any

from dpcore.errors import BundleError, InputError
from tasks.bundle.folders import entries_in, has_file, readable

MANIFEST = "manifest.json"
DIGESTS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a whole or damaged bundle; raises ``UnreadableError`` if it cannot be read."""
    return has_file(folder, MANIFEST) or has_file(folder, DIGESTS)


def manifest_document(bundle: Path) -> Any:
    """The content of the manifest's file.

    Raises ``InputError`` if this is not a bundle, and ``BundleError`` if its manifest is missing or is
    not JSON.
    """
    if not is_bundle(bundle):
        raise InputError(f"{bundle}: is not a bundle: it has no {MANIFEST}")
    if not has_file(bundle, MANIFEST):
        raise BundleError(f"{bundle}: {MANIFEST} is missing")
    with readable(bundle):
        if not stat.S_ISREG((bundle / MANIFEST).lstat().st_mode):  # reading a pipe would never end
            raise BundleError(f"{bundle}: {MANIFEST} is not a regular file")
        text = (bundle / MANIFEST).read_bytes()
    try:
        return json.loads(text)
    except ValueError:
        raise invalid_manifest(bundle) from None


def invalid_manifest(bundle: Path) -> BundleError:
    """The error for a file that is not a valid manifest."""
    return BundleError(
        f"{bundle / MANIFEST}: is not a valid manifest; it was changed, or written by another version of"
        " dprelease"
    )


def verify_digests(bundle: Path) -> dict[str, str]:
    """Check that exactly the listed files exist, all unchanged; returns their digests by path."""
    folders, files = set[PurePath](), set[PurePath]()
    for entry in entries_in(bundle):
        path = PurePath(entry.path).relative_to(bundle)
        if entry.is_symlink():
            raise BundleError(f"{bundle}: {path} is a symbolic link, not a file")
        if not (entry.is_dir() or entry.is_file()):
            raise BundleError(f"{bundle}: {path} is not a regular file")
        (folders if entry.is_dir() else files).add(path)
    digests = _read_digests(bundle)
    for folder in sorted(folders - {each for path in digests for each in PurePath(path).parents}):
        raise BundleError(f"{bundle}: {folder} is a folder without its files")
    present = {path.as_posix() for path in files} - {DIGESTS, SIGNATURE}
    for name in sorted(present ^ set(digests)):
        state = "is missing" if name in digests else f"is not listed in {DIGESTS}"
        raise BundleError(f"{bundle}: {name} {state}")
    with readable(bundle):
        for name, digest in digests.items():
            if sha256_of(bundle / name) != digest:
                raise BundleError(f"{bundle}: {name} was changed after publication")
    return digests


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bundle_digest(bundle: Path) -> str:
    """The SHA-256 of ``SHA256SUMS``, and so of the whole bundle."""
    with readable(bundle):
        return sha256_of(bundle / DIGESTS)


def _read_digests(bundle: Path) -> dict[str, str]:
    if not has_file(bundle, DIGESTS):
        raise BundleError(f"{bundle}: {DIGESTS} is missing")
    with readable(bundle):
        text = (bundle / DIGESTS).read_bytes()
    try:
        lines = text.decode().splitlines()
    except UnicodeDecodeError:
        raise BundleError(f"{bundle}: {DIGESTS} is not text") from None
    digests = {}
    for line in lines:
        digest, separator, path = line.partition("  ")
        if not separator or not path or len(digest) != 64:
            raise BundleError(f"{bundle}: {DIGESTS} does not have the form of sha256sum")
        digests[path] = digest
    return digests
