"""The findings with which a report opens, made by rule from the noisy tables and the plan's models.

Findings are chosen in view of the noisy numbers, so every interval here is simultaneous over all numbers
from which the choice was made (``dpcore.estimates.selected``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.estimates.selected import (
    MeasuredColumns,
    ShareInterval,
    deviations,
    largest_share,
    strongest_relation,
)
from dpcore.model_formula import ModelFormula
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.counts.unit import TableOfCounts, Unit
from schemas.bundle.manifest import AnalysisRecord, Manifest
from schemas.plan import Plan
from schemas.releases.formulas import CONSTANT
from schemas.survey.columns import CategoricalColumn
from tasks.charts.svg import percent, supported
from tasks.report.cells import NULL, called, read_labels
from tasks.report.counts import LARGEST_SIDE
from tasks.report.parts import Source, read_columns

MOST, MOST_ANSWERS = 5, 2
ERROR = 0.05
"""The chance that an interval of the findings misses, of those of counts and of those of models."""


@dataclass(frozen=True)
class Findings:
    """Sentences, and what their intervals mean."""

    sentences: Sequence[str]
    note: str


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


def _of_counts(plan: Plan, manifest: Manifest, bundle: Path) -> tuple[list[str], list[str], int]:
    """Sentences on shares and on relations, the strongest first, and how many shares were looked at."""
    found: dict[tuple[Axis, ...], MeasuredColumns] = {}
    records = [] if plan.series else manifest.releases
    sources = [s for s in (Source(plan, record, bundle) for record in records) if _plain(s)]
    unit = sources[0].unit if sources else Unit()
    for source in sources:
        for measured in _measured(source) if source.unit == unit else ():
            known = found.get(measured.axes)
            if known is None or measured.standard_error < known.standard_error:
                found[measured.axes] = measured
    alone, pairs = ([m for axes, m in found.items() if len(axes) == ways] for ways in (1, 2))
    sizes = [sum(math.prod(a.size for a in m.axes) for m in each) for each in (alone, pairs)]
    looked = sizes[0] + 4 * sizes[1]  # of one value among those with another, and among all others
    if not looked:
        return [], [], 0
    text = _Text(plan, unit)
    chances = [ERROR / 2 / max(number, 1) for number in (sizes[0], 4 * sizes[1])]
    shares = [_share(measured, chances[0], text) for measured in alone]
    relations = [_relation(measured, chances[1], text) for measured in pairs]
    return _first(shares), _first(relations), looked


def _plain(source: Source) -> bool:
    """Whether a release is a table of counts with noise of a known law, whichever tables it chose."""
    section = source.plan.section(source.record.name)
    known = section.gaussian or section.mechanism == "discrete-laplace"
    release = source.release
    fixed = isinstance(release, TableOfCounts) and not release.draws_choose
    return release.chart == "cells" and known and fixed


def _measured(source: Source) -> Iterator[MeasuredColumns]:
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
            yield MeasuredColumns(axes, agreement, places, gaussian)


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


def _share(measured: MeasuredColumns, chance: float, text: _Text) -> RankedSentence | None:
    """The largest share of a column."""
    found = largest_share(measured, chance)
    if found is None:
        return None
    (axis,), (cell, share) = measured.axes, found
    sentence = f"{_percentage(share)} of all {text.unit.things} have {text.cell(axis, cell)}."
    return RankedSentence(share.low, sentence, frozenset([axis.name]))


def _relation(measured: MeasuredColumns, chance: float, text: _Text) -> RankedSentence | None:
    """The two values that are associated most: a share among records with one, and among all others."""
    found = strongest_relation(measured, chance)
    if found is None:
        return None
    given, shown = (text.cell(measured.axes[i], cell) for i, cell in (found.given, found.shown))
    sentence = (
        f"Of {text.unit.things} with {given}, {_percentage(found.among)} have {shown};"
        f" of all others {_percentage(found.others)}."
    )
    names = frozenset(axis.name for axis in measured.axes)
    return RankedSentence(found.correlation, sentence, names)


def _percentage(share: ShareInterval) -> str:
    value, low, high = share
    return percent(min(max(value, low), high), low, high)


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
    response = ModelFormula.read(record.formula).response.strip("{}")
    changed, what = "changes by", f"the mean of {response}"
    if record.family != "gaussian":
        changed = "is multiplied by"
        ends = [math.exp(min(each, 700.0)) for each in ends]
        error *= ends[0]
        what = f"the odds of {response}" if record.family == "binomial" else what
        changed = "are multiplied by" if record.family == "binomial" else changed
    middle, low, high = supported(ends, error)
    return f"{record.title}: {what} {changed} {middle} ({low} to {high}) {per}, other terms equal."
