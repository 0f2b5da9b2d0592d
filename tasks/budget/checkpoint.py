"""A witness of the ledger on another disk: every draw that was committed when it was last written.

A ledger that was restored from an old copy has forgotten draws, and would charge and draw them again.
Where a witness is configured, a run stops unless the ledger knows every draw in it, and adds its own
before anything is published.

    DPRELEASE_CHECKPOINT   the file: a line for each draw, its SHA-256 and DATASET/RELEASE_ID/NAME;
                           then the number of draws, which a file that was cut or emptied lacks; then,
                           where DPRELEASE_SIGNING_KEY is set, an Ed25519 signature of the lines above
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_IMODE, S_ISGID, S_IWGRP
from typing import TYPE_CHECKING

from dpcore.errors import InputError, LostLedgerError
from tasks.bundle.sign import signing_key
from tasks.ledger import Ledger, State
from tasks.workplace.home import locked
from tasks.workplace.places import place

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE, NUMBER = "signature  ", "draws  "
ROOM = 2**16
"""Bytes that must be free for what a run adds."""


def checkpoint_file() -> Path | None:
    """The witness that the environment names."""
    path = place("DPRELEASE_CHECKPOINT")
    return path.resolve() if path else None  # a link stays a link to the other disk


def require_checkpoint(ledger: Ledger | None) -> None:
    """Raise ``LostLedgerError`` if the ledger does not know a draw of the configured witness.

    Raises ``InputError`` if the witness cannot be read or replaced, or was not signed with the
    configured key.
    """
    path = checkpoint_file()
    if path is None:
        return
    if not os.path.exists(path):
        raise InputError(
            f"{path}: DPRELEASE_CHECKPOINT names no file. If it was never written, write it once with"
            " `dprelease ledger checkpoint`; if it was lost, compare the ledger with all bundles first"
        )
    seen = _read(path)  # before the ledger: what was drawn in between is no contradiction
    _require_covered(path, seen, _lines(ledger) if ledger else [])
    with _alone(path), tempfile.TemporaryFile(dir=path.parent) as room:
        room.write(b"." * (path.stat().st_size + ROOM))
        room.flush()
        os.fsync(room.fileno())


def write_checkpoint(ledger: Ledger, path: Path) -> int:
    """Write a witness, or bring it up to date; returns the number of its draws.

    Raises what ``require_checkpoint`` raises if there is one that the ledger does not cover.
    """
    written: list[str] | None = None
    with _alone(path):
        # Again, where a run on another machine may have put an older list in place meanwhile.
        while written != _lines(ledger):
            seen = _read(path) if os.path.exists(path) else []
            written = _lines(ledger)
            _require_covered(path, seen, written)
            _replace(path, written)
    return len(written or ())


def add_to_checkpoint(ledger: Ledger) -> None:
    """Bring the configured witness up to date."""
    if path := checkpoint_file():
        require_checkpoint(ledger)
        write_checkpoint(ledger, path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one writer of this machine in at a time, so that none puts an older list in place."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        if not lock.exists():
            with lock.open("a") as file:
                os.fchmod(file.fileno(), _mode(path.parent))
        with locked(lock):
            yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _lines(ledger: Ledger) -> list[str]:
    return sorted(
        f"{charge.digest}  {dataset}/{release_id}/{name}\n"
        for dataset in ledger.datasets()
        for release_id, charges in ledger.releases(dataset).items()
        for name, charge in charges.items()
        if charge.state is State.COMMITTED
    )


def _require_covered(path: Path, seen: list[str], lines: list[str]) -> None:
    if unknown := sorted(set(seen) - set(lines)):
        place = unknown[0].split(maxsplit=1)[-1].strip()
        raise LostLedgerError(
            f"the ledger does not know the draw {place}, which {path} has seen"
            f" ({len(unknown)} such draws): it is an old copy or the wrong one, and what it has"
            " forgotten would be spent twice. Restore a newer one"
        )


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"{path}: cannot be read ({reason})") from None
    signatures = [line for line in lines if line.startswith(SIGNATURE)]
    drawn = [line for line in lines if not line.startswith(SIGNATURE)]
    if (key := signing_key()) and signatures != [_signature(key, drawn)]:
        raise InputError(
            f"{path}: was not signed with the key of DPRELEASE_SIGNING_KEY, or was changed; compare the"
            " ledger with all bundles before you write it anew"
        )
    if signatures and not key:
        raise InputError(f"{path}: is signed; set DPRELEASE_SIGNING_KEY here too")
    if drawn[-1:] != [_number(drawn[:-1])]:
        raise InputError(
            f"{path}: was cut or emptied, or is no witness; compare the ledger with all bundles before"
            " you write it anew"
        )
    return drawn[:-1]


def _replace(path: Path, lines: list[str]) -> None:
    key, lines = signing_key(), [*lines, _number(lines)]
    text = "".join([*lines, *([_signature(key, lines)] if key else [])])
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                _open_as_before(path, file.fileno())
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _open_as_before(path: Path, file: int) -> None:
    """Give what replaces the witness its mode and group; a first one has those of its folder."""
    if not path.exists():
        os.fchmod(file, _mode(path.parent))
        return
    with suppress(PermissionError):
        found = path.stat()
        os.fchown(file, -1, found.st_gid)
        os.fchmod(file, S_IMODE(found.st_mode))


def _mode(folder: Path) -> int:
    """The mode of a new file: for its owner, and for its group if the folder gave it that."""
    mode = folder.stat().st_mode
    return 0o660 if mode & S_ISGID and mode & S_IWGRP else 0o600


def _number(lines: list[str]) -> str:
    return f"{NUMBER}{len(lines)}\n"


def _signature(key: "Ed25519PrivateKey", lines: list[str]) -> str:
    """Ed25519 signatures are deterministic, so the key can check its own by making it again."""
    return f"{SIGNATURE}{key.sign(''.join(lines).encode()).hex()}\n"
