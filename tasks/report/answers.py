"""The answers of the plan's models and means as sentences.

One sentence for each model, about the term that is farthest from zero, or the groups that differ most,
and one for each mean.  Which it is follows from the noisy numbers, so the intervals are simultaneous
over all coefficients, and over all means.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.estimates.selected import deviations
from dpcore.mechanisms import DiscreteLaplace
from dpcore.model_formula import ModelFormula
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from schemas.bundle.manifest import Manifest
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT
from schemas.survey.columns import CategoricalColumn
from tasks.charts.svg import supported
from tasks.report.cells import called, category_text, read_labels
from tasks.report.parts import Source, read_columns
from tasks.report.release import headed

NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
COMPARED = re.compile(r"[<>]|[=!]=")
GROUP = re.compile(r"(?:C\()?(?P<column>[^()\[\]]+)\)?\[(?:T\.)?(?P<value>.*)\]")
"""A term that is 1 for one group of records, as formulas name it."""

OPEN = "it open whether"
"""What every sentence has that tells nothing."""


class Term(NamedTuple):
    """A coefficient with its standard error, of sampling and noise together."""

    name: str
    estimate: float
    error: float


class Model(NamedTuple):
    """A model of the bundle; ``names``: of all terms; ``terms``: those of which an interval is known and
    that are compared with something; ``means``: of all records, or of groups, one for each term."""

    title: str
    formula: str
    family: str
    names: Sequence[str]
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
    return sorted(filter(None, said), key=lambda sentence: OPEN in sentence), number


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
    return Model(title, formula, family, names, terms, means)


def _level(term: str) -> bool:
    """Whether a coefficient is the level of all records or of a group, not a difference or a slope."""
    return term == CONSTANT or all("[" in part and "[T." not in part for part in term.split(":"))


def _of_terms(plan: Plan, model: Model, wide: float) -> str | None:
    """About the clearest of the terms that say by themselves what goes with their column; None where
    the columns of each are also in another term, as in interactions."""
    alone = [term for term in model.terms if _alone(plan, term.name, model)]
    if not alone:
        return None
    term = max(alone, key=lambda each: abs(each.estimate) / each.error)
    if abs(term.estimate) <= wide * term.error:
        return f"{model.title}: sampling and noise leave {OPEN} any of the terms matters."
    columns = plan.described_columns

    def named(name: str) -> str:
        return f"“{called(name, columns)}”" if name in columns else name

    per = f"for each unit of {named(term.name)}"
    if isinstance(columns.get(term.name), CategoricalColumn):
        per = f"for each step of the codes of {named(term.name)}, which count as numbers here"
    if GROUP.fullmatch(term.name):
        per = f"where it is {_group(plan, term.name)}, not {_reference(plan, model, term.name)}"
    elif COMPARED.search(term.name):
        per = f"where {term.name}"
    response = named(ModelFormula.read(model.formula).response.strip("{}"))
    changed, what = "changes by", f"the mean of {response}"
    if model.family != "gaussian":
        changed = "is multiplied by"
        what = f"the odds of {response}" if model.family == "binomial" else what
        changed = "are multiplied by" if model.family == "binomial" else changed
    others = ", among records that are alike in the model's other terms"
    said = _interval(term, wide, model.family != "gaussian")
    return f"{model.title}: {what} {changed} {said} {per}{others if len(model.terms) > 1 else ''}."


def _factor(term: str) -> str:
    """A term without the categories that it is about: those of one column are one factor."""
    return re.sub(r"\[[^\]]*\]", "", term)


def _alone(plan: Plan, name: str, model: Model) -> bool:
    """Whether no other factor of the model has a column of this term."""

    def used(term: str) -> set[str]:
        return {*NAME.findall(_factor(term))} & {*plan.described_columns}

    own = used(name)
    others = [each for each in model.names if _factor(each) != _factor(name)]
    return ":" not in name and not any(own & used(each) for each in others)


def _reference(plan: Plan, model: Model, name: str) -> str:
    """The category that a factor's others are compared with, where it is plain which one that is."""
    found = GROUP.fullmatch(name)
    column = plan.described_columns.get(found["column"]) if found else None
    if isinstance(column, CategoricalColumn):
        told = [GROUP.fullmatch(each) for each in model.names if _factor(each) == _factor(name)]
        values = {_plain(each["value"]) for each in told if each}
        left = [c for c in column.categories if _plain(str(c)) not in values]
        if len(left) == 1:
            return category_text(left[0], column)
    return "the reference"


def _plain(value: str) -> str:
    """A category as its labels name it: formulas write 1.0 for 1."""
    try:
        return plain(float(value))
    except ValueError:
        return value


def _of_means(plan: Plan, model: Model, wide: float) -> str:
    """The mean of all, or those of the two groups that differ most."""
    groups = []
    for name, middle, error in model.terms:
        named = "" if name == CONSTANT else _group(plan, name)
        groups.append(Group(named, middle, middle - wide * error, middle + wide * error, error))
    return _told_apart(model.title, groups, f"sampling and noise leave {OPEN} groups differ")


class Group(NamedTuple):
    """A mean with the ends of its interval and its standard error; ``named``: whose it is."""

    named: str
    mean: float
    low: float
    high: float
    error: float

    @property
    def text(self) -> str:
        middle, low, high = supported((self.mean, self.low, self.high), self.error)
        return f"{middle} ({low} to {high})"


def _told_apart(title: str, groups: Sequence[Group], otherwise: str) -> str:
    """The one mean, or those of the two groups that differ most; ``otherwise``: where none surely do."""
    if len(groups) == 1:
        (only,) = groups
        return f"{title}: {only.text}{f' where it is {only.named}' if only.named else ''}."
    more, less = max(permutations(groups, 2), key=lambda pair: pair[0].low - pair[1].high)
    if more.low <= less.high:
        return f"{title}: {otherwise}."
    first, second = (f"{each.text} where it is {each.named}" for each in (more, less))
    return f"{title}: {first}, and {second}."


def means(sources: Sequence[Source]) -> list[Source]:
    """Those of releases of kind mean whose intervals are known at every level."""
    return [
        source
        for source in sources
        if isinstance(release := source.release, RatioMean | Mean)
        and isinstance(release.mechanism, DiscreteLaplace)
    ]


def numbers_of(source: Source) -> int:
    """How many means a release has."""
    release = source.release
    return release.groups if isinstance(release, RatioMean) else 1


def of_mean(source: Source, chance: float) -> str:
    """A sentence for a release of means; each interval misses with at most ``chance``."""
    release, columns = source.release, source.plan.described_columns
    assert isinstance(release, RatioMean | Mean)
    found = source.read(source.record.tables[0])
    by = [axis.name for axis in release.domain.axes[:-1]]
    labels = [read_labels(found, name, columns) for name in by]
    ends = zip(*release.intervals(source.noisy, 1 - chance), strict=True)
    groups = []
    for i, (low, high) in enumerate(ends):
        value, error = (
            float(np.ma.filled(found[n][i], np.nan)) for n in ("mean", "standard_error")
        )
        if math.isfinite(value) and math.isfinite(error):
            pairs = zip(by, labels, strict=True)
            named = " and ".join(f"“{called(name, columns)}”: {of[i]}" for name, of in pairs)
            groups.append(Group(named, value, float(low), float(high), error))
    title = headed(source.plan.section(source.record.name))
    if not groups:
        return f"{title}: noise hides every mean."
    return _told_apart(title, groups, f"noise leaves {OPEN} groups differ")


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
        value = _plain(found["value"])
        said.append(f"“{called(found['column'], columns)}”: {category_text(value, column)}")
    return " and ".join(said)
