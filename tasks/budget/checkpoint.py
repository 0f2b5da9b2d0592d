"""A witness of the ledger, kept on another disk: a list of all draws that were committed so far.

A ledger that was restored from an old copy lacks draws, and would charge and draw them again.  If a
witness is configured, a run stops if the ledger lacks a draw of its dataset that the witness lists. It
adds its own draws to the witness before anything is published.  A draw that was given up (VOID) is not
missed, because its name cannot be drawn again.

    DPRELEASE_CHECKPOINT   the file: a line for each draw, its SHA-256 and DATASET/RELEASE_ID/NAME;
                           then the number of draws, which is missing in a truncated file; then, where
                           DPRELEASE_SIGNING_KEY is set, an Ed25519 signature of the lines above
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
from tasks.ledger import Fault, Ledger
from tasks.workplace.home import locked, replacing
from tasks.workplace.places import place

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE, NUMBER = "signature  ", "draws  "
ROOM = 2**16
"""Bytes that must be free on the disk for the draws that a run adds."""

RECOVER = (
    "restore a newer copy of the ledger. If there is none, `dprelease ledger recover {dataset} --who WHO"
    " --why WHY` adds to the ledger the draws that bundles contain. If a draw is in no bundle and nobody"
    " has seen it, void it with `dprelease ledger void`"
)


def checkpoint_file() -> Path | None:
    """The path of the witness that the environment names; None without one."""
    path = place("DPRELEASE_CHECKPOINT")
    return path.resolve() if path else None  # a link stays a link to the other disk


def lost_draws(ledger: Ledger, dataset: str | None = None, path: Path | None = None) -> list[Fault]:
    """The draws, of a dataset or of all, that a witness lists and the ledger lacks.

    ``path``: the witness; by default the configured one.
    """
    path = path or checkpoint_file()
    return [] if path is None or _is_missing(path) else _lost(_read(path), ledger, dataset)


def seen_draws(dataset: str, release_id: str) -> dict[str, str]:
    """The digests of a release's draws in the configured witness, by name."""
    path = checkpoint_file()
    lines = [line.split() for line in (_read(path) if path else ())]
    start = f"{dataset}/{release_id}/"
    return {name.removeprefix(start): each for each, name in lines if name.startswith(start)}


def require_checkpoint(ledger: Ledger | None, dataset: str) -> None:
    """Raise ``LostLedgerError`` if the ledger lacks a draw of the dataset that the witness lists.

    Raises ``InputError`` if the witness cannot be read or replaced, or was not signed with the
    configured key.
    """
    path = checkpoint_file()
    if path is None:
        return
    if _is_missing(path):
        raise InputError(
            f"{path}: DPRELEASE_CHECKPOINT names no file. If it was never written, run `dprelease"
            " ledger checkpoint` once; if it was lost, compare the ledger with all bundles first"
        )
    seen = _read(path)  # read before the ledger, so that a draw in between does not look lost
    if lost := _lost(seen, ledger, dataset):
        first = lost[0]
        raise LostLedgerError(
            f"{path} lists the draw {dataset}/{first.release_id}/{first.release_name}, which the ledger"
            f" lacks ({len(lost)} draws of this dataset are missing). The ledger is an old copy or the"
            f" wrong one, and would spend the missing budget twice: {first.remedy}"
        )
    # Tried now: if the witness could not be replaced after the draws, a charged run would stop.
    with _alone(path), tempfile.TemporaryFile(dir=path.parent) as room:
        room.write(b"." * (path.stat().st_size + ROOM))
        room.flush()
        os.fsync(room.fileno())


def write_checkpoint(ledger: Ledger, path: Path) -> int:
    """Write a witness, or bring it up to date; returns the number of its draws.

    Draws in the witness stay there, even if the ledger lacks them.
    """
    with _alone(path):
        # Repeated, because a run on another machine may have written an older list meanwhile.
        while True:
            seen = None if _is_missing(path) else _read(path)
            wanted = sorted({*(seen or ()), *_known(ledger)[0]})
            if seen == wanted:
                return len(wanted)
            _replace(path, wanted)


def add_to_checkpoint(ledger: Ledger, dataset: str) -> None:
    """Bring the configured witness up to date."""
    if path := checkpoint_file():
        require_checkpoint(ledger, dataset)
        write_checkpoint(ledger, path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lock the witness for the processes of this machine, so that no older list replaces a newer one."""
    lock = path.with_name(f".{path.name}.lock")
    try:
        new = not lock.exists()
        with lock.open("a") as file:  # even if it exists, to check that this user may write it
            if new:
                os.fchmod(file.fileno(), _mode(path.parent))
        with locked(lock):
            yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _known(ledger: Ledger | None) -> tuple[set[str], set[str]]:
    """The lines of the ledger's draws, and the names of draws that were given up."""
    lines, void = set(), set()
    for *names, digest in ledger.drawn() if ledger else ():
        if digest is None:
            void.add("/".join(names))
        else:
            lines.add(f"{digest}  {'/'.join(names)}\n")
    return lines, void


def _lost(seen: list[str], ledger: Ledger | None, dataset: str | None) -> list[Fault]:
    lines, void = _known(ledger)
    what = "the witness lists its draw, which the ledger lacks"
    lost = []
    for line in sorted({*seen} - lines, key=lambda line: line.split()[-1:]):
        place = line.split(maxsplit=1)[-1].strip()
        names = place.split("/")
        if len(names) == 3 and dataset in (None, names[0]) and place not in void:
            of, release_id, name = names
            lost.append(Fault(of, release_id, name, what, RECOVER.format(dataset=of)))
    return lost


def _is_missing(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:  # this user may not enter the folder; reading raises the error
        pass
    return False


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
            f"{path}: was not signed with the key of DPRELEASE_SIGNING_KEY, or was changed; compare"
            " the ledger with all bundles before you write a new one"
        )
    if signatures and not key:
        raise InputError(f"{path}: is signed; set DPRELEASE_SIGNING_KEY here too")
    if drawn[-1:] != [_number(drawn[:-1])]:
        raise InputError(
            f"{path}: is incomplete, or not a witness; compare the ledger with all bundles before you"
            " write a new one"
        )
    return drawn[:-1]


def _replace(path: Path, lines: list[str]) -> None:
    key, lines = signing_key(), [*lines, _number(lines)]
    text = "".join([*lines, *([_signature(key, lines)] if key else [])])
    try:
        with replacing(path) as file:
            file.write(text)
            _open_as_before(path, file.fileno())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _open_as_before(path: Path, file: int) -> None:
    """Give the new file the mode and group of the old witness; a first one gets those of its folder."""
    if not path.exists():
        os.fchmod(file, _mode(path.parent))
        return
    with suppress(PermissionError):
        found = path.stat()
        # The group first: otherwise the mode would open the file to the wrong group.
        os.fchown(file, -1, found.st_gid)
        os.fchmod(file, S_IMODE(found.st_mode))


def _mode(folder: Path) -> int:
    """The mode of a new file: for its owner, and for its group if the folder passes the group on."""
    mode = folder.stat().st_mode
    return 0o660 if mode & S_ISGID and mode & S_IWGRP else 0o600


def _number(lines: list[str]) -> str:
    return f"{NUMBER}{len(lines)}\n"


def _signature(key: "Ed25519PrivateKey", lines: list[str]) -> str:
    """The signature of the lines; Ed25519 is deterministic, so the key checks it by signing again."""
    return f"{SIGNATURE}{key.sign(''.join(lines).encode()).hex()}\n"
