"""Writes the catalogue's contents: HTML for people and JSON for programs."""

import hashlib
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from dpcore.accounting.budget import decimal_text, total
from schemas.bundle.manifest import Manifest
from schemas.plan import published_plan
from tasks.catalogue.bundles import CheckedBundle, Dataset, UnlistedBundle
from tasks.catalogue.changes import changes
from tasks.catalogue.series import series_figures
from tasks.charts.svg import figure
from tasks.report.history import History, Spending, waterfall
from tasks.report.page import REPORT, render
from tasks.report.parts import Figure


@dataclass(frozen=True)
class File:
    """A file to download: its path in the bundle, its address from the site, its size."""

    path: str
    address: str
    size: str


@dataclass(frozen=True)
class Entry:
    """One release in the catalogue."""

    manifest: Manifest
    report: str | None
    amounts: Sequence[str]
    files: Sequence[File]
    changes: Sequence[str]

    @property
    def publishers(self) -> str:
        """Words on who published and who requested it."""
        said = self.manifest.plan["publication"]
        asked = f"requested by {said['requester']}" if said["requester"] else ""
        return "; ".join(filter(None, (said["publisher"], asked)))


@dataclass(frozen=True)
class Listing:
    """One dataset in the catalogue; ``words``: the text that a search looks through.

    ``title``: of its newest release, with the dataset's name if another dataset has the same title.
    """

    dataset: Dataset
    title: str
    entries: Sequence[Entry]
    timeline: Figure
    series: Sequence[Figure]
    words: str

    @property
    def latest(self) -> Entry:
        return self.entries[0]


def catalogue_page(
    datasets: Sequence[Dataset], left_out: Sequence[UnlistedBundle], site: Path
) -> str:
    """The catalogue as HTML, for the folder ``site``."""
    script = files("tasks.report").joinpath("templates/search.js").read_text(encoding="utf-8")
    # The page's content security policy allows only the script with this digest.
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    releases = sum(len(dataset.bundles) for dataset in datasets)
    titles = Counter(dataset.title for dataset in datasets)
    return render(
        "catalogue.html",
        counted=f"{_counted(len(datasets), 'dataset')}, {_counted(releases, 'release')}",
        listings=[_listing(each, titles[each.title] > 1, site) for each in datasets],
        damaged=[bundle.reason for bundle in left_out if not bundle.duplicate],
        duplicates=[bundle.reason for bundle in left_out if bundle.duplicate],
        script=Markup(script),
        script_digest=digest,
    )


def catalogue_json(datasets: Sequence[Dataset], site: Path) -> dict[str, Any]:
    """The catalogue for programs: addresses are relative to the site."""
    return {
        "format": 1,
        "datasets": {
            dataset.name: {
                "title": dataset.title,
                "latest": dataset.latest.manifest.release_id,
                "releases": {
                    bundle.manifest.release_id: {
                        "address": _address(bundle.path, site),
                        "title": bundle.manifest.title,
                        "publisher": bundle.manifest.plan["publication"]["publisher"],
                        "requester": bundle.manifest.plan["publication"]["requester"],
                        "drawn_at": bundle.manifest.drawn_at,
                        "findings": bundle.manifest.findings,
                        "changes": changes(before, bundle.manifest),
                        **bundle.manifest.guarantee.budget.as_strings(),
                        "files": [file.path for file in _files(bundle, site)],
                    }
                    for bundle, before in dataset.in_turn
                },
            }
            for dataset in datasets
        },
    }


def _listing(dataset: Dataset, ambiguous: bool, site: Path) -> Listing:
    entries = [_entry(bundle, before, site) for bundle, before in dataset.in_turn]
    words = [
        text
        for manifest in (bundle.manifest for bundle in dataset.bundles)
        for text in (
            manifest.dataset,
            manifest.release_id,
            manifest.title,
            manifest.plan["publication"]["description"],
            *manifest.plan["columns"],
            manifest.plan["publication"]["publisher"],
            *manifest.findings,
            *(f"{record.kind} {record.name} {record.title}" for record in manifest.releases),
        )
    ]
    said = " ".join(dict.fromkeys(words)).lower()
    title = f"{dataset.title} ({dataset.name})" if ambiguous else dataset.title
    return Listing(dataset, title, entries, _timeline(dataset), series_figures(dataset), said)


def _entry(bundle: CheckedBundle, before: Manifest | None, site: Path) -> Entry:
    spent = bundle.manifest.guarantee.budget
    listed = _files(bundle, site)
    report = next((file.address for file in listed if file.path == REPORT), None)
    amounts = [decimal_text(getattr(spent, c)) for c in ("alpha", "beta", "gamma")]
    changed = changes(before, bundle.manifest)
    return Entry(bundle.manifest, report, amounts, listed, changed)


def _timeline(dataset: Dataset) -> Figure:
    """A figure of the amounts that the releases spent of the newest plan's grant, the oldest first."""
    granted = published_plan(dataset.latest.manifest.plan).budget.caps
    spendings = [
        Spending(m.release_id, m.drawn_at, total(r.price for r in m.releases), "published")
        for m in (bundle.manifest for bundle in reversed(dataset.bundles))
    ]
    history = History(granted, spendings)
    title = f"Budget spent by the releases of {dataset.name}"
    says = (
        f"{_counted(len(spendings), 'release')} listed here spent"
        f" {figure(float(history.spent.loss))} of {figure(float(granted.loss))}"
        f" {granted.coordinates[0]}; the newest"
        " report also shows charges of other releases"
    )
    return Figure(title, says, [waterfall(history)])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _files(bundle: CheckedBundle, site: Path) -> list[File]:
    paths = sorted(path for path in bundle.path.rglob("*") if path.is_file())
    return [
        File(path.relative_to(bundle.path).as_posix(), _address(path, site), _size(path))
        for path in paths
    ]


def _address(path: Path, site: Path) -> str:
    """A relative address, so that site and bundles can be moved together."""
    return quote(Path(os.path.relpath(path, site.resolve())).as_posix())


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(size / 1e3, 0.1):.1f} kB"
