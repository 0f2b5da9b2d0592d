r"""Noisy tables that agree with each other and with the public total, with least variance.

Two noisy margins that share attributes disagree about the table of the shared attributes.  Weighted
least squares finds the closest set of tables that agree; here it has a closed form.

A table y over the attributes S splits into orthogonal components, one for each subset T of S.
Sum y over S \ T, then remove from every axis of the result its mean:

    r_T = (centre on each axis of T) (sum of y over S \ T),       y = sum over T of r_T / |S \ T|

where |U| is the number of cells of the attributes U.  For S = {a, b}:

    T       r_T is                           describes
    {}      the total                        the number of records
    {a}     the margin of a, centred         the main effect of a
    {b}     the margin of b, centred         the main effect of b
    {a,b}   the table, both axes centred     their interaction

Tables agree exactly when their components agree, and the components are noisy independently: the
variance of r_T from the margin S, apart from the centring, is variance_S |S \ T|.  So each r_T is
averaged over all its measurements, from margins that contain T and residuals of T, with inverse
variances as weights.  The component of the empty set is the public total, if there is one.  This is the
generalised least squares estimate; it is unbiased, and its variances are known exactly.  (The
components are the residual queries of ResidualPlanner, Xiao et al. 2023.)

>>> import numpy as np
>>> one = Margin((0,), np.array([7.0, 3.0]), 1.0)
>>> other = Margin((0, 1), np.array([[4.0, 2.0], [1.0, 3.0]]), 1.0)
>>> first, second = make_consistent((2, 2), [one, other], total=10)
>>> first.table.round(6).tolist(), second.table.sum(axis=1).round(6).tolist()
([6.666667, 3.333333], [6.666667, 3.333333])
>>> round(first.variance, 6), round(second.variance, 6)
(0.333333, 0.583333)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.tables.margins import (
    Attributes,
    Margin,
    Residual,
    cells,
    checked_attributes,
    summed_to,
)

MOST_LISTED = 2**18
"""Up to this number, all subsets of all margins are listed; beyond, only their intersections."""


class Component(NamedTuple):
    """The best estimate of r_T, centred, and its variance before the centring."""

    table: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """The joint estimate from several independent measurements for all tables that they cover.

    ``total``: the public number of records; None if it is estimated as well.  All attributes, sizes and
    variances are public, and so are the variances of all results.

    Measured tables may all have one more axis, over draws (``side_by_side``); then all results have it
    too.
    """

    sizes: tuple[int, ...]
    measured: Sequence[Margin | Residual]
    total: float | None

    @cached_property
    def draws(self) -> tuple[int, ...]:
        """The length of the axis over draws, if there is one."""
        return next((each.table.shape[len(each.attributes) :] for each in self.measured), ())

    @cached_property
    def margins(self) -> list[Margin]:
        return [each for each in self.measured if isinstance(each, Margin)]

    @cached_property
    def components(self) -> dict[Attributes, Component]:
        """The components measured more than once or as residuals, and the component of the empty set."""
        residuals: dict[Attributes, list[Residual]] = {}
        for each in self.measured:
            if isinstance(each, Residual):
                residuals.setdefault(self._useful(each.attributes), []).append(each)
        useful = [self._useful(margin.attributes) for margin in self.margins]
        known = {(), *residuals, *_shared(useful)}
        # A table may consist of a residual and of tables inside it, which one margin measures.
        inside = {subset for attributes in residuals for subset in subsets(attributes)}
        for attributes in useful if inside else ():
            known.update(_within(attributes, inside))
        members: dict[Attributes, list[Margin]] = {subset: [] for subset in known}
        for margin, attributes in zip(self.margins, useful, strict=True):
            for subset in _within(attributes, known):
                members[subset].append(margin)
        return {
            subset: self._best(subset, members[subset], residuals.get(subset, []))
            for subset in sorted(known, key=lambda subset: (len(subset), subset))
        }

    def _best(
        self, subset: Attributes, margins: list[Margin], residuals: list[Residual]
    ) -> Component:
        """The mean of all measurements of one component, weighted by inverse variances."""
        if not subset and self.total is not None:
            return Component(np.asarray(self.total), 0.0)
        found = [
            (_component(m.table, m.attributes, subset), self._variance_in(m, subset))
            for m in margins
        ]
        shape = [*(self.sizes[a] for a in subset), *self.draws]
        found += [(each.table.reshape(shape), each.variance) for each in residuals]
        for table, variance in found:
            if variance == 0:  # a single cell that is the total
                return Component(table, 0.0)
        precision = sum(1.0 / variance for _, variance in found)
        mean = sum((table / variance for table, variance in found), np.zeros(shape)) / precision
        return Component(mean, 1.0 / precision)

    def covers(self, attributes: Sequence[int]) -> bool:
        """Whether one or several measurements determine the table of these attributes."""
        asked = self._useful(attributes)
        known = self._covering(asked) is not None
        return known or all(subset in self.components for subset in subsets(asked))

    def component(self, attributes: Sequence[int]) -> Component | None:
        """The component of attributes, each with more than one cell; None if not measured."""
        asked = tuple(attributes)
        covering = self._covering(asked)
        if asked in self.components or covering is None:
            return self.components.get(asked)
        table = _component(covering.table, covering.attributes, asked)
        return Component(table, self._variance_in(covering, asked))

    def margin(self, attributes: Sequence[int]) -> Margin:
        """The table of these attributes, and the exact variance of each of its cells.

        Raises ``ValueError`` if the measurements do not cover it.
        """
        asked = checked_attributes(attributes, self.sizes)
        # Attributes of one cell come back at the end, as axes of length 1.
        attributes = self._useful(asked)
        covering, parts = self._covering(attributes), self._parts(attributes)
        if covering is None:
            table = np.zeros([*(self.sizes[a] for a in attributes), *self.draws])
            variance = 0.0
        else:
            table = summed_to(covering.table, covering.attributes, attributes)
            # A component has the part prod (size - 1) / cells of the variance.  Whole numbers: a tiny
            # variance would be lost in the difference of two large ones.
            whole = cells(attributes, self.sizes)
            known = sum(math.prod(self.sizes[a] - 1 for a in subset) for subset in parts)
            variance = self._variance_in(covering, attributes) * ((whole - known) / whole)
        result = table
        for subset, rest in parts.items():
            best = self.components[subset]
            change = best.table
            if covering is not None:
                change = change - _component(table, attributes, subset)
            result = result + _spread(change, subset, attributes) / rest
            variance += best.variance * self._centring(subset) / rest**2
        result = np.reshape(result, [*(self.sizes[a] for a in asked), *self.draws])
        return Margin(asked, result, variance)

    def combination_variance(self, weights: Mapping[Attributes, Floats]) -> float:
        """The exact variance of a weighted sum of cells of agreeing tables, with all covariances.

        ``weights``: a weight for each cell of the tables of some attributes.
        """
        return float(self.combination_covariance([weights])[0, 0])

    def combination_covariance(self, several: Sequence[Mapping[Attributes, Floats]]) -> Floats:
        """The exact covariances (k, k) of k weighted sums of cells.

        Components and the parts that only one margin measures are all independent.  The error of a sum
        is a weighted sum of their errors.
        """
        members: dict[Attributes, list[int]] = {}
        for place, weights in enumerate(several):
            for attributes in weights:
                members.setdefault(attributes, []).append(place)
        found: dict[Attributes | int, list[tuple[list[int], Floats]]] = {}
        for attributes, places in members.items():
            stacked = np.stack([several[i][attributes] for i in places], axis=-1)
            for source, part in self._by_source(attributes, stacked).items():
                found.setdefault(source, []).append((places, part.reshape(-1, len(places)).T))
        covariance = np.zeros((len(several), len(several)))
        for source, parts in found.items():
            known = self.margins[source] if isinstance(source, int) else self.components[source]
            of = np.concatenate([places for places, _ in parts])
            rows = np.concatenate([part for _, part in parts])
            # A sum with weights in several tables occurs here several times.
            np.add.at(covariance, np.ix_(of, of), known.variance * (rows @ rows.T))
        return covariance

    def _by_source(self, given: Attributes, weights: Floats) -> dict[Attributes | int, Floats]:
        """Weights (..., k) of k sums of cells of one table, as weights on each component and on the part
        that only one margin measures."""
        attributes = self._useful(checked_attributes(given, self.sizes))
        shape = [*(self.sizes[a] for a in attributes), weights.shape[-1]]
        left = weights = np.asarray(weights, dtype=np.float64).reshape(shape)
        found: dict[Attributes | int, Floats] = {}
        for subset, rest in self._parts(attributes).items():
            found[subset] = _component(weights, attributes, subset) / rest
            left = left - _spread(found[subset], subset, attributes)
        covering = self._covering(attributes)
        if covering is not None:
            place = next(i for i, margin in enumerate(self.margins) if margin is covering)
            whole = [*(self.sizes[a] for a in covering.attributes), 1]
            found[place] = _spread(left, attributes, covering.attributes) * np.ones(whole)
        return found

    def _useful(self, attributes: Iterable[int]) -> Attributes:
        """Drop attributes of size 1: they have no contrasts and so no components."""
        return tuple(a for a in attributes if self.sizes[a] > 1)

    def _covering(self, attributes: Attributes) -> Margin | None:
        """The margin from which a table is computed: the first that contains it."""
        if attributes in self._first:
            return self._first[attributes]
        wanted = set(attributes)
        return next((m for m in self.margins if wanted <= set(m.attributes)), None)

    @cached_property
    def _first(self) -> dict[Attributes, Margin]:
        return {margin.attributes: margin for margin in reversed(self.margins)}

    def _parts(self, attributes: Attributes) -> dict[Attributes, int]:
        """The measured components of a table, and the number of cells over which each is spread."""
        parts = sorted(_within(attributes, self.components), key=lambda part: (len(part), part))
        if self._covering(attributes) is None and len(parts) < 2 ** len(attributes):
            raise ValueError(f"no measurement covers the attributes {attributes}")
        return {part: cells(set(attributes) - set(part), self.sizes) for part in parts}

    def _variance_in(self, margin: Margin, subset: Attributes) -> float:
        """The variance of a cell after summing the margin to the subset, before any centring."""
        return margin.variance * cells(set(margin.attributes) - set(subset), self.sizes)

    def _centring(self, subset: Attributes) -> float:
        """The factor of centring on a variance: 1 - 1/size per axis, the diagonal of its matrix."""
        return math.prod(1.0 - 1.0 / self.sizes[a] for a in subset)


def common_total(agreements: Iterable[Agreement]) -> float | None:
    """The public number of records of several agreements; None if none states it.

    Raises ``ValueError`` if their numbers differ.
    """
    totals = {each.total for each in agreements if each.total is not None}
    if len(totals) > 1:
        stated = ", ".join(f"{total:g}" for total in sorted(totals))
        raise ValueError(
            f"the tables have different numbers of records ({stated}): combine tables of the same ones"
        )
    return next(iter(totals), None)


def side_by_side(drawn: Sequence[Agreement]) -> Agreement:
    """Combine draws of the same measurements in one agreement with a last axis over draws."""
    tables = zip(*([each.table for each in one.measured] for one in drawn), strict=True)
    measured = [
        each._replace(table=np.stack(of_all, axis=-1))
        for each, of_all in zip(drawn[0].measured, tables, strict=True)
    ]
    return replace(drawn[0], measured=measured)


def make_consistent(
    sizes: Sequence[int], margins: Sequence[Margin], total: float | None
) -> list[Margin]:
    """The margins after the smallest adjustment (weighted by inverse variances) that makes them agree.

    Any two margins then have the same table of the attributes that they share.  All add up to ``total``
    or, if that is None, to its best estimate from all margins.  ``variance`` of a result is the exact
    variance of each of its cells after the adjustment.  Cells are real numbers and may be negative,
    because they are unbiased.  The order of the margins does not matter, up to rounding.
    """
    agreement = Agreement(tuple(sizes), margins, total)
    return [agreement.margin(margin.attributes) for margin in margins]


def subsets(attributes: Attributes) -> Iterator[Attributes]:
    """All subsets, the empty one first."""
    return chain.from_iterable(combinations(attributes, r) for r in range(len(attributes) + 1))


def _shared(several: Sequence[Attributes]) -> set[Attributes]:
    """The sets of attributes that more than one of these sets contains.

    A component that only one margin contains needs no adjustment, so wide margins cost nothing.
    """
    if sum(2 ** len(each) for each in several) <= MOST_LISTED:
        counted = Counter(subset for each in several for subset in subsets(each))
        return {subset for subset, times in counted.items() if times > 1}
    overlaps = {tuple(sorted(set(one) & set(other))) for one, other in combinations(several, 2)}
    return {subset for overlap in overlaps for subset in subsets(overlap)}


def _within(attributes: Attributes, known: Iterable[Attributes]) -> list[Attributes]:
    """The sets in ``known`` that are subsets of these attributes."""
    known = known if isinstance(known, set | dict) else set(known)
    if 2 ** len(attributes) <= len(known):
        return [subset for subset in subsets(attributes) if subset in known]
    inside = set(attributes)
    return [subset for subset in known if inside.issuperset(subset)]


def _component(table: Floats, attributes: Attributes, subset: Attributes) -> Floats:
    """The component r_T of a table: its sums over other attributes, with each axis centred."""
    result = summed_to(table, attributes, subset)
    for axis in range(len(subset)):
        result = result - result.mean(axis=axis, keepdims=True)
    return result


def _spread(component: Floats, subset: Attributes, attributes: Attributes) -> Floats:
    """The component with an axis of length 1 in place of every attribute outside the subset."""
    lengths = iter(component.shape)
    shape = [next(lengths) if a in subset else 1 for a in attributes]
    return component.reshape([*shape, *lengths])
