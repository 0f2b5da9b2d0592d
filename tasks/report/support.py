"""Describes from the support table how well a release supports relations among synthetic columns."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Booleans
from dpcore.post.records.nested import untied
from schemas.bundle.grades import ACCURATE, GRADES, NOT_MEASURED, graded
from schemas.releases.base import listed
from tasks.charts.svg import figure
from tasks.report.parts import DataTable

Supported = Mapping[str, NDArray[Any]]

MISSED = 1.5
"""Records miss a noisy table if they are farther from it than this many times what noise explains."""

NAMED = 5
"""A sentence names at most this many missed tables. The listing names all."""


def how_supported(
    supported: Supported, columns: Collection[str], follows: Mapping[str, str]
) -> str:
    """Text on how well the release determines pairs and triples of columns, and how closely the records
    follow it.

    ``follows``: as in ``Samplable``; sets in which one column follows from another are not counted.
    """
    ways = supported["ways"]
    listed_sources = zip(
        supported["columns"].tolist(), supported.get("derived_from", ()), strict=False
    )
    derived = {name for name, source in listed_sources if source}
    roots = [follows.get(name, name) for name in columns if name not in derived]
    pairs, triples = untied(roots, 2), untied(roots, 3)
    text = "The records have one column, which the release measures."
    if np.any(ways == 2):
        text = (
            f"Of {_counted(supported, ways == 2, pairs, 'pairs of columns')}. Noise and fit"
            " move records into wrong cells: in an accurate table at most about 10% of the number"
            " outside the largest cell, in a rough table at most about 30% (or 0.5% and 1.5% of all"
            " records, if that is more). A table graded noise says nothing."
        )
        if triples:
            text += (
                f" Of {_counted(supported, ways == 3, triples, 'sets of three columns')}. Relations"
                " that were not measured are assumptions of the model. So are relations among more"
                " columns that no released table shows."
            )
    distance, expected = supported["distance"], supported["expected_distance"]
    measured = np.isfinite(distance + expected)
    if not measured.any():
        return text
    missed = np.flatnonzero(measured & (distance > MISSED * expected))
    farthest = missed[np.argsort(-distance[missed], kind="stable")][:NAMED].tolist()
    named = listed([str(supported["columns"][i]) for i in farthest], " and ")
    which = f" ({'the farthest: ' * (len(missed) > NAMED)}{named})" if farthest else ""
    tables, far = int(measured.sum()), f"{MISSED} times the distance that noise alone explains"
    text += (
        f" The records miss {len(missed)} of {tables} tables{which}: the distance exceeds {far}."
        if len(missed)
        else f" The records follow all {tables} tables: no distance exceeds {far}."
    )
    accurate = distance[supported["grade"] == ACCURATE]
    if len(accurate):
        text += (
            f" The largest distance to an accurate table is {accurate.max():.3f} (total variation: the"
            " share of records that would have to change)."
        )
    return text


def excluded_by_plan(supported: Supported) -> list[str]:
    """A warning if the survey clearly has records that the plan excludes; otherwise nothing."""
    if "excluded" not in supported:  # in bundles of older versions
        return []
    names = [str(name) for name in supported["columns"][supported["excluded"] > 0]]
    if not names:
        return []
    return [
        "The synthetic records are wrong: noisy counts show records that the plan's `universe` or"
        f" `rules` exclude (by {listed(names[:NAMED], ' and ')}). Correct the plan and release again."
    ]


def _counted(supported: Supported, rows: Booleans, every: int, what: str) -> str:
    """Text such as: 10 pairs of columns, 7 are accurate and 3 are rough."""
    grades = Counter(supported["grade"][rows].tolist())
    grades[NOT_MEASURED] += every - grades.total()
    return f"{every:,} {what}, {graded(grades)}"


def support_table(supported: Supported, path: str) -> DataTable:
    """A table of all listed margins: first margins that no release supports, then the least accurate.

    ``path``: the file of ``supported``.
    """
    with np.errstate(invalid="ignore"):  # a table of one cell has no noise
        ratio = np.nan_to_num(supported["distance"] / supported["expected_distance"])
    numbers = ("standard_error", "distance", "expected_distance")
    places = np.array([GRADES.index(str(given)) for given in supported["grade"]])
    rows = [
        (
            str(supported["columns"][i]),
            _grade(supported, i),
            *(_known(float(supported[name][i])) for name in numbers),
        )
        for i in np.lexsort((-ratio, places)).tolist()
    ]
    header = (
        "Columns",
        "Grade",
        "Standard error of a cell",
        "Distance",
        "Distance by noise alone",
    )
    return DataTable("Which sets of columns the release supports, and how well", header, rows, path)


def _grade(supported: Supported, row: int) -> str:
    derived = supported.get("derived_from")
    if derived is not None and derived[row]:
        return f"derived from {derived[row]}"
    return str(supported["grade"][row]).replace(NOT_MEASURED, f"{NOT_MEASURED}: assumed")


def _known(value: float) -> str:
    return "not known" if np.isnan(value) else figure(value)
