"""Synthetic microdata from pairs of groups, for columns with too many pairs of cells to measure.

    noisy one-way tables of wide columns    -->  groups of cells of each, by these counts
    noisy pairs of groups                   -->  records of groups, as ``Microdata`` makes them
    noisy one-way tables of wide columns    -->  cells within the groups of the records

A wide column has ``keep`` groups.  Tables of more cells get less noise (``compression``).  A part of the
budget pays for the first tables, the rest for the pairs (``dpcore.mechanisms.compressed_margins``).
``keep`` is public and bounds every pair, so memory is known before anything is opened.  The association
of a cell with other columns is measured for its group only.  Between columns of numbers, ranks inside
groups are assumed to be related as the groups are (``group_ranks``); with categories, the association is
assumed to be the same for all cells of a group.

Cells in a condition of a rule share no group with other cells, so records obey the rule whatever cells
they get.  If only some cells of two groups satisfy an inequality, such cells are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories, in_order
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import CompressedMargins
from dpcore.mechanisms.compressed_margins import Merged, counts_alone, suggested_groups
from dpcore.mechanisms.grouping import least_groups
from dpcore.mechanisms.quadrants import UNIT, Pair
from dpcore.post.records.cells_in_order import cells_in_order
from dpcore.post.records.compared import compared, follow_comparisons
from dpcore.post.records.nested import Nested, groups_followed
from dpcore.post.records.rules import Rule
from dpcore.post.records.splitting import split_groups
from dpcore.post.tables.margins import Attributes, Margin
from dpcore.releases.abilities import BLOCK, Samplable
from dpcore.releases.base import ErrorStatement, post_processing_generator
from dpcore.releases.counts.cells import BIN, cell_names
from dpcore.releases.counts.unit import AsMeasured, TableOfCounts
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import Published
from dpcore.releases.tables.compression import (
    KeptGroups,
    beside_products,
    factor_of_comparisons,
    multiples_of_tables,
    noise_of_rounds,
    paired_numbers,
)
from dpcore.releases.tables.fitted import LARGEST_TOTAL, FittedTables
from dpcore.releases.tables.group_ranks import ranks_in_groups
from dpcore.releases.tables.groups import (
    GROUP,
    grouped_axis,
    kinds_of_cells,
    name_groups,
    nested_groups,
    rule_of_groups,
    table_of_groups,
)
from dpcore.releases.tables.measured import TableNoise
from dpcore.releases.tables.microdata import USUAL_MEMORY, Microdata, require_within
from dpcore.releases.tables.names import dotted_name
from dpcore.releases.tables.tailed import amounts_of, tails_of
from dpcore.releases.work import Work, publishing


@dataclass(frozen=True)
class CompressedMicrodata(TableOfCounts, Samplable):
    """One-way tables of wide columns, tables over groups of their cells, and records that follow both.

    ``sets``, ``noise``, ``rules``, ``memory``, ``nested``: as for ``Microdata``.  ``keep``: a column
    with more cells is wide and gets this many groups, each within one of the plan's nested groups;
    ``categories``: the same for columns of categories that are not in order, by default ``keep``;
    ``first_share``: the fraction of the budget (of rho, or of alpha) for the one-way tables.
    """

    sets: tuple[Attributes, ...] = ()
    noise: TableNoise = "discrete-laplace"
    rules: tuple[Rule, ...] = ()
    memory: int = USUAL_MEMORY
    nested: tuple[Nested, ...] = ()
    keep: int = field(kw_only=True)
    categories: int = field(default=0, kw_only=True)
    first_share: Fraction = field(default=Fraction(1, 10), kw_only=True)

    chart = "cells"
    refines = "counts"
    setting = "groups of cells"
    statistics = (*FittedTables.statistics, "noisy_count")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.domain.axes) < 2:
            raise ValueError(
                "compress: merges cells in pairs of columns, but there is only one column"
            )
        if not Fraction(1, 1000) <= self.first_share <= Fraction(999, 1000):
            raise ValueError(
                f"compress: share must lie between 1/1000 and 999/1000, not {self.first_share}"
            )
        if not self.merged:
            raise ValueError(f"compress: no column has more than keep = {self.keep} cells")
        for merged in self.merged:
            least = least_groups(np.asarray(merged.kinds), merged.ordered)
            if merged.keep < max(least, 2):
                raise ValueError(
                    f"compress: keep must be at least {max(least, 2)} for"
                    f" {self.domain.names[merged.position]}, not {merged.keep}: null and values that"
                    " rules or groups distinguish need separate groups"
                )
        if self._alone > LARGEST_TOTAL:
            raise ValueError(
                f"compress: the tables of single columns have {self._alone:.3g} cells, too many;"
                " use wider bins"
            )
        self.require_memory(0)

    @cached_property
    def tables(self) -> tuple[Attributes, ...]:
        """The sets of columns, by default all pairs."""
        return self.sets or self.record_columns.pairs

    @cached_property
    def merged(self) -> tuple[Merged, ...]:
        """The wide columns."""
        columns = self.record_columns
        return tuple(
            Merged(
                place,
                tuple(kinds_of_cells(place, axis, columns).tolist()),
                in_order(axis),
                self.kept.of(axis),
            )
            for place, axis in enumerate(self.domain.axes)
            if axis.size > self.kept.of(axis)
        )

    @cached_property
    def _alone(self) -> int:
        """The number of cells of the first tables."""
        return sum(self.domain.shape[merged.position] for merged in self.merged)

    @cached_property
    def domains(self) -> tuple[Domain, ...]:
        """The columns of each published table, with their own cells."""
        wide = tuple((merged.position,) for merged in self.merged)
        axes = self.domain.axes
        return tuple(Domain(tuple(axes[a] for a in attrs)) for attrs in wide + self.tables)

    @cached_property
    def mechanism(self) -> CompressedMargins:
        alone = self._alone, (1,) * len(self.merged)
        together = sum(self.cells_of_groups), self.times
        first, again = noise_of_rounds(
            self.share, self.noise, self.first_share, self.adjacency, alone, together, self.products
        )
        of = self.domain, self.tables, self.merged
        return CompressedMargins(self.domain.size, *of, first, again, self.times, self.products)

    @cached_property
    def products(self) -> tuple[Pair, ...]:
        """The pairs of ordered columns whose relation is also measured by one number."""
        return paired_numbers(self.domain, self.tables, self.noise, self.keep)

    @property
    def cells_of_groups(self) -> list[int]:
        """The number of cells of each table of the second round."""
        return self.kept.cells(self.domain, self.tables)

    @property
    def kept(self) -> KeptGroups:
        return KeptGroups(self.keep, self.categories or self.keep)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * max(*self.times, UNIT**2 if self.products else 0)

    @cached_property
    def times(self) -> tuple[int, ...]:
        """The factors that multiply the counts of each table."""
        alone = {(place,) for place, _ in compared(self.domain)}
        usual = [
            cells
            for table, cells in zip(self.tables, self.cells_of_groups, strict=True)
            if table not in alone
        ]
        found = beside_products(multiples_of_tables(usual, self.noise), self.products)
        small, times = factor_of_comparisons(found, len(alone)), iter(found)
        return tuple(small if table in alone else next(times) for table in self.tables)

    @property
    def stddev(self) -> float:
        """The standard deviation of the drawn noise in a cell of groups."""
        return self.mechanism.again.stddev

    def in_series(self) -> None:
        """Refused, with the key of the plan to remove."""
        raise ValueError(
            "compress: remove it, because each period would merge different cells; use coarser bins or"
            " fewer categories"
        )

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def after(self, once: Integers) -> Microdata:
        """The second round, for the groups that a noisy first round (cells,) suggests."""
        return replace(
            self._over(once),
            bought=self.mechanism.again,
            times=self.times,
            products=self.products,
            scores=tuple(
                () if score is None else tuple(score.tolist())
                for score in self.mechanism.grouping(once).scores
            ),
        )

    def _over(self, once: Integers) -> Microdata:
        """The ``Microdata`` release over the groups."""
        groups = self.groups(once)
        return Microdata(
            self.name,
            Domain(tuple(map(grouped_axis, self.domain.axes, groups))),
            self.rows,
            self.share,
            self.tables,
            self.noise,
            rules=tuple(rule_of_groups(rule, groups) for rule in self.rules),
            memory=self.memory,
            nested=tuple(nested_groups(each, groups) for each in self.nested),
            adjacency=self.adjacency,
            step=self.step,
        )

    def groups(self, once: Integers) -> list[Integers]:
        """For each column the group of each of its cells, from the noisy first round."""
        return suggested_groups(self.domain.shape, self.merged, once)

    @cached_property
    def _any_groups(self) -> Integers:
        """A first round of zeros: the public properties of the second do not depend on it."""
        return np.zeros(self._alone, dtype=np.int64)

    def settled(self, noisy: Noisy) -> tuple[Integers, Microdata, Noisy]:
        """The noisy first round, the second round as it was measured, and its draw."""
        return _settled(self, noisy.to_bytes())

    def as_measured(self, noisy: Noisy | None) -> AsMeasured:
        """The second round, over groups; before a draw, over example groups."""
        once, second, drawn = self.settled(noisy) if noisy else (self._any_groups, None, None)
        return self._as_measured(once, second or self.after(once), drawn)

    def as_supposed(self, shares: Mapping[str, Floats]) -> AsMeasured:
        wide = [shares[self.domain.names[merged.position]] for merged in self.merged]
        noise = self.mechanism.first.simulate(self._alone, np.random.default_rng(0))
        once = np.rint(np.concatenate(wide) * self.rows).astype(np.int64) + noise
        return self._as_measured(once, self.after(once), None)

    def _as_measured(self, once: Integers, second: Microdata, drawn: Noisy | None) -> AsMeasured:
        groups, first = self.groups(once), self.mechanism.first
        merged = {each.position: groups[each.position] for each in self.merged}
        alone = {
            place: Margin((0,), counts.astype(np.float64), first.stddev**2)
            for place, counts in self._counts_alone(once).items()
            if drawn
        }
        return AsMeasured(second, drawn, merged, alone)

    def memory_needed(self, rows: int) -> int:
        """An upper bound of the bytes for publishing and ``rows`` records, without the program."""
        split = (54 * rows + 96 * min(rows, BLOCK)) * len(self.domain.axes)  # cells and ranks
        return self._over(self._any_groups).memory_needed(rows) + 256 * self._alone + split

    @property
    def work(self) -> Work:
        return self._over(self._any_groups).work + publishing(self._alone)

    def require_memory(self, rows: int) -> None:
        """Raise ``ValueError`` if ``rows`` records need more memory than the plan allows."""
        require_within(self.memory, self.memory_needed(rows), rows)

    def sample(self, noisy: Noisy, rows: int) -> tuple[Domain, Integers]:
        """Records of groups, and cells within the groups that follow the one-way tables."""
        self.require_memory(rows)
        once, second, drawn = self.settled(noisy)
        counted, groups = second.sample(drawn, rows)[1], self.groups(once)
        codes = counted.copy()
        scale = rows / max(second.total(drawn), 1)
        error, generator = self.mechanism.first.stddev, post_processing_generator(noisy)
        merged_groups = {each.position: groups[each.position] for each in self.merged}
        ranks = ranks_in_groups(self.domain, codes, merged_groups, generator)
        alone = self._counts_alone(once)
        for merged in self.merged:
            place, axis = merged.position, self.domain.axes[merged.position]
            held = np.bincount(codes[:, place], minlength=merged.keep).astype(np.float64)
            # Records follow the second round's estimate of this column, so their counts have its error.
            margin, kinds = second.of_nothing.margin((place,)), np.asarray(merged.kinds)
            ends = tails_of(axis, groups[place], held, kinds, margin.variance**0.5 * scale)
            codes[:, place] = split_groups(
                codes[:, place],
                groups[place],
                alone[place].astype(np.float64) * scale,
                (error * scale) ** 2,
                generator,
                ends,
                ranks.get(place),
                amounts_of(axis),
            )
        inside = {place: (counted[:, place], own) for place, own in merged_groups.items()}
        codes = cells_in_order(codes, inside, self.rules, generator)
        relations = second.comparisons(drawn, scale)
        codes = follow_comparisons(self.domain, codes, inside, relations, generator)
        codes = cells_in_order(codes, inside, self.rules, generator)  # now in order again
        return self.domain, groups_followed(codes, self.nested)

    def _counts_alone(self, once: Integers) -> dict[int, Integers]:
        """The noisy one-way table of each wide column, keyed by its position in the domain."""
        return counts_alone(self.domain.shape, self.merged, once)

    def publish(self, noisy: Noisy) -> Published:
        once, second, drawn = self.settled(noisy)
        axes, groups = self.domain.axes, self.groups(once)
        alone = [
            table_of_groups(
                self.table_name(Domain((axes[place],))),
                axes[place],
                groups[place],
                counts,
                self.mechanism.first,
                self.most_rows,
                self.unit,
            )
            for place, counts in self._counts_alone(once).items()
        ]
        published = second.publish(drawn)
        wide = [axes[merged.position] for merged in self.merged]
        numbered = {axis.name for axis in wide if isinstance(axis, Categories)}
        together = [name_groups(table, numbered) for table in published.tables]
        facts = {"groups": {axis.name: self.kept.of(axis) for axis in wide}}
        return Published((*alone, *together), {**published.facts, **facts})

    def table_name(self, domain: Domain) -> str:
        return dotted_name(self.name, domain)

    def published_names(self, axis: Axis) -> tuple[str, ...]:
        more = (GROUP, "_from", "_to", BIN) if axis.size > self.kept.of(axis) else ()
        return (*cell_names(axis), *(f"{axis.name}{end}" for end in more))

    def sum_variance(self, weights: Mapping[str, Floats]) -> float:
        """The variance of a sum over tables; the two rounds have separate noise."""
        alone = {self.table_name(domain) for domain in self.domains[: len(self.merged)]}
        first = sum(float(np.sum(weights[name] ** 2)) for name in alone & set(weights))
        rest = {name: weight for name, weight in weights.items() if name not in alone}
        again = self.after(self._any_groups).sum_variance(rest)
        return first * (self.mechanism.first.stddev * float(self.step)) ** 2 + again

    def replicate_noise(self, noisy: Noisy, number: int) -> Mapping[str, NDArray[np.float32]]:
        """Independent noise of both rounds, with the drawn groups."""
        _, second, drawn = self.settled(noisy)
        generator, first = replicate_generator(noisy), self.mechanism.first
        found = dict(second.replicate_noise(drawn, number))
        for domain in self.domains[: len(self.merged)]:
            noise = partial(first.simulate, domain.size, generator)
            found[self.table_name(domain)] = self.unit.scaled(drawn_again(noise, number))
        return found

    def supported_margin(self, noisy: Noisy, names: tuple[str, ...]) -> tuple[Floats, float] | None:
        """The margin of one wide column, or of columns that the second round has in their own cells."""
        return next(self.supported_margins(noisy, [names]))

    def supported_margins(
        self, noisy: Noisy, several: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[Floats, float] | None]:
        once, second, drawn = self.settled(noisy)
        alone = {
            self.domain.names[place]: counts for place, counts in self._counts_alone(once).items()
        }

        def counted(names: tuple[str, ...]) -> bool:
            """Whether the second round counted these columns in their own cells."""
            return alone.keys().isdisjoint(names)

        again = second.supported_margins(drawn, [names for names in several if counted(names)])
        for names in several:
            if counted(names):
                yield next(again)
            elif len(names) > 1:
                yield None
            else:
                counts = alone[names[0]].astype(np.float64)
                yield self.scaled_margin(counts, self.mechanism.first.stddev)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        most = max(merged.keep for merged in self.merged)
        unit, groups = self.unit, f"of up to {most} groups of a wide column"
        alone = ErrorStatement(
            f"standard error of a {unit.number} in the table of one wide column",
            unit.scaled(self.mechanism.first.stddev),
            f"{len(self.merged)} columns of many cells",
        )
        return alone, *(
            replace(error, note=f"{error.note}; {groups}" if error.note else groups)
            for error in self.after(self._any_groups).expected_error()
        )


@lru_cache(maxsize=2)
def _settled(release: CompressedMicrodata, data: bytes) -> tuple[Integers, Microdata, Noisy]:
    noisy, mechanism = Noisy.from_bytes(data), release.mechanism
    if len(noisy.values) != mechanism.numbers:  # its numbers would be misread
        raise InputError(
            f"{release.name}: the draw has {len(noisy.values):,} numbers, not {mechanism.numbers:,};"
            " another version of dprelease made it, and only that version can read it"
        )
    once, twice = np.split(noisy.values, [mechanism.first.size])
    return once, release.after(once), replace(noisy, values=twice)
