"""Which kind of table suits a plan's columns, in words: a small table, and the best kind by name."""

from collections.abc import Mapping
from itertools import groupby

from dpcore.advice.kinds import WAYS, Distance, Kind, best, compared
from dpcore.releases.tables.microdata import Microdata
from schemas.plan import Plan

Found = Mapping[str, list[Kind]]
"""What each release could be, by name."""


def found_kinds(plan: Plan) -> Found:
    """For each release that has a choice; this takes a second or two."""
    found = {name: compared(release) for name, release in plan.built.items()}
    return {name: kinds for name, kinds in found.items() if kinds}


def kind_rows(found: Found) -> list[dict[str, str]]:
    """One row for each kind that a release could be: its distances by number of columns."""
    return [
        {
            "release": name,
            "tables drawn": kind.name + " (as planned)" * kind.planned,
            **{f"{w} column{'s' * (w > 1)}": _digits(kind.distances.get(w)) for w in WAYS},
            "all columns": _digits(kind.whole),
        }
        for name, kinds in found.items()
        for kind in kinds
    ]


def advice(plan: Plan, found: Found) -> list[str]:
    """The best kind for each release that has a choice; one line each."""
    drawn_from = {table.from_ for table in plan.synthesis}
    lines = []
    for name, kinds in found.items():
        records = isinstance(plan.built[name], Microdata) or name in drawn_from
        purpose = "records and " * records
        lines.append(f"{name}: best for {purpose}tables of {_verdict(kinds, records)}.")
    return lines


TOO_NOISY = 0.25
"""From this distance on no kind is advised."""


def _verdict(found: list[Kind], records: bool) -> str:
    """Such as: 1 and 2 columns a histogram, of 3 columns margins, ways: 3, discrete-laplace."""
    names = [
        (w, "none is accurate" if kind.distances[w].mean > TOO_NOISY else kind.name)
        for w in WAYS
        if (kind := best(found, w, records))
    ]
    parts = []
    for name, group in groupby(names, key=lambda each: each[1]):
        ways = [str(w) for w, _ in group]
        columns = f"{', '.join(ways[:-1])} and {ways[-1]}" if len(ways) > 1 else ways[0]
        parts.append(f"{columns} column{'s' * (columns != '1')}: {name}")
    return "; of ".join(parts)


def _digits(distance: Distance | None) -> str:
    if distance is None:
        return "not measured"
    some = distance.measured < distance.tables
    return f"{distance.mean:.2g}" + f" in {distance.measured} of {distance.tables}" * some
