"""Grades the accuracy of a plan's releases and models as good, rough or not usable.

It uses only public values. It compares the noise with the typical sizes of published numbers
(``dpcore.advice.usable``), and for a model with the sampling errors of its coefficients.  For synthetic
records it predicts the grades that their bundle will give to the tables that they follow
(``schemas.bundle.grades``): accurate is good, noise is not usable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import median

from dpcore.accounting.budget import decimal_text
from dpcore.advice.usable import (
    GOOD,
    VERDICTS,
    error_scales,
    graded_distances,
    hidden_terms,
    read_axes,
    relative_error,
    verdict,
)
from dpcore.advice.words import in_words
from dpcore.errors import InputError
from dpcore.releases.abilities import of_period
from dpcore.releases.base import Release
from dpcore.releases.tables.margins import MarginTables
from schemas.bundle.grades import ACCURATE, GRADES, NOISE, ROUGH, grade
from schemas.plan import Plan
from schemas.plan.analysis import Analysis
from schemas.survey.supposed import supposed_shares
from tasks.explain.analysis import expected_fit, of_groups, typical_ratio
from tasks.explain.target import LADDER, asked, least_loss, requesting

MOST_LINES = 5

MUCH = 3
"""The largest alpha or rho to suggest. Beyond it, other changes help more than budget."""

MOST_TIMES = 16
"""Factors of the budget to try for a model that noise hides."""

NOT_USABLE, ROUGH_WORD, GOOD_WORD = VERDICTS
FEWER_TERMS = "fewer terms"


@dataclass(frozen=True)
class Verdict:
    """``says``: good, rough or not usable; ``words``: the error; ``finer``: how to reduce the error;
    ``enough``: the least alpha or rho with which the grade is ``aim``, or None if no amount is enough;
    ``aim``: good, or rough if no amount makes it good; ``split``: the shares of each grade, if tables
    differ."""

    name: str
    says: str
    words: str
    finer: str
    enough: Fraction | None = None
    aim: str = GOOD_WORD
    split: str = ""


def verdicts(plan: Plan) -> Iterator[Verdict]:
    """A verdict for each release and model whose noise is known."""
    for name, built in plan.of_period.items():
        # Cells inside bins serve to draw records and are not read one by one.
        inside = name in plan.inside_bins and isinstance(built, MarginTables)
        if not inside and name not in plan.finding:
            yield from _of_release(plan, name, built)
    for each in plan.analyses:
        with suppress(InputError):
            yield _of_analysis(plan, each)


def _of_release(plan: Plan, name: str, built: Release) -> Iterator[Verdict]:
    shares = supposed_shares(plan.columns, read_axes(built))
    if distances := graded_distances(built, shares):
        says, split = _verdict_on_tables(distances), _split(distances)
        words, known = _of_tables(distances, split), _enough(plan, name, says)
        yield Verdict(name, says, words, built.finer, *known, split)
        return
    error = relative_error(built, shares)
    if error is None:
        return
    says, hidden = verdict(error), hidden_terms(built, shares)
    # Then the error at other budgets follows from this one, without a search.
    scales = error_scales(built) and not hidden
    if says != GOOD_WORD and scales and math.isfinite(error):
        known = _at_least(_scaled(plan, error / GOOD)), GOOD_WORD
    else:
        known = _enough(plan, name, says)
    yield Verdict(name, says, in_words(built, error, hidden), built.finer, *known)


def _enough(plan: Plan, name: str, says: str) -> tuple[Fraction | None, str]:
    """The least amount with which a release that is not good would be good, or else rough, and which."""
    if says == GOOD_WORD:
        return None, GOOD_WORD
    enough = least_loss(plan, name, partial(_reaches, plan, GOOD_WORD))
    if enough is not None or says != NOT_USABLE:
        return enough, GOOD_WORD
    return least_loss(plan, name, partial(_reaches, plan, ROUGH_WORD)), ROUGH_WORD


def _of_analysis(plan: Plan, model: Analysis) -> Verdict:
    found = expected_fit(plan, model.formula, model.family)[1]
    ratio = typical_ratio(found)
    words = (
        f"privacy errors {'usually' if of_groups(found) else 'up to'} {ratio:.2g} times the sampling"
        " errors, if columns are independent"
        if math.isfinite(ratio)
        else "noise hides the correlations of its terms"
    )
    says = verdict(GOOD * ratio)
    known = None if says == GOOD_WORD else _at_least(_wanted(plan, model, ratio))
    return Verdict(model.name, says, words, FEWER_TERMS, known)


def _expected_ratio(plan: Plan, model: Analysis) -> float:
    return typical_ratio(expected_fit(plan, model.formula, model.family)[1])


def _wanted(plan: Plan, model: Analysis, ratio: float) -> float:
    """The alpha or rho with which a model would be good. Its error falls with alpha or the root of rho.
    For a model hidden by noise, larger budgets are tried first."""
    now, times = asked(plan), 1
    while not math.isfinite(ratio) and times < MOST_TIMES:
        times *= 4
        try:
            larger = plan.changed(budget=plan.budget.asking(requesting(plan, now.loss * times)))
            ratio = _expected_ratio(larger, model)
        except ValueError:
            return math.inf
    return _scaled(plan, ratio) * times


def _scaled(plan: Plan, ratio: float) -> float:
    """The alpha or rho with which a model's error is smaller by this factor. Errors fall with alpha or
    the root of rho."""
    now = asked(plan)
    return float(now.loss) * (ratio**2 if now.rho else ratio)


def _at_least(loss: float) -> Fraction | None:
    return next((each for each in LADDER if each >= loss), None)


def _reaches(plan: Plan, aim: str, release: Release) -> bool:
    built = of_period(release)
    shares = supposed_shares(plan.columns, read_axes(built))
    if distances := graded_distances(built, shares):
        says = _verdict_on_tables(distances)
    else:
        error = relative_error(built, shares)
        says = NOT_USABLE if error is None else verdict(error)
    return VERDICTS.index(says) >= VERDICTS.index(aim)


def _verdict_on_tables(distances: Sequence[tuple[float, float]]) -> str:
    """The verdict for the median grade of the tables; of two, the worse one."""
    grades = sorted(GRADES.index(grade(True, *each)) for each in distances)
    middle = GRADES[grades[(len(grades) - 1) // 2]]
    return {ACCURATE: GOOD_WORD, ROUGH: ROUGH_WORD, NOISE: NOT_USABLE}[middle]


def _split(distances: Sequence[tuple[float, float]]) -> str:
    """The share of tables with each grade; empty if all have the same grade."""
    grades = [grade(True, *each) for each in distances]
    parts = [f"{grades.count(g) / len(grades):.0%} {g}" for g in reversed(GRADES) if g in grades]
    return ", ".join(parts) if len(parts) > 1 else ""


def _of_tables(distances: Sequence[tuple[float, float]], split: str) -> str:
    """The error of tables in words, and the share of tables with each grade."""
    percent = f"{float(f'{100 * min(median(moved for moved, _ in distances), 1.0):.2g}'):g}%"
    differ = f"; expected grades of its tables in the bundle: {split}" * bool(split)
    return f"noise and fit put up to {percent} of the records of a table into wrong cells{differ}"


def verdict_text(plan: Plan) -> list[str]:
    """A line for each release and model, or, if there are many, for each verdict."""
    found = [*verdicts(plan)]
    coordinate = asked(plan).coordinates[0]
    if len(found) <= MOST_LINES:
        return [_line(each, coordinate) for each in found]
    groups = {says: [v for v in found if v.says == says] for says in reversed(VERDICTS)}
    return [
        f"{says}: {', '.join(_brief(each, coordinate) for each in group)}."
        for says, group in groups.items()
        if group
    ]


def _line(found: Verdict, coordinate: str) -> str:
    words = f"{found.words[0].upper()}{found.words[1:]}"
    return f"{found.name}: {found.says}. {words}{_more(found, coordinate)}."


def _more(found: Verdict, coordinate: str) -> str:
    """Words on changes that would make the release good."""
    if found.says == GOOD_WORD:
        return ""
    if found.enough is None or found.aim == ROUGH_WORD:
        first = f"; {_from(found, coordinate)}," * bool(found.enough) or ";"
        none = f"not good at any {coordinate} up to {LADDER[-1]}"
        return f"{first} {none}: try {found.finer}, or more records"
    otherwise = f", or try {found.finer}" if found.enough > MUCH else ""
    return f"; {_from(found, coordinate)}{otherwise}"


def _from(found: Verdict, coordinate: str) -> str:
    return f"{found.aim} from {coordinate} {decimal_text(found.enough or Fraction(0))} on"


def _brief(found: Verdict, coordinate: str) -> str:
    more = [f"tables {found.split}"] if found.split else []
    if found.enough is not None:
        more.append(_from(found, coordinate))
    return f"{found.name} ({'; '.join(more)})" if more else found.name
