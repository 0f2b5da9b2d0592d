"""Which tables and residuals to measure, and how precisely, to minimise the error of requested tables.

Overlapping tables measure their common sums repeatedly.  The residuals of all subsets
(``post.tables.consistency``), measured once each, determine all tables, with the most precision where it
is needed (ResidualPlanner, Xiao et al. 2023).  With s_T the variance of the residual T,

    variance of a cell of table S      V_S = sum over T in S of s_T c_T / |S - T|^2
    cost of Gaussian noise             sum over T of c_T/s_T: for one record, certified exactly later
    c_T                                product over T of 1 - 1/n

so for a weighted sum of V_S the best s_T is proportional to sqrt(c_T/v_T), v_T the coefficient of s_T.
Other aims are weighted sums whose weights depend on the result, and are solved by iteration.
Everything is public; the result is used only if it is better than the equal split.

Laplace noise has the cost |T|_1/b_T: columns of two cells are measured by differences and others whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from typing import Literal

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency
from dpcore.mechanisms.blocks import MOST_AXES
from dpcore.post.tables.margins import Attributes, Margin, Residual
from dpcore.releases.tables.incidence import incidence
from dpcore.releases.tables.sensitivity import MeasuredBlock, Norm, joint_sensitivity

Aim = Literal["balanced", "mean", "max", "records"] | tuple[Fraction, ...]
"""The quantity that is minimised: the mean error per table relative to the equal split, with no table
much worse; the mean, or the largest, cell variance per table; the aim for records (``INSIDE``); or the
sum of variances with these weights of tables."""

INSIDE = 10
"""With the aim "records", the weight of tables with one column fewer than the usual ones, because
the model that makes denoised tables does not reduce their noise.  The usual tables have the most columns
of which all sets are requested."""

MOST_WAYS = MOST_AXES
"""If tables have more columns than this, the split is equal."""

WORST = 1.05
"""With the aim "balanced", the largest error of a table as a multiple of its equal-split error."""

WITHIN = 1.04
"""The multiple that the search allows, because weights are rounded afterwards."""

ROUNDS, STEPS = 12, 200
LEVELS, OCTAVES = 32, 20
"""Weights are powers of 2^(-1/32) down to 2^-20, so that there are few different noise scales."""

MOST_PRESSED = 1e6
"""The largest weight of a table, reached if no allocation keeps all tables within the largest error."""


@dataclass(frozen=True)
class Allocation:
    """The measured tables and residuals.  ``moved``, ``present``: as in ``joint_sensitivity``."""

    blocks: tuple[MeasuredBlock, ...]
    moved: Fraction
    present: Fraction

    @property
    def equal(self) -> bool:
        return not any(block.centred or block.weight != 1 for block in self.blocks)

    def sensitivity(self, adjacency: Adjacency, norm: Norm) -> Fraction:
        """The L1 sensitivity, or the squared L2 sensitivity."""
        each = adjacency.squared if norm == "l2" else adjacency.sensitivity
        return each(moved=self.moved, present=self.present)


def equal_split(sizes: Sequence[int], sets: Sequence[Attributes]) -> Allocation:
    """The allocation that measures every whole table with the same precision."""
    blocks = tuple(MeasuredBlock(attributes) for attributes in sets)
    return _allocation(sizes, blocks, "l1")


@lru_cache(maxsize=64)
def allocate(
    sizes: tuple[int, ...],
    sets: tuple[Attributes, ...],
    aim: Aim,
    adjacency: Adjacency,
    norm: Norm,
    whole: frozenset[Attributes] = frozenset(),
) -> Allocation:
    """The best allocation found for the aim.

    ``whole``: residuals that cannot be measured by differences alone, and are measured as tables.
    """
    split = equal_split(sizes, sets)
    if max(map(len, sets)) > MOST_WAYS:
        return split
    tables = sets
    if aim == "records":
        tables, aim = _for_records(sets)
    before = table_variances(sizes, tables, split, adjacency, norm)
    noisy = before > 0  # all but single cells that are the public total
    if not noisy.any():
        return split
    if isinstance(aim, tuple):
        aim = tuple(weight for weight, kept in zip(aim, noisy, strict=True) if kept)
    tables = tuple(table for table, kept in zip(tables, noisy, strict=True) if kept)
    before = before[noisy]
    planner = _Planner(sizes, tables, aim, adjacency, norm, whole, before)
    best, least = split, planner.loss(before)
    # Without given weights, minimising the largest variance may be better for all aims.
    searches: tuple[Aim, ...] = (aim,) if isinstance(aim, tuple) else (aim, "max")
    for sought in dict.fromkeys(searches):
        found = _Planner(sizes, tables, sought, adjacency, norm, whole, before).found()
        if found is not None:
            after = table_variances(sizes, tables, found, adjacency, norm)
            if planner.loss(after) < least and not np.any(after > planner.worst * before):
                best, least = found, planner.loss(after)
    return best


def _for_records(
    sets: tuple[Attributes, ...],
) -> tuple[tuple[Attributes, ...], tuple[Fraction, ...]]:
    """All tables that are useful for records, and their weights.

    If all pairs (or triples) are requested, larger tables weigh as much as a pair, and so do the tables
    in between: noise on a table of five columns hides the information of the triples inside it.
    """
    columns, listed = len({a for s in sets for a in s}), Counter(map(len, sets))
    every = [w for w, number in listed.items() if 1 < number == math.comb(columns, w)]
    usual = max(every, default=min(listed))
    inside = {t for s in sets if len(s) == usual for t in combinations(s, usual - 1) if t}
    between = {t for s in sets for ways in range(usual + 1, len(s)) for t in combinations(s, ways)}
    tables = (*sets, *sorted((inside | between) - set(sets)))
    return tables, tuple(Fraction(INSIDE if t in inside else 1) for t in tables)


def table_variances(
    sizes: tuple[int, ...],
    sets: Sequence[Attributes],
    allocation: Allocation,
    adjacency: Adjacency,
    norm: Norm,
) -> Floats:
    """The variances (sets,) of a cell after agreement, at the unit price: mu = 1, or alpha = 1."""
    variances = _variances(allocation, adjacency, norm)
    return agreed_variances(sizes, sets, allocation.blocks, variances, adjacency.public_rows)


def agreed_variances(
    sizes: tuple[int, ...],
    sets: Sequence[Attributes],
    blocks: Sequence[MeasuredBlock],
    variances: Floats,
    public_rows: bool,
) -> Floats:
    """The variances V_S (sets,) of a cell after agreement, given the variances (blocks,) of the
    measurements.

    Each set lies within a block, or its subsets do.
    """
    known_of = incidence(sizes, tuple(block.attributes for block in blocks))
    asked = incidence(sizes, tuple(sets))
    centred = np.array([block.centred for block in blocks])
    # The precision that a block gives the residuals inside it, as a multiple of its own precision.
    own = known_of.inside == known_of.whole[known_of.tables]
    alone = own * known_of.product(_two(sizes))[known_of.inside]
    inside = known_of.cells[known_of.inside] / known_of.cells[known_of.whole][known_of.tables]
    known = np.where(centred[known_of.tables], alone, inside) / variances[known_of.tables]
    precision = np.bincount(known_of.inside, known, minlength=len(known_of.subsets))
    if public_rows:
        precision[0] = math.inf
    if asked.subsets != known_of.subsets:
        place = {subset: i for i, subset in enumerate(known_of.subsets)}
        precision = precision[[place[subset] for subset in asked.subsets]]
    return np.bincount(asked.tables, asked.share / precision[asked.inside]).astype(np.float64)


def _two(sizes: Sequence[int]) -> Floats:
    """2 for columns of two cells, whose difference has twice the precision, and 1 for others."""
    return np.where(np.array(sizes) == 2, 2.0, 1.0)


def measured(
    block: MeasuredBlock, table: Floats, sizes: Sequence[int], variance: float
) -> Margin | Residual:
    """The noisy margin or residual of a block; ``variance``: of the noise on its counted numbers."""
    if not block.centred:
        return Margin(block.attributes, table, variance)
    # The difference of two cells is twice the centred value of either, for each such column.
    two = sum(sizes[a] == 2 for a in block.attributes)
    return Residual(block.attributes, table, variance / 2**two)


def _variances(allocation: Allocation, adjacency: Adjacency, norm: Norm) -> Floats:
    weights = np.array([float(block.weight) for block in allocation.blocks])
    sensitivity = float(allocation.sensitivity(adjacency, norm))
    return np.asarray(sensitivity / weights if norm == "l2" else 2 * (sensitivity / weights) ** 2)


class _Planner:
    """The search for one workload.  Rows are tables; columns are the measured subsets."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        sets: tuple[Attributes, ...],
        aim: Aim,
        adjacency: Adjacency,
        norm: Norm,
        whole: frozenset[Attributes],
        before: Floats,
    ) -> None:
        from scipy.sparse import csr_array  # slow to import

        self.sizes, self.aim, self.before = sizes, aim, before
        self.given = np.array(aim if isinstance(aim, tuple) else (), dtype=np.float64)
        self.adjacency, self.norm, self.whole = adjacency, norm, whole
        self.sets = sets
        self.worst = WORST**2 if aim == "balanced" else math.inf
        first = 1 if adjacency.public_rows else 0
        inside = incidence(sizes, sets)
        self.subsets = inside.subsets[first:]
        self.centring, two = inside.centring[first:], inside.product(_two(sizes))[first:]
        self.centred = np.array([self._is_centred(t) for t in self.subsets])
        self.two = np.where(self.centred, two, 1.0)
        shape = (len(sets), len(inside.subsets))
        self.spread = csr_array((inside.share, (inside.tables, inside.inside)), shape)[:, first:]
        self.spread_of = self.spread.T

    def loss(self, variances: Floats) -> float:
        if self.aim == "max":
            return float(variances.max())
        if self.aim == "balanced":
            return float(np.sqrt(variances / self.before).mean())
        if self.aim == "mean":
            return float(variances.mean())
        return float(self.given @ variances)

    def found(self) -> Allocation | None:
        """The best allocation within the limits of the aim, by repeated weighting of tables."""
        pressed, excess = np.ones(len(self.sets)), np.ones(len(self.sets))
        variances, best, least = self.before, None, math.inf
        for _ in range(ROUNDS):
            weights: Floats | None = None
            for _ in range(STEPS):
                before, weights = weights, self._weights(variances, pressed)
                if before is not None and np.array_equal(before, weights):
                    break
                residuals = self._best(weights)
                variances = self.spread @ residuals * excess
                pressed = self._pressed(variances, pressed)
            found = self._allocation(residuals)
            after = table_variances(self.sizes, self.sets, found, self.adjacency, self.norm)
            if self.loss(after) < least and not np.any(after > self.worst * self.before):
                best, least = found, self.loss(after)
            # Rounding and the exact sensitivity changed the variances: the next search allows for this.
            excess = excess * after / variances
        return best

    def _weights(self, variances: Floats, pressed: Floats) -> Floats:
        """The weights (sets,) with which minimising the weighted sum improves the current variances."""
        if self.aim == "balanced":
            return np.asarray(pressed / np.sqrt(variances * self.before))
        if self.aim in ("mean", "max"):
            return pressed
        # Otherwise residuals that only tables of weight zero need would get no precision.
        return np.asarray(np.maximum(self.given, self.given.max() * 1e-6))

    def _pressed(self, variances: Floats, pressed: Floats) -> Floats:
        """Increase the weights of tables whose variance is too large."""
        if self.aim == "max":
            return np.asarray(pressed * np.sqrt(variances / variances.max()))
        if self.aim == "balanced":
            over = variances / (WITHIN**2 * self.before)
            return np.clip(pressed * np.sqrt(over), 1.0, MOST_PRESSED)
        return pressed

    def _best(self, weights: Floats) -> Floats:
        """The best variances (subsets,) of residuals for these weights of tables, at cost one."""
        needed = np.maximum(self.spread_of @ weights, 1e-300)
        if self.norm == "l2":
            costs = np.where(self.centred, self.centring, 1.0)
            variances = np.sqrt(costs / needed)
            return np.asarray(variances * np.sum(costs / variances))
        # 2 b^2 is the variance of the counted numbers, ``two`` times the variance of the residual.
        scales = (self.two / needed) ** (1 / 3)
        return np.asarray(2 * (scales * np.sum(1 / scales)) ** 2 / self.two)

    def _is_centred(self, subset: Attributes) -> bool:
        if not subset or subset in self.whole:
            return False
        return self.norm == "l2" or all(self.sizes[a] == 2 for a in subset)

    def _allocation(self, variances: Floats) -> Allocation:
        """The allocation whose blocks have these variances as weights, rounded."""
        counted = variances * self.two
        precision = 1 / counted if self.norm == "l2" else 1 / np.sqrt(counted)
        steps = np.rint(LEVELS * np.log2(precision.max() / precision))
        steps = np.minimum(steps, LEVELS * OCTAVES).astype(int)
        blocks = tuple(
            MeasuredBlock(t, centred, _power(step))
            for t, centred, step in zip(
                self.subsets, self.centred.tolist(), steps.tolist(), strict=True
            )
        )
        return _allocation(self.sizes, blocks, self.norm)


def _allocation(sizes: Sequence[int], blocks: tuple[MeasuredBlock, ...], norm: Norm) -> Allocation:
    return Allocation(blocks, *joint_sensitivity(sizes, blocks, norm))


@cache
def _power(step: int) -> Fraction:
    """2^(-step/32), to four digits."""
    whole, part = divmod(step, LEVELS)
    return Fraction(round(10**4 * 2.0 ** (-part / LEVELS)), 10**4 * 2**whole)
