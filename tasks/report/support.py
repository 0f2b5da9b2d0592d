"""Which relations among synthetic columns a release supports, and how well: the support table."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.report.parts import DataTable
from tasks.report.svg import figure

Supported = Mapping[str, NDArray[Any]]

MISSED = 1.5
"""Records that are this many times farther from a noisy table than noise explains have missed it."""


def how_supported(supported: Supported, columns: Collection[str]) -> str:
    """How many pairs of the records' columns a release shows, and how near the records come to it."""
    shown = supported["supported"][[name not in columns for name in supported["columns"]]]
    beyond = "relations of more columns that no released table shows"
    text = "The one column is supported by the release."
    if len(shown) and shown.all():
        text = (
            f"All {len(shown)} pairs of columns are supported: the release shows them together, and"
            f" the records follow. What the model assumes are {beyond}."
        )
    elif len(shown):
        text = (
            f"Of {len(shown)} pairs of columns {int(shown.sum())} are supported: the release shows"
            " them together, and the records follow. How the others are related is what the model"
            f" assumes, as are {beyond}."
        )
    distance, expected = supported["distance"], supported["expected_distance"]
    measured = np.isfinite(distance + expected)
    if not measured.any():
        return text
    missed = int((distance[measured] > MISSED * expected[measured]).sum())
    return (
        f"{text} {missed} of {int(measured.sum())} tables of one or two columns are missed by the"
        f" records: they lie more than {MISSED} times as far from the noisy table as noise alone"
        f" would make. The farthest lies {distance[measured].max():.3f} away (total variation: the"
        " share of records that would have to be changed)."
    )


def support_table(supported: Supported, path: str) -> DataTable:
    """Every margin of one or two columns: those that no release supports first, then the worst.

    ``path``: of the file that was read.
    """
    ratio = np.nan_to_num(supported["distance"] / supported["expected_distance"])
    numbers = ("standard_error", "distance", "expected_distance")
    rows = [
        (
            str(supported["columns"][i]),
            _whether(supported, i),
            *(_known(float(supported[name][i])) for name in numbers),
        )
        for i in np.lexsort((-ratio, supported["supported"]))
    ]
    header = (
        "Columns",
        "Supported",
        "Standard error of a cell",
        "Distance",
        "Distance by noise alone",
    )
    return DataTable(
        "Which columns and pairs the release supports, and how well", header, rows, path
    )


def _whether(supported: Supported, row: int) -> str:
    derived = supported.get("derived_from")
    if derived is not None and derived[row]:
        return f"derived from {derived[row]}"
    return "yes" if supported["supported"][row] else "no: assumed"


def _known(value: float) -> str:
    return "not known" if np.isnan(value) else figure(value)
