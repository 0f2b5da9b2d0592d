"""Draws the releases of a series as lines with bands: one figure for each quantity and large cell.

Each point is a number published for its period; nothing is computed again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.post.series import QUANTITIES
from dpcore.releases.table import ENDS
from schemas.bundle.manifest import ReleaseRecord
from schemas.bundle.table_file import TableFile
from schemas.plan.series import of_any_run
from tasks.catalogue.bundles import CheckedBundle, Dataset
from tasks.charts.band import CurveWithBand, band
from tasks.charts.chart import Axis
from tasks.charts.svg import figure
from tasks.report.parts import DataTable, Figure, read_columns

DRAWN = ("period", "to-date")
MOST_CELLS = 3
"""At most this many cells of a release's first table are drawn: the largest ones of the last period."""

NUMBERS = ("estimate", *ENDS)
OF_ESTIMATES = ("estimate", "lower_95", "upper_95")

LABELS = ("term", "statistic", "column", "other", "category")
"""The columns that name the rows of estimates, which are not cells."""


def series_figures(dataset: Dataset) -> list[Figure]:
    """The figures of all series of a dataset that have at least two runs."""
    found: list[Figure] = []
    for bundles in _series(dataset):
        for i, record in enumerate(bundles[-1].manifest.releases):
            files = [(bundle, bundle.manifest.releases[i].tables[0]) for bundle in bundles]
            found += _figures(record, files)
    return found


def _series(dataset: Dataset) -> Iterator[list[CheckedBundle]]:
    """Yield the bundles of each series, in the order of its runs."""
    found: dict[str, list[CheckedBundle]] = {}
    for bundle in dataset.bundles:
        if "series" in bundle.manifest.plan:
            common = json.dumps(of_any_run(bundle.manifest.plan), sort_keys=True)
            found.setdefault(common, []).append(bundle)
    for bundles in found.values():
        if len(bundles) > 1:
            yield sorted(bundles, key=lambda bundle: bundle.manifest.plan["series"]["run"])


def _figures(
    record: ReleaseRecord, files: Sequence[tuple[CheckedBundle, TableFile]]
) -> Iterator[Figure]:
    plans = [bundle.manifest.plan["series"] for bundle, _ in files]
    runs = np.array([plan["run"] for plan in plans], dtype=np.float64)
    tables = [read_columns(bundle.path, file) for bundle, file in files]
    about = files[-1][1].about
    last = tables[-1]
    numbers_of = NUMBERS if NUMBERS[1] in last else OF_ESTIMATES
    cells = [name for name, of in about.items() if of != plans[-1]["period"]]
    cells += [name for name in LABELS if name in last and name not in about]
    now = np.flatnonzero(last["quantity"] == DRAWN[0])
    order = np.argsort(-last["estimate"][now], kind="stable")
    names = _periods(tables, about, plans[-1]["period"], runs)
    for cell in np.sort(order[:MOST_CELLS]):
        named = {name: last[name][now[cell]] for name in cells}
        where = ", ".join(f"{name} {value}" for name, value in named.items() if value is not None)
        for quantity in (each for each in DRAWN if each in last["quantity"]):
            rows_of = (_row(table, quantity, int(cell), numbers_of) for table in tables)
            numbers = np.array([*rows_of])
            if not np.isfinite(numbers).all():  # one run has no interval
                continue
            what = QUANTITIES[quantity] if numbers_of is NUMBERS else "estimate of the period"
            title = f"{record.name}, {where}: {what}"
            interval = "90% interval for privacy noise"
            if numbers_of is OF_ESTIMATES:
                interval = "95% interval for sampling and noise"
            says = (
                f"Line: the estimate of each of {len(runs)} releases, {names[0]} to {names[-1]}, for its"
                f" own period. Band: its {interval}"
            )
            curve = CurveWithBand(runs, *numbers.T)
            rows = [
                (name, *map(figure, row)) for name, row in zip(names, numbers.tolist(), strict=True)
            ]
            table = DataTable(title, ("Period", "Estimate", "From", "To"), rows, "the bundles")
            ticks = dict(zip(runs.tolist(), names, strict=True))
            counts = numbers_of is NUMBERS
            side = Axis("Records" if counts else "Estimate", zero=counts)
            panel = band(curve, Axis("Period", ticks=ticks), side)
            yield Figure(title, says, [panel], table)


def _row(
    table: Mapping[str, NDArray[Any]], quantity: str, cell: int, names: Sequence[str]
) -> list[float]:
    """The estimate and the interval of one cell; NaN if the table lacks it."""
    row = np.flatnonzero(table["quantity"] == quantity)[cell]
    return [float(table[name][row]) for name in names]


def _periods(
    tables: Sequence[Mapping[str, NDArray[Any]]],
    about: Mapping[str, str],
    period: str,
    runs: NDArray[np.float64],
) -> list[str]:
    """The period of each run, as its table names it, or else its number."""
    named = [name for name, of in about.items() if of == period]
    return [
        str(table[named[0]][0]) if named else str(int(run))
        for table, run in zip(tables, runs, strict=True)
    ]
