"""Synthetic records whose margins are as close to noisy margins as records can come.

Noisy margins are negative in places, fractional, and contradict each other.  The margins of a table of
records have none of these faults: they are non-negative whole numbers that agree.  ``fit_records``
searches for records with a small weighted sum of squares

    misfit = sum over margins, sum over cells of (count - noisy count)^2 / variance.

With Gaussian noise the minimum is the maximum likelihood fit over tables of records.

The search starts from nearly independent attributes (``initial_records``) and makes small moves, in
which one record changes one value.  A record that moves from cell c to cell c' of a margin with
residuals D = count - target changes the margin's part of the misfit by
(2 D[c'] - 2 D[c] + 2) / variance.

One step, for one attribute:

    block of records --> best new value of each --> step length from --> a random sample of the
    (random)             (sum over margins)         a line search        moves, favouring gains

The same move improves many records at once, but only some of them should make it.  Along the expected
change the misfit is a parabola, whose minimum gives the number of moves.  The sample is then checked
exactly and halved until it lowers the misfit, so the misfit never rises.  Moving records gradually to
cells with too few is the idea of PrivSyn's record synthesis (Zhang et al. 2021, section 5).  Because the
search starts from independence and moves no more than needed, associations that no margin describes stay
weak, much as in a maximum-entropy fit.

>>> import numpy as np
>>> noisy = [Margin((0, 1), np.array([[31.2, 8.7], [-1.4, 61.9]]), 4.0)]
>>> codes = fit_records(RecordColumns((2, 2)), noisy, 100, np.random.default_rng(7))
>>> margins_of(codes, (2, 2), [(0, 1)])[0].tolist()
[[30, 8], [0, 62]]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats, Integers
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.initial import initial_records
from dpcore.post.records.nested import Nested, groups_followed
from dpcore.post.records.rules import forbidden_values, repair_records
from dpcore.post.tables.consistency import make_consistent
from dpcore.post.tables.margins import Attributes, Margin, margins_of

WINDOW = 8  # sweeps between two checks of the improvement
SMALLEST_BLOCK = 1024  # the fewest records in one step; four times as many save hardly any sweeps
BLOCK_WORK = 2**16  # numbers that one step looks up, unless the smallest block needs more
CLOSE = 1 / 2000  # a negligible misfit, as a share of the misfit of noise alone


def fit_records(
    columns: RecordColumns,
    margins: Sequence[Margin],
    rows: int,
    generator: np.random.Generator,
    *,
    total: float | None = None,
    sweeps: int = 400,
    tolerance: float = 0.03,
    start: Integers | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Integers:
    """Fit synthetic records to noisy margins.

    Post-processing: it uses public values only.  Deterministic given the generator.

    Args:
        columns: The k attributes, with the rules and groups that all records obey; records of the
            start that break a rule are repaired.
        margins: Noisy margins, which need not agree.  Every attribute must be in one; none contains
            a group and its detail.
        rows: The number of records to make.
        generator: The source of randomness; an ordinary one, because nothing here is private.
        total: The public number of records that the margins describe, by default ``rows``.  If it
            differs from ``rows``, the margins are scaled.
        sweeps: The most passes over all attributes.
        tolerance: The search ends earlier if the misfit is no larger than noise alone explains and
            falls by less than this fraction per sweep: a closer fit would mostly copy noise.  It
            also ends when the misfit is far below that of noise (``CLOSE``), or hardly falls at all;
            with 0, only when no record moves.
        start: (rows, k) codes from which to start, by default ``initial_records``.
        progress: Called as ``progress(done, sweeps)`` after every sweep.

    Returns:
        (rows, k) codes with ``0 <= codes[:, a] < columns.sizes[a]``.  Their misfit is at most that of
        the start.

    Raises:
        ValueError: An attribute is in no margin, or no record was found that obeys the rules.

    Examples:
        >>> generator = np.random.default_rng(7)
        >>> tables = np.array([[29.3, 71.2], [60.4, 39.8]])
        >>> one_way = [Margin((a,), tables[a], 1.0) for a in (0, 1)]
        >>> fit_records(RecordColumns((2, 2)), one_way, 100, generator).sum(axis=0).tolist()
        [71, 40]
    """
    total = float(rows) if total is None else total
    # Also with a start: later draws stay the same, and an attribute in no margin is refused.
    codes = initial_records(columns, margins, rows, generator, total)
    if start is not None:
        codes = np.array(start, dtype=np.int64)
    if rows == 0:
        return codes
    targets, noise_alone = _targets(columns.sizes, margins, total, rows)
    codes = repair_records(codes, columns.sizes, columns.rules, generator)
    search = _Search(columns, groups_followed(codes, columns.nested), targets)
    window_start = search.misfit()
    moved = 0
    for done in range(1, sweeps + 1):
        moved += search.sweep(generator)
        if progress is not None:
            progress(done, sweeps)
        if done % WINDOW == 0:
            now = search.misfit()
            slow = now > window_start * (1 - tolerance) ** WINDOW
            stuck = now > window_start * (1 - tolerance / 10) ** WINDOW
            close = tolerance > 0 and now <= noise_alone * CLOSE
            if moved == 0 or (slow and now <= noise_alone) or stuck or close:
                break
            window_start, moved = now, 0
    return search.codes.astype(np.int64)


def _targets(
    sizes: Sequence[int], noisy: Sequence[Margin], total: float, rows: int
) -> tuple[list[Margin], float]:
    """The tables to fit, scaled to the rows, and the expected misfit of the exact tables.

    With the noisy variances, the consistent tables give the same misfit as the noisy ones up to a
    constant, because they are the projection onto the space of all tables of records.
    """
    scale = rows / total
    targets, noise_alone = [], 0.0
    for before, after in zip(noisy, make_consistent(sizes, noisy, total), strict=True):
        if after.table.size > 1:  # a single cell is the total, whatever the records
            targets.append(
                Margin(before.attributes, after.table * scale, before.variance * scale**2)
            )
            noise_alone += after.table.size * after.variance / before.variance
    return targets, noise_alone


class _Around:
    """The margins that contain one attribute, concatenated.

    ``places``: (c, size) positions of their cells among the residuals of all margins, with a row for
    each cell of the other attributes and a column for each value of this one; ``weights``: (c, 1) of
    each row.
    """

    def __init__(
        self, attribute: int, sizes: Sequence[int], targets: Sequence[Margin], starts: Integers
    ) -> None:
        size = sizes[attribute]
        held = [i for i, target in enumerate(targets) if attribute in target.attributes]
        held.sort(key=lambda i: len(targets[i].attributes))
        places, weights, first = [], [], 0
        alike: dict[int, list[tuple[int, Attributes, list[int]]]] = {}
        for i in held:
            attributes, table, variance = targets[i]
            axis = attributes.index(attribute)
            cells = starts[i] + np.arange(table.size).reshape(table.shape)
            places.append(np.moveaxis(cells, axis, -1).reshape(-1, size))
            weights.append(np.full((len(places[-1]), 1), 1.0 / variance))
            rest = attributes[:axis] + attributes[axis + 1 :]
            strides = [math.prod(sizes[a] for a in rest[j + 1 :]) for j in range(len(rest))]
            alike.setdefault(len(rest), []).append((first, rest, strides))
            first += len(places[-1])
        self.margins = len(held)
        self.places = np.concatenate(places) if held else np.empty((0, size), dtype=np.int64)
        self.weights = np.concatenate(weights) if held else np.empty((0, 1))
        self.weight = sum(1.0 / targets[i].variance for i in held)
        self._alike = [
            tuple(np.array(part, dtype=np.int32) for part in zip(*found, strict=True))
            for found in alike.values()
        ]

    def rows(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The rows (k, margins) of ``places`` that contain the records (k, attributes)."""
        parts = []
        for firsts, rests, strides in self._alike:
            found = np.tile(firsts, (len(codes), 1))
            for rest, stride in zip(rests.T, strides.T, strict=True):
                given = codes.take(rest, axis=1)
                found += given if np.all(stride == 1) else given * stride
            parts.append(found)
        return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


class _Moved(NamedTuple):
    """An attribute that gets the value ``of[i]`` if a record moves to the value i of another."""

    attribute: int
    of: Integers
    around: _Around


class _Search:
    """Records and the residuals of their margins, which every move updates.

    ``codes``: (rows, k); ``residuals``: counts minus targets, for all cells of all margins; ``moved``:
    for each attribute, the attributes that move with it (itself and its groups); empty for a group.
    """

    def __init__(self, columns: RecordColumns, codes: Integers, targets: Sequence[Margin]) -> None:
        self.sizes = sizes = columns.sizes
        self.rules = [
            [rule for rule in columns.rules if a in rule.attributes] for a in range(len(sizes))
        ]
        self.codes = codes.astype(np.int32)
        cells = [target.table.size for target in targets]
        counts = margins_of(codes, sizes, [target.attributes for target in targets])
        self.residuals = np.concatenate(
            [np.empty(0)] + [(c - t.table).ravel() for c, t in zip(counts, targets, strict=True)]
        )
        self.weights = np.repeat([1.0 / target.variance for target in targets], cells)
        starts = np.cumsum([0, *cells])
        self.moved: list[list[_Moved]] = [[] for _ in sizes]
        groups = {each.group: each for each in columns.nested}
        for attribute, size in enumerate(sizes):
            around = _Around(attribute, sizes, targets, starts)
            follows = groups.get(attribute, Nested(attribute, attribute, tuple(range(size))))
            if around.margins:
                self.moved[follows.detail].append(_Moved(attribute, np.array(follows.of), around))

    def misfit(self) -> float:
        """The weighted sum of squared residuals."""
        return float(self.weights @ (self.residuals * self.residuals))

    def sweep(self, generator: np.random.Generator) -> int:
        """One step for every attribute, in random order; returns how many records moved."""
        order = generator.permutation(len(self.sizes))
        return sum(self._step(int(a), generator) for a in order if self.moved[a])

    def _step(self, attribute: int, generator: np.random.Generator) -> int:
        """Move some records to better values of one attribute; returns how many."""
        rows = len(self.codes)
        # A step among more records changes each kind of record less; a step among a part of them lets
        # the sweeps reach every record of a large table.
        lookups = self.sizes[attribute] * sum(m.around.margins for m in self.moved[attribute])
        size = max(SMALLEST_BLOCK, rows // 64, BLOCK_WORK // lookups)
        if rows > size:
            block = generator.choice(rows, size, replace=False, shuffle=False)
        else:
            block = np.arange(rows)
        step = _Step(self, attribute, block)
        if len(step.movers) == 0:
            return 0
        chosen = step.sample(generator)
        while len(chosen):
            changes = step.changes(chosen, None)
            if step.improvement(changes) > step.smallest:
                step.apply(chosen, changes)
                break
            # Half as many moves; in the end only the best move, which always lowers the misfit.
            best = step.gains.argmax()
            last = len(chosen) == 1 and chosen[0] == best
            chosen = chosen[:0] if last else chosen[::2] if len(chosen) > 1 else np.array([best])
        return len(chosen)


class _Step:
    """The moves that a block of records could make in one attribute and its groups.

    ``movers``: (m,) rows whose best other value lowers the misfit; ``old``, ``new``: (m,) values;
    ``gains``: (m,) the decrease of the misfit by each move alone, positive.
    """

    def __init__(self, search: _Search, attribute: int, block: Integers) -> None:
        self.search, self.moved = search, search.moved[attribute]
        self.residuals = [search.residuals[each.around.places] for each in self.moved]
        codes = search.codes.take(block, axis=0)
        rows = [each.around.rows(codes) for each in self.moved]
        current, size = codes[:, attribute], search.sizes[attribute]
        everyone = np.arange(len(block))
        # Half the change of the misfit by a move to each value, up to a constant for each record.
        costs, weight = np.zeros((len(block), size)), 0.0
        for each, residuals, within in zip(self.moved, self.residuals, rows, strict=True):
            slopes = _sums(within, each.around.weights * residuals)
            slopes[everyone, each.of[current]] -= each.around.weight
            costs += slopes if each.attribute == attribute else slopes[:, each.of]
            weight += each.around.weight
        self.smallest = 1e-9 * weight  # a smaller improvement may be a rounding error
        if rules := search.rules[attribute]:
            costs[forbidden_values(codes.T.astype(np.int64), attribute, size, rules)] = np.inf
        best = costs.argmin(axis=1)
        gains = 2.0 * (costs[everyone, current] - costs[everyone, best])
        movers = np.flatnonzero((gains > self.smallest) & (best != current))
        self.movers = block[movers]
        self.old, self.new, self.gains = current[movers], best[movers], gains[movers]
        self.cells = [
            within[movers] * each.around.places.shape[1]
            for each, within in zip(self.moved, rows, strict=True)
        ]

    def sample(self, generator: np.random.Generator) -> Integers:
        """Positions among the movers: about as many as the line search gives, at least one.

        Each move is taken with probability proportional to its squared gain (and at most 1), by
        systematic sampling in random order.  (Proportional to the gain takes more sweeps; higher powers
        move many records of few kinds.) If a share s of the weights is taken, the misfit changes by
        about s^2 curvature - s sum(weights gains), with its minimum at half their quotient.
        """
        weights = (self.gains / self.gains.max()) ** 2
        expected = self.changes(np.arange(len(self.movers)), weights)
        curvature = sum(
            float(np.sum(each.around.weights * change * change))
            for each, change in zip(self.moved, expected, strict=True)
        )
        share = (weights @ self.gains) / (2.0 * curvature) if curvature > 0 else np.inf
        probabilities = np.minimum(weights * share, 1.0)
        if probabilities.sum() < 1.5:
            return np.array([self.gains.argmax()])
        order = generator.permutation(len(self.movers))
        reached = np.floor(np.cumsum(probabilities[order]) + generator.random())
        return order[np.diff(reached, prepend=0.0) >= 1.0]

    def changes(self, chosen: Integers, weights: Floats | None) -> list[Floats]:
        """The changes of the residuals by the chosen moves, each counted with its weight.

        One array for each attribute that moves, in the layout of its ``places``.
        """
        found = []
        for each, cells, residuals in zip(self.moved, self.cells, self.residuals, strict=True):
            base = cells[chosen]
            repeated = None if weights is None else np.repeat(weights, each.around.margins)
            gained, lost = (
                np.bincount(
                    (base + each.of[values[chosen, None]]).ravel(), repeated, residuals.size
                )
                for values in (self.new, self.old)
            )
            found.append((gained - lost).astype(np.float64).reshape(residuals.shape))
        return found

    def improvement(self, changes: list[Floats]) -> float:
        """The decrease of the misfit by these changes, exactly."""
        return -sum(
            float(np.sum(each.around.weights * change * (2.0 * residuals + change)))
            for each, residuals, change in zip(self.moved, self.residuals, changes, strict=True)
        )

    def apply(self, chosen: Integers, changes: list[Floats]) -> None:
        """Make the chosen moves."""
        rows, new = self.movers[chosen], self.new[chosen]
        for each, residuals, change in zip(self.moved, self.residuals, changes, strict=True):
            self.search.codes[rows, each.attribute] = each.of[new]
            self.search.residuals[each.around.places] = residuals + change


def _sums(within: NDArray[np.int32], values: Floats) -> Floats:
    """For each record, the sum (records, size) of the rows of values (c, size) that contain it."""
    from scipy.sparse import csr_array  # slow to import

    ends = np.arange(len(within) + 1) * within.shape[1]
    in_rows = csr_array(
        (np.ones(within.size), within.ravel(), ends), shape=(len(within), len(values))
    )
    return np.asarray(in_rows @ values)
