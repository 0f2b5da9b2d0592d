"""Grades the accuracy of a plan's releases and models as good, rough or not usable.

It uses public values alone, and compares the noise with the typical sizes of what readers look at
(``dpcore.advice.usable``), or for a model with the sampling errors of its coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dpcore.accounting.budget import decimal_text
from dpcore.advice.usable import GOOD, in_words, relative_error, verdict
from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.releases.base import Release
from dpcore.releases.models.model import MeasuredModel
from schemas.plan import Plan
from schemas.plan.analysis import Analysis
from schemas.survey.supposed import supposed_shares
from tasks.explain.analysis import model_error
from tasks.explain.target import LADDER, asked, least_loss, requesting

MOST_LINES = 5

MUCH = 3
"""The largest alpha or rho to suggest; beyond it there are better ways than more budget."""

MOST_TIMES = 16
"""Factors of the budget to try for a model that noise hides."""

GOOD_WORD = verdict(0.0)
FEWER_TERMS = "fewer terms"


@dataclass(frozen=True)
class Verdict:
    """``says``: good, rough or not usable; ``words``: the error; ``finer``: how to make it smaller;
    ``enough``: the least alpha or rho with which it is good, or None."""

    name: str
    says: str
    words: str
    finer: str
    enough: Fraction | None = None


def verdicts(plan: Plan) -> Iterator[Verdict]:
    """A verdict for each release and each model whose noise is known."""
    for name, built in plan.built.items():
        error = None if name in plan.finding else relative_error(built, _shares(plan, built))
        if error is not None:
            says, enough = verdict(error), None
            if says != GOOD_WORD and isinstance(built, MeasuredModel) and math.isfinite(error):
                enough = _at_least(_scaled(plan, error / GOOD))
            elif says != GOOD_WORD:
                enough = least_loss(plan, name, partial(_is_good, plan))
            yield Verdict(name, says, in_words(built, error), built.finer, enough)
    for each in plan.analyses:
        with suppress(InputError):
            ratio = model_error(plan, each.formula, each.family)
            words = (
                f"privacy errors up to {ratio:.2g} of the sampling errors, for independent columns"
                if math.isfinite(ratio)
                else "noise hides how its terms vary together"
            )
            says, wanted = verdict(GOOD * ratio), _wanted(plan, each, ratio)
            enough = _at_least(wanted)
            known = None if says == GOOD_WORD else enough
            yield Verdict(each.name, says, words, FEWER_TERMS, known)


def _wanted(plan: Plan, model: Analysis, ratio: float) -> float:
    """The alpha or rho with which a model would be good, as its error falls with alpha or the root of
    rho; a model hidden by noise is first given larger budgets."""
    now, times = asked(plan), 1
    while not math.isfinite(ratio) and times < MOST_TIMES:
        times *= 4
        try:
            larger = plan.changed(budget=plan.budget.asking(requesting(plan, now.loss * times)))
            ratio = model_error(larger, model.formula, model.family)
        except ValueError:
            return math.inf
    return _scaled(plan, ratio) * times


def _scaled(plan: Plan, ratio: float) -> float:
    """The alpha or rho with which a model's error is smaller by this factor, falling with alpha or the
    root of rho."""
    now = asked(plan)
    return float(now.loss) * (ratio**2 if now.rho else ratio)


def _at_least(loss: float) -> Fraction | None:
    return next((each for each in LADDER if each >= loss), None)


def _is_good(plan: Plan, built: Release) -> bool:
    error = relative_error(built, _shares(plan, built))
    return error is not None and error <= GOOD


def _shares(plan: Plan, built: Release) -> Mapping[str, Floats]:
    return supposed_shares(plan.columns, built.domain.axes)


def verdict_text(plan: Plan) -> list[str]:
    """A line for each release and model, or, if there are many, for each verdict."""
    found = [*verdicts(plan)]
    coordinate = asked(plan).coordinates[0]
    if len(found) <= MOST_LINES:
        return [_line(each, coordinate) for each in found]
    groups = {
        says: [v for v in found if v.says == says] for says in ("good", "rough", "not usable")
    }
    return [
        f"{says}: {', '.join(_brief(each, coordinate) for each in group)}."
        for says, group in groups.items()
        if group
    ]


def _line(found: Verdict, coordinate: str) -> str:
    words = f"{found.words[0].upper()}{found.words[1:]}"
    return f"{found.name}: {found.says}. {words}{_more(found, coordinate)}."


def _more(found: Verdict, coordinate: str) -> str:
    """Words on what would make it good."""
    if found.says == GOOD_WORD:
        return ""
    if found.enough is None:
        return f"; no {coordinate} up to {LADDER[-1]} makes it good: try {found.finer}, or more records"
    otherwise = f", or try {found.finer}" if found.enough > MUCH else ""
    return f"; good from {coordinate} {decimal_text(found.enough)} on{otherwise}"


def _brief(found: Verdict, coordinate: str) -> str:
    if found.enough is None:
        return found.name
    return f"{found.name} (good from {coordinate} {decimal_text(found.enough)} on)"
