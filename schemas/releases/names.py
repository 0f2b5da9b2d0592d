"""No two columns and no two files of a bundle may have one name."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpcore.domain import Axis, Domain
from dpcore.releases.base import Release
from dpcore.releases.cells import describe_cells
from dpcore.releases.compressed_microdata import CompressedMicrodata
from dpcore.releases.density import Density
from dpcore.releases.function import SmoothFunction
from dpcore.releases.groups import GROUP
from dpcore.releases.histogram import Histogram
from dpcore.releases.margins import Margins, file_word
from dpcore.releases.near_records import NearRecordsRelease
from dpcore.releases.quantiles import Quantiles
from dpcore.releases.sampled_histogram import SampledHistogram
from dpcore.releases.tuned import TunedFunction

_OF_COUNTS = (
    "noisy_count",
    "standard_error",
    "lower_90",
    "upper_90",
    "count",
    "count_standard_error",
)
STATISTICS: Mapping[type[Any], tuple[str, ...]] = {
    Histogram: _OF_COUNTS,
    SampledHistogram: ("drawn", *_OF_COUNTS[:-2]),
    NearRecordsRelease: ("drawn",),
    Margins: (*_OF_COUNTS, "estimate", "noisy_standard_error"),
    CompressedMicrodata: (*_OF_COUNTS, "estimate", "noisy_standard_error"),
    Quantiles: ("level", "rank_error_90", "rank_error_records_90"),
    Density: (
        "density",
        "density_standard_error",
        "estimate",
        "standard_error",
        "lower_90",
        "upper_90",
        "lower_simultaneous_90",
        "upper_simultaneous_90",
    ),
    SmoothFunction: ("estimate", "standard_error", "lower_90", "upper_90", "coefficient"),
}
"""What stands beside the survey's own columns in a published table, by kind."""


def check_names(release: Release) -> None:
    """Raise ``ValueError`` where two columns or two files that it publishes have one name.

    Capitals make no difference, as for DuckDB and many file systems.  The columns of a classifier
    have names that the survey's cannot have.
    """
    if isinstance(release, TunedFunction):
        release = release.smooth
    kinds = [kind for kind in STATISTICS if isinstance(release, kind)]
    if not kinds:
        return
    for axes in _tables(release):
        taken = dict.fromkeys(STATISTICS[kinds[0]], "a statistic")
        for axis in axes:
            for name in _published_as(release, axis):
                other = taken.setdefault(name.lower(), repr(axis.name))
                if other != repr(axis.name):
                    raise ValueError(
                        f"columns: {axis.name!r} and {other} would both be published as {name!r};"
                        " rename the column"
                    )
    files: dict[str, tuple[str, ...]] = {}
    for domain in release.domains if isinstance(release, Margins | CompressedMicrodata) else ():
        file = ".".join(file_word(name) for name in domain.names).lower()
        if files.setdefault(file, domain.names) != domain.names:
            raise ValueError(
                f"columns: the tables of {list(files[file])} and {list(domain.names)} would both"
                f" be the file {file!r}; rename a column"
            )


def _tables(release: Release) -> Iterator[tuple[Axis, ...]]:
    if isinstance(release, Margins | CompressedMicrodata):
        return (domain.axes for domain in release.domains)
    return iter((release.domain.axes,))


def _published_as(release: Release, axis: Axis) -> list[str]:
    """The names of an axis in a published table: points of a function are named like the column."""
    if isinstance(release, Density | SmoothFunction):
        return [axis.name]
    names = list(describe_cells(Domain((axis,)), np.empty(0, dtype=np.int64))[0])
    if isinstance(release, CompressedMicrodata) and axis.size > release.keep:
        names += [f"{axis.name}{end}" for end in (GROUP, "_from", "_to")]
    return names
