"""The report's sentences on the plan's models, both fitted to noisy tables and measured directly.

Each model has one sentence, about the term farthest from zero, or the groups that differ most. The
choice depends on the noisy numbers, so the intervals of all coefficients are simultaneous.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpcore.estimates.selected import deviations
from dpcore.model_formula import ModelFormula
from dpcore.releases.models.model import models_of
from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT, plain_name
from schemas.survey.columns import CategoricalColumn, Column
from tasks.charts.svg import supported
from tasks.report.answers import GroupMean, Statement, compared_groups
from tasks.report.cells import Columns
from tasks.report.parts import read_columns
from tasks.report.release import headed
from tasks.report.terms import (
    BETWEEN_FACTORS,
    CATEGORY,
    COMPARED,
    as_written,
    column_of,
    group_of,
    in_words,
    named,
    reference,
    term_name,
    without_categories,
)
from tasks.report.wording import category, has_value, one_unit

EVENT = re.compile(r"""\{(?P<column>[^{}]+?) == (?P<quote>['"]?)(?P<value>[^{}'"]+)(?P=quote)\}""")
"""A response that is the event that a column has a category."""

CONDITION = re.compile(r"""\{[\w. `]+([<>]=?|[!=]=) *('[^']*'|"[^"]*"|[\w.+-]+)\}""")
"""A response that is 0 or 1: a column compared with a number or a category."""

CALL = re.compile(r"\b(?:log|exp) *\(")
LOGARITHM = re.compile(r"\{?log\((?P<column>`[^`]+`|\w+)(?: *\+ *(?P<added>[\d.]+))?\)\}?")
"""A response or a term that is the logarithm of a column, to which a constant may be added."""

VISIBLE = 0.005
"""The least change of a logarithm that a sentence states."""

MOST = 700.0
"""The exponential of 710 is larger than any double."""


class Term(NamedTuple):
    """A coefficient with its standard error, of sampling and noise together."""

    name: str
    estimate: float
    error: float


class Model(NamedTuple):
    """A model of the bundle.

    ``names``: the names of all coefficients; ``means``: whether every coefficient is a mean, of all
    records or of a group; ``terms``: the coefficients that have an interval; unless ``means``,
    without the intercept and the levels of groups.
    """

    title: str
    formula: str
    family: str
    names: Sequence[str]
    terms: Sequence[Term]
    means: bool


def answers_of_models(
    plan: Plan, manifest: Manifest, bundle: Path, chance: float
) -> tuple[list[Statement], int]:
    """An answer for each model, and the number of coefficients from which they were chosen. With
    probability at most ``chance``, at least one interval misses."""
    models = [*_models(plan, manifest, bundle)]
    number = sum(len(model.terms) for model in models)
    wide = deviations(chance / max(number, 1), gaussian=True)
    columns = plan.described_columns
    found = [
        (_of_means if model.means else _of_terms)(columns, model, wide)
        for model in models
        if model.terms
    ]
    return [answer for answer in found if answer], number


def _models(plan: Plan, manifest: Manifest, bundle: Path) -> Iterator[Model]:
    measured = models_of({} if plan.series else plan.built)
    for record in manifest.releases:
        if (release := measured.get(record.name)) is not None:
            of = headed(plan.section(record.name)), release.formula, release.family
            yield _model(*of, read_columns(bundle, record.tables[0]))
    for each in manifest.analyses:
        yield _model(each.title, each.formula, each.family, read_columns(bundle, each.file))


def _model(title: str, formula: str, family: str, found: Mapping[str, NDArray[Any]]) -> Model:
    names = [str(name) for name in found["term"]]
    means = family == "gaussian" and all(map(_is_level, names))
    terms = [
        Term(name, float(estimate), float(error))
        for name, estimate, error in zip(
            names, found["estimate"], found["standard_error"], strict=True
        )
        if (means or not _is_level(name)) and math.isfinite(error) and error > 0
    ]
    return Model(title, formula, family, names, terms, means)


def _is_level(term: str) -> bool:
    """Whether a coefficient is a level, of all records or of a group, not a difference or a slope."""
    factors = BETWEEN_FACTORS.split(term)
    return term == CONSTANT or all("[" in part and "[T." not in part for part in factors)


def _of_means(columns: Columns, model: Model, wide: float) -> Statement:
    """A sentence on the mean of all, or on the two groups whose means differ most."""
    groups, response = [], ModelFormula.read(model.formula).response
    name = column_of(columns, response)
    of = columns[name] if name else None
    ends = _range(response, of)
    for name, mean, error in model.terms:
        group = "" if name == CONSTANT else group_of(columns, name)
        half = wide * error
        groups.append(GroupMean(group, mean, mean - half, mean + half, error, of).within(*ends))
    what = _averaged(columns, response)
    return compared_groups(model.title, groups, "sampling and noise leave", what)


def _range(response: str, column: Column | None) -> tuple[float, float]:
    """Bounds for every mean of a response, as far as its formula or its column determine them."""
    if CONDITION.fullmatch(response):
        return 0.0, 1.0
    if column is None or isinstance(column, CategoricalColumn):
        return -math.inf, math.inf
    lower, upper = column.bounds
    return float(lower), float(upper)


def _averaged(columns: Columns, response: str) -> str:
    """Words for the mean of a response, which is a share if the response is a condition."""
    if event := _event(columns, response):
        return f"the share whose {event}"
    if COMPARED.search(response):
        return f"the share with {response.strip('{}')}"
    return (
        f"the mean of {in_words(columns, response.strip('{}'))}"
        if CALL.search(response)
        else "the mean"
    )


def _event(columns: Columns, response: str) -> str:
    """Words for a response that is the event that a column has a category; otherwise empty."""
    event = EVENT.fullmatch(response)
    column = column_of(columns, event["column"]) if event else None
    if not event or not column:
        return ""
    value = category(as_written(event["value"]), columns[column])
    return has_value(columns, column, value)


def _of_terms(columns: Columns, model: Model, wide: float) -> Statement | None:
    """A sentence on the clearest of the terms whose columns are in no other term; None without any.

    With an interaction, a slope belongs to one group only, and means little by itself.
    """
    alone = [term for term in model.terms if _is_alone(columns, term.name, model)]
    if not alone:
        return None
    term = max(alone, key=lambda each: abs(each.estimate) / each.error)
    if abs(term.estimate) <= wide * term.error:
        says = "given sampling error and noise, no term clearly differs from zero"
        return Statement(f"{model.title}: {says}.", leaves_open=True)
    response, gaussian = ModelFormula.read(model.formula).response, model.family == "gaussian"
    logged, doubled = _logged(columns, response) if gaussian else "", _logged(columns, term.name)
    known = (response, logged), (term.name, doubled)
    if any(CALL.search(w) and not (words or COMPARED.search(w)) for w, words in known):
        name = term_name(columns, model.names, term.name)
        says = f"the coefficient of “{name}” is {_interval(term, wide, multiplies=False)}"
        return Statement(f"{model.title}: {says}.")
    if doubled:
        term = Term(term.name, term.estimate * math.log(2), term.error * math.log(2))
    many = 1 if doubled or (gaussian and not logged) else _steps(columns, term)
    term = Term(term.name, term.estimate * many, term.error * many)
    event = _event(columns, response)
    changes = {
        "gaussian": "the mean of {} changes by {}",
        "binomial": f"the odds {'that' if event else 'of'} {{}} are multiplied by {{}}",
        "poisson": "the mean of {} is multiplied by {}",
    }[model.family].format(
        event or named(columns, response.strip("{}")),
        _interval(term, wide, multiplies=not gaussian),
    )
    if logged:
        changes = f"{logged} is typically {_percents(term, wide)}"
    where = (
        f"for each doubling of {doubled}"
        if doubled
        else _condition(columns, model, term.name, many)
    )
    others = ", if the other terms are equal" * (len(model.terms) > 1)
    return Statement(f"{model.title}: {changes} {where}{others}.")


def _logged(columns: Columns, written: str) -> str:
    """Words for the number whose logarithm is taken, such as: “Pay” (plus 10); otherwise empty."""
    found = LOGARITHM.fullmatch(written)
    if not found or not column_of(columns, found["column"]):
        return ""
    return named(columns, found["column"]) + (f" (plus {found['added']})" if found["added"] else "")


def _steps(columns: Columns, term: Term) -> int:
    """The number of units of an amount, 1 or a power of ten, that changes a ratio visibly."""
    column = column_of(columns, term.name)
    if not column or isinstance(columns[column], CategoricalColumn) or columns[column].labels:
        return 1
    return int(10 ** max(math.ceil(math.log10(VISIBLE / abs(term.estimate))), 0))


def _condition(columns: Columns, model: Model, term: str, many: int) -> str:
    """Words for the condition, or the step of a column, that changes the response."""
    if CATEGORY.fullmatch(term):
        return f"where {group_of(columns, term)} instead of {reference(columns, model.names, term)}"
    if COMPARED.search(term):
        return f"where {term}"
    column = column_of(columns, term)
    # Categories that are numbers enter a formula as numbers unless it says C().
    if column and isinstance(columns[column], CategoricalColumn):
        return f"for each step of the codes of {named(columns, term)}, which are numbers here"
    if many > 1 and column:
        units = getattr(columns[column], "unit", "") or "units"
        return f"for each {many:,} {units} of {named(columns, term)}"
    unit = (column and one_unit(columns[column])) or "unit"
    step = "step" if column and columns[column].labels else unit
    return f"for each {step} of {named(columns, term)}"


def _interval(term: Term, wide: float, multiplies: bool) -> str:
    """An estimate with the ends of its interval, with as many digits as its error supports."""
    ends, error = _ends(term, wide), term.error
    if multiplies:
        ends = [math.exp(min(each, MOST)) for each in ends]
        error *= ends[0]
    middle, low, high = supported(ends, error)
    return f"{middle} ({low} to {high})"


def _percents(term: Term, wide: float) -> str:
    """The change in percent of a number whose logarithm changes by a coefficient."""
    change, *ends = (100 * abs(math.expm1(min(each, MOST))) for each in _ends(term, wide))
    error = 100 * math.exp(min(term.estimate, MOST)) * term.error
    middle, low, high = supported([change, *sorted(ends)], error)
    return f"{middle}% ({low}% to {high}%) {'higher' if term.estimate > 0 else 'lower'}"


def _ends(term: Term, wide: float) -> list[float]:
    """An estimate and both ends of its interval."""
    return [term.estimate + sign * wide * term.error for sign in (0, -1, 1)]


def _is_alone(columns: Columns, name: str, model: Model) -> bool:
    """Whether no other term of the model contains a column of this term."""

    def used(term: str) -> set[str]:
        return {
            column
            for column in columns
            if re.search(rf"(?<!\w){re.escape(plain_name(column))}(?!\w)", term)
        }

    own = without_categories(name)
    others = {without_categories(each) for each in model.names} - {own}
    return not BETWEEN_FACTORS.search(name) and not any(used(own) & used(o) for o in others)
