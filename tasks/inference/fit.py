"""Models from a bundle: estimates with their errors from sampling and from privacy.

    found = bundle.fit("affairs ~ religious + yrs_married")
    print(found)

``dpcore.post.inference.calibrated`` has the theory.  The records are those that the noisy tables of one
release give; the tables are those of all releases of the bundle together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins, in_order
from dpcore.domain.domain import Domain
from dpcore.errors import InputError, UnmeasuredError
from dpcore.post.inference.calibrated import fit_calibrated
from dpcore.post.inference.families import FAMILIES
from dpcore.post.levels import SIGMAS_95
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes
from dpcore.releases.table import FEWEST_ERRORS
from tasks.inference.designs import ModelDesign, Variable, design_of
from tasks.inference.evidence import Evidence

FEWEST = 20.0
"""A group has an interval if its noisy count is this large, in units, and ``FEWEST_ERRORS`` of its
standard errors."""

MADE_UP, HARDLY = 1000, 1e-6
"""Records anywhere, at least so many, and their weight together, as a share of all."""

BLURRED = "so much noise that it hides how the terms vary together; use wider bins or fewer terms"
INSIDE = (
    "where values lie inside their bins is what the synthetic records assume, and in no interval; bins"
    " of one value measure it"
)
HARDLY_ANY = "so few records, or so much noise, that there may be hardly any"

DECIDED = 15.0
"""A predictor this far from zero is a share of less than one in three million."""

ENDLESS = (
    "the response all but follows from these terms, so a curved model has no finite estimates of them"
    " and none has an interval; family gaussian measures differences of means"
)

SPANNED = 0.9
"""Below this share of a score's variance in the tables, an estimate leans on the records."""


@dataclass(frozen=True)
class Coefficient:
    """An estimate, its standard errors from sampling and from privacy, and its 95% interval.

    ``spanned``: the share of what determines it that noisy tables hold; the rest is what the model of
    the synthetic records assumes.  ``bound``: no value is larger than this, or less than its negative.
    ``notes``: what its errors assume, where it is not one of a model's.
    """

    name: str
    estimate: float
    sampling_error: float
    privacy_error: float
    spanned: float
    bound: float = np.inf
    notes: tuple[str, ...] = ()

    MEANING: ClassVar = {
        "term": "Term of the formula, or Intercept",
        "estimate": "Estimated coefficient",
        "standard_error": "Standard error of the estimate, of sampling and of noise together",
        "sampling_error": "Its part from sampling: that of the survey itself, whose units are taken as"
        " independent draws from a population",
        "privacy_error": "Its part from the noise that protects privacy",
        "lower_95": "Lower end of a 95% interval for the coefficient in the population",
        "upper_95": "Upper end of a 95% interval for the coefficient in the population",
        "spanned": "Share of what determines the estimate that noisy tables hold; the rest is what the"
        " model of the synthetic records assumes, and in no error",
    }

    @property
    def standard_error(self) -> float:
        return float(np.hypot(self.sampling_error, self.privacy_error))

    @property
    def interval(self) -> tuple[float, float]:
        width = SIGMAS_95 * self.standard_error
        lower, upper = np.clip(
            [self.estimate - width, self.estimate + width], -self.bound, self.bound
        )
        return float(lower), float(upper)

    @property
    def row(self) -> dict[str, Any]:
        """Its row in a table of coefficients, whose columns ``MEANING`` describes."""
        numbers = (self.estimate, self.standard_error, self.sampling_error, self.privacy_error)
        row = (self.name, *numbers, *self.interval, self.spanned)
        return dict(zip(self.MEANING, row, strict=True))


@dataclass(frozen=True)
class Fit:
    """A fitted model; printing it shows a table.  ``notes``: what the reader should know of it, and
    among them ``assumes``: what sampling errors assume beside independent records.
    """

    formula: str
    family: str
    coefficients: tuple[Coefficient, ...]
    notes: tuple[str, ...]
    assumes: tuple[str, ...] = ()

    def assuming(self, assumes: tuple[str, ...]) -> Fit:
        return replace(self, notes=(*assumes, *self.notes), assumes=assumes)

    def __getitem__(self, name: str) -> Coefficient:
        for coefficient in self.coefficients:
            if coefficient.name == name:
                return coefficient
        raise InputError(f"{name}: is not one of {', '.join(c.name for c in self.coefficients)}")

    def frame(self) -> Any:
        """The coefficients as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame([c.row for c in self.coefficients], columns=[*Coefficient.MEANING])

    def __str__(self) -> str:
        width = max(len(c.name) for c in self.coefficients)
        lines = [
            f"{self.formula}   ({self.family})",
            f"{'':{width}}  {'estimate':>10} {'sampling':>10} {'privacy':>10}   95% interval",
        ]
        lines += [
            f"{c.name:{width}}  {c.estimate:10.4g} {c.sampling_error:10.3g} {c.privacy_error:10.3g}"
            f"   {c.interval[0]:.4g} to {c.interval[1]:.4g}"
            for c in self.coefficients
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    __repr__ = __str__


def fit(evidence: Evidence, formula: str, family: str = "gaussian") -> Fit:
    """Fit a linear, logistic (``binomial``) or Poisson model.

    Raises ``InputError`` where the formula cannot be read, where the columns of a term were not
    measured together with the response or with another term's, and where the model has no solution.
    """
    if family not in FAMILIES:
        raise InputError(f"family: must be one of {', '.join(FAMILIES)}, not {family!r}")
    domain, agreement = evidence.domain, evidence.agreement
    design = design_of(formula, domain, evidence.codes, evidence.columns, family == "binomial")
    _require_measured(formula, design, domain, agreement)
    kept = design.kept.astype(float)
    one = Variable("1", np.ones(len(kept)), (), np.ones(()))
    features, values, totals, unmeasured = [], [], [], False
    tables: dict[Attributes, Floats] = {}
    variables = (one, *design.terms, design.response, *design.present)
    for first, second in combinations_with_replacement(variables, 2):
        product = _product(first, second, domain, evidence.codes)
        if product is None or not agreement.covers(product.attributes):
            unmeasured = True
            continue
        if not np.any(product.cells):
            continue
        if product.attributes not in tables:
            tables[product.attributes] = evidence.table(product.attributes)
        features.append(product)
        values.append(product.values)
        totals.append(float(np.sum(product.cells * tables[product.attributes])) / evidence.rows)
    noise = agreement.combination_covariance(
        [{each.attributes: each.cells / evidence.rows} for each in features]
    )
    # Where the records have no response of one kind in a small group, others still say what each
    # product is, so that its noise counts.
    anywhere = _anywhere(domain, MADE_UP + 4 * len(features))

    def column(variable: Variable, values: Floats) -> Floats:
        made_up = variable.cells[tuple(anywhere[:, list(variable.attributes)].T)]
        return np.append(values, np.broadcast_to(made_up, len(anywhere)))

    ours, others = len(kept), len(anywhere)
    try:
        found = fit_calibrated(
            np.column_stack([column(term, term.values) for term in design.terms]),
            column(design.response, design.response.values * kept),
            FAMILIES[family],
            np.column_stack([column(*each) for each in zip(features, values, strict=True)]),
            np.array(totals),
            noise,
            evidence.rows,
            np.repeat([1.0, HARDLY * ours / others], [ours, others]),
            evidence.most,
        )
    except ValueError as error:
        raise InputError(f"{formula}: {error}") from None
    coefficients, rare, endless = [], list[str](), list[str]()
    for j, term in enumerate(design.terms):
        variances = [max(float(each[j, j]), 0.0) for each in (found.sampling, found.privacy)]
        if found.blur >= 1:
            variances = [np.inf, np.inf]
        elif _is_rare(term, evidence):
            variances = [np.inf, np.inf]
            rare.append(term.name)
        elif family != "gaussian" and _is_endless(float(found.coefficients[j]), term):
            variances = [np.inf, np.inf]
            endless.append(term.name)
        sampling, privacy = (variance**0.5 for variance in variances)
        estimate, spanned = float(found.coefficients[j]), float(found.spanned[j])
        coefficients.append(Coefficient(term.name, estimate, sampling, privacy, spanned))
    notes = (*design.notes, *_notes(coefficients, rare, endless, unmeasured))
    if spread := _spread_in_cells(design, evidence):
        notes = (*notes, f"{spread}: {INSIDE}")
    if found.blur >= 1:
        notes = (f"{BLURRED}; no coefficient has an interval", *notes)
    return Fit(formula, family, tuple(coefficients), notes).assuming(evidence.assumes)


def _anywhere(domain: Domain, rows: int) -> Integers:
    """(rows, axes) records anywhere, without nulls."""
    generator = np.random.default_rng(0)
    cells = [axis.size - axis.nullable for axis in domain.axes]
    return np.column_stack([generator.integers(0, size, rows) for size in cells])


def _product(one: Variable, other: Variable, domain: Domain, codes: Integers) -> Variable | None:
    """The product of two variables, by cells of the columns of both."""
    attributes = tuple(sorted({*one.attributes, *other.attributes}))
    shape = [domain.shape[a] for a in attributes]
    if np.prod(shape, dtype=float) > 2**22:
        return None
    cells: Floats = np.ones(shape)
    for each in (one, other):
        cells = cells * each.cells.reshape(
            [n if a in each.attributes else 1 for a, n in zip(attributes, shape, strict=True)]
        )
    values = (
        cells[tuple(codes[:, list(attributes)].T)] if attributes else np.full(len(codes), cells)
    )
    return Variable(f"{one.name} {other.name}", np.asarray(values), attributes, cells)


def _require_measured(
    formula: str, design: ModelDesign, domain: Domain, agreement: Agreement
) -> None:
    """Raise ``UnmeasuredError`` where columns that must have been measured together were not."""
    missing: list[Attributes] = []
    for i, term in enumerate(design.terms):
        needed = [tuple(sorted({*term.attributes, *design.response.attributes}))]
        for other in design.terms[:i]:
            union = tuple(sorted({*term.attributes, *other.attributes}))
            if len(union) <= 2:
                needed.append(union)
        missing += [each for each in needed if not agreement.covers(each) and each not in missing]
    if missing:
        largest = [each for each in missing if not any({*each} < {*other} for other in missing)]
        sets = [[domain.names[a] for a in each] for each in largest]
        raise unmeasured(f"{formula}: ", sets, "; or leave the term out")


def unmeasured(place: str, sets: Sequence[Sequence[str]], otherwise: str = "") -> UnmeasuredError:
    """The error of a question about columns that were not measured together."""
    written = ", ".join(f"[{', '.join(names)}]" for names in sets)
    error = UnmeasuredError(
        f"{place}the release did not measure {' or '.join(' x '.join(s) for s in sets)} together, so it"
        f" cannot say how they are related. A plan with also: [{written}], and"
        f" choose: fixed where it is adaptive, would{otherwise}"
    )
    error.also = sets
    return error


def _spread_in_cells(design: ModelDesign, evidence: Evidence) -> str:
    """The columns of which records have several values in one cell, and where their means may lie."""
    varying, domain, codes = set[int](), evidence.domain, evidence.codes
    for each in (design.response, *design.terms):
        inside = each.values - each.cells[tuple(codes[:, list(each.attributes)].T)]
        if np.any(np.abs(inside[design.kept]) > 1e-9 * np.abs(each.values[design.kept])):
            varying |= {a for a in each.attributes if in_order(domain.axes[a])}
    return ", ".join(domain.names[a] + _possible_mean(a, evidence) for a in sorted(varying))


def _possible_mean(attribute: int, evidence: Evidence) -> str:
    """Between which numbers the mean of a binned column lies wherever values are inside their bins."""
    axis = evidence.domain.axes[attribute]
    if not isinstance(axis, Bins):
        return ""
    counts = np.maximum(evidence.table((attribute,))[: axis.cells], 0.0)
    lower, upper = np.array(axis.edges[:-1]), np.array(axis.edges[1:])
    upper = np.where((upper > lower) & axis.integer, upper - 1, upper)
    if not counts.any():
        return ""
    least, most = (float(np.average(ends, weights=counts)) for ends in (lower, upper))
    return f" (whose mean may be anything from {least:.4g} to {most:.4g})"


def _is_rare(term: Variable, evidence: Evidence) -> bool:
    """Whether noise may be all that is known of the records with one of a term's values 0 and 1."""
    if not term.attributes or not set(np.unique(term.cells)) <= {0.0, 1.0}:
        return False
    table = evidence.table(term.attributes)
    for value in (0.0, 1.0):
        cells = (term.cells == value).astype(np.float64)
        error = evidence.agreement.combination_variance({term.attributes: cells}) ** 0.5
        if float(np.sum(table * cells)) < max(FEWEST * evidence.most, FEWEST_ERRORS * error):
            return True
    return False


def _is_endless(coefficient: float, term: Variable) -> bool:
    """Whether a term alone decides the response: the likelihood grows for ever with its coefficient."""
    return not abs(coefficient) * float(np.max(np.abs(term.values), initial=0.0)) < DECIDED


def _notes(
    coefficients: Sequence[Coefficient],
    rare: Sequence[str],
    endless: Sequence[str],
    unmeasured: bool,
) -> tuple[str, ...]:
    notes = []
    if rare:
        notes.append(f"{', '.join(rare)}: {HARDLY_ANY}; these have no interval")
    if endless:
        notes.append(f"{', '.join(endless)}: {ENDLESS}")
    leaning = [c.name for c in coefficients if c.spanned < SPANNED]
    if leaning:
        notes.append(
            f"{', '.join(leaning)}: noisy tables hold less than {SPANNED:.0%} of what determines the"
            " estimate; the rest is what the synthetic records assume, and no interval includes it"
        )
    if unmeasured:
        notes.append(
            "products of some terms have three or more columns that were not measured together"
        )
    return tuple(notes)
