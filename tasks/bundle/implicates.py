"""Implicates of a synthetic table: versions of its records for other possible values of the noise.

They follow the combined estimates of all releases.  ``dpcore.post.records.implicates`` describes how
they are made, and ``dpcore.estimates.combine`` how to combine estimates from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.estimates.joined import DrawnRelease, noise_of
from dpcore.estimates.understated import Slope, slopes
from dpcore.post.records.implicates import fit_implicates, widened
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.post.tables.margins import margins_of
from dpcore.releases.abilities import FitsRecords
from dpcore.releases.base import post_processing_generator
from dpcore.releases.table import Table, TableColumn
from schemas.plan import Plan
from schemas.plan.synthesis import IMPLICATE, Synthesis
from tasks.bundle.records import scores_of, synthetic_records
from tasks.inference.measured import Draws

PILOT = 6
"""The number of trial implicates, made first to find how much larger the redrawn noise must be."""

ENOUGH = 0.6
"""Pairs of columns with a smaller spread are graded `too little`."""

FAR = 0.5
"""So are pairs whose mean slope is more than this many standard errors from the unbiased tables."""

SPREAD = {
    "columns": "Two columns that were measured together",
    "spread": "Standard deviation, between implicates, of the slope of one column on the other, times (1"
    " + 1/M)^0.5 for M implicates, divided by the slope's standard error from the noisy tables",
    "distance": "Mean slope over implicates minus the slope in the noisy tables, divided by the same"
    " standard error",
    "grade": f"enough: spread is at least {ENOUGH} and distance between -{FAR} and {FAR}. too little:"
    " all others, usually because many cells of the table are nearly empty. Intervals about these two"
    " columns may then be too short: use `fit` of the Python reader instead",
}


@dataclass(frozen=True, eq=False)
class Implicates:
    """``codes``: (M, rows, columns); ``slopes``, ``spread``, ``distance``: for each pair of columns."""

    codes: Integers
    slopes: Sequence[Slope]
    spread: Floats
    distance: Floats

    @property
    def enough(self) -> Booleans:
        return np.asarray((self.spread >= ENOUGH) & (np.abs(self.distance) <= FAR))

    def tables(self, plan: Plan, synthesis: Synthesis, draws: Draws) -> tuple[Table, Table]:
        """Two tables: the records of all implicates, and how much slopes differ between implicates."""
        number, rows, _ = self.codes.shape
        records = synthetic_records(
            plan, synthesis, draws, codes=self.codes.reshape(number * rows, -1)
        )
        name, which = f"{synthesis.name}.implicates", np.repeat(np.arange(1, number + 1), rows)
        key = TableColumn(IMPLICATE, which, "Number of the implicate that the record belongs to")
        names = plan.of_period[synthesis.from_].domain.names
        columns: dict[str, Any] = {
            "columns": [" x ".join(names[a] for a in slope.pair) for slope in self.slopes],
            "spread": self.spread,
            "distance": self.distance,
            "grade": np.where(self.enough, "enough", "too little"),
        }
        described = [TableColumn(k, np.asarray(columns[k]), text) for k, text in SPREAD.items()]
        return (
            Table("microdata", name, [key, *records.table(name, plan.columns).parts]),
            Table("microdata", f"{name}.spread", described),
        )


def make_implicates(
    release: FitsRecords, synthesis: Synthesis, counted: Sequence[DrawnRelease], draws: Draws
) -> Implicates:
    """The implicates of a synthetic table, from all releases that count the same records."""
    assert synthesis.implicates
    noisy, alike = (
        draws(release.name),
        [each for each in counted if each.release.unit == release.unit],
    )
    axes = [each.release.domain.axes for each in alike]
    # A separate stream: the first three are used for records and replicates.
    generator = post_processing_generator(noisy).spawn(4)[3]

    def together(several: Sequence[Agreement]) -> Agreement:
        return joined(list(zip(several, axes, strict=True)), release.domain.axes)

    agreement = together([each.agreement for each in alike])
    rows = release.total(noisy)
    stated = list(slopes(agreement, scores_of(release, agreement), rows))
    stated = [slope for slope in stated if slope.privacy > 0]
    start = release.sample(noisy, rows)[1]
    sets = release.tables
    margins = [agreement.margin(attributes) for attributes in sets]

    def made(number: int, factor: float) -> Implicates:
        again = together([noise_of(each, generator, number) for each in alike])
        noises = [factor * again.margin(attributes).table for attributes in sets]
        codes = fit_implicates(release.record_columns, margins, noises, start, generator)
        return _measured(codes, agreement, stated)

    return made(synthesis.implicates, widened(made(PILOT, 1.0).spread))


def _measured(codes: Integers, agreement: Agreement, stated: Sequence[Slope]) -> Implicates:
    """Compare slopes between implicates (M, rows, columns), and with the slopes of the tables."""
    number, rows, _ = codes.shape
    pairs = [slope.pair for slope in stated]
    sizes = agreement.sizes[: codes.shape[2]]
    counted = [margins_of(one, sizes, pairs) for one in codes]
    found = np.array(
        [
            [np.sum(slope.weights * table) / rows for slope, table in zip(stated, of, strict=True)]
            for of in counted
        ]
    ).reshape(number, -1)
    known = [np.sum(s.weights * agreement.margin(s.pair).table) / rows for s in stated]
    errors = np.array([slope.privacy for slope in stated]) ** 0.5
    spread = (1 + 1 / number) ** 0.5 * found.std(axis=0, ddof=1) / errors
    return Implicates(codes, stated, spread, (found.mean(axis=0) - np.array(known)) / errors)
