"""Whether a plan supports a model, and with what error: before anything is drawn, from public sizes."""

from __future__ import annotations

import numpy as np

from dpcore.domain import Domain
from dpcore.errors import InputError, PlanError
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from schemas.plan import Plan
from tasks.inference.designs import middles
from tasks.inference.evidence import Supposed, answering
from tasks.inference.fit import Fit, fit

FEWEST, MOST = 5_000, 50_000
"""Made-up records."""


def expected_fit(plan: Plan, formula: str, family: str) -> tuple[str, Fit]:
    """The release that would answer, and the model fitted to records that were made up.

    Their columns are independent, with equally frequent cells.  Raises ``InputError`` where the plan
    does not support the model, naming what it would have to measure.
    """
    answers = answering(plan)
    if not answers:
        raise InputError(
            "the plan has no counts of records that models could be fitted to; add a release of kind"
            " microdata-margins or margins over the columns"
        )
    domain = answers[0].domain
    measured = [(release.of_nothing, release.domain.axes) for release in answers]
    agreement = joined([(of, axes) for of, axes in measured if of is not None], domain.axes)
    return answers[0].name, fit(_supposed(domain, agreement, plan.rows), formula, family)


def _supposed(domain: Domain, agreement: Agreement, rows: int) -> Supposed:
    generator, size = np.random.default_rng(0), min(max(rows, FEWEST), MOST)
    codes = np.stack([generator.integers(0, axis.size, size) for axis in domain.axes], axis=1)
    columns = {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}
    return Supposed(domain, agreement, float(rows), codes, columns)


def check_analyses(plan: Plan) -> None:
    """Raise ``PlanError`` where the plan asks for a model that it does not support."""
    for i, analysis in enumerate(plan.analyses):
        try:
            expected_fit(plan, analysis.formula, analysis.family)
        except InputError as error:
            raise PlanError(f"analyses[{i}].formula: {error}") from None


def analyses_text(plan: Plan) -> list[str]:
    """What the plan's models will be like; no line without them."""
    check_analyses(plan)
    texts = [analysis_text(plan, each.formula, each.family) for each in plan.analyses]
    titles = [f"{each.title} (analysis {each.name})" for each in plan.analyses]
    return [line for pair in zip(titles, texts, strict=True) for line in ("", *pair)]


def analysis_text(plan: Plan, formula: str, family: str) -> str:
    """The expected standard errors of a model's coefficients."""
    name, found = expected_fit(plan, formula, family)
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
        "For independent columns with equally frequent cells; where cells are uneven, or columns"
        " strongly related, errors are larger."
    )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)
