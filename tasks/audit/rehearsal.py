"""Tests ingest, validation and tally with two made-up surveys that differ in one unit.

An audit draws from tallies that ``dpcore.audit`` makes up. The rehearsal checks that a survey leads to
these tallies. It writes two surveys to Parquet and ingests, validates and tallies them like a real
survey; every release must get exactly the tallies of the audit.

    rehearse            both surveys, with as many records as the plan states: before a full audit
    rehearse_shortly    only the far survey, where the unit has moved or was added, with few records: in
                        the short audit

The unit in which they differ has one record more than the plan keeps, and each of its records has twice
the largest weight. So the tallies are wrong unless records are dropped and weights cut as the
sensitivities assume. With ``linked`` the surplus record is last in the order, if possible, and all other
units have one member. In a series the unit is in one period more than the plan counts, if there is one,
with equally many records in each; all other units are in the first period.

The far survey is stored in three forms, which must give the same tallies: Parquet in the plan's types;
Parquet with floats for whole numbers, like a data frame with missing values; and a database table whose
collation ignores capitals and accents.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from dpcore.arrays import Integers
from dpcore.audit import survey_pairs
from dpcore.audit.neighbours import last_cell
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.texts import cells_of
from dpcore.errors import AuditError
from dpcore.releases.abilities import CountsUnits
from dpcore.releases.base import Release
from dpcore.releases.counts.found_bounds import EDGES
from dpcore.releases.models.design import STEPS
from schemas.plan import Plan
from schemas.plan.linked import SIZE
from schemas.survey.columns import CategoricalColumn, Column, IntegerColumn
from schemas.survey.source import TableSource
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.private_file import hide_bar
from tasks.survey.reading import held_open
from tasks.survey.sql import quote, real, text
from tasks.survey.validate import validate
from tasks.workplace.home import private_workspace
from tasks.workplace.step import step

Value = Callable[[str, Column], str]
"""A function from a column's name and the column to a value as SQL."""

FEW = 8
"""The number of records of other units in a short rehearsal."""

LOOSE = "COLLATE NOCASE.NOACCENT"

FORMS = ("declared", "floats", "collated")
"""How the far survey is stored."""


@step("rehearse the survey's path")
def rehearse(plan: Plan) -> None:
    """Raise ``AuditError`` if a made-up survey is not tallied as the audit assumes."""
    _rehearse(plan, ("near", "far"))


def rehearse_shortly(plan: Plan) -> None:
    """``rehearse`` with the far survey alone, and few records."""
    assert plan.built  # the copy keeps the releases: some could not be built for so few records
    rows = min(plan.rows, FEW + plan.adjacency.most)
    _rehearse(plan.model_copy(update={"rows": rows}), ("far",))


def _rehearse(plan: Plan, sides: Sequence[str]) -> None:
    built = list(plan.built.values())
    # Parts of dates are stored as columns: no date has the first year, month and weekday.
    own = {"source_name": "", "format": ""}
    whole = {
        name: _changed(column, {"from_": None, **own}) for name, column in plan.columns.items()
    }
    unread = {key: _changed(getattr(plan, key), own) for key in ("privacy_unit", "weights")}
    plan = plan.model_copy(update={"columns": whole, **unread})
    adjacencies = [_of_one_period(plan, release.adjacency) for release in built]
    rows = [_others(plan) + adjacency.most for adjacency in adjacencies]
    expected = survey_pairs([release.domain for release in built], rows, adjacencies)[0]
    # With so few records, opening a connection takes longer than writing or reading.
    with private_workspace(plan.dataset, "rehearsal") as workspace, _writer() as writer:
        for side, form in [(s, f) for s in sides for f in (FORMS if s == "far" else FORMS[:1])]:
            path = workspace / f"{side} {form}"
            source = _write_survey(plan, writer, path, form, far=side == "far")
            database = ingest(
                source,
                plan.read_columns,
                plan.rows,
                workspace / f"{side} {form} copied",
                plan.adjacency,
                plan.counts,
            )
            with held_open(database) as survey:
                validate(survey, plan.read_columns)
                found = tally_releases(plan, list(plan.built), survey)
            for release, pair in zip(built, expected, strict=True):
                counted = pair.near if side == "near" else pair.far
                if plan.section(release.name).finds:
                    counted = _searched_tally(plan, release, far=side == "far")
                elif plan.linked or isinstance(release, CountsUnits):
                    counted = _wide_tally(plan, release.domain, far=side == "far")
                elif _periods(plan, far=side == "far"):
                    counted = _series_tally(plan, release.domain, far=side == "far")
                if not _same(found[release.name], _at_points(_where_compared(plan, counted))):
                    raise AuditError(
                        f"{release.name}: a made-up survey is not tallied as the audit assumes, so"
                        " an audit would prove nothing; this is a fault of dprelease: report it"
                    )


def _changed(section: Any, changes: dict[str, Any]) -> Any:
    """A section of a plan with the changes to keys that it has."""
    known = set(getattr(type(section), "model_fields", ()))
    return (
        section.model_copy(update={k: v for k, v in changes.items() if k in known})
        if known
        else section
    )


def _of_one_period(plan: Plan, adjacency: Adjacency) -> Adjacency:
    """The neighbouring relation for the records of one period."""
    if plan.series is None or plan.unit is None:
        return adjacency
    return replace(adjacency, most=plan.unit.max_rows)


def _others(plan: Plan) -> int:
    """The number of records of units that do not change."""
    return max(plan.rows - _of_one_period(plan, plan.adjacency).most, 0)


def _wide_tally(plan: Plan, domain: Domain, far: bool) -> Tally:
    """The tally of the wide records of ``_write_survey``; only the changed unit has several members."""
    later = {f".{i + 1}" for i in range(1, plan.unit.max_rows if plan.unit else 1)}
    alone, unit = [], []
    for axis, last in zip(domain.axes, last_cell(domain), strict=True):
        absent = axis.name not in plan.columns and axis.name[axis.name.rfind(".") :] in later
        weighed = axis.name.startswith(STEPS)
        alone.append(axis.size - 1 if absent else int(weighed))
        unit.append(last if far or weighed or axis.name == SIZE else 0)
    return _tally(
        domain, domain.pack(np.array([alone, unit])), [_others(plan), _changed_units(plan, far)]
    )


def _changed_units(plan: Plan, far: bool) -> int:
    """1 if the survey has the unit in which both surveys differ, else 0."""
    return int(far or plan.neighbours == "replace-one")


def _tally(domain: Domain, cells: Integers, counts: Sequence[int]) -> Tally:
    """The tally of cells that have these numbers of records, or none."""
    records = np.array(counts)
    return Tally.of(domain, cells[records > 0], records[records > 0])


def _periods(plan: Plan, far: bool) -> Sequence[int]:
    """Indices of the changed unit's periods: the last ones in the far survey, else the first.

    Empty if units are not bounded by periods.
    """
    bound = plan.series.bound(plan.columns) if plan.series and plan.unit else None
    if bound is None:
        return ()
    every, count = range(bound.axis.size), min(bound.most + 1, bound.axis.size)
    return every[-count:] if far else every[:count]


def _series_tally(plan: Plan, domain: Domain, far: bool) -> Tally:
    """The tally of the records of ``_write_survey``: for the changed unit, only of its first periods."""
    assert plan.series
    assert plan.unit
    first = [0] * len(domain.axes)
    unit = last_cell(domain) if far else first
    codes, counts = [first], [_others(plan)]
    for period in _periods(plan, far)[: plan.series.most]:
        named = zip(domain.names, unit, strict=True)
        codes.append([period if name == plan.series.column else code for name, code in named])
        counts.append(plan.unit.max_rows * _changed_units(plan, far))
    return _tally(domain, domain.pack(np.array(codes)), counts)


def _searched_tally(plan: Plan, release: Release, far: bool) -> Tally:
    """The tally of the texts or of the ranges of numbers of ``_write_survey``, in one record of each
    unit."""
    column = plan.columns[plan.section(release.name).finds]
    first, last = _ends(column)
    values = first, last if far else first
    if isinstance(column, CategoricalColumn):
        cells = cells_of(values)
    else:
        cells = np.searchsorted(EDGES, values, side="right") - 1
    return _tally(release.domain, cells, [_others(plan), _changed_units(plan, far)])


def _at_points(tally: Tally) -> Tally:
    """The tally with values at a bound moved to the bound's own cell, if it is a point mass."""
    domain = tally.domain
    codes = domain.unpack(tally.cells).copy()
    for i, axis in enumerate(domain.axes):
        if isinstance(axis, Grid) and axis.points:
            at = {point: axis.cells + place for place, point in enumerate(axis.points)}
            first, last = codes[:, i] == 0, codes[:, i] == axis.cells - 1
            codes[last, i] = at.get(axis.upper - axis.integer, axis.cells - 1)
            codes[first, i] = at.get(axis.lower, 0)
    return Tally.of(domain, domain.pack(codes), tally.counts)


def _where_compared(plan: Plan, tally: Tally) -> Tally:
    """The tally, in which each column that compares two others is computed from them."""
    domain = tally.domain
    codes = domain.unpack(tally.cells).copy()
    for i, axis in enumerate(domain.axes):
        if isinstance(axis, Categories) and axis.compares:
            one, other = (
                np.where(codes[:, domain.positions[name]] == 0, *_ends(plan.columns[name]))
                for name in axis.compares
            )
            codes[:, i] = 1 + np.sign(one - other) if axis.nullable else one == other
    return Tally.of(domain, domain.pack(codes), tally.counts)


@contextmanager
def _writer() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        hide_bar(connection)
        yield connection


def _write_survey(
    plan: Plan, writer: duckdb.DuckDBPyConnection, path: Path, form: str, far: bool
) -> str | TableSource:
    """Write a survey in which the records of all units except one have the first value of every column.

    On the far side, that unit's records have the last value. On the near side they have the first, or
    are absent under add-remove. If units have several records, this unit has one more than the plan
    keeps, in each of its periods. Its records have too large a weight, and all others a weight of one
    step.  Where a row counts several records, there are two rows.
    """
    there = _changed_units(plan, far)
    kept = plan.unit.max_rows if plan.unit else _of_one_period(plan, plan.adjacency).most
    heaviest = plan.weights.most_steps if plan.weights else 1
    value = _last if far else _first
    # One other unit has the unit's name in capitals: a collation must not join the two.
    named = "CASE range WHEN 0 THEN 'ONE' ELSE 'other ' || range END"
    others = _record(plan, _first, named, 1)
    counted = [(others, _others(plan))]
    periods: Sequence[int | None] = _periods(plan, far) or [None]
    for period in periods:
        at = partial(_in_period, plan, value, period)
        counted.append((_record(plan, at, "'one'", 2 * heaviest), kept * there))
        if plan.unit is not None and there:
            left_out = partial(_left_out, plan, at)
            counted.append((_record(plan, left_out, "'one'", 2 * heaviest), 1))
    parts = [
        f"SELECT {', '.join(record)} FROM range({count})"
        if plan.counts is None
        else f"SELECT {', '.join(record)}, {count} AS {quote(plan.counts)}"
        for record, count in counted
    ]
    stored = f"SELECT {', '.join(_stored(plan, form))} FROM ({' UNION ALL '.join(parts)})"
    if form == "collated":
        writer.execute(f"ATTACH {text(str(path))} AS made")
        writer.execute(f"CREATE TABLE made.survey AS {stored}")
        writer.execute("DETACH made")
        return TableSource(database=str(path), table="survey")
    written = f"{path}.parquet"
    writer.execute(f"COPY ({stored}) TO {text(written)}")
    return written


def _stored(plan: Plan, form: str) -> Iterator[str]:
    """Yield the columns of the survey as SQL, in the types of a form."""
    for name, column in plan.columns.items():
        values = column.listed
        whole = isinstance(column, IntegerColumn) or all(_is_whole(v) for v in values or [""])
        if form == "floats" and whole:
            yield f"CAST({quote(name)} AS DOUBLE) AS {quote(name)}"
        elif form == "collated" and isinstance((values or [0])[0], str):
            yield f"{quote(name)} {LOOSE} AS {quote(name)}"
        else:
            yield quote(name)
    if plan.unit:
        unit = quote(plan.unit.column)
        number = (
            f"CASE {unit} WHEN 'one' THEN 1 WHEN 'ONE' THEN 2 ELSE 2 + substr({unit}, 7)::INT END"
        )
        forms = {"floats": f"({number})::DOUBLE", "collated": f"{unit} {LOOSE}"}
        yield f"{forms.get(form, unit)} AS {unit}"
    yield from (
        quote(extra) for extra in (plan.weights and plan.weights.column, plan.counts) if extra
    )


def _is_whole(value: Any) -> bool:
    """Whether a category is a whole number, or text that is written like one."""
    if isinstance(value, str):
        return bool(re.fullmatch("0|[1-9][0-9]{0,14}", value))
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _record(plan: Plan, value: Value, unit: str, steps: int) -> Iterator[str]:
    for name, column in plan.columns.items():
        yield f"{value(name, column)} AS {quote(name)}"
    if plan.unit:
        yield f"{unit} AS {quote(plan.unit.column)}"
    if plan.weights:
        yield f"{real(float(steps * plan.weights.step))} AS {quote(plan.weights.column)}"


def _first(name: str, column: Column) -> str:
    return _literal(_ends(column)[0])


def _last(name: str, column: Column) -> str:
    return _literal(_ends(column)[1])


def _in_period(plan: Plan, value: Value, period: int | None, name: str, column: Column) -> str:
    """The value of a record as SQL; the number of the period for the column of periods."""
    if period is None or plan.series is None or name != plan.series.column:
        return value(name, column)
    if isinstance(column, CategoricalColumn):
        return _literal(column.categories[period])
    return _literal(column.levels[period] if column.levels else column.bounds[0] + period)


def _left_out(plan: Plan, value: Value, name: str, column: Column) -> str:
    """The value of the surplus record, which is not kept: with ``linked``, last in the order."""
    key, largest = plan.linked.sorted_by[0] if plan.linked else ("", False)
    if name != key:
        return value(name, column)
    ends = sorted(_ends(column), reverse=largest)
    return _literal(ends[1])


def _ends(column: Column) -> tuple[Any, Any]:
    values = column.categories if isinstance(column, CategoricalColumn) else column.bounds
    return values[0], values[-1]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return text(value)
    return real(value) if isinstance(value, float) else f"{value}::BIGINT"


def _same(found: Tally, expected: Tally) -> bool:
    return np.array_equal(found.cells, expected.cells) and np.array_equal(
        found.counts, expected.counts
    )
