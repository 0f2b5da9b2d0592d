"""Finds and checks the bundles under a folder, and groups them by dataset."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dpcore.errors import BundleError, DPReleaseError, InputError, UnreadableError
from schemas.bundle.manifest import Manifest
from tasks.bundle.digests import is_bundle
from tasks.bundle.folders import folders_in, is_empty
from tasks.bundle.verify import read_manifest, verify_files


@dataclass(frozen=True)
class CheckedBundle:
    """A bundle that was not changed since its publication."""

    path: Path
    manifest: Manifest


@dataclass(frozen=True)
class UnlistedBundle:
    """A bundle that is not listed because it is damaged, or because another copy is listed.

    ``reason``: why it is not listed; the text names the bundle by its path relative to the folder.
    """

    reason: str
    duplicate: bool = False


@dataclass(frozen=True)
class Dataset:
    """The releases of one dataset, the newest first."""

    name: str
    bundles: tuple[CheckedBundle, ...]

    @property
    def latest(self) -> CheckedBundle:
        return self.bundles[0]

    @property
    def title(self) -> str:
        """The title of its newest release."""
        return self.latest.manifest.title

    @property
    def in_turn(self) -> Iterator[tuple[CheckedBundle, Manifest | None]]:
        """Each release with the manifest of the one before it, if there is one."""
        before = [bundle.manifest for bundle in self.bundles[1:]]
        return zip(self.bundles, [*before, None], strict=True)


def find_bundles(root: Path) -> tuple[list[Dataset], list[UnlistedBundle]]:
    """Every bundle under ``root``, checked; raises ``InputError`` if there is none.

    Paths keep symbolic links, so that they are valid for readers who come from ``root``.
    """
    named, root = root, root.resolve()
    whole: dict[tuple[str, str], CheckedBundle] = {}
    left_out: list[UnlistedBundle] = []
    for path, unread in _candidates(root):
        place = path.relative_to(root).as_posix()
        try:
            if unread:
                raise unread
            manifest = read_manifest(path)
            verify_files(path, manifest)
        except DPReleaseError as error:
            left_out.append(UnlistedBundle(str(error).replace(str(path), place)))
            continue
        key = (manifest.dataset, manifest.release_id)
        if key in whole:
            other = whole[key].path.relative_to(root).as_posix()
            reason = f"{place}: is a second copy of release {'/'.join(key)}, listed from {other}"
            left_out.append(UnlistedBundle(reason, duplicate=True))
        else:
            whole[key] = CheckedBundle(path, manifest)
    if not whole and not left_out:
        raise InputError(
            f"{named}: there are no bundles here; name the folder given to run as --out"
        )
    return _by_dataset(whole.values()), left_out


def _candidates(root: Path) -> Iterator[tuple[Path, DPReleaseError | None]]:
    """Yield each bundle once, also behind links; with an error if it is empty or unreadable."""
    waiting, links, seen = [root], list[Path](), set[Path]()
    bundles, empty = list[Path](), list[Path]()
    while waiting or links:
        # Links last, so that a bundle inside the root is listed by its own path.
        folder = waiting.pop() if waiting else links.pop(0)
        place = folder.resolve()  # ends circles of links
        if place in seen:
            continue
        seen.add(place)
        try:
            inner = folders_in(folder)
            if is_bundle(folder):
                bundles.append(folder)
                yield folder, None
            elif is_empty(folder):
                empty.append(folder)
        except UnreadableError as error:
            yield folder, error
            continue
        links += [path for path in inner.values() if path.is_symlink()]
        waiting += [path for path in reversed(inner.values()) if not path.is_symlink()]
    beside = {bundle.parent for bundle in bundles}
    for folder in empty:  # as DATASET/RELEASE_ID, or next to bundles: a dataset may have none yet
        of_dataset = folder.parent.parent == root or folder.parent in beside
        if of_dataset and folder.parent not in bundles:
            yield folder, BundleError(f"{folder}: has no files: it was emptied")


def _by_dataset(bundles: Iterable[CheckedBundle]) -> list[Dataset]:
    found: dict[str, list[CheckedBundle]] = {}
    for bundle in bundles:
        found.setdefault(bundle.manifest.dataset, []).append(bundle)
    return [
        Dataset(name, tuple(sorted(some, key=_age, reverse=True)))
        for name, some in sorted(found.items())
    ]


def _age(bundle: CheckedBundle) -> tuple[str, str]:
    return bundle.manifest.drawn_at, bundle.manifest.release_id
