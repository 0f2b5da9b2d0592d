"""The bundles under a folder: those that are listed, by dataset, and those that are not."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dpcore.errors import DPReleaseError, InputError
from schemas.bundle import DIGESTS, MANIFEST, Manifest
from tasks.verify import read_manifest, verify_files


@dataclass(frozen=True)
class Bundle:
    """A bundle that is as it was published."""

    path: Path
    manifest: Manifest


@dataclass(frozen=True)
class LeftOut:
    """A bundle that is not listed, and why: it cannot be trusted, or is listed elsewhere.

    ``reason`` names the bundle by its place below the folder.
    """

    reason: str
    duplicate: bool = False


@dataclass(frozen=True)
class Dataset:
    """The releases of one dataset, the newest first."""

    name: str
    bundles: tuple[Bundle, ...]

    @property
    def latest(self) -> Bundle:
        return self.bundles[0]


def find_bundles(root: Path) -> tuple[list[Dataset], list[LeftOut]]:
    """Every bundle under ``root``, checked; raises ``InputError`` where there is none."""
    whole: dict[tuple[str, str], Bundle] = {}
    left_out: list[LeftOut] = []
    for path in _candidates(root):
        place = path.relative_to(root).as_posix()
        try:
            manifest = read_manifest(path)
            verify_files(path, manifest)
        except DPReleaseError as error:
            left_out.append(LeftOut(str(error).replace(str(path), place)))
            continue
        key = (manifest.dataset, manifest.release_id)
        if key in whole:
            other = whole[key].path.relative_to(root).as_posix()
            reason = f"{place}: is release {'/'.join(key)} as well, which is listed from {other}"
            left_out.append(LeftOut(reason, duplicate=True))
        else:
            whole[key] = Bundle(path, manifest)
    if not whole and not left_out:
        raise InputError(f"{root}: there are no bundles here; name the folder that `run` wrote to")
    return _by_dataset(whole.values()), left_out


def _candidates(root: Path) -> list[Path]:
    """Folders that are a bundle or were one; staging folders, which are hidden, are not."""
    found = {path.parent for name in (MANIFEST, DIGESTS) for path in root.rglob(name)}
    return sorted(
        path
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    )


def _by_dataset(bundles: Iterable[Bundle]) -> list[Dataset]:
    together: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        together.setdefault(bundle.manifest.dataset, []).append(bundle)
    return [
        Dataset(name, tuple(sorted(some, key=_age, reverse=True)))
        for name, some in sorted(together.items())
    ]


def _age(bundle: Bundle) -> tuple[str, str]:
    return bundle.manifest.drawn_at, bundle.manifest.release_id
