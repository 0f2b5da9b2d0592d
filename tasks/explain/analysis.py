"""Computes whether a plan supports a model, and its expected errors, before any draw."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from statistics import median_high
from typing import Any

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.errors import InputError, PlanError, UnmeasuredError
from dpcore.estimates.evidence import SimulatedEvidence
from dpcore.estimates.model import INSIDE, Coefficient
from dpcore.post.tables.joined import joined
from dpcore.synthesis.column import ColumnDensity
from dpcore.synthesis.decode import decode_records
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT
from schemas.survey.supposed import supposed_shares as typical_of
from tasks.inference.fit import DIRECTLY, Fit, answering, fit, unanswered
from tasks.inference.measured import expect_measured

FEWEST, MOST = 5_000, 50_000
"""Made-up records."""

ASSUMED = 2.0
"""A fit to tables makes assumptions on values inside bins, with an unknown error. So a model gets its
own release unless tables are more accurate by this factor."""

RELATED = 1.4
"""Relations between columns enlarge a model's privacy errors by about this factor: the median over
models of public tables (``benchmarks.first_hour``)."""


def expected_fit(plan: Plan, formula: str, family: str) -> tuple[str, Fit]:
    """The release that would answer, and the model fitted to made-up records.

    These have independent columns with distributions that are typical for their bounds.  Raises
    ``InputError``, which names the missing measurements, if the plan does not support the model.
    """
    answers = answering(plan, formula)
    found = expect_measured(plan, partial(supposed_shares, plan), formula, family)
    if found:
        name, made = found
        return name, made if made.way == DIRECTLY else _related(made)
    if not answers:
        raise InputError(unanswered(plan))
    measured = [each.as_supposed(supposed_shares(plan, each.domain)) for each in answers]
    domain = measured[0].release.domain
    tables = [(each.release.of_nothing, each.release.domain.axes) for each in measured]
    known_tables = [(of, axes) for of, axes in tables if of is not None]
    agreement = joined(known_tables, domain.axes)
    codes, columns = _made_up(plan, answers[0].domain, min(max(answers[0].rows, FEWEST), MOST))
    # Of a compressed column only groups are known, so the made-up records have groups too.
    for place, group in measured[0].groups.items():
        codes[:, place] = group[codes[:, place]]
    rows, most = float(answers[0].rows), plan.most_together
    evidence = SimulatedEvidence(domain, agreement, rows, codes, columns, most, plan.assumed)
    return answers[0].name, _related(fit(evidence, formula, family))


def _related(found: Fit) -> Fit:
    """The fit with its privacy errors enlarged, because columns are not independent."""
    larger = (replace(c, privacy_error=RELATED * c.privacy_error) for c in found.coefficients)
    return replace(found, coefficients=tuple(larger))


def supposed_shares(plan: Plan, domain: Domain) -> dict[str, Floats]:
    """For each column, the typical share of each cell (cells,)."""
    return typical_of(plan.columns, domain.axes)


def _made_up(plan: Plan, domain: Domain, size: int) -> tuple[Integers, dict[str, Any]]:
    """Codes (size, axes) and columns of records with independent columns."""
    # Always the same records, so that a plan is always explained in the same way.
    generator, shares = np.random.default_rng(0), supposed_shares(plan, domain)
    codes = [generator.choice(axis.size, size, p=shares[axis.name]) for axis in domain.axes]
    columns: dict[str, Any] = {}
    for axis, own in zip(domain.axes, codes, strict=True):
        even = {axis.name: ColumnDensity.uniform(axis)} if isinstance(axis, Bins) else {}
        # Each column alone: drawing related ranks would take time, and these columns are independent.
        columns |= decode_records(Domain((axis,)), own[:, None], even, generator)
    return np.stack(codes, axis=1), columns


def model_error(plan: Plan, formula: str, family: str) -> float:
    """The ``typical_ratio`` of a model, for a planner that chooses between methods: if positions inside
    bins are assumed, it is multiplied by ``ASSUMED``.

    Raises ``InputError`` if the plan does not support the model.
    """
    _, found = expected_fit(plan, formula, family)
    worse = ASSUMED if any(INSIDE in note for note in found.notes) else 1.0
    return worse * typical_ratio(found)


def largest_ratio(found: Fit) -> float:
    """The largest ratio of privacy to sampling error over all terms except the intercept, or infinity if
    noise hides a term."""
    # A model of a mean has only an intercept.
    terms = [c for c in found.coefficients if c.name != CONSTANT] or found.coefficients
    return max(map(_ratio, terms))


def typical_ratio(found: Fit) -> float:
    """The ``largest_ratio``, or of means of groups the median."""
    return (
        median_high(map(_ratio, found.coefficients)) if of_groups(found) else largest_ratio(found)
    )


def of_groups(found: Fit) -> bool:
    """Whether the coefficients are means or shares of groups."""
    return len(found.coefficients) > 1 and all(c.name != CONSTANT for c in found.coefficients)


def check_analyses(plan: Plan) -> list[tuple[str, Fit]]:
    """The expected fits of the plan's models; raises ``PlanError`` if one is not supported."""
    found = []
    for i, analysis in enumerate(plan.analyses):
        try:
            found.append(expected_fit(plan, analysis.formula, analysis.family))
        except InputError as error:
            raise PlanError(f"analyses[{i}].formula: {error}") from None
    return found


def analyses_text(plan: Plan) -> list[str]:
    """Lines on the expected errors of the plan's models; empty without models."""
    fits = zip(plan.analyses, check_analyses(plan), strict=True)
    texts = [_text(plan, each.formula, each.family, *fit) for each, fit in fits]
    titles = [f"{each.title} (analysis {each.name})" for each in plan.analyses]
    return [line for pair in zip(titles, texts, strict=True) for line in ("", *pair)]


def analysis_dict(plan: Plan, formula: str, family: str) -> dict[str, Any]:
    """The expected fit of a model as JSON values, or why it is not supported and what to add."""
    asked = {"formula": formula, "family": family}
    try:
        name, found = expected_fit(plan, formula, family)
    except InputError as error:
        also = error.also if isinstance(error, UnmeasuredError) else ()
        return asked | {"supported": False, "reason": str(error), "also": [list(s) for s in also]}
    keys = ("term", "standard_error", "sampling_error", "privacy_error")
    rows = [{key: _finite(c.row[key]) for key in keys} for c in found.coefficients]
    return asked | {"supported": True, "release": name, "expected": rows, "notes": [*found.notes]}


def _finite(value: Any) -> Any:
    return None if value == np.inf else value


def analysis_text(plan: Plan, formula: str, family: str) -> str:
    """The expected standard errors of a model's coefficients."""
    return _text(plan, formula, family, *expected_fit(plan, formula, family))


def _ratio(found: Coefficient) -> float:
    """The ratio of the privacy error to the sampling error."""
    if not math.isfinite(found.sampling_error):
        return math.inf
    return found.privacy_error / max(found.sampling_error, 1e-300)


def _text(plan: Plan, formula: str, family: str, name: str, found: Fit) -> str:
    width = max(len(c.name) for c in found.coefficients)
    lines = [
        f"{formula}   ({family}), from {name}: supported",
        f"{'expected standard error':{width + 2}} {'sampling':>10} {'privacy':>10} {'together':>10}"
        f" {'privacy/sampling':>17}",
    ]
    width = max(width, len("expected standard error"))
    lines += [
        f"{c.name:{width + 2}} {c.sampling_error:10.3g} {c.privacy_error:10.3g}"
        f" {c.standard_error:10.3g} {_ratio(c):17.2g}"
        for c in found.coefficients
    ]
    within = "two" if found.way == DIRECTLY else "three"
    lines.append(
        "These errors are for independent columns with distributions that are typical for their"
        f" bounds. The last column is usually right within a factor of {within}; a term above 10 may"
        " turn out to have no interval. The other columns depend on the variances of your columns. Rare"
        " categories and correlated terms have larger errors."
    )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)
