"""Makes synthetic records from committed draws only, and compares their margins with the release."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins, Categories, in_order, read_columns
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.estimates.understated import understated
from dpcore.line.statistic import Noisy
from dpcore.post.members import members_of
from dpcore.post.records.calibrate import Target, calibrated, target
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from dpcore.releases.abilities import Samplable, blocks_of, drawn_of_period
from dpcore.releases.base import Release, post_processing_generator
from dpcore.releases.counts.unit import TableOfCounts, tables_of_counts
from dpcore.releases.table import Table, TableColumn
from dpcore.synthesis.column import ColumnDensity, inside_bins, wide_cells
from dpcore.synthesis.decode import decode_records
from schemas.bundle.grades import FEWEST, NOT_MEASURED, ROUGHLY, WITHIN, grade
from schemas.bundle.manifest import Understated
from schemas.plan import Plan
from schemas.plan.linked import NUMBER, PLACE, SIZE
from schemas.plan.synthesis import UNIFORM, Synthesis
from schemas.survey.columns import Column
from schemas.survey.derived import Derived
from tasks.inference.measured import Draws

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""The mean absolute value of a standard normal variable."""

MOST_SETS = 1000
"""The listing has at most this many sets of three or more columns: all triples of 18 columns."""

SURELY, EXPECTED = 6.0, 10.0
"""A cell surely has records if its noisy count is this many standard errors above zero.  A cell without
records is noted if more than the second number were expected."""

SUPPORT = {
    "columns": "A set of columns of the records. The table lists single columns, pairs, and at most"
    f" {MOST_SETS} larger sets that the release measured together",
    "ways": "Number of columns in the set",
    "cells": "Number of cells of their joint table, in which values may be grouped",
    "grade": f"accurate: distance plus expected_distance is at most {WITHIN} of outside_largest, so"
    " about this share of the records outside the largest cell may be in a wrong cell. rough: the sum is"
    f" at most {ROUGHLY} of it; or at most {WITHIN}, but most records are in one bin or group, whose"
    f" inner distribution is assumed. noise: the sum is larger. Here outside_largest counts as at least"
    f" {FEWEST}. unknown: the set was measured, but the sum is not known. not measured: the model"
    " assumes the joint distribution, as for every larger set that is not listed",
    "standard_error": "Standard error of a cell of the joint table, from privacy noise",
    "distance": "Total variation distance between the records and the noisy table",
    "expected_distance": "Average total variation distance caused by privacy noise alone",
    "outside_largest": "Share of the records that are not in the largest cell of the joint table",
    "excluded": "Number of cells that have no records, although their noisy counts are clearly above"
    " zero: rules or conditions of the plan exclude records that the survey has",
    "derived_from": "Columns from which this column is computed in each record. Such a column is not"
    " drawn and has no cells",
}


@dataclass(frozen=True, eq=False)
class SyntheticRecords:
    """Synthetic records as ``codes`` (rows, columns) over ``domain``, and as columns of values.

    ``refined_by``: by column, the release that its values inside bins follow; ``followed``: other
    releases whose tables the records follow; ``derived``: columns that are computed from others;
    ``before``: the number of records in earlier blocks.
    """

    release: Samplable
    domain: Domain
    codes: Integers
    columns: Mapping[str, NDArray[Any]]
    refined_by: dict[str, str]
    followed: Sequence[str] = ()
    derived: Sequence[Derived] = ()
    before: int = 0

    @property
    def without_values(self) -> SyntheticRecords:
        """The records with only their codes, which take little memory."""
        small = self.codes.astype(np.min_scalar_type(-max(self.domain.shape)))
        return replace(self, codes=small, columns={})

    def table(self, name: str, survey: Mapping[str, Column]) -> Table:
        """The records in the survey's own columns and order."""
        # Derived columns with a mapping are columns of the survey too, and come last.
        last = {derived.name for derived in self.derived}
        columns = [
            TableColumn(
                column, self.columns[column], "" if stated.description else "Synthetic", column
            )
            for column, stated in survey.items()
            if column in self.columns and column not in last
        ]
        columns += [
            TableColumn(
                derived.name,
                self.columns[derived.name],
                derived.words,
                derived.name if derived.mapping else None,
            )
            for derived in self.derived
        ]
        return Table("microdata", name, columns)

    def linked_tables(self, name: str, plan: Plan) -> tuple[Table, Table]:
        """Wide records as two tables, of units and of their members, joined by a made-up number."""
        assert plan.linked
        assert plan.unit
        unit = plan.unit.name
        places = plan.linked.places(plan.columns, plan.unit)
        chosen = [column for column, names in places.items() if names[0] in self.columns]
        columns = [[self.columns[of] for of in places[column]] for column in chosen]
        number, place, found = members_of(self.columns[SIZE], columns)
        key = f"Made-up number of the synthetic {unit}; it links both tables"
        shared = self.table(name, {n: plan.record_columns[n] for n in (*plan.linked.shared, SIZE)})
        units = TableColumn(NUMBER, self.before + np.arange(1, len(self.codes) + 1), key)
        members = [
            TableColumn(NUMBER, self.before + number, key),
            TableColumn(
                PLACE, place, f"Position of the member in the {unit}, in the order of the plan"
            ),
            *(
                TableColumn(c, values, "" if plan.columns[c].description else "Synthetic", c)
                for c, values in zip(chosen, found, strict=True)
            ),
        ]
        return (
            Table("microdata", name, [units, *shared.parts]),
            Table("microdata", f"{name}.members", members),
        )

    def support(self, name: str, noisy: Noisy) -> Table:
        """The table of support: the grade of each margin, and the records' distance from it."""
        names = tuple(axis.name for axis in self.domain.axes if read_columns(axis) == (axis.name,))
        follows = self.release.follows
        # A pair is left out if one column follows from the other: the records are right by construction.
        free = (p for p in combinations(names, 2) if len({follows.get(n, n) for n in p}) > 1)
        chosen = [*combinations(names, 1), *free]
        chosen += islice((each for each in self._larger() if {*each} <= {*names}), MOST_SETS)
        rows = [
            row
            for columns, measured in zip(chosen, self._measured(noisy, chosen), strict=True)
            for row in [self._support(columns, *measured)]
            if len(columns) < 3 or row["grade"] != NOT_MEASURED
        ]
        rows += [self._of_derived(derived) for derived in self.derived]
        columns = []
        for key, text in SUPPORT.items():
            values = np.array([row[key] for row in rows])
            unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(rows), bool)
            if key == "derived_from":
                unknown = values == ""
                if unknown.all():
                    continue
            masked = np.ma.masked_array(values, mask=unknown) if unknown.any() else values
            columns.append(TableColumn(key, masked, text))
        return Table("microdata", f"{name}.support", columns)

    def _measured(
        self, noisy: Noisy, chosen: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[tuple[Floats, float] | None, Mapping[str, Integers]]]:
        """Yield the noisy table and error of each set of columns (``supported_margin``). Also, for each
        column counted in groups, the group of each cell."""
        groups: dict[str, Integers] = {}
        together: Iterator[tuple[Floats, float] | None] = iter(())
        if isinstance(self.release, TableOfCounts):
            found = self.release.as_measured(noisy)
            groups = {self.domain.names[place]: each for place, each in found.groups.items()}
        wide = {each for each in chosen if not groups.keys().isdisjoint(each)}
        if wide:
            assert isinstance(found.release, Samplable)
            assert found.noisy
            of_groups = [each for each in chosen if each in wide]
            together = found.release.supported_margins(found.noisy, of_groups)
        own = self.release.supported_margins(noisy, [each for each in chosen if each not in wide])
        for each in chosen:
            yield (next(together), groups) if each in wide else (next(own), {})

    def _of_derived(self, derived: Derived) -> dict[str, Any]:
        """The row of a derived column, which no release measures."""
        row: dict[str, Any] = dict.fromkeys(SUPPORT, math.nan)
        said = {"columns": derived.name, "ways": 1, "cells": 0, "grade": NOT_MEASURED}
        return row | said | {"derived_from": " x ".join(derived.sources)}

    def _larger(self) -> Iterator[tuple[str, ...]]:
        """Yield, once, each triple of columns in a table of the release, and each larger table."""
        tables = [domain.names for domain in self.release.domains if len(domain.axes) > 2]
        triples = chain.from_iterable(combinations(names, 3) for names in tables)
        wider = (names for names in tables if len(names) > 3)
        yield from dict.fromkeys(islice(chain(triples, wider), 2 * MOST_SETS))

    def _support(
        self,
        names: tuple[str, ...],
        found: tuple[Floats, float] | None,
        groups: Mapping[str, Integers],
    ) -> dict[str, Any]:
        """The row of a set of columns; ``groups``: the groups of cells, by column counted in groups."""
        positions = [self.domain.names.index(name) for name in names]
        # The cells of the release's noisy counts: the records of a density are never null.
        shape = tuple(
            int(groups[name].max()) + 1 if name in groups else cells
            for name, cells in zip(names, self.release.domain.select(names).shape, strict=True)
        )
        size = math.prod(shape)
        row = {"columns": " x ".join(names), "ways": len(names), "cells": size}
        row["derived_from"] = ""
        counts, error = found or (np.zeros(0), math.nan)
        public = self.release.adjacency.public_rows
        total = self.release.rows if public else counts.sum()
        if not len(self.codes) or not counts.any() or total <= 0:
            unknown = dict.fromkeys(SUPPORT, math.nan)
            return unknown | row | {"grade": grade(found is not None, math.nan)}
        coarse = any(
            # For a single column, values inside the groups were counted too.
            self._mostly_in_one_bin(position, groups.get(name) if len(names) > 1 else None)
            for name, position in zip(names, positions, strict=True)
        )
        codes = [
            groups[name][self.codes[:, position]] if name in groups else self.codes[:, position]
            for name, position in zip(names, positions, strict=True)
        ]
        cells = np.bincount(np.ravel_multi_index(codes, shape), minlength=size)
        distance = np.abs(cells / len(self.codes) - counts / total).sum() / 2
        expected = size * error * MEAN_ABSOLUTE / total / 2
        outside = 1 - float(cells.max()) / len(self.codes)
        sure = (counts > SURELY * error) & (counts / total * len(self.codes) > EXPECTED)
        return row | {
            "standard_error": error,
            "distance": float(distance),
            "expected_distance": expected,
            "outside_largest": outside,
            "excluded": float(np.sum((cells == 0) & sure)),
            "grade": grade(True, float(distance) + expected, outside, coarse),
        }

    def _mostly_in_one_bin(self, position: int, groups: Integers | None) -> bool:
        """Whether most records are in one bin or group, or in groups of categories; no release describes
        the values inside these."""
        axis, codes = self.domain.axes[position], self.codes[:, position]
        if groups is not None:
            several = np.bincount(groups) > 1
            counts = np.bincount(groups[codes], minlength=len(several)) * several
            # Neighbouring numbers are alike, whereas categories are merged because both are rare.
            assumed = counts.max() if in_order(axis) else counts.sum()
            if assumed > len(codes) / 2:
                return True
        if axis.name in self.refined_by:
            return False
        wide = wide_cells(axis)
        counts = np.bincount(codes, minlength=axis.size)[: len(wide)]
        return bool(np.any(wide & (counts > len(codes) / 2)))


def synthetic_records(
    plan: Plan,
    synthesis: Synthesis,
    draws: Draws,
    rows: int | None = None,
    codes: Integers | None = None,
) -> SyntheticRecords:
    """The records of one synthetic table of the plan: all blocks of ``record_blocks`` joined."""
    return joined([*record_blocks(plan, synthesis, draws, rows, codes)])


def draws_of_period(plan: Plan, draws: Draws) -> Draws:
    """The draws of the releases of one period (``Plan.of_period``)."""
    return lambda name: drawn_of_period(plan.built[name], draws(name))


def tally_of_records(plan: Plan, name: str, domain: Domain, draws: Draws) -> Tally:
    """Count the records of a synthetic table by the cells of some columns. The counts are public."""
    synthesis = next(table for table in plan.synthesis if table.name == name)
    tallies = []
    for block in record_blocks(plan, synthesis, draws):
        places = [block.domain.names.index(axis.name) for axis in domain.axes]
        assert tuple(block.domain.axes[place] for place in places) == domain.axes
        tallies.append(Tally.of(domain, domain.pack(block.codes[:, places])))
    cells, counts = ([getattr(each, key) for each in tallies] for key in ("cells", "counts"))
    return Tally.of(domain, np.concatenate(cells), np.concatenate(counts))


def joined(blocks: Sequence[SyntheticRecords]) -> SyntheticRecords:
    """All blocks joined to one."""
    first, *others = blocks
    if not others:
        return first

    def together(found: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        masked = any(
            isinstance(values, np.ma.MaskedArray) for of in found for values in of.values()
        )
        join = np.ma.concatenate if masked else np.concatenate  # np.concatenate drops masks
        return {name: join([of[name] for of in found]) for name in found[0]}

    return replace(
        first,
        codes=np.concatenate([block.codes for block in blocks]),
        columns=together([block.columns for block in blocks]),
        followed=[*dict.fromkeys(name for block in blocks for name in block.followed)],
    )


def record_blocks(
    plan: Plan,
    synthesis: Synthesis,
    draws: Draws,
    rows: int | None = None,
    codes: Integers | None = None,
) -> Iterator[SyntheticRecords]:
    """Yield blocks of records of a synthetic table; ``rows`` replaces the plan's number of records.

    The same draws and number always give the same records.  ``codes``: (rows, columns) of existing
    records, over the release's domain.
    """
    draws = draws_of_period(plan, draws)
    sampler, noisy = synthesis.sampler(plan.of_period), draws(synthesis.from_)
    # Separate streams: if the stream that chose the codes were used again, values would depend on codes.
    within, of_choice = post_processing_generator(noisy).spawn(2)
    refining = synthesis.refining(plan.of_period)
    densities = {
        column: inside_bins(finer, draws(finer.name), column) for column, finer in refining.items()
    }
    if codes is None:
        domain, blocks = sampler.sample_blocks(noisy, synthesis.rows if rows is None else rows)
    else:
        domain, blocks = sampler.domain, iter(np.array_split(codes, len(blocks_of(len(codes)))))
    densities |= {
        axis.name: ColumnDensity.uniform(axis)
        for axis in domain.axes
        if isinstance(axis, Bins) and synthesis.within_bins.get(axis.name) == UNIFORM
    }
    derived = synthesis.deriving(sampler, plan.record_columns)
    refined_by = {column: finer.name for column, finer in refining.items()}
    before = 0
    for block in blocks:
        # Existing records are implicates, which already follow all releases.
        followed, targets = _targets(plan, sampler, block, draws) if codes is None else ([], [])
        if targets:
            block = block[calibrated(len(block), targets, of_choice)]
        columns = decode_records(domain, block, densities, within, sampler.rules)
        for column in derived:
            columns[column.name] = column.values(columns)
        if plan.series and (periods := plan.series.bound(plan.columns)):
            now = np.full((len(block), 1), plan.series.run - 1)
            columns |= decode_records(Domain((periods.axis,)), now, {}, within)
        yield SyntheticRecords(
            sampler, domain, block, columns, refined_by, followed, derived, before
        )
        before += len(block)


def _targets(
    plan: Plan, sampler: Samplable, codes: Integers, draws: Draws
) -> tuple[list[str], list[Target]]:
    """The other releases that count columns of the records, and their tables for these codes."""
    followed, targets = list[str](), list[Target]()
    counting = tables_of_counts(plan.of_period)
    own = counting.get(sampler.name)
    if plan.linked or own is None or not len(codes):
        return followed, targets
    axes = {
        axis.name: (place, axis)
        for place, axis in enumerate(sampler.domain.axes)
        if len(read_columns(axis)) == 1  # relations of columns are no column of the records
    }
    for name, release in counting.items():
        if name == sampler.name or release.unit != own.unit or release.adjacency.weighted:
            continue
        read = release.as_measured(draws(release.name))
        if (agreement := read.agreement()) is None:
            continue
        measured = read.release.domain
        for domain in read.release.domains:
            if not set(domain.names) <= axes.keys():
                continue
            attributes = sorted(measured.names.index(name) for name in domain.names)
            theirs = [measured.axes[attribute] for attribute in attributes]
            places, ours = zip(*(axes[axis.name] for axis in theirs), strict=True)
            margin = partial(_margin, agreement, attributes)
            found = target(theirs, ours, codes[:, places], margin)
            if found is not None:
                targets.append(found)
                followed.append(release.name)
    return [*dict.fromkeys(followed)], targets


def _margin(agreement: Agreement, attributes: Sequence[int], kept: tuple[int, ...]) -> Margin:
    return agreement.margin([attributes[place] for place in kept])


def understated_by(release: Samplable, noisy: Noisy) -> Understated | None:
    """Factor by which standard errors from synthetic records are too small; None if unknown."""
    if not isinstance(release, TableOfCounts) or release.adjacency.weighted:
        return None
    agreement = release.agreement(noisy)
    if agreement is None:
        return None
    rows = max(float(agreement.margin(()).table), 1.0)
    found = understated(agreement, scores_of(release, agreement), rows)
    if not len(found):
        return None
    middle, high = np.quantile(found, [0.5, 0.9])
    return Understated(median=float(middle), one_in_ten=float(high))


def scores_of(release: Release, agreement: Agreement) -> list[Floats]:
    """A score for each cell of each column: its position or, for categories, 1 for the most frequent."""
    shares = [agreement.margin((a,)).table for a in range(len(release.domain.axes))]
    scores = [
        (np.arange(len(share)) == share.argmax())
        if isinstance(axis, Categories)
        else np.arange(axis.size)
        for axis, share in zip(release.domain.axes, shares, strict=True)
    ]
    return [np.asarray(score, dtype=np.float64) for score in scores]
