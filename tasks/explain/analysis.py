"""Whether a plan supports a model, and with what error: before anything is drawn, from public sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.errors import InputError, PlanError, UnmeasuredError
from dpcore.estimates.design import cells_of
from dpcore.estimates.evidence import Evidence, SimulatedEvidence
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.releases.models.model import MeasuredModel
from dpcore.synthesis.column import ColumnDensity
from dpcore.synthesis.decode import decode_records
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT
from tasks.inference.fit import Fit, answering, fit
from tasks.inference.measured import fit_measured

UNEVEN = 5.0
"""Tables and moments have noise in proportion to the range of columns, and models measured for
themselves in proportion to the spread of records: in surveys moments and tables err at least this many
times as much as for independent columns with equally frequent cells (``benchmarks.inference``)."""

FEWEST, MOST = 5_000, 50_000
"""Made-up records."""


def expected_fit(
    plan: Plan, formula: str, family: str, like: Evidence | None = None
) -> tuple[str, Fit]:
    """The release that would answer, and the model fitted to records that are not the survey's.

    ``like``: of a published bundle, whose records and tables the survey is supposed to be like; else
    columns are independent, with equally frequent cells.  Raises ``InputError`` where the plan does not
    support the model, naming what it would have to measure.
    """
    answers = answering(plan, formula)
    found = None
    if like is None or not answers:
        found = fit_measured(plan, None, formula, family)
    if found and like is not None:
        raise InputError(
            f"--like: is for tables of counts; what {found[0]} will find is expected of independent"
            " columns alone: leave the option out"
        )
    if found:
        return found
    if not answers:
        raise InputError(
            "the plan has no counts of records that models could be fitted to; add a release of kind"
            " microdata-margins or margins over the columns"
        )
    measured = [release.as_measured(None).release for release in answers]
    domain = measured[0].domain
    if like is not None:
        lacking = [n for n in domain.names if n in formula and n not in like.columns]
        if lacking:
            raise InputError(f"--like: the bundle has no records with {', '.join(lacking)}")
    known = [(release.of_nothing, release.domain.axes) for release in measured]
    agreement = joined([(of, axes) for of, axes in known if of is not None], domain.axes)
    return answers[0].name, fit(_supposed(plan, domain, agreement, like), formula, family)


def _supposed(
    plan: Plan, domain: Domain, agreement: Agreement, like: Evidence | None
) -> SimulatedEvidence:
    generator, size = np.random.default_rng(0), min(max(plan.rows, FEWEST), MOST)
    known = {} if like is None else like.columns
    if like is not None:
        size = len(like.codes)
    codes = np.stack(
        [
            cells_of(axis, known[axis.name])
            if axis.name in known
            else generator.integers(0, axis.size, size)
            for axis in domain.axes
        ],
        axis=1,
    )
    even = {a.name: ColumnDensity.uniform(a) for a in domain.axes if isinstance(a, Bins)}
    made = decode_records(domain, codes, even, generator)
    columns, most = {**made, **known}, plan.adjacency.most
    return SimulatedEvidence(
        domain, agreement, float(plan.rows), codes, columns, most, plan.assumed
    )


def model_error(plan: Plan, formula: str, family: str) -> float:
    """The largest privacy error of a term, the constant apart, in its sampling errors.

    Raises ``InputError`` where the plan does not support the model.
    """
    name, found = expected_fit(plan, formula, family)
    rows = [each.row for each in found.coefficients]
    terms = [row for row in rows if row["term"] != CONSTANT] or rows
    worse = 1.0 if isinstance(plan.built[name], MeasuredModel) else UNEVEN
    return worse * max(float(row["privacy_error"]) / float(row["sampling_error"]) for row in terms)


def check_analyses(plan: Plan) -> list[tuple[str, Fit]]:
    """The expected fits; raises ``PlanError`` where the plan asks for a model it does not support."""
    found = []
    for i, analysis in enumerate(plan.analyses):
        try:
            found.append(expected_fit(plan, analysis.formula, analysis.family))
        except InputError as error:
            raise PlanError(f"analyses[{i}].formula: {error}") from None
    return found


def analyses_text(plan: Plan) -> list[str]:
    """What the plan's models will be like; no line without them."""
    fits = zip(plan.analyses, check_analyses(plan), strict=True)
    texts = [_text(each.formula, each.family, *fit) for each, fit in fits]
    titles = [f"{each.title} (analysis {each.name})" for each in plan.analyses]
    return [line for pair in zip(titles, texts, strict=True) for line in ("", *pair)]


def analysis_dict(
    plan: Plan, formula: str, family: str, like: Evidence | None = None
) -> dict[str, Any]:
    """What is expected of a model, as JSON values; of an unsupported one why, and what would do."""
    asked = {"formula": formula, "family": family}
    try:
        name, found = expected_fit(plan, formula, family, like)
    except InputError as error:
        also = error.also if isinstance(error, UnmeasuredError) else ()
        return asked | {"supported": False, "reason": str(error), "also": [list(s) for s in also]}
    keys = ("term", "standard_error", "sampling_error", "privacy_error")
    rows = [{key: _finite(c.row[key]) for key in keys} for c in found.coefficients]
    return asked | {"supported": True, "release": name, "expected": rows, "notes": [*found.notes]}


def _finite(value: Any) -> Any:
    return None if value == np.inf else value


def analysis_text(plan: Plan, formula: str, family: str, like: Evidence | None = None) -> str:
    """The expected standard errors of a model's coefficients."""
    return _text(formula, family, *expected_fit(plan, formula, family, like), like)


def _text(formula: str, family: str, name: str, found: Fit, like: Evidence | None = None) -> str:
    width = max(len(c.name) for c in found.coefficients)
    lines = [
        f"{formula}   ({family}), from {name}: supported",
        f"{'expected standard error':{width + 2}} {'sampling':>10} {'privacy':>10} {'together':>10}",
    ]
    width = max(width, len("expected standard error"))
    lines += [
        f"{c.name:{width + 2}} {c.sampling_error:10.3g} {c.privacy_error:10.3g}"
        f" {c.standard_error:10.3g}"
        for c in found.coefficients
    ]
    lines.append(
        "For independent columns with equally frequent cells; real errors may be many times larger or"
        " smaller. --like BUNDLE expects a survey like that of a published bundle."
        if like is None
        else "For a survey like that of the bundle."
    )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)
