"""The findings with which a report opens, made by rule from the noisy tables and the plan's models.

Findings are chosen in view of the noisy numbers, and a chosen number tends to be extreme.  So every
interval here is simultaneous over all numbers from which the choice was made (Bonferroni): with
probability 95% they hold together, whichever are shown.  Of normal noise a sum is within its normal
quantile; of sums of Laplace noise with variance v the moment generating function is at most
1 / (1 - v s^2 / 2), whatever the weights, and Chernoff's bound gives the interval.

A share is a quotient of two such sums, P / W, and P - R W is one for every R: its interval is Fieller's
set for their exact joint variance, as that of the reader's shares is where it matters.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.post.fieller import bounded_fieller
from dpcore.post.levels import SIGMAS_95
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import TableOfCounts, Unit
from schemas.bundle.manifest import AnalysisRecord, Manifest
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn
from tasks.charts.svg import percent, supported
from tasks.inference.designs import CONSTANT
from tasks.report.cells import NULL, called, read_labels
from tasks.report.counts import LARGEST_SIDE
from tasks.report.parts import Source, read_columns

MOST, MOST_ANSWERS = 5, 2
ERROR = 0.05
"""The chance that an interval of the findings misses, of those of counts and of those of models."""


Axes = tuple[Axis, ...]


@dataclass(frozen=True)
class Findings:
    """Sentences, and what their intervals mean."""

    sentences: Sequence[str]
    note: str


class Measured(NamedTuple):
    """What one release says of some of its columns: noise of one law, in tables that agree.

    ``places``: of the columns in the agreement.
    """

    agreement: Agreement
    places: Attributes
    gaussian: bool

    @property
    def error(self) -> float:
        """The standard error of a count of the columns together."""
        return math.sqrt(self.agreement.margin(self.places).variance)


class Shares(NamedTuple):
    """Quotients of noisy numbers with their intervals, arrays of one shape; NaN where there is none."""

    value: Floats
    low: Floats
    high: Floats

    def words(self, *at: int) -> str:
        """One of them as a percentage."""
        value, low, high = (float(each[at]) for each in self)
        return percent(min(max(value, low), high), low, high)


class RankedSentence(NamedTuple):
    """A sentence with the number by which it is ranked, and the columns that it is about."""

    rank: float
    sentence: str
    columns: frozenset[str]


def findings(plan: Plan, manifest: Manifest, bundle: Path) -> Findings:
    """The answers of the plan's models, the strongest relations and the largest shares."""
    answers, terms = _answers(plan, manifest.analyses, bundle)
    most = 2 if answers else 3
    shares, relations, looked = _of_counts(plan, manifest, bundle)
    relations = relations[:most]
    shares = shares[: MOST - len(answers) - len(relations)]
    notes = []
    if looked and shares + relations:
        notes.append(
            f"Intervals of shares hold together with {1 - ERROR:.0%} probability, over privacy noise:"
            f" they are wide enough for all {looked:,} shares from which these were selected."
        )
    if answers:
        notes.append(
            f"Those of models hold together with about {1 - ERROR:.0%} probability, over sampling and"
            f" noise, for all {terms} coefficients that were looked at."
        )
    return Findings([*shares, *relations, *answers], " ".join(notes))


def deviations(chance: float, gaussian: bool) -> float:
    """Standard errors that noise exceeds in size with at most this chance.

    >>> round(deviations(0.05, gaussian=True), 2), round(deviations(0.05, gaussian=False), 2)
    (1.96, 4.13)
    """
    if gaussian:
        return NormalDist().inv_cdf(1 - chance / 2)

    def excess(x: float) -> float:
        root = x * x / (1 + math.sqrt(1 + x * x))
        return math.log(x * x / root) - root - math.log(chance)

    return float(brentq(excess, 1e-3, 1e4)) / math.sqrt(2)


def _of_counts(plan: Plan, manifest: Manifest, bundle: Path) -> tuple[list[str], list[str], int]:
    """Sentences on shares and on relations, the strongest first, and how many shares were looked at."""
    found: dict[Axes, Measured] = {}
    records = [] if plan.series else manifest.releases
    sources = [s for s in (Source(plan, record, bundle) for record in records) if _plain(s)]
    unit = sources[0].unit if sources else Unit()
    for source in sources:
        for axes, measured in _measured(source) if source.unit == unit else ():
            if axes not in found or measured.error < found[axes].error:
                found[axes] = measured
    alone, pairs = ([axes for axes in found if len(axes) == ways] for ways in (1, 2))
    sizes = [sum(math.prod(a.size for a in axes) for axes in each) for each in (alone, pairs)]
    looked = sizes[0] + 4 * sizes[1]  # of one value among those with another, and among all others
    if not looked:
        return [], [], 0
    text = _Text(plan, unit)
    chances = [ERROR / 2 / max(number, 1) for number in (sizes[0], 4 * sizes[1])]
    shares = [_share(axes[0], found[axes], chances[0], text) for axes in alone]
    relations = [_relation(axes, found[axes], chances[1], text) for axes in pairs]
    return _first(shares), _first(relations), looked


def _plain(source: Source) -> bool:
    """Whether a release is a table of counts with noise of a known law, whichever tables it chose."""
    section = source.plan.section(source.record.name)
    known = section.gaussian or section.mechanism == "discrete-laplace"
    release = source.release
    fixed = isinstance(release, TableOfCounts) and not release.draws_choose
    return release.chart == "cells" and known and fixed


def _measured(source: Source) -> Iterator[tuple[Axes, Measured]]:
    """The tables of one and two columns that a release shows, where their errors are known."""
    release = source.release
    agreement = release.agreement(source.noisy) if isinstance(release, TableOfCounts) else None
    if agreement is None:
        return
    gaussian = source.plan.section(source.record.name).gaussian
    shown = [(i, a) for i, a in enumerate(source.release.domain.axes) if 1 < a.size <= LARGEST_SIDE]
    for several in [*((each,) for each in shown), *combinations(shown, 2)]:
        places, axes = (tuple(each) for each in zip(*several, strict=True))
        if agreement.covers(places):
            yield axes, Measured(agreement, places, gaussian)


def _first(stated: Sequence[RankedSentence | None]) -> list[str]:
    """The sentences of the highest rank, no column in two of them."""
    seen: set[str] = set()
    sentences = []
    for each in sorted(filter(None, stated), key=lambda s: -s.rank):
        if not seen & each.columns:
            sentences.append(each.sentence)
            seen |= each.columns
    return sentences


class _Text(NamedTuple):
    """Words for cells, and for what is counted."""

    plan: Plan
    unit: Unit

    def cell(self, axis: Axis, i: int) -> str:
        """Such as: occupation is student."""
        columns = self.plan.described_columns
        table = {part.name: part.values for part in describe_cells(Domain((axis,)), np.array([i]))}
        (text,), column = read_labels(table, axis.name, columns), columns[axis.name]
        if isinstance(column, CategoricalColumn):
            meaning = text.partition(": ")[2]
            text = meaning if meaning in column.labels.values() else text
        elif column.unit and text != NULL:
            text = f"{text} {column.unit}"
        return f"“{called(axis.name, columns)}: {text}”"


def _quotients(
    numbers: tuple[Floats, Floats], covariance: Floats, chance: float, gaussian: bool
) -> Shares:
    """Shares of noisy numbers, all with the same joint variance (2, 2); each interval misses with this
    chance at most."""
    number, divisor = np.broadcast_arrays(*numbers)
    z = deviations(chance, gaussian)
    low, high = bounded_fieller(
        number,
        float(covariance[0, 0]),
        divisor,
        float(covariance[1, 1]),
        float(covariance[0, 1]),
        z,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return Shares(number / divisor, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def _share(axis: Axis, measured: Measured, chance: float, text: _Text) -> RankedSentence | None:
    """The largest share of a column."""
    agreement, (place,) = measured.agreement, measured.places
    counts, whole = (agreement.margin(each).table for each in ((place,), ()))
    covariance = agreement.combination_covariance(
        [{(place,): _first_cell(axis)}, {(): np.ones(())}]
    )
    shares = _quotients((counts, whole), covariance, chance, measured.gaussian)
    i = int(np.argmax(counts))
    if (axis.nullable and i == axis.size - 1) or not np.isfinite(shares.low[i]):
        return None
    sentence = f"{shares.words(i)} of all {text.unit.things} have {text.cell(axis, i)}."
    return RankedSentence(float(shares.low[i]), sentence, frozenset([axis.name]))


def _relation(axes: Axes, measured: Measured, chance: float, text: _Text) -> RankedSentence | None:
    """The two values that go together most: a share among those with one, and among all others.

    None where the noise allows that the columns are independent: the two intervals overlap for all
    values.  The rank is the smallest correlation of the two indicators that the intervals allow.
    """
    agreement, best = measured.agreement, None
    whole = agreement.margin(()).table
    for turned in (False, True):
        (given, shown), (one, other) = axes, measured.places
        n = agreement.margin(measured.places).table
        if turned:
            (given, shown), (one, other), n = (shown, given), (other, one), n.T
        group, parts = agreement.margin((one,)).table[:, None], agreement.margin((other,)).table
        both = np.outer(*map(_first_cell, axes))
        sums: list[Mapping[Attributes, Floats]] = [
            {measured.places: both},
            {(one,): _first_cell(given)},
            {(other,): _first_cell(shown)},
            {(): np.ones(())},
        ]
        covariance = agreement.combination_covariance(sums)
        others = np.array([[-1.0, 0, 1, 0], [0, -1, 0, 1]])  # parts - n, and all - group
        law = chance, measured.gaussian
        inside = _quotients((n, group), covariance[:2, :2], *law)
        outside = _quotients((parts - n, whole - group), others @ covariance @ others.T, *law)
        least = inside.low - outside.high
        with np.errstate(divide="ignore", invalid="ignore"):
            p, q = group / whole, parts / whole
            rank = least * np.sqrt(p * (1 - p) / (q * (1 - q)))
        possible = (least > 0) & np.isfinite(rank)
        for axis, side in ((given, 0), (shown, 1)):
            if axis.nullable:
                possible[(slice(None),) * side + (-1,)] = False
        if not possible.any():
            continue
        i, j = map(int, np.unravel_index(np.argmax(np.where(possible, rank, -1.0)), rank.shape))
        if best is None or rank[i, j] > best.rank:
            sentence = (
                f"Of {text.unit.things} with {text.cell(given, i)}, {inside.words(i, j)} have"
                f" {text.cell(shown, j)}; of all others {outside.words(i, j)}."
            )
            best = RankedSentence(float(rank[i, j]), sentence, frozenset([given.name, shown.name]))
    return best


def _first_cell(axis: Axis) -> Floats:
    """Weights that pick one cell: all of a column have noise of the same law."""
    return np.asarray(np.eye(axis.size)[0])


def _answers(plan: Plan, analyses: Sequence[AnalysisRecord], bundle: Path) -> tuple[list[str], int]:
    """For each model the coefficient that is farthest from zero, and how many there are."""
    models = []
    for record in analyses:
        found = read_columns(bundle, record.file)
        errors = (found["upper_95"] - found["lower_95"]) / (2 * SIGMAS_95)
        terms = [
            (str(term), float(estimate), float(error))
            for term, estimate, error in zip(found["term"], found["estimate"], errors, strict=True)
            if term != CONSTANT and math.isfinite(error) and error > 0
        ]
        models.append((record, terms))
    number = sum(len(terms) for _, terms in models)
    wide = deviations(ERROR / max(number, 1), gaussian=True)
    told = [_answer(plan, record, terms, wide) for record, terms in models if terms]
    return told[:MOST_ANSWERS], number


def _answer(
    plan: Plan, record: AnalysisRecord, terms: Sequence[tuple[str, float, float]], wide: float
) -> str:
    term, estimate, error = max(terms, key=lambda each: abs(each[1]) / each[2])
    if abs(estimate) <= wide * error:
        return f"{record.title}: sampling and noise leave open whether any of the terms matters."
    ends = [estimate + sign * wide * error for sign in (0, -1, 1)]
    columns = plan.described_columns
    named = f"“{called(term, columns)}”" if term in columns else term
    per = f"where {term} holds" if term.endswith("]") else f"for each unit of {named}"
    response = record.formula.partition("~")[0].strip().strip("{}")
    changed, what = "changes by", f"the mean of {response}"
    if record.family != "gaussian":
        changed = "is multiplied by"
        ends = [math.exp(min(each, 700.0)) for each in ends]
        error *= ends[0]
        what = f"the odds of {response}" if record.family == "binomial" else what
        changed = "are multiplied by" if record.family == "binomial" else changed
    middle, low, high = supported(ends, error)
    return f"{record.title}: {what} {changed} {middle} ({low} to {high}) {per}, other terms equal."
