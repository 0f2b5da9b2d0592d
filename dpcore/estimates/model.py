"""Models from noisy tables and synthetic records: coefficients with errors from sampling and privacy.

``estimates.calibrated`` has the theory.  The records follow the noisy tables of one release; the tables
are estimated from all releases of the bundle together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins, in_order
from dpcore.domain.domain import Domain
from dpcore.errors import InputError, UnmeasuredError
from dpcore.estimates.calibrated import Fitted, fit_calibrated
from dpcore.estimates.centred import Centred, centred
from dpcore.estimates.design import ModelDesign, ModelRecords, Variable
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.families import FAMILIES
from dpcore.estimates.inside import moved_inside, opened_by_bins
from dpcore.post.levels import SIGMAS_95
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes
from dpcore.releases.table import FEWEST_ERRORS

FEWEST = 20.0
"""A group has an interval if its noisy count is at least this many units, and at least ``FEWEST_ERRORS``
of its standard errors."""

MADE_UP, HARDLY = 1000, 1e-6
"""The least number of made-up records in random cells; their total weight, as a share of all."""

BLURRED = "noise hides how the terms vary together; use wider bins or fewer terms"
INSIDE = (
    "positions inside bins are unknown; they are estimated from neighbouring bins and synthetic records;"
    " the error includes half of this correction and some of what the records assume; narrower bins need"
    " fewer assumptions"
)
HARDLY_ANY = "too few records for this much noise"

DECIDED = 15.0
"""At a predictor this far from zero the rarer answer has a probability below one in three million."""

ENDLESS = (
    "with this noise the terms may determine the response, and then this family has no finite estimates;"
    " family gaussian estimates differences of means"
)

SPANNED = 0.9
"""A coefficient gets a note if tables explain less than this share of the variance of its score."""

LEANING = (
    f"less than {SPANNED:.0%} of the information comes from noisy tables; the rest comes from the model"
    " of the synthetic records, and the interval includes only part of its error"
)


@dataclass(frozen=True)
class Coefficient:
    """An estimate, its standard errors from sampling and from privacy, and its 95% interval.

    ``spanned``: the share of its information that comes from noisy tables; the rest comes from the model
    of the synthetic records.  ``within``: the smallest and the largest possible value.  ``notes``:
    assumptions of its errors (for a model, see the model's notes).
    """

    name: str
    estimate: float
    sampling_error: float
    privacy_error: float
    spanned: float
    within: tuple[float, float] = (-np.inf, np.inf)
    notes: tuple[str, ...] = ()

    MEANING: ClassVar = {
        "term": "Term of the formula, or Intercept",
        "estimate": "Estimated coefficient",
        "standard_error": "Standard error of the estimate; it includes sampling and privacy noise",
        "sampling_error": "Standard error from sampling alone, as without privacy; units are assumed"
        " to be independent draws from a population",
        "privacy_error": "Standard error from privacy noise and from unknown positions inside bins",
        "lower_95": "Lower end of a 95% interval for the coefficient in the population",
        "upper_95": "Upper end of a 95% interval for the coefficient in the population",
        "spanned": "Share of the estimate's information that comes from noisy tables; the rest comes"
        " from the model of the synthetic records, whose error is only partly in privacy_error",
    }

    @property
    def standard_error(self) -> float:
        return float(np.hypot(self.sampling_error, self.privacy_error))

    @property
    def interval(self) -> tuple[float, float]:
        width = SIGMAS_95 * self.standard_error
        lower, upper = np.clip([self.estimate - width, self.estimate + width], *self.within)
        return float(lower), float(upper)

    @property
    def shown(self) -> tuple[str, str]:
        """The estimate and its interval, in the digits that its standard error supports.

        >>> Coefficient("founded", 2013.42, 0.17, 0.02, 1.0).shown
        ('2013.42', '2013.08 to 2013.76')
        """
        numbers, error = (self.estimate, *self.interval), self.standard_error
        digits, largest = 4, max(map(abs, numbers))
        if 0 < error < largest < math.inf:
            digits += max(math.floor(math.log10(largest)) - math.floor(math.log10(error)) - 2, 0)
        middle, *ends = (f"{number:.{min(digits, 15)}g}" for number in numbers)
        return middle, " to ".join(ends)

    def __str__(self) -> str:
        middle, ends = self.shown
        errors = f"sampling {self.sampling_error:.3g}, privacy {self.privacy_error:.3g}"
        says = f"{self.name}: {middle} (95% interval {ends}; standard errors: {errors})"
        return "\n".join([says, *(f"Note: {note}" for note in self.notes)])

    @property
    def row(self) -> dict[str, Any]:
        """The row in a table of coefficients; ``MEANING`` describes its columns."""
        numbers = (self.estimate, self.standard_error, self.sampling_error, self.privacy_error)
        row = (self.name, *numbers, *self.interval, self.spanned)
        return dict(zip(self.MEANING, row, strict=True))


Answers = tuple[tuple[Coefficient, ...], tuple[str, ...]]
"""Coefficients, and notes for their reader."""


def fit_model(evidence: Evidence, design: ModelDesign, family: str) -> Answers:
    """Fit a linear, logistic (``binomial``) or Poisson model.

    Raises ``InputError`` if the columns of a term were not measured together with the response or with
    another term's columns, and if the model has no solution.
    """
    _require_measured(design, evidence)
    coefficients, hidden = [], dict[str, list[str]]()
    solved = centred(design, family == "gaussian")
    shares = family == "gaussian" and _are_shares(design)
    within = (0.0, 1.0) if shares else (-np.inf, np.inf)
    found, unmeasured = _calibrated(evidence, solved, family)
    for j, term in enumerate(design.terms):
        estimate, sampling, privacy, spanned = (float(each[j]) for each in found[:4])
        reason = None
        if found.blur >= 1 or not np.isfinite(privacy):
            reason = BLURRED
        elif _is_rare(term, evidence):
            reason = HARDLY_ANY
        elif family != "gaussian" and _is_endless(j, found.coefficients, design, solved.design):
            reason = ENDLESS
        if reason:
            sampling = privacy = np.inf
            hidden.setdefault(reason, []).append(term.name)
        errors = sampling, privacy
        coefficients.append(Coefficient(term.name, estimate, *errors, spanned, within=within))
    notes = [f"no interval for {', '.join(names)}: {reason}" for reason, names in hidden.items()]
    notes += [*design.notes, *_notes(coefficients, unmeasured)]
    notes += notes_inside((design.response, *design.terms), design.records, evidence)
    return tuple(coefficients), tuple(notes)


def _are_shares(design: ModelDesign) -> bool:
    """Whether each coefficient of a linear model is the share of a group that has a property."""
    kept = design.records.kept
    terms = np.stack([term.values[kept] for term in design.terms])
    return bool(
        np.isin(design.response.values[kept], (0, 1)).all()
        and np.isin(terms, (0, 1)).all()
        and (terms.sum(axis=0) == 1).all()
    )


def _calibrated(evidence: Evidence, model: Centred, family: str) -> tuple[Fitted, bool]:
    """The fit, and whether some products of terms were not measured."""
    design = model.design
    agreement, records = evidence.agreement, design.records
    kept = records.kept.astype(float)
    one = Variable("1", np.ones(len(kept)), (), np.ones(()))
    features, pairs, totals, unmeasured = [], [], [], False
    tables: dict[Attributes, Floats] = {}
    variables = (one, *design.terms, design.response, *design.present)
    every = [*combinations_with_replacement(variables, 2)]
    for first, second in [*every, *_complete(every, design, agreement)]:
        product = first.times(second, records)
        if product is None or not agreement.covers(product.attributes):
            unmeasured = True
            continue
        if not np.any(product.cells):
            continue
        if product.attributes not in tables:
            tables[product.attributes] = evidence.table(product.attributes)
        features.append(product)
        pairs.append((first, second))
        totals.append(float(np.sum(product.cells * tables[product.attributes])) / evidence.rows)
    noise = agreement.combination_covariance(
        [{each.attributes: each.cells / evidence.rows} for each in features]
    )
    inside = [
        moved_inside(evidence, records, *pair, tables[each.attributes]) / evidence.rows
        for pair, each in zip(pairs, features, strict=True)
    ]
    opened = opened_by_bins(evidence, records, pairs, tables) / evidence.rows
    # Half of the correction is added as a standard error.
    noise = noise + np.outer(inside, inside) / 4 + opened.T @ opened
    # If a small group has no records with one kind of response, made-up records still define each
    # product, so that its noise counts.
    anywhere = _anywhere(records.domain, MADE_UP + 4 * len(features))

    def column(variable: Variable, values: Floats) -> Floats:
        return np.append(values, np.broadcast_to(variable.at_cells(anywhere), len(anywhere)))

    ours, others = len(kept), len(anywhere)
    try:
        found = fit_calibrated(
            np.column_stack([column(term, term.values) for term in design.terms]),
            column(design.response, design.response.values * kept),
            FAMILIES[family],
            np.column_stack([column(each, each.values) for each in features]),
            np.array(totals) + inside,
            noise,
            evidence.rows,
            np.repeat([1.0, HARDLY * ours / others], [ours, others]),
            evidence.most,
            model.change,
        )
    except ValueError as error:
        raise InputError(f"{design.formula}: {error}") from None
    return found._replace(coefficients=found.coefficients + model.moved), unmeasured


def _complete(
    pairs: Sequence[tuple[Variable, Variable]], design: ModelDesign, agreement: Agreement
) -> Iterator[tuple[Variable, Variable]]:
    """Yield the pairs over the records with a value in all columns, which the model describes, where a
    table has these columns. Without them, the share of null in the other columns would be assumed."""
    records = design.records
    for first, second in pairs:
        both = second
        for present in design.present:
            held = {*first.attributes, *both.attributes}
            longer = None if {*present.attributes} <= held else both.times(present, records)
            product = None if longer is None else first.times(longer, records)
            if longer is not None and product is not None and agreement.covers(product.attributes):
                both = longer
        if both is not second:
            yield first, both


def _anywhere(domain: Domain, rows: int) -> Integers:
    """(rows, axes) records in random cells, without nulls."""
    # A fixed seed: the same bundle must give the same answer.
    generator = np.random.default_rng(0)
    cells = [axis.size - axis.nullable for axis in domain.axes]
    return np.column_stack([generator.integers(0, size, rows) for size in cells])


def _require_measured(design: ModelDesign, evidence: Evidence) -> None:
    """Raise ``UnmeasuredError`` where columns that must have been measured together were not."""
    missing: list[Attributes] = []
    for i, term in enumerate(design.terms):
        needed = [tuple(sorted({*term.attributes, *design.response.attributes}))]
        for other in design.terms[:i]:
            union = tuple(sorted({*term.attributes, *other.attributes}))
            if len(union) <= 2:
                needed.append(union)
        missing += [n for n in needed if not evidence.agreement.covers(n) and n not in missing]
    if missing:
        largest = [each for each in missing if not any({*each} < {*other} for other in missing)]
        sets = [[evidence.domain.names[a] for a in each] for each in largest]
        raise unmeasured(f"{design.formula}: ", sets, "; or leave the term out")


def unmeasured(place: str, sets: Sequence[Sequence[str]], otherwise: str = "") -> UnmeasuredError:
    """The error of a question about columns that were not measured together."""
    written = ", ".join(f"[{', '.join(names)}]" for names in sets)
    error = UnmeasuredError(
        f"{place}the release did not measure {' or '.join(' x '.join(s) for s in sets)} together, so"
        f" their association is unknown. In the plan, write also: [{written}] in the"
        f" release{otherwise}"
    )
    error.also = sets
    return error


def notes_inside(
    variables: Sequence[Variable], records: ModelRecords, evidence: Evidence
) -> list[str]:
    """A note on the columns with several values in one cell, if there are any."""
    varying, domain = set[int](), evidence.domain
    for each in variables:
        inside = each.values - each.at_cells(records.codes)
        if np.any(np.abs(inside[records.kept]) > 1e-9 * np.abs(each.values[records.kept])):
            varying |= {a for a in each.attributes if in_order(domain.axes[a])}
    names = [domain.names[a] + _possible_mean(a, evidence) for a in sorted(varying)]
    return [f"{', '.join(names)}: {INSIDE}"] * bool(names)


def _possible_mean(attribute: int, evidence: Evidence) -> str:
    """The range of a binned column's mean if nothing is known about positions inside bins, in words."""
    axis = evidence.domain.axes[attribute]
    if not isinstance(axis, Bins):
        return ""
    counts = np.maximum(evidence.table((attribute,))[: axis.cells], 0.0)
    lower, upper = np.array(axis.edges[:-1]), np.array(axis.edges[1:])
    upper = np.where((upper > lower) & axis.integer, upper - 1, upper)
    if not counts.any():
        return ""
    least, most = (float(np.average(ends, weights=counts)) for ends in (lower, upper))
    low, high = f"{least:.4g}", f"{most:.4g}"
    return f" (mean {low} to {high} without assumptions)" * (low != high)


def _is_rare(term: Variable, evidence: Evidence) -> bool:
    """Whether a term is 0 or 1, and all records with one of these values may be noise."""
    if not term.attributes or not set(np.unique(term.cells)) <= {0.0, 1.0}:
        return False
    table = evidence.table(term.attributes)
    for value in np.unique(term.cells):
        cells = (term.cells == value).astype(np.float64)
        error = evidence.agreement.combination_variance({term.attributes: cells}) ** 0.5
        if float(np.sum(table * cells)) < max(FEWEST * evidence.most, FEWEST_ERRORS * error):
            return True
    return False


def _is_endless(place: int, coefficients: Floats, design: ModelDesign, solved: ModelDesign) -> bool:
    """Whether a term alone decides the response: the likelihood grows for ever with its coefficient.

    A constant is judged where the other terms are nearest to zero, such as in the first year.
    ``solved``: the design with centred terms.
    """
    if design.terms[place].attributes:
        values = solved.terms[place].values
        return not abs(float(coefficients[place])) * float(np.ptp(values)) < DECIDED
    kept = design.records.kept
    nearest = [min(each.values[kept], key=abs) for each in design.terms]
    return not abs(float(coefficients @ nearest)) < DECIDED


def _notes(coefficients: Sequence[Coefficient], unmeasured: bool) -> list[str]:
    notes = []
    if leaning := [c.name for c in coefficients if c.spanned < SPANNED]:
        notes.append(f"{', '.join(leaning)}: {LEANING}")
    if unmeasured:
        notes.append(
            "some products of terms involve three or more columns that were not measured together"
        )
    return notes
