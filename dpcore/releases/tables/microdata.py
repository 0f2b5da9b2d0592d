"""Synthetic microdata from private two-way margins.

One draw measures count tables as for ``MarginTables``: all pairs of columns unless the plan names
fewer, and the larger sets that the plan names.  The choice of tables and their parts of the budget are
public: nothing is selected from the data, so only the tables cost budget.  The rest is post-processing:

    noisy tables --mixture--> model of all tables --shrink--> denoised tables --fit--> records

A table of a hundred by a hundred cells is mostly noise, which the records of ``MarginTables`` partly
follow.  Here a joint model of all tables first removes what no other table supports
(``post.records.denoise``).  Adaptive methods achieve this by merging cells and choosing pairs, which
costs budget.

Pairs do not determine interactions of three columns: records have them only if a table of these columns
was measured.  Noise on a table of four columns or more would hide the triples inside it, so records are
fitted to those as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import combinations

import numpy as np

from dpcore.arrays import Integers
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpcore.mechanisms.quadrants import Pair
from dpcore.post.records.compared import Comparison, compared, with_few
from dpcore.post.records.denoise import denoise
from dpcore.post.records.nested import Nested, tied
from dpcore.post.records.rules import Rule, clear_forbidden_cells, require_satisfiable
from dpcore.post.records.trends import Summed
from dpcore.post.records.weighted import LARGEST_FIT, WeightedRecords, fit_weighted
from dpcore.post.tables.margins import Attributes, Margin, Residual, cells
from dpcore.progress import report
from dpcore.releases.abilities import BLOCK
from dpcore.releases.base import post_processing_generator
from dpcore.releases.tables.allocation import MOST_WAYS
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.groups import kinds_of_cells
from dpcore.releases.tables.measured import MeasuredTables
from dpcore.releases.tables.tailed import declining_ends, with_declining_ends

USUAL_MEMORY = 4 * 2**30
"""Bytes."""

RULED = 1.5e-6
"""CPU seconds of a fit for each record and rule."""

MODELLED, MODELLED_LARGE, MODELLED_LEAST = 1.3e-5, 0.018, 0.1
"""CPU seconds of the model: per pair of the columns' cells, per table of three columns or more,
fixed."""

FOLLOWING = 2
"""The factor by which a fit takes longer if it follows correlations."""

TOLERANCE = 0.01
"""A small tolerance: the records follow denoised pairs closely, because little noise is left."""


@dataclass(frozen=True)
class Microdata(FittedTables):
    """Count tables over pairs, triples or larger sets of columns, and records that follow them.

    ``sets``: by default all pairs; a single column has one set, itself.
    ``rules``: rules that hold in every synthetic record; public, and not measured.
    ``nested``: groups that a column determines in every synthetic record, measured like the column.
    ``memory``: bytes that the model, the fit and the records may take.
    ``bought``, ``times``: as for ``MeasuredTables``, if the share also pays for another draw.
    ``products``, ``scores``: pairs of columns for which the draw also has a sum of products, after the
    tables, and each column's scores of cells (``quadrants``).
    """

    rules: tuple[Rule, ...] = ()
    memory: int = USUAL_MEMORY
    nested: tuple[Nested, ...] = ()
    bought: DiscreteLaplace | DiscreteGaussian | None = None
    times: tuple[int, ...] = ()
    products: tuple[Pair, ...] = ()
    scores: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if any(tied(attrs, self.nested) for attrs in self.tables):
            raise ValueError("sets: one has both a column and its groups")
        if not all(1 <= len(attrs) <= MOST_WAYS for attrs in self.tables):
            raise ValueError("sets: each must have one to six columns")
        self.require_memory(0)
        require_satisfiable(self.domain.shape, self.rules)
        super().__post_init__()

    @cached_property
    def measurement(self) -> MeasuredTables:
        sets = self.sets or self.record_columns.pairs
        of = self.domain.shape, self.share, self.adjacency, sets, self.noise
        return MeasuredTables(*of, self.aim, self.bought, self.times)

    @property
    def _joint(self) -> bool:
        """Whether any table has several columns; otherwise there is nothing to model."""
        return any(len(attrs) > 1 for attrs in self.tables)

    @cached_property
    def _inside(self) -> tuple[tuple[int, ...], ...]:
        """Tables of at least three columns inside larger ones, whose noise would hide them."""
        found = {
            part
            for attrs in self.tables
            for ways in range(3, len(attrs))
            for part in combinations(attrs, ways)
        }
        return tuple(sorted(found - set(self.tables)))

    def memory_needed(self, rows: int) -> int:
        """An upper bound of the bytes for publishing and ``rows`` records, without the program itself.

        It includes: for each cell of the tables, their versions and errors; for the model, all pairs of
        the columns' cells, and the probabilities of all components with Adam's moments; for
        the largest table without its last column, the products of these probabilities; for each value,
        the fitted records, the block being drawn (one at a time), and the codes of all records.
        """
        shape, columns = self.domain.shape, len(self.domain.axes)
        width, inside = sum(shape), sum(cells(attrs, shape) for attrs in self._inside)
        products = max((cells(s[:-1], shape) for s in self.tables if len(s) > 2), default=0)
        model = 24 * width**2 + 16_000 * (width + products) if self._joint else 0
        fitted = 96 * min(max(rows, self.rows), LARGEST_FIT) * columns
        records = (32 * min(rows, BLOCK) + 2 * rows) * columns
        return 2**24 + 256 * (self.measurement.cells + inside) + model + fitted + records

    @property
    def model_seconds(self) -> float:
        if not self._joint:
            return 0.0
        large = sum(len(attributes) > 2 for attributes in (*self.tables, *self._inside))
        return MODELLED_LEAST + MODELLED_LARGE * large + MODELLED * sum(self.domain.shape) ** 2

    def fit_seconds(self, rows: int) -> float:
        ruled = RULED * min(rows, LARGEST_FIT) * len(self.rules)
        return FOLLOWING * super().fit_seconds(rows) + ruled

    def require_memory(self, rows: int) -> None:
        """Raise ``ValueError`` if ``rows`` records need more memory than the plan allows."""
        require_within(self.memory, self.memory_needed(rows), rows)

    def sample_blocks(self, noisy: Noisy, rows: int) -> tuple[Domain, Iterator[Integers]]:
        """Synthetic records that follow all tables; ``ValueError`` if memory does not suffice."""
        self.require_memory(rows)
        return super().sample_blocks(noisy, rows)

    def denoised_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables with less noise and some bias, and all tables of three columns or more in them."""
        agreement, axes, columns = self.agreement(noisy), self.domain.axes, self.record_columns
        ends = {
            place: declining_ends(
                axes[place],
                agreement.margin((place,)),
                kinds_of_cells(place, axes[place], columns),
            )
            for place in columns.in_order
        }
        total = self.total(noisy)
        related = {each.pair: each for each in self.comparisons(noisy)}
        return [
            with_few(margin, [axes[a] for a in margin.attributes], related[margin.attributes])
            if margin.attributes in related
            else margin
            for each in self._modelled_margins(noisy)
            for margin in [with_declining_ends(each, ends, total)]
        ]

    def comparisons(self, noisy: Noisy, scale: float = 1.0) -> list[Comparison]:
        """The noisy relations of compared columns, for ``scale`` times as many records."""
        found = []
        for place, pair in compared(self.domain):
            margin = self.agreement(noisy).margin((place,))
            error = margin.variance**0.5
            found.append(Comparison(place, pair, margin.table[:3] * scale, error * scale))
        return found

    def _modelled_margins(self, noisy: Noisy) -> list[Margin]:
        """The tables denoised by a model of all of them."""
        drawn = self.consistent_margins(noisy)
        if not self._joint:
            return drawn
        if self._inside:
            agreement = self.agreement(noisy)
            drawn += [agreement.margin(attributes) for attributes in self._inside]
        drawn = [clear_forbidden_cells(margin, self.rules) for margin in drawn]
        return denoise(
            self.record_columns,
            drawn,
            post_processing_generator(noisy),
            total=self.total(noisy),
            measured=self._modelled(noisy),
            sums=self._sums(noisy),
            progress=partial(report, "model fitted, steps"),
        )

    def counted(self, table: Callable[[Attributes], Integers]) -> Integers:
        sums = [np.sum(table(pair) * self._products_of_cells(pair)) for pair in self.products]
        return np.concatenate([super().counted(table), np.array(sums, dtype=np.int64)])

    def _products_of_cells(self, pair: Pair) -> Integers:
        """The product of both scores in each cell of the table of a pair."""
        one, other = (np.array(self.scores[place]) for place in pair)
        return np.outer(one, other)

    def _sums(self, noisy: Noisy) -> dict[Attributes, Summed]:
        """The noisy sums of products."""
        if self.bought is None:
            return {}
        drawn, variance = noisy.values[self.measurement.cells :], self.bought.stddev**2
        return {
            pair: Summed(self._products_of_cells(pair).astype(np.float64), total, variance)
            for pair, total in zip(self.products, drawn.tolist(), strict=True)
        }

    def _modelled(self, noisy: Noisy) -> list[Margin | Residual] | None:
        """The pairs as measured, with independent noise, to which the model is fitted.

        None if the tables after agreement are used instead: if rules exclude cells, because the pairs as
        measured count these too; or if a table has three or more columns, because pairs are no better.
        """
        pairs = all(len(attrs) <= 2 for attrs in self.tables)
        excluding = any(r.attributes <= {*attrs} for r in self.rules for attrs in self.tables)
        return self.measurement.measured(noisy) if pairs and not excluding else None

    def fit(self, noisy: Noisy, rows: int) -> WeightedRecords:
        """Records that follow the denoised margins, and obey the rules."""
        # The cache compares bytes, because it cannot compare draws.
        denoised = _denoised(self, noisy.to_bytes())
        return fit_weighted(
            self.record_columns,
            # Cleared again: shrinkage and declining tails may put records into excluded cells.
            [clear_forbidden_cells(margin, self.rules) for margin in denoised],
            rows,
            post_processing_generator(noisy),
            total=self.total(noisy),
            tolerance=TOLERANCE if self._joint else 0.03,
        )


def require_within(memory: int, needed: int, rows: int) -> None:
    """Raise ``ValueError`` if tables and ``rows`` records need more bytes than ``memory``."""
    if needed > memory:
        taken, fewer = "the tables of counts and their model", ""
        if rows:
            taken, fewer = f"{taken}, and {rows} records,", " or fewer records"
        raise ValueError(
            f"memory: {taken} need up to {needed / 2**30:.2f} GiB, but the plan allows"
            f" {memory / 2**30:.2f}; allow more, or compress wide columns, or use wider bins or fewer"
            f" columns{fewer}"
        )


@lru_cache(maxsize=2)
def _denoised(release: Microdata, data: bytes) -> list[Margin]:
    """The denoised tables; the model is fitted once for all uses."""
    return release.denoised_margins(Noisy.from_bytes(data))
