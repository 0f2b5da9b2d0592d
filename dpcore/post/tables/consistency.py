r"""Noisy margins adjusted to agree with each other and with the public total, with least variance.

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
averaged over the margins that contain T, with the inverse variances 1 / (variance_S |S \ T|) as
weights.  The component of the empty set is the public total, if there is one.  This is the
generalised least squares estimate; it is unbiased, and its variances are known exactly.  (The
components are the residual queries of ResidualPlanner, Xiao et al. 2023.)

>>> import numpy as np
>>> noisy = [((0,), np.array([7.0, 3.0]), 1.0), ((0, 1), np.array([[4.0, 2.0], [1.0, 3.0]]), 1.0)]
>>> first, second = make_consistent((2, 2), noisy, total=10)
>>> first.table.round(6).tolist(), second.table.sum(axis=1).round(6).tolist()
([6.666667, 3.333333], [6.666667, 3.333333])
>>> round(first.variance, 6), round(second.variance, 6)
(0.333333, 0.583333)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations

import numpy as np

from dpcore.arrays import Floats
from dpcore.post.tables.margins import (
    Attributes,
    Margin,
    MarginLike,
    cells,
    checked_attributes,
    checked_margins,
    checked_sizes,
    checked_total,
    summed_to,
)


def make_consistent(
    sizes: Sequence[int], margins: Iterable[MarginLike], total: float | None
) -> list[Margin]:
    """The margins after the smallest adjustment, by their variances, that makes them agree.

    Any two margins then have the same sums over the attributes that they do not share.  All add up to
    ``total``; if that is None, to the best estimate of it from all margins.  ``variance`` of a result
    is the exact variance of each of its cells after the adjustment.  Cells are real numbers and may
    be negative, because they are unbiased.  The order of the margins does not matter, up to rounding.
    """
    sizes = checked_sizes(sizes)
    noisy = checked_margins(sizes, margins)
    total = None if total is None else checked_total(total)
    shared = _shared_subsets(sizes, noisy)
    corrections = [np.zeros_like(margin.table) for margin in noisy]
    for subset, members in shared.items():
        # A public total is known and so is its component; all the others are averaged.
        components = {i: _component(noisy[i], subset) for i in members}
        if subset or total is None:
            weights = {i: 1.0 / _component_variance(noisy[i], subset, sizes) for i in members}
            best = sum(
                (weights[i] * components[i] for i in members),
                np.zeros(components[members[0]].shape),
            ) / sum(weights.values())
        else:
            best = np.asarray(total)
        for i in members:
            rest = cells(set(noisy[i].attributes) - set(subset), sizes)
            corrections[i] += _spread(best - components[i], subset, noisy[i].attributes) / rest
    return [
        Margin(
            margin.attributes,
            margin.table + correction,
            _variance(sizes, noisy, shared, margin, margin.attributes, total is not None),
        )
        for margin, correction in zip(noisy, corrections, strict=True)
    ]


def consistent_variance(
    sizes: Sequence[int],
    margins: Iterable[MarginLike],
    attributes: Sequence[int],
    *,
    public_total: bool = True,
) -> float:
    """The exact variance of a cell of the consistent table of ``attributes``.

    Some margin must contain the attributes: ``make_consistent`` gives their table as any such margin,
    summed.  Only the variances of ``margins`` matter, so an agency can compute this without data,
    before it spends any budget.
    """
    sizes = checked_sizes(sizes)
    noisy = checked_margins(sizes, margins)
    attributes = checked_attributes(attributes, sizes)
    for margin in noisy:
        if set(attributes) <= set(margin.attributes):
            shared = _shared_subsets(sizes, noisy)
            return _variance(sizes, noisy, shared, margin, attributes, public_total)
    raise ValueError(f"no margin covers the attributes {attributes}")


def combination_variance(
    sizes: Sequence[int],
    margins: Iterable[MarginLike],
    weights: Mapping[int, Floats],
    *,
    public_total: bool = True,
) -> float:
    """The exact variance of a weighted sum of cells of consistent tables, with all covariances.

    ``weights``: a weight for each cell of the tables of some margins, by position of the margin.  The
    sum is a linear function of the noisy tables, whose cells are independent; its weights on them
    follow from the transpose of the adjustment.  Needs no data, like ``consistent_variance``.
    """
    sizes = checked_sizes(sizes)
    noisy = checked_margins(sizes, margins)
    on_noisy = {i: np.array(weight, dtype=np.float64) for i, weight in weights.items()}
    for subset, members in _shared_subsets(sizes, noisy).items():
        precisions = {i: 1.0 / _component_variance(noisy[i], subset, sizes) for i in members}
        for i in set(weights) & set(members):
            rest = cells(set(noisy[i].attributes) - set(subset), sizes)
            asked = noisy[i]._replace(table=np.asarray(weights[i], dtype=np.float64))
            component = _component(asked, subset) / rest
            on_noisy[i] = on_noisy[i] - _spread(component, subset, noisy[i].attributes)
            # A public total has no noise.
            for j in members if subset or not public_total else ():
                part = precisions[j] / sum(precisions.values())
                spread = part * _spread(component, subset, noisy[j].attributes)
                on_noisy[j] = on_noisy.get(j, np.zeros(noisy[j].table.shape)) + spread
    return float(sum(noisy[i].variance * np.sum(w * w) for i, w in on_noisy.items()))


def estimated_total(margins: Sequence[Margin]) -> float:
    """The number of records, estimated as the best weighted average of the margins; at least one."""
    if not margins:
        return 1.0
    # A variance of zero belongs to a single cell, which is an exact total.
    variances = np.array([margin.variance * margin.table.size for margin in margins])
    sums = np.array([margin.table.sum() for margin in margins])
    weights = np.where(variances == 0, 1.0, 0.0) if np.any(variances == 0) else 1.0 / variances
    return max(float(weights @ sums / weights.sum()), 1.0)


def _shared_subsets(sizes: Sequence[int], margins: Sequence[Margin]) -> dict[Attributes, list[int]]:
    """Each set of attributes that several margins contain, with the indices of these margins.

    The empty set is always included.  A component that only one margin contains needs no adjustment,
    so wide margins cost nothing.  Attributes of size 1 have no contrasts and so no components.
    """
    useful = [frozenset(a for a in margin.attributes if sizes[a] > 1) for margin in margins]
    overlaps = {one & other for one, other in combinations(useful, 2)}
    subsets = {()} | {
        subset
        for overlap in overlaps
        for subset in chain.from_iterable(
            combinations(sorted(overlap), r) for r in range(1, len(overlap) + 1)
        )
    }
    return {
        subset: [i for i, attributes in enumerate(useful) if attributes.issuperset(subset)]
        for subset in sorted(subsets, key=lambda subset: (len(subset), subset))
    }


def _component(margin: Margin, subset: Attributes) -> Floats:
    """r_T of one margin: its table summed to the subset, each axis centred."""
    table = summed_to(margin.table, margin.attributes, subset)
    for axis in range(len(subset)):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def _spread(component: Floats, subset: Attributes, attributes: Attributes) -> Floats:
    """The component with an axis of length 1 in place of every attribute outside the subset."""
    lengths = iter(component.shape)
    return component.reshape([next(lengths) if a in subset else 1 for a in attributes])


def _component_variance(margin: Margin, subset: Attributes, sizes: Sequence[int]) -> float:
    """The variance of a cell of the margin summed to the subset, before the centring."""
    return margin.variance * cells(set(margin.attributes) - set(subset), sizes)


def _variance(
    sizes: Sequence[int],
    margins: Sequence[Margin],
    shared: dict[Attributes, list[int]],
    margin: Margin,
    attributes: Attributes,
    public_total: bool,
) -> float:
    """The variance of a cell of the consistent ``margin`` summed to ``attributes``.

    A component with variance c (before the centring) contributes to a cell of a table over U
        c * product over T of (1 - 1/size) / |U - T|^2,
    as 1 - 1/size is the diagonal of the centring matrix.  Over all subsets of U these add up to the
    variance of the unadjusted table; only the shared components differ from it.
    """
    unadjusted = _component_variance(margin, attributes, sizes)
    result = unadjusted
    for subset, members in shared.items():
        if not set(subset) <= set(attributes):
            continue
        after = 0.0  # of a total that is public
        if subset or not public_total:
            after = 1.0 / sum(1.0 / _component_variance(margins[i], subset, sizes) for i in members)
        before = _component_variance(margin, subset, sizes)
        centring = math.prod(1.0 - 1.0 / sizes[a] for a in subset)
        result += (after - before) * centring / cells(set(attributes) - set(subset), sizes) ** 2
    # Rounding may make a variance of zero (one cell, which is the total) slightly negative.
    return max(result, 0.0)
