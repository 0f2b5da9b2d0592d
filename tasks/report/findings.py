"""The findings with which a report opens, made by rule from the noisy tables and the plan's models.

Findings are chosen in view of the noisy numbers, and a chosen number tends to be extreme.  So every
interval here is simultaneous over all numbers from which the choice was made (Bonferroni): with
probability 95% they hold together, whichever are shown.  Of normal noise a count is within its normal
quantile; of sums of Laplace noise with variance v the moment generating function is at most
1 / (1 - v s^2 / 2), whatever the weights, and Chernoff's bound gives the interval.

Shares and relations are functions of counts, and their intervals hold whenever those of the counts do.
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
from dpcore.domain import Axis, Domain
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import Unit
from dpcore.releases.table import SIGMAS_95
from schemas.bundle import AnalysisRecord, Manifest
from schemas.columns import CategoricalColumn
from schemas.plan import Plan
from tasks.report.analyses import INTERCEPT
from tasks.report.cells import NULL, called, read_labels
from tasks.report.counts import LARGEST_SIDE
from tasks.report.parts import Source, read_columns
from tasks.report.svg import percent, supported

MOST, MOST_ANSWERS = 5, 2
ERROR = 0.05
"""The chance that an interval of the findings misses, of those of counts and of those of models."""


Axes = tuple[Axis, ...]


@dataclass(frozen=True)
class Findings:
    """Sentences, and what their intervals mean."""

    sentences: Sequence[str]
    note: str


class Margin(NamedTuple):
    """Noisy counts, an array with a side for each column, all with the same standard error."""

    counts: Floats
    error: float
    gaussian: bool

    def ends(self, chance: float) -> tuple[Floats, Floats]:
        """Intervals of which each misses its count with this chance at most."""
        half = deviations(chance, self.gaussian) * self.error
        return np.maximum(self.counts - half, 0.0), np.maximum(self.counts + half, 0.0)


class Stated(NamedTuple):
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
            f" they are wide enough for all {looked:,} noisy counts from which these were selected."
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
    """Sentences on shares and on relations, the strongest first, and how many counts were looked at."""
    margins: dict[Axes, Margin] = {}
    records = [] if plan.series else manifest.releases
    sources = [s for s in (Source(plan, record, bundle) for record in records) if _plain(s)]
    unit = sources[0].unit if sources else Unit()
    for source in sources:
        for axes, margin in _margins(source) if source.unit == unit else ():
            if axes not in margins or margin.error < margins[axes].error:
                margins[axes] = margin
    looked = sum(margin.counts.size for margin in margins.values())
    if not looked:
        return [], [], 0
    ends = {axes: margin.ends(ERROR / looked) for axes, margin in margins.items()}
    alone = [axes for axes in margins if len(axes) == 1]
    whole = float(plan.rows), float(plan.rows)
    if unit.weighted or not plan.adjacency.public_rows:
        low, high = (np.array([ends[axes][k].sum() for axes in alone]) for k in (0, 1))
        whole = max(float(low.max()), 1.0), max(float(high.min()), 1.0)
    text = _Text(plan, unit)
    shares = [_share(axes[0], margins[axes].counts, ends[axes], whole, text) for axes in alone]
    pairs = [axes for axes in margins if len(axes) == 2]
    relations = [_relation(axes, margins, ends, whole, text) for axes in pairs]
    return _first(shares), _first(relations), looked


def _plain(source: Source) -> bool:
    """Whether a release is a table of counts with noise of a known law."""
    section = source.plan.section(source.record.name)
    known = section.gaussian or section.mechanism == "discrete-laplace"
    return source.release.chart == "cells" and known


def _margins(source: Source) -> Iterator[tuple[Axes, Margin]]:
    """The tables of one and two columns that a release shows, where their errors are known."""
    axes = [a for a in source.release.domain.axes if 1 < a.size <= LARGEST_SIDE]
    wanted = [*((axis,) for axis in axes), *combinations(axes, 2)]
    names = [tuple(axis.name for axis in each) for each in wanted]
    found = source.release.supported_margins(source.noisy, names)
    gaussian = source.plan.section(source.record.name).gaussian
    for each, (counts, error) in zip(wanted, (f or (None, math.nan) for f in found), strict=True):
        if counts is not None and math.isfinite(error):
            yield each, Margin(counts.reshape([axis.size for axis in each]), error, gaussian)


def _first(stated: Sequence[Stated | None]) -> list[str]:
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


def _share(
    axis: Axis,
    counts: Floats,
    ends: tuple[Floats, Floats],
    whole: tuple[float, float],
    text: _Text,
) -> Stated | None:
    """The largest share of a column."""
    i = int(np.argmax(counts))
    low, high = (min(float(e[i]) / n, 1.0) for e, n in zip(ends, whole[::-1], strict=True))
    if axis.nullable and i == axis.size - 1:
        return None
    value = min(max(float(counts[i]) / (sum(whole) / 2), low), high)
    sentence = f"{percent(value, low, high)} of all {text.unit.things} have {text.cell(axis, i)}."
    return Stated(low, sentence, frozenset([axis.name]))


def _relation(
    axes: Axes,
    margins: Mapping[Axes, Margin],
    ends: Mapping[Axes, tuple[Floats, Floats]],
    whole: tuple[float, float],
    text: _Text,
) -> Stated | None:
    """The two values that go together most: a share among those with one, and among all others.

    None where the noise allows that the columns are independent: the two intervals overlap for all
    values.  The rank is the smallest correlation of the two indicators that the intervals allow.
    """
    best: Stated | None = None
    for turned in (False, True):
        given, shown = axes[::-1] if turned else axes
        if (given,) not in margins or (shown,) not in margins:
            return None
        n, low, high = (each.T if turned else each for each in (margins[axes].counts, *ends[axes]))
        group, parts = margins[given,].counts[:, None], margins[shown,].counts
        (group_low, group_high), (shown_low, shown_high) = (
            (each[0], each[1]) for each in (ends[given,], ends[shown,])
        )
        group_low, group_high = group_low[:, None], group_high[:, None]
        size = sum(whole) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = n / group, low / group_high, np.minimum(high / group_low, 1.0)
            rest = whole[0] - group_high, whole[1] - group_low
            outside = (
                (parts - n) / (size - group),
                np.maximum(shown_low - high, 0.0) / rest[1],
                np.minimum(np.maximum(shown_high - low, 0.0) / rest[0], 1.0),
            )
            least = inside[1] - outside[2]
            p, q = group / size, parts / size
            rank = least * np.sqrt(p * (1 - p) / (q * (1 - q)))
        possible = (group_low > 0) & (rest[0] > 0) & (least > 0) & np.isfinite(rank)
        for axis, side in ((given, 0), (shown, 1)):
            if axis.nullable:
                possible[(slice(None),) * side + (-1,)] = False
        if not possible.any():
            continue
        i, j = np.unravel_index(int(np.argmax(np.where(possible, rank, -1.0))), rank.shape)
        if best is None or rank[i, j] > best.rank:
            found = ([float(v[i, j]) for v in each] for each in (inside, outside))
            among, others = (percent(min(max(v, low), high), low, high) for v, low, high in found)
            sentence = (
                f"Of {text.unit.things} with {text.cell(given, int(i))}, {among} have"
                f" {text.cell(shown, int(j))}; of all others {others}."
            )
            best = Stated(float(rank[i, j]), sentence, frozenset([given.name, shown.name]))
    return best


def _answers(plan: Plan, analyses: Sequence[AnalysisRecord], bundle: Path) -> tuple[list[str], int]:
    """For each model the coefficient that is farthest from zero, and how many there are."""
    models = []
    for record in analyses:
        found = read_columns(bundle, record.file)
        errors = (found["upper_95"] - found["lower_95"]) / (2 * SIGMAS_95)
        terms = [
            (str(term), float(estimate), float(error))
            for term, estimate, error in zip(found["term"], found["estimate"], errors, strict=True)
            if term != INTERCEPT and math.isfinite(error) and error > 0
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
