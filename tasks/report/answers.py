"""The answers of the plan's models as sentences: those fitted to tables, and those measured directly.

One sentence for each model, about the term that is farthest from zero, or the groups that differ most.
Which it is follows from the noisy numbers, so the intervals are simultaneous over all coefficients.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpcore.estimates.selected import deviations
from dpcore.model_formula import ModelFormula
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.model import MeasuredModel
from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT
from tasks.charts.svg import supported
from tasks.report.cells import called
from tasks.report.parts import read_columns
from tasks.report.release import headed

GROUP = re.compile(r"(?:C\()?(?P<column>[^()\[\]]+)\)?\[(?:T\.)?(?P<value>.*)\]")
"""A term that is 1 for one group of records, as formulas name it."""


OPEN = "sampling and noise leave open whether"


class Term(NamedTuple):
    """A coefficient with its standard error, of sampling and noise together."""

    name: str
    estimate: float
    error: float


class Model(NamedTuple):
    """A model of the bundle; ``means``: of all records, or of groups, one for each term."""

    title: str
    formula: str
    family: str
    terms: Sequence[Term]
    means: bool


def answers(plan: Plan, manifest: Manifest, bundle: Path, chance: float) -> tuple[list[str], int]:
    """A sentence for each model, those that leave it open last, and of how many coefficients they were
    chosen; with at most ``chance`` one of their intervals misses."""
    models = [*_models(plan, manifest, bundle)]
    number = sum(len(model.terms) for model in models)
    wide = deviations(chance / max(number, 1), gaussian=True)
    of = {True: _of_means, False: _of_terms}
    said = [of[model.means](plan, model, wide) for model in models if model.terms]
    return sorted(said, key=lambda sentence: OPEN in sentence), number


def _models(plan: Plan, manifest: Manifest, bundle: Path) -> Iterator[Model]:
    """Those that the plan measures directly, and those that are fitted to noisy tables."""
    for record in () if plan.series else manifest.releases:
        release = plan.built[record.name]
        if isinstance(release, MeasuredModel):
            of = headed(plan.section(record.name)), release.formula, release.family
            yield _model(*of, read_columns(bundle, record.tables[0]))
    for each in manifest.analyses:
        yield _model(each.title, each.formula, each.family, read_columns(bundle, each.file))


def _model(title: str, formula: str, family: str, found: Mapping[str, NDArray[Any]]) -> Model:
    """With the terms that have an interval; a constant, or a group that is compared with no other,
    counts only among means."""
    errors = (found["upper_95"] - found["lower_95"]) / (2 * SIGMAS_95)
    names = list(map(str, found["term"]))
    means = family == "gaussian" and all(map(_level, names))
    terms = [
        Term(name, float(estimate), float(error))
        for name, estimate, error in zip(names, found["estimate"], errors, strict=True)
        if (means or not _level(name)) and math.isfinite(error) and error > 0
    ]
    return Model(title, formula, family, terms, means)


def _level(term: str) -> bool:
    """Whether a coefficient is the level of all records or of a group, not a difference or a slope."""
    return term == CONSTANT or all("[" in part and "[T." not in part for part in term.split(":"))


def _of_terms(plan: Plan, model: Model, wide: float) -> str:
    term = max(model.terms, key=lambda each: abs(each.estimate) / each.error)
    if abs(term.estimate) <= wide * term.error:
        return f"{model.title}: {OPEN} any of the terms matters."
    columns = plan.described_columns

    def named(name: str) -> str:
        return f"“{called(name, columns)}”" if name in columns else name

    per = f"for each unit of {named(term.name)}"
    if term.name.endswith("]"):
        per = f"where it is {_group(plan, term.name)}, not the reference"
    response = named(ModelFormula.read(model.formula).response.strip("{}"))
    changed, what = "changes by", f"the mean of {response}"
    if model.family != "gaussian":
        changed = "is multiplied by"
        what = f"the odds of {response}" if model.family == "binomial" else what
        changed = "are multiplied by" if model.family == "binomial" else changed
    others = ", among records that are alike in the model's other terms"
    said = _interval(term, wide, model.family != "gaussian")
    return f"{model.title}: {what} {changed} {said} {per}{others if len(model.terms) > 1 else ''}."


def _of_means(plan: Plan, model: Model, wide: float) -> str:
    """The mean of all, or those of the two groups that differ most."""
    if len(model.terms) == 1:
        return f"{model.title}: {_interval(model.terms[0], wide, False)}."

    def apart(pair: tuple[Term, Term]) -> float:
        more, less = pair
        return more.estimate - wide * more.error - less.estimate - wide * less.error

    more, less = max(permutations(model.terms, 2), key=apart)
    if apart((more, less)) <= 0:
        return f"{model.title}: {OPEN} groups differ."
    first, second = (
        f"{_interval(each, wide, False)} where it is {_group(plan, each.name)}"
        for each in (more, less)
    )
    return f"{model.title}: {first}, and {second}."


def _interval(term: Term, wide: float, multiplies: bool) -> str:
    """An estimate with the ends of its interval, in digits that its error supports."""
    ends, error = [term.estimate + sign * wide * term.error for sign in (0, -1, 1)], term.error
    if multiplies:
        ends = [math.exp(min(each, 700.0)) for each in ends]
        error *= ends[0]
    middle, low, high = supported(ends, error)
    return f"{middle} ({low} to {high})"


def _group(plan: Plan, term: str) -> str:
    """A group as people read it: “Region”: north; several columns joined by "and"."""
    columns, said = plan.described_columns, []
    for part in term.split(":"):
        found = GROUP.fullmatch(part)
        if found is None or found["column"] not in columns:
            return term
        column = columns[found["column"]]
        value = getattr(column, "labels", {}).get(found["value"], found["value"])
        said.append(f"“{called(found['column'], columns)}”: {value}")
    return " and ".join(said)
