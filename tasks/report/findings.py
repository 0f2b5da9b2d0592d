"""The findings at the top of a report, made by rule from the noisy tables and the plan's models.

Findings are chosen by the noisy numbers, so every interval here is simultaneous over all numbers from
which the choice was made (``dpcore.estimates.selected``).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Bins, Grid
from dpcore.estimates.selected import (
    EDGE,
    Contrast,
    MeasuredColumns,
    Part,
    ShareInterval,
    possible_parts,
    possible_shares,
    share_of_all,
    strongest_contrast,
    telling_share,
)
from dpcore.model_formula import ModelFormula
from dpcore.releases.counts.unit import TableOfCounts, tables_of_counts
from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.releases.model import ModelSection
from schemas.survey.derived import details
from tasks.charts.bars import Bar, bars
from tasks.charts.svg import percent
from tasks.report.answers import answer_of_means, number_of_means, releases_of_means
from tasks.report.cells import called
from tasks.report.counts import LARGEST_SIDE
from tasks.report.model_answers import answers_of_models
from tasks.report.parts import DataTable, Figure, Source
from tasks.report.wording import Wording, of_rest

MOST, MOST_CHARTS, TWICE = 5, 4, 2
WIDEST = 0.5
"""Shares with a wider interval are not reported."""

ERROR = 0.05
"""The probability that at least one interval of the findings on counts misses; the same for models."""


@dataclass(frozen=True)
class Findings:
    """Sentences, the charts that show them, and the meaning of their intervals; ``more``: one sentence
    for each other column, and the highest-ranked one for each other pair.

    ``related``: by the names of two columns, the rank of their contrast beyond noise.
    """

    sentences: Sequence[str]
    figures: Sequence[Figure]
    note: str
    more: Sequence[str]
    related: Mapping[frozenset[str], float]


class Stated(NamedTuple):
    """A sentence with its rank and its columns.

    ``draw``: a function for its chart, if it has one; only a few of hundreds of sentences are shown.
    """

    rank: float
    sentence: str
    columns: tuple[str, ...]
    draw: Callable[[], Figure] | None = None


def findings(plan: Plan, manifest: Manifest, bundle: Path) -> Findings:
    """The largest contrasts between groups, and the answers of the plan's models."""
    of_models, terms = answers_of_models(plan, manifest, bundle, ERROR)
    sources = [] if plan.series else [Source(plan, each, bundle) for each in manifest.releases]
    asked = releases_of_means(sources)
    several = sum(map(number_of_means, asked))
    # Half for the few means that somebody asked for, which tens of thousands of shares would hide.
    of_shares = ERROR / 2 if several else ERROR
    contrasts, shares, looked = _of_counts(plan, sources, of_shares)
    left = ERROR - of_shares * bool(looked)
    of_means = [answer_of_means(source, left / several) for source in asked]
    answers = [
        *sorted(of_means, key=lambda answer: answer.leaves_open),
        *sorted(of_models, key=lambda answer: answer.leaves_open),
    ]
    stated = [each for each in contrasts if each.rank > 0] or shares or contrasts
    shown = _first(stated, max(MOST - len(answers), 1))
    notes = [
        *([_note_on_counts(looked, several, contrasts)] if shown or of_means else []),
        *([_note_on_models(terms)] if of_models else []),
    ]
    strongest = {frozenset(s.columns): s for s in sorted(contrasts, key=lambda s: s.rank)}
    related = {names: each.rank for names, each in strongest.items()}
    others = [*shares, *sorted(strongest.values(), key=lambda s: -s.rank)]
    seen = {frozenset(each.columns) for each in shown}
    more = [each.sentence for each in others if frozenset(each.columns) not in seen]
    sentences = [*(each.sentence for each in shown), *(answer.sentence for answer in answers)]
    draws = [each.draw for each in shown if each.draw][:MOST_CHARTS]
    return Findings(sentences, [draw() for draw in draws], " ".join(notes), more, related)


def _note_on_counts(shares: int, means: int, contrasts: Sequence[Stated]) -> str:
    """The meaning of the intervals of findings chosen among ``shares`` shares and ``means`` means."""
    kinds = {name: n for name, n in (("shares", shares), ("means", means)) if n}
    from_all = " and ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    note = (
        f"With {1 - ERROR:.0%} probability all intervals of {' and '.join(kinds)} here are right at"
        f" once, although they were chosen by rule from {from_all}. So they are wider than intervals for"
        " one number alone. They cover privacy noise only."
    )
    differ = " Noise alone explains none of these differences between shares."
    return note + differ * bool(contrasts)


def _note_on_models(terms: int) -> str:
    wider = " So they are wider than the 95% intervals below, which are for single coefficients."
    return (
        f"With about {1 - ERROR:.0%} probability all intervals of models are right at once, for all"
        f" {terms} coefficients considered, if the records are a random sample of the population."
        f"{wider * (terms > 1)} They cover sampling and noise. Models show association, not causes."
    )


def _of_counts(
    plan: Plan, released: Sequence[Source], error: float
) -> tuple[list[Stated], list[Stated], int]:
    """The sentences on contrasts, the sentences on shares of all records, and the number of shares
    considered. ``error``: the probability that not all of their intervals hold."""
    sources = [each for each in released if _plain(each)]
    seen, groups = _known_beforehand(plan), list[tuple[Wording, list[MeasuredColumns]]]()
    # Sums of weights describe the population. What only counts show is said of the respondents.
    for unit in sorted({each.unit for each in sources}, key=lambda unit: not unit.weighted):
        of_unit = [each for each in sources if each.unit == unit]
        new = [m for m in _considered(of_unit) if len(m.axes) == 1 or _names(m) not in seen]
        seen |= {_names(m) for m in new if len(m.axes) == 2}
        groups.append((Wording(plan, _merged(of_unit), unit.weighted), new))
    looked = sum(_number_of_shares(each) for _, new in groups for each in new)
    if not looked:
        return [], [], 0
    contrasts, shares = list[Stated](), dict[frozenset[str], Stated]()
    chance = error / looked
    for text, new in groups:
        shown = _most_precise(new)
        alone = [each for each in shown if len(each.axes) == 1]
        of_all = {m.axes: partial(share_of_all, m, chance=chance) for m in alone}
        contrasts += [
            _contrast(contrast, m, text, of_all.get((m.axes[1 - given],)))
            for m in shown
            if len(m.axes) == 2
            for given in (0, 1)
            if (contrast := strongest_contrast(m, chance, given)) is not None
        ]
        found = {_names(m): said for m in alone if (said := _share(m, chance, text))}
        shares = found | shares
    return contrasts, [*shares.values()], looked


def _considered(sources: Sequence[Source]) -> Iterable[MeasuredColumns]:
    """The tables of one and two columns; of those with the same axes, the most precise one."""
    found: dict[tuple[Axis, ...], MeasuredColumns] = {}
    for measured in chain.from_iterable(map(_measured, sources)):
        before = found.setdefault(measured.axes, measured)
        if measured.standard_error < before.standard_error:
            found[measured.axes] = measured
    return found.values()


def _merged(sources: Sequence[Source]) -> dict[str, tuple[Axis, Integers]]:
    """By column, the axis whose cells a release merged into groups, and their groups."""
    found: dict[str, tuple[Axis, Integers]] = {}
    for source in sources:
        release: TableOfCounts = source.charted
        axes = release.domain.axes
        for place, groups in release.as_measured(source.noisy).groups.items():
            found.setdefault(axes[place].name, (axes[place], groups))
    return found


def _number_of_shares(measured: MeasuredColumns) -> int:
    """How many shares of a table a finding may state."""
    if len(measured.axes) == 1:
        return possible_parts(measured.axes[0])
    return possible_shares(measured.axes)


def _names(measured: MeasuredColumns) -> frozenset[str]:
    return frozenset(axis.name for axis in measured.axes)


def _most_precise(tables: Sequence[MeasuredColumns]) -> list[MeasuredColumns]:
    """One table for each set of columns: the first in the plan, whose cells are for readers, unless the
    noise of another one is less than half as large."""
    found: dict[frozenset[str], MeasuredColumns] = {}
    for each in tables:
        before = found.setdefault(_names(each), each)
        if each.noise_of_all < before.noise_of_all / 2:
            found[_names(each)] = each
    return [*found.values()]


def _known_beforehand(plan: Plan) -> set[frozenset[str]]:
    """Pairs of columns whose contrast is known beforehand: the plan derives one from the other, or a
    rule of records relates them, such as who was asked a question."""
    columns = plan.described_columns
    found = {frozenset((name, group)) for name in columns for group in details([name], columns)}
    rules = [rule for section in plan.releases for rule in getattr(section, "rules", [])]
    return found | {
        frozenset((given, name))
        for rule in rules
        if isinstance(rule.then, Mapping)
        for given in rule.if_
        for name in rule.then
    }


def _rank(plan: Plan, rank: float, given: str, shown: str) -> float:
    """The rank of a contrast: first relations in the plan's models, then tables listed in the plan, and
    last, below zero, columns of which one nearly determines the other."""
    if rank < 0:
        return rank
    explained = {
        str(section.label.column) for section in plan.releases if hasattr(section, "label")
    }
    direct = [s for s in plan.releases if isinstance(s, ModelSection)]
    for formula in [*(each.formula for each in plan.analyses), *(each.formula for each in direct)]:
        response = ModelFormula.read(formula).response
        explained |= set(re.findall(r"[^\W\d][\w.]*", response))
    tables = [getattr(s, "columns", []) for s in plan.releases if s.kind == "histogram"]
    named = any({given, shown} <= set(columns) for columns in tables)
    return (1.0 if shown in explained else 0.0) + rank * (2.0 if named else 1.0)


def _plain(source: Source) -> bool:
    section = source.plan.section(source.record.name)
    known = section.gaussian or section.mechanism == "discrete-laplace"
    counts = source.record.name in tables_of_counts(source.plan.built)
    return counts and known and source.release.chart == "cells"


def _measured(source: Source) -> Iterator[MeasuredColumns]:
    """Yield a release's tables of one and two columns, if their errors are known."""
    release: TableOfCounts = source.charted
    read = release.as_measured(source.noisy)
    if (agreement := read.agreement()) is None:
        return
    gaussian = source.plan.section(source.record.name).gaussian
    every = enumerate(map(_binned, read.release.domain.axes))
    shown = [(i, a) for i, a in every if not isinstance(a, Grid) and 1 < a.size <= LARGEST_SIDE]
    for several in [*((each,) for each in shown), *combinations(shown, 2)]:
        places, axes = (tuple(each) for each in zip(*several, strict=True))
        if agreement.covers(places):
            yield MeasuredColumns(axes, agreement, places, gaussian)


def _binned(axis: Axis) -> Axis:
    """The axis. A grid of few cells, such as small whole numbers, becomes bins."""
    if isinstance(axis, Grid) and axis.size <= LARGEST_SIDE and not axis.points:
        return Bins(axis.name, axis.edges, axis.nullable, axis.integer, axis.step)
    return axis


def _first(stated: Sequence[Stated], most: int) -> list[Stated]:
    """The sentences of highest rank: at most one for each pair of columns, one with groups by a column,
    and two with shares of a column."""
    used: Counter[str] = Counter()
    groups: set[str] = set()
    seen: set[frozenset[str]] = set()
    chosen: list[Stated] = []
    for each in sorted(stated, key=lambda s: -s.rank):
        by, shown, names = each.columns[0], each.columns[-1], frozenset(each.columns)
        if len(chosen) < most and names not in seen and by not in groups and used[shown] < TWICE:
            chosen.append(each)
            seen.add(names)
            groups.add(by)
            used[shown] += 1
    return chosen


def _share(measured: MeasuredColumns, chance: float, text: Wording) -> Stated | None:
    """A sentence on values of a column whose share of the non-null records is closest to one half."""
    found = telling_share(measured, chance)
    if found is None or found[1].high - found[1].low > WIDEST:
        return None
    (axis,), (part, share) = measured.axes, found
    if not EDGE < share.value < 1 - EDGE or text.leaves_out(axis, part):
        return None
    if (event := text.event_of(axis, part)) != part:
        part, share = event, of_rest(share)
    sentence = f"{text.event(axis, part)} for {_percentage(share)} of {text.counted(axis)}."
    return Stated(share.low * (1 - share.high), sentence, (axis.name,))


def _contrast(
    found: Contrast,
    measured: MeasuredColumns,
    text: Wording,
    of_all: Callable[[Part], ShareInterval] | None,
) -> Stated:
    """A sentence on the share of some values in two groups, and among all if that is known."""
    given, shown = (measured.axes[i] for i in (found.given, 1 - found.given))
    found = text.of_event(shown, found)
    every = of_all(found.shown) if of_all else None
    known = every is not None and math.isfinite(every.low + every.high)
    among = f" Overall, the share is {_percentage(every)}." if every and known else ""
    shares = [*map(_percentage, found.shares)]
    sentence = f"{text.contrast(given, shown, found, shares)}.{among}"
    rank = _rank(text.plan, found.rank, given.name, shown.name)
    draw = partial(_chart, found, given, shown, text) if len(found.across) > 1 else None
    return Stated(rank, sentence, (given.name, shown.name), draw)


def _chart(found: Contrast, given: Axis, shown: Axis, text: Wording) -> Figure:
    """A chart of the share in each group, without groups whose share is unknown."""
    told = [(part, _inside(share)) for part, share in found.across if share.high - share.low < 1]
    ends = [Bar(text.values(given, part), *(100 * end for end in share)) for part, share in told]
    by = called(given.name, text.plan.described_columns)
    shares = [f"{_inside(share).value:.0%}" for share in found.shares]
    title = text.contrast(given, shown, found, shares)
    says = "Share with 95% intervals for all findings on shares at once"
    if sum(end - start for (start, end), _ in told) < given.size - given.nullable:
        says += ". Groups that are too small for an estimate are left out"
    rows = [(text.values(given, part), _percentage(share)) for part, share in told]
    table = DataTable(title, (by, "Share (95% interval for all at once)"), rows)
    return Figure(title, says, bars(ends, f"percent of {text.counted(shown)}"), table)


def _percentage(share: ShareInterval) -> str:
    return percent(*_inside(share))


def _inside(share: ShareInterval) -> ShareInterval:
    """A share, with its value moved into its interval, which contains only possible shares."""
    return share._replace(value=min(max(share.value, share.low), share.high))
