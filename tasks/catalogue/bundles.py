"""The bundles under a folder: those that are whole, by dataset, and those that are not."""

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
class Damaged:
    """A bundle that cannot be trusted, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Dataset:
    """The releases of one dataset, the newest first."""

    name: str
    bundles: tuple[Bundle, ...]

    @property
    def latest(self) -> Bundle:
        return self.bundles[0]


def find_bundles(root: Path) -> tuple[list[Dataset], list[Damaged]]:
    """Every bundle under ``root``, checked; raises ``InputError`` where there is none."""
    whole: dict[tuple[str, str], Bundle] = {}
    damaged: list[Damaged] = []
    for path in _candidates(root):
        try:
            manifest = read_manifest(path)
            verify_files(path, manifest)
        except DPReleaseError as error:
            damaged.append(Damaged(path, str(error).replace(str(path), path.name)))
            continue
        key = (manifest.dataset, manifest.release_id)
        if key in whole:
            other = whole[key].path.relative_to(root)
            damaged.append(Damaged(path, f"{path.name}: is the same release as {other}"))
        else:
            whole[key] = Bundle(path, manifest)
    if not whole and not damaged:
        raise InputError(f"{root}: there are no bundles here; name the folder that `run` wrote to")
    return _by_dataset(whole.values()), damaged


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
