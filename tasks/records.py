"""Synthetic records from committed draws alone, and what supports their margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Domain
from dpcore.releases.base import Release, Table, post_processing_generator
from dpcore.statistic import Noisy
from dpcore.synthesis import ColumnDensity, decode_records, group_households
from schemas.columns import Column
from schemas.plan import Plan
from schemas.synthesis import Synthesis

HOUSEHOLD = (
    "Number of a synthetic household; who lives together is assumed, by size and what is shared"
)

Draws = Callable[[str], Noisy]
"""The draw of a release, by name."""

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Of a standard normal variable."""

SUPPORT = {
    "columns": "One or two columns of the records",
    "cells": "Cells of their joint table",
    "supported": "Whether the records follow what a release says of these columns together; where"
    " not, their relation is what the model assumes. So is every relation of three or more columns"
    " that the release has no table of",
    "standard_error": "Standard error of a cell of that table, from privacy noise",
    "distance": "Total variation between the shares of the records and those of the noisy table",
    "expected_distance": "The total variation that noise alone makes, on average",
}


@dataclass(frozen=True, eq=False)
class Records:
    """Synthetic records: ``codes`` (rows, columns) over ``domain``, and the columns made of them.

    ``refined_by``: columns whose values inside their bins follow a release, and which; ``households``:
    (rows,) numbers of synthetic households under the name of their column, where there are any.
    """

    release: Release
    domain: Domain
    codes: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]
    refined_by: dict[str, str]
    households: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    def table(self, name: str, survey: Mapping[str, Column]) -> Table:
        """The records in the survey's own columns and order."""
        in_order = {column: self.columns[column] for column in survey if column in self.columns}
        described = {c: "" if survey[c].description else "Synthetic" for c in in_order}
        return Table(
            "microdata",
            name,
            {**self.households, **in_order},
            {**dict.fromkeys(self.households, HOUSEHOLD), **described},
            {column: column for column in in_order},
        )

    def support(self, name: str, noisy: Noisy) -> Table:
        """Which one- and two-way margins a release supports, and how well."""
        names = self.domain.names
        rows = [
            self._support(noisy, chosen)
            for chosen in chain(combinations(names, 1), combinations(names, 2))
        ]
        columns: dict[str, NDArray[Any]] = {}
        for key in SUPPORT:
            values = np.array([row[key] for row in rows])
            unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(rows), bool)
            columns[key] = np.ma.masked_array(values, mask=unknown) if unknown.any() else values
        return Table("microdata", f"{name}.support", columns, SUPPORT)

    def _support(self, noisy: Noisy, names: tuple[str, ...]) -> dict[str, Any]:
        margin = self.domain.select(names)
        found = self.release.supported_margin(noisy, names)
        row = {"columns": " x ".join(names), "cells": margin.size, "supported": found is not None}
        counts, error = found or (np.zeros(0), math.nan)
        public = self.release.adjacency.public_rows
        total = self.release.rows if public else counts.sum()
        if not len(self.codes) or not counts.any() or total <= 0:
            return row | dict.fromkeys(
                ("standard_error", "distance", "expected_distance"), math.nan
            )
        positions = [self.domain.names.index(name) for name in names]
        cells = np.bincount(margin.pack(self.codes[:, positions]), minlength=margin.size)
        distance = np.abs(cells / len(self.codes) - counts / total).sum() / 2
        expected = margin.size * error * MEAN_ABSOLUTE / total / 2
        return row | {
            "standard_error": error,
            "distance": float(distance),
            "expected_distance": expected,
        }


def synthetic_records(
    plan: Plan, synthesis: Synthesis, draws: Draws, rows: int | None = None
) -> Records:
    """Records of one synthetic table of the plan; ``rows`` of them instead of the plan's number.

    The same draws and rows always give the same records.
    """
    release, noisy = plan.built[synthesis.from_], draws(synthesis.from_)
    sampler = synthesis.sampler(release)
    domain, codes = sampler.sample(noisy, synthesis.rows if rows is None else rows)
    refining = synthesis.refining(plan.built)
    densities = {
        column: ColumnDensity.of(finer, draws(finer.name), column)
        for column, finer in refining.items()
    }
    # A stream of its own: with the numbers that chose the codes, values would follow from codes.
    within, of_households = post_processing_generator(noisy).spawn(2)
    columns = decode_records(domain, codes, densities, within)
    assert isinstance(sampler, Release)
    refined_by = {column: finer.name for column, finer in refining.items()}
    households = _households(synthesis, domain, codes, columns, of_households)
    return Records(sampler, domain, codes, columns, refined_by, households)


def _households(
    synthesis: Synthesis,
    domain: Domain,
    codes: NDArray[np.int64],
    columns: Mapping[str, NDArray[Any]],
    generator: np.random.Generator,
) -> dict[str, NDArray[np.int64]]:
    """The column of household numbers, if the plan asks for one."""
    wanted = synthesis.households
    if wanted is None:
        return {}
    shared = codes[:, [domain.names.index(name) for name in wanted.same]]
    return {wanted.name: group_households(columns[wanted.size], shared, generator)}
