"""Models from a bundle: estimates with their sampling and privacy errors.

found = bundle.fit("affairs ~ religious + yrs_married")
print(found)
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.families import FAMILIES
from dpcore.estimates.model import Coefficient, fit_model
from dpcore.releases.counts.unit import TableOfCounts, tables_of_counts
from dpcore.suggestion import suggestion
from schemas.plan import Plan
from tasks.inference.designs import design_of, settled_by_cells

DIRECTLY, MOMENTS, TABLES = WAYS = "measured directly", "moments", "tables"
"""What models are fitted to: sums that are measured for this model alone, for all linear models, or for
no model."""


@dataclass(frozen=True)
class Fit:
    """A fitted model; printing it shows a table.  ``notes``: for the reader; they include ``assumes``:
    the assumptions of sampling errors besides independent records.  ``way``: what it was fitted to.
    """

    formula: str
    family: str
    coefficients: tuple[Coefficient, ...]
    notes: tuple[str, ...]
    assumes: tuple[str, ...] = ()
    way: str = TABLES

    def assuming(self, assumes: tuple[str, ...]) -> Fit:
        return replace(self, notes=(*assumes, *self.notes), assumes=assumes)

    def __getitem__(self, name: str) -> Coefficient:
        for coefficient in self.coefficients:
            if coefficient.name == name:
                return coefficient
        known = [coefficient.name for coefficient in self.coefficients]
        raise InputError(f"{name}: is not a coefficient{suggestion(name, known, most=3, least=0)}")

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
        for c in self.coefficients:
            # Without an interval an estimate means nothing: it may be -2e12. `frame` contains it.
            middle, ends = c.shown if math.isfinite(c.standard_error) else ("-", "none")
            errors = f"{c.sampling_error:10.3g} {c.privacy_error:10.3g}"
            lines.append(f"{c.name:{width}}  {middle:>10} {errors}   {ends}")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    __repr__ = __str__


def fit_of(
    formula: str,
    family: str,
    names: Sequence[str],
    numbers: tuple[Floats, Floats, Floats],
    hidden: str,
    way: str = TABLES,
) -> Fit:
    """A fit of terms; ``numbers``: (k,) values, sampling errors and privacy errors.

    ``hidden``: the reason for errors that are not finite.
    """
    coefficients = tuple(
        Coefficient(name, float(value), float(sampling), float(privacy), 1.0)
        for name, value, sampling, privacy in zip(names, *numbers, strict=True)
    )
    unknown = [each.name for each in coefficients if not math.isfinite(each.standard_error)]
    notes = (f"no interval for {', '.join(unknown)}: {hidden}",) if unknown else ()
    return Fit(formula, family, coefficients, notes, way=way)


def fit(evidence: Evidence, formula: str, family: str = "gaussian") -> Fit:
    """Fit a linear, logistic (``binomial``) or Poisson model.

    Raises ``InputError`` if the formula cannot be read, if the columns of a term were not measured
    together with the response or with those of another term, or if the model has no solution.
    """
    if family not in FAMILIES:
        raise InputError(f"family: must be one of {', '.join(FAMILIES)}, not {family!r}")
    binary = family == "binomial"
    design = design_of(formula, evidence.domain, evidence.codes, evidence.columns, binary)
    found = Fit(formula, family, *fit_model(evidence, design, family))
    return found.assuming(evidence.assumes)


def answering(plan: Plan, formula: str = "") -> list[TableOfCounts]:
    """Releases of counts that can be combined; one with all columns of the model comes first.

    If several have all of them, the first is one without other columns, if its cells settle the model.
    Otherwise it is the one with the most columns, and among equals, one from which records are drawn.
    No release answers if the plan states clusters: tables do not show how similar records of a cluster
    are, so sampling errors would be too small.
    """
    if plan.cluster:
        return []
    drawn = {section.from_ for section in plan.synthesis}
    named = {name for name in plan.record_columns if re.search(rf"\b{re.escape(name)}\b", formula)}
    known = [
        release
        for release in tables_of_counts(plan.of_period).values()
        if not release.adjacency.weighted
        and release.as_measured(None).release.of_nothing is not None
    ]

    def order(each: TableOfCounts) -> tuple[bool, bool, int, bool]:
        lacking = bool(named - {*each.domain.names})
        alone = {*each.domain.names} == named and settled_by_cells(formula, each.domain)
        return lacking, not alone, -len(each.domain.axes), each.name not in drawn

    return sorted(known, key=order)


def unanswered(plan: Plan) -> str:
    """Why ``answering`` is empty, and what to do."""
    if plan.cluster:
        return (
            f"the plan states clusters ({plan.cluster}), and only a measured model includes how similar"
            " their records are; other sampling errors would be too small. Use kind: model; a share is"
            " the model {age > 40} ~ 1"
        )
    if any(section.counts_weights for section in plan.releases):
        return (
            "its tables count weights, without sampling errors; use kind: model, or tables that are"
            " not `weighted`"
        )
    return (
        "there are no counts of records to which models could be fitted; add a release of kind"
        " microdata-margins or margins over the columns"
    )
