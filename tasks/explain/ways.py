"""Compares the widths of intervals of a plan's models: by the plan's own method and by others.

For each other method, the planner writes a plan for the same models, with the budget that this plan
spends on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from statistics import median_high
from typing import NamedTuple

from dpcore.accounting.budget import total
from dpcore.errors import InputError
from dpcore.releases.models.model import models_of
from schemas.first_plan.opened import PlannedUse, SmallerDraft, described
from schemas.first_plan.wishes import Said, Wish
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT, WORD
from schemas.survey.columns import CategoricalColumn
from tasks.explain.analysis import expected_fit, model_error, of_groups
from tasks.explain.tables import text_table
from tasks.inference.fit import DIRECTLY, MOMENTS, TABLES, WAYS

CLEARLY = 1.5
"""Intervals of another method are clearly narrower if they are narrower by this factor."""

HEADING = (
    "Expected widths of 95% intervals of models, relative to intervals without noise, for independent"
    " columns that are typical of their bounds; rare categories have wider ones. * marks the method of"
    " this plan; other methods are computed for the same budget"
)


class Widths(NamedTuple):
    """For one model: the plan's method, and for each method the widest interval of a term except the
    intercept, or the median of the means of groups. It is infinite if most have no interval, and absent
    if the method cannot answer. ``refused``: why the formula cannot be measured directly."""

    formula: str
    family: str
    taken: str
    widths: dict[str, float]
    refused: list[str]


def model_widths(plan: Plan) -> list[Widths]:
    """The widths for each model that the plan measures or fits to its tables and moments."""
    found, answering = [], set[str]()
    for formula, family in _questions(plan):
        try:
            name, way, width = _width(plan, formula, family)
        except InputError:  # the plan is refused when its models are checked
            continue
        answering.add(name)
        found.append(Widths(formula, family, way, {way: width}, []))
    for way, other in _others(plan, found, answering):
        for each in found:
            if way != each.taken:
                try:
                    each.widths[way] = _width(other, each.formula, each.family)[2]
                except InputError:
                    continue
    return found


def _questions(plan: Plan) -> Iterator[tuple[str, str]]:
    for release in models_of(plan.of_period).values():
        yield release.formula, release.family
    for analysis in plan.analyses:
        yield analysis.formula, analysis.family


def _width(plan: Plan, formula: str, family: str) -> tuple[str, str, float]:
    """The release that answers a model, by which method, and the width of its widest interval."""
    name, found = expected_fit(plan, formula, family)
    terms = [c for c in found.coefficients if c.name != CONSTANT] or [*found.coefficients]
    widths = [c.standard_error / c.sampling_error if c.sampling_error else math.inf for c in terms]
    known = [each if math.isfinite(each) else math.inf for each in widths]
    seen = [each for each in known if math.isfinite(each)]
    if 2 * len(seen) < len(known) or (of_groups(found) and 2 * len(seen) > len(known)):
        return name, found.way, median_high(known)
    return name, found.way, max(seen)


def _others(plan: Plan, found: list[Widths], answering: set[str]) -> Iterator[tuple[str, Plan]]:
    """Yield a plan for each method that answers the models."""
    if not found or plan.series or plan.linked or plan.open_columns:
        return
    of = described(plan, [*plan.columns])
    asked = total(plan.prices[name] for name in answering)
    try:
        wishes = Said(models=[f"{each.family}: {each.formula}" for each in found]).read(of)
    except InputError:  # a formula that the planner does not write
        return
    # With weights or a design only a measured model can answer, so there is nothing to compare.
    if any(PlannedUse(of, wishes, plan).measured(wish) for wish in wishes):
        return
    words = plan.publication.title, plan.publication.requester
    linear = [wish for wish in wishes if wish.family == "gaussian"]
    for way, served in ((DIRECTLY, wishes), (MOMENTS, linear), (TABLES, wishes)):
        if not served or all(each.taken == way for each in found):
            continue
        use = PlannedUse(of, served, plan)
        draft = SmallerDraft(
            plan.dataset, "", of, use, plan=plan, asked=asked, words=words, model_error=model_error
        )
        try:
            made = _in(way, draft, served).trial
        except InputError as error:  # the budget has no beta for the noise, for example
            for each in found if way == DIRECTLY else []:
                before, _, reason = str(error).partition(f"{each.formula}: ")
                each.refused.extend([reason.partition("\n")[0]] if before != str(error) else [])
            continue
        assert made is not None
        yield way, made


def _in(way: str, draft: SmallerDraft, wishes: list[Wish]) -> SmallerDraft:
    if way == DIRECTLY:
        return draft.having(*map(draft.use.model, wishes))
    return draft.having((draft.use.moments if way == MOMENTS else draft.use.for_models)(wishes))


def widths_text(plan: Plan) -> list[str]:
    """The widths as a table in text; empty without models."""
    found = model_widths(plan)
    rows = [
        {
            "model": f"{each.formula} ({each.family})",
            **{way: _number(each.widths.get(way)) + " *" * (way == each.taken) for way in WAYS},
        }
        for each in found
    ]
    notes = [
        f"Note: in {each.formula} the codes of {name} are used as numbers. Write C({name}) for a"
        " coefficient of each category."
        for each in found
        for name in _codes(plan, each.formula)
    ]
    notes += [
        f"Note: {each.formula} cannot be measured directly: {reason}"
        for each in found
        for reason in each.refused
    ]
    return ["", HEADING, text_table(rows), *notes, *_better(found)] if rows else []


def _better(found: list[Widths]) -> Iterator[str]:
    """Yield a line for each model that another method would answer with much narrower intervals."""
    for each in found:
        way = min(each.widths, key=lambda way: each.widths[way])
        if each.widths[way] * CLEARLY < each.widths[each.taken]:
            yield (
                f"Note: at this budget, {each.formula} has narrower intervals"
                f" {'if it is measured directly' if way == DIRECTLY else f'from {way}'}"
            )


def _codes(plan: Plan, formula: str) -> list[str]:
    """Columns with numbers as categories that are terms of a formula without C()."""
    terms = re.sub(r"\{[^}]*\}|C\([^)]*\)", "", formula.partition("~")[2])
    named = dict.fromkeys(WORD.findall(terms))
    columns = {name: plan.columns[name] for name in named if name in plan.columns}
    return [
        name
        for name, column in columns.items()
        if isinstance(column, CategoricalColumn)
        and all(isinstance(c, int | float) and not isinstance(c, bool) for c in column.categories)
    ]


def _number(width: float | None) -> str:
    if width is None:
        return "not possible"
    return f"{width:.3g}" if math.isfinite(width) else "no interval"
