"""Which kind of table suits a plan's columns, in words: a small table, and the best kind by name."""

from collections.abc import Mapping
from itertools import groupby

from dpcore.advice.kinds import WAYS, Distance, Kind, best, compared
from dpcore.advice.records import record_distances
from dpcore.releases.tables.microdata import Microdata
from schemas.plan import Plan

Found = Mapping[str, list[Kind]]
"""What each release could be, by name."""


def found_kinds(plan: Plan) -> Found:
    """For each release that has a choice; this takes some seconds."""
    drawn_from = _drawn_from(plan)
    found = {name: compared(built, name in drawn_from) for name, built in plan.built.items()}
    return {name: kinds for name, kinds in found.items() if kinds}


def kind_rows(plan: Plan, found: Found) -> list[dict[str, str]]:
    """One row for each kind that a release could be: its distances by number of columns."""
    drawn_from = _drawn_from(plan) & set(found)
    return [
        {
            "release": name,
            "tables drawn": kind.name + " (as planned)" * kind.planned,
            **{f"{w} column{'s' * (w > 1)}": _digits(kind.distances.get(w)) for w in WAYS},
            "all columns": _digits(kind.whole),
            **({RECORDS: _simulated(kind) if name in drawn_from else ""} if drawn_from else {}),
        }
        for name, kinds in found.items()
        for kind in kinds
    ]


def advice(plan: Plan, found: Found) -> list[str]:
    """The best kind for each release that has a choice; one line each."""
    drawn_from, lines = _drawn_from(plan), []
    for name, kinds in found.items():
        tables = f"tables of {_verdict(kinds)}"
        if name in drawn_from:
            of_records = _of_records(kinds)
            both = tables.endswith(f"columns: {of_records}") and "; " not in tables
            tables = f"records and {tables}" if both else f"records: {of_records}; for {tables}"
        lines.append(f"{name}: best for {tables}.")
    return lines


def _drawn_from(plan: Plan) -> set[str]:
    """The releases that records follow, or could."""
    made = {name for name, built in plan.built.items() if isinstance(built, Microdata)}
    return made | {table.from_ for table in plan.synthesis}


RECORDS = "records, 3 columns"

TOO_NOISY = 0.25
"""From this distance on no kind is advised."""


def _of_records(found: list[Kind]) -> str:
    """The kind whose records are nearest in tables of three columns, simulated on a made-up table.

    Without a simulation, it is chosen by a rule for tables of two columns.
    """
    if any(record_distances(kind.release) is None for kind in found):
        kind, ways = best(found, 2, records=True), 2
        distance = kind.distances[ways].mean if kind else 1.0
    else:
        kind = best(found, 3, records=True)
        distance = (record_distances(kind.release) or {})[3] if kind else 1.0
    return kind.name if kind and distance <= TOO_NOISY else "none is accurate"


def _verdict(found: list[Kind]) -> str:
    """Such as: 1 and 2 columns a histogram, of 3 columns margins, ways: 3, discrete-laplace."""
    names = [
        (w, "none is accurate" if kind.distances[w].mean > TOO_NOISY else kind.name)
        for w in WAYS
        if (kind := best(found, w))
    ]
    parts = []
    for name, group in groupby(names, key=lambda each: each[1]):
        ways = [str(w) for w, _ in group]
        columns = f"{', '.join(ways[:-1])} and {ways[-1]}" if len(ways) > 1 else ways[0]
        parts.append(f"{columns} column{'s' * (columns != '1')}: {name}")
    return "; of ".join(parts)


def _simulated(kind: Kind) -> str:
    """The distance of records in tables of three columns, on a made-up table."""
    found = record_distances(kind.release)
    return f"{found[3]:.2g}" if found else "not simulated"


def _digits(distance: Distance | None) -> str:
    if distance is None:
        return "not measured"
    some = distance.measured < distance.tables
    return f"{distance.mean:.2g}" + f" in {distance.measured} of {distance.tables}" * some
