"""Model terms minus their regression on earlier terms, so that equations with years around 2000 are
solved as exactly as with numbers around 0.

The regression of a term on other terms of some of its columns, over the records, is subtracted.  If some
terms add up to a constant, the others are centred at their means, and so is the response of a linear
model.  Coefficients b of these terms z C become C b for the formula's terms z:

    z C b = z (C b)

Without this, products of two years differ only in their twelfth digit, and the regression takes these
differences for rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats
from dpcore.estimates.design import ModelDesign, Variable
from dpcore.post.tables.margins import Attributes

ROUNDING = 1e-9
"""If less than this share of a term is left, it is a sum of the others."""


class Centred(NamedTuple):
    """``design``: with the centred terms and response; ``change``: (p, p), C above; ``moved``: (p,) to
    be added to the coefficients of the formula's terms."""

    design: ModelDesign
    change: Floats
    moved: Floats


def centred(design: ModelDesign, linear: bool) -> Centred:
    """The design with centred terms; ``linear``: whether the response is centred too."""
    size = len(design.terms)
    change, moved, found = np.eye(size), np.zeros(size), dict[int, Variable]()
    constant = _constant(design)
    one = Variable("1", design.records.kept.astype(float), (), np.ones(()))
    # Terms of fewer columns come first.
    for j in sorted(range(size), key=lambda j: len(design.terms[j].attributes)):
        term = design.terms[j]
        if constant and j not in constant:
            (mean,) = _regression(term, [one])
            term = _without(term, [one], [mean], design)
            change[constant, j] -= mean
        near = [
            i for i in found if i not in constant and {*found[i].attributes} <= {*term.attributes}
        ]
        others = [found[i] for i in near]
        slopes = _regression(term, others)
        found[j] = _without(term, others, slopes, design)
        for i, slope in zip(near, slopes, strict=True):
            change[:, j] -= slope * change[:, i]
    response = design.response
    if linear and constant:
        (mean,) = _regression(response, [one])
        response = _without(response, [one], [mean], design)
        moved[constant] = mean
    terms = tuple(found[j] for j in range(size))
    return Centred(replace(design, terms=terms, response=response), change, moved)


def _constant(design: ModelDesign) -> list[int]:
    """The terms whose sum is 1 for all records: a constant, or one term for each category."""
    together: dict[Attributes, list[int]] = {}
    for j, term in enumerate(design.terms):
        together.setdefault(term.attributes, []).append(j)
    kept = design.records.kept
    for places in sorted(together.values(), key=len):
        if np.all(np.sum([design.terms[j].values for j in places], axis=0)[kept] == 1):
            return places
    return []


def _regression(term: Variable, others: Sequence[Variable]) -> Floats:
    """The slopes (k,) of a term on others, which are uncorrelated with each other, over the records."""
    squares = np.array([max(float(each.values @ each.values), 1e-300) for each in others])
    return np.asarray([float(each.values @ term.values) for each in others] / squares)


def _without(
    term: Variable, others: Sequence[Variable], slopes: Iterable[float], design: ModelDesign
) -> Variable:
    """A term minus these multiples of others; zero if only rounding errors are left."""
    present = np.ones(term.cells.shape)
    for place, attribute in enumerate(term.attributes):
        axis = design.records.domain.axes[attribute]
        if axis.nullable:
            np.moveaxis(present, place, 0)[axis.size - 1] = 0.0
    values, cells = term.values, term.cells
    for other, slope in zip(others, slopes, strict=True):
        shape = [
            cells.shape[place] if attribute in other.attributes else 1
            for place, attribute in enumerate(term.attributes)
        ]
        values = values - slope * other.values
        cells = cells - slope * other.cells.reshape(shape) * present
    if np.linalg.norm(values) <= ROUNDING * np.linalg.norm(term.values):
        values, cells = 0.0 * values, 0.0 * cells
    return replace(term, values=values, cells=cells)
