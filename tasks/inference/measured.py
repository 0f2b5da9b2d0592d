"""Models that a release measures: for the same formula, or by moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dpcore.advice.models import expected_model
from dpcore.arrays import Floats
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.line.statistic import Noisy
from dpcore.model_formula import ModelFormula
from dpcore.post.points import Points
from dpcore.releases.abilities import StatesMeans
from dpcore.releases.models.model import HIDDEN, MeasuredModel, ModelFit, models_of
from dpcore.releases.models.terms import ModelTerms
from dpcore.releases.numbers.moments import Moments
from schemas.first_plan.wishes import MODELS, event_category, named_family
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT, terms_of
from schemas.releases.model import ModelSection
from schemas.survey.columns import CategoricalColumn
from tasks.inference.fit import DIRECTLY, Fit, answering, fit_of, unanswered
from tasks.inference.linear import fit_moments

Draws = Callable[[str], Noisy]
"""The draw of a release, by its name."""

Shares = Callable[[Domain], Mapping[str, Floats]]
"""By column, the assumed share of each cell (cells,)."""


class _SameModel(NamedTuple):
    """A formula of a measured model, the names (p,) of its terms, and the matrix (p, p) and constants
    (p,) that turn the measured coefficients into the coefficients of this formula."""

    formula: str
    names: Sequence[str]
    change: Floats
    added: Floats | float = 0.0


def meant(plan: Plan, formula: str, family: str | None) -> tuple[str, str]:
    """The formula and the family that a reader means.

    A family may come before the formula, as in ``dprelease init --model``. By default it is the family
    of a measured model with the same response and terms; otherwise logistic if the response has two
    categories, else linear. Of two categories, the event is the one that ``init`` chooses.
    """
    said, formula = named_family(formula)
    family = MODELS.get(family or said, family or said)
    if family in ("", "binomial"):
        event = _about_event(plan, formula)
        formula, family = event or formula, "binomial" if event else family
    for release in models_of(plan.of_period).values():
        if family not in (None, "", release.family):
            continue
        if same := _in_words_of(release, formula):
            return same.formula, release.family
    return formula, family or "gaussian"


def _about_event(plan: Plan, formula: str) -> str:
    """The formula with the event for a response of two categories; empty for any other response."""
    answer, _, terms = formula.partition("~")
    name = answer.strip().strip("`")
    column = plan.columns.get(name)
    if not isinstance(column, CategoricalColumn) or len(column.categories) != 2:
        return ""
    if any(isinstance(each, bool) for each in column.categories):
        return formula  # true is the event
    event = event_category(name, column.categories, column.labels)
    return f"{{{answer.strip()} == {event!r}}} ~ {terms.strip()}"


def fit_measured(plan: Plan, draws: Draws, formula: str, family: str) -> tuple[str, Fit] | None:
    """The release that answers, and its fit; None if tables of counts may answer.

    Raises ``InputError`` if nothing in the plan can answer, or the model has no solution.
    """
    return _answer(
        plan,
        formula,
        family,
        fitted=lambda release: release.fitted(draws(release.name)),
        points_of=lambda release: release.points(draws(release.name)),
    )


def expect_measured(
    plan: Plan, shares: Shares, formula: str, family: str
) -> tuple[str, Fit] | None:
    """``fit_measured`` before the draws: the fit expected for columns with these ``shares``."""

    def fitted(release: MeasuredModel) -> ModelFit:
        assert release.terms is not None
        return expected_model(release, shares(Domain(release.terms.axes)))

    def points_of(release: Moments) -> Points:
        return release.supposed(shares(release.domain))

    return _answer(plan, formula, family, fitted, points_of)


def _answer(
    plan: Plan,
    formula: str,
    family: str,
    fitted: Callable[[MeasuredModel], ModelFit],
    points_of: Callable[[Moments], Points],
) -> tuple[str, Fit] | None:
    models = models_of(plan.of_period)
    for name, release in models.items():
        if family == release.family and (same := _in_words_of(release, formula)):
            answer = fitted(release).changed(same.change)
            answer = answer._replace(values=answer.values + same.added)
            assumed = *release.design.assumed, *plan.cut_off
            return name, _fit_of(same, family, answer).assuming(assumed)
    found = fit_moments(plan, points_of, formula, family)
    if found is None and models and not answering(plan):
        measured = (f"{each.formula} ({each.family})" for each in models.values())
        raise InputError(
            f"{formula}: this model was not measured; only these models were: {'; '.join(measured)}. It"
            f" cannot be fitted to tables: {unanswered(plan)}"
        )
    return found


def wider(plan: Plan, name: str, found: Fit) -> list[str]:
    """At most one line: how wide the intervals of a model fitted to the release ``name`` are, and how
    wide they would be if the release's budget had measured the model."""
    terms = [c for c in found.coefficients if c.name != CONSTANT and c.sampling_error > 0]
    ratios = [c.standard_error / c.sampling_error for c in terms]
    here = [ratio for ratio in ratios if math.isfinite(ratio)]
    keys = {"name": "asked", "kind": "model", "formula": found.formula, "family": found.family}
    try:
        section = ModelSection.model_validate(keys)
        answers = plan.of_period[name]
        asked = section.release(replace(plan.facts, rows=answers.rows), answers.share)
        direct = asked.expected_error()[0].value  # relative to the width without noise
    except ValueError:  # a formula that is not valid in a plan, or a budget without beta
        return []
    if not here:
        return []
    now, would = f"{max(here):.2g}", f"{direct:.2g}"
    return [
        f"this model was not measured directly: with noise its intervals are up to {now} times as wide"
        " as with its estimated sampling errors alone. If the model fits closely and noise hides this,"
        " the sampling errors are too large (up to four times in tests on public tables). A release of"
        f" kind model with the budget of {name} would "
        + (
            f"have made the intervals about {would} times as wide as without noise"
            if float(would) < float(now)
            else "not have made the intervals narrower"
        )
    ]


def measured_means(plan: Plan, formula: str) -> list[str]:
    """Notes on releases that measure means of the response by some of the terms, more precisely."""
    try:
        read = ModelFormula.read(formula)
    except ValueError:  # a formula that is not valid in a plan
        return []
    response, terms = read.response.strip("`"), read.names[1:]
    return [
        f"table({release.name!r}) has the mean of {response}{' by ' * bool(by) + ', '.join(by)},"
        " measured directly; its intervals are for privacy noise only"
        for release in plan.built.values()
        if isinstance(release, StatesMeans)
        for *by, column in [release.domain.names]
        if column == response and all(name in terms for name in by)
    ]


def _fit_of(same: _SameModel, family: str, found: ModelFit) -> Fit:
    errors = [np.sqrt(np.diag(each)) for each in (found.sampling, found.privacy)]
    sampling, privacy = (np.where(found.hidden, np.inf, each) for each in errors)
    return fit_of(
        same.formula, family, same.names, (found.values, sampling, privacy), HIDDEN, DIRECTLY
    )


def _in_words_of(release: MeasuredModel, formula: str) -> _SameModel | None:
    """The measured model with the terms of a formula; None if the formula is another model.

    If only the order of terms differs, the release's own formula is kept.
    """
    assert release.terms is not None
    try:
        terms = terms_of(formula, release.family, release.terms.axes)
    except ValueError:  # has other columns, or cannot be computed in these cells
        return None
    change = release.terms.change_to(terms)
    if change is None:
        return _opposite(release, formula, terms)
    if {*terms.names} == {*release.terms.names}:
        return _SameModel(release.formula, release.terms.names, np.eye(len(change)))
    return _SameModel(formula, terms.names, change)


def _opposite(release: MeasuredModel, formula: str, terms: ModelTerms) -> _SameModel | None:
    """The measured model of an event whose opposite is the response of the formula; None if the formula
    is another model."""
    assert release.terms is not None
    response = terms.response
    if release.family == "poisson" or not {*response.values.flat} <= {0.0, 1.0}:
        return None
    event = replace(terms, response=replace(response, values=1 - response.values))
    change = release.terms.change_to(event)
    if change is None:
        return None
    if release.family == "binomial":  # log-odds change their signs
        return _SameModel(formula, terms.names, -change)
    # In 1 - share, 1 is the constant, or the sum of the indicators of separate groups.
    if terms.constant is not None:
        return _SameModel(formula, terms.names, -change, np.eye(terms.size)[terms.constant])
    return None if terms.separate is None else _SameModel(formula, terms.names, -change, 1.0)
