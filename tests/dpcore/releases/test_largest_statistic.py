"""Exact numbers fit in 64 bits with room for noise, whatever the table: every release says so first."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import LARGEST_VALUE
from dpcore.mechanisms import CompressedMargins, SmoothLaplace
from dpcore.releases.base import LARGEST_STATISTIC, Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.tuned import TunedDensity
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.tables.quality import RecordQuality
from papers.listed_function.release import ListedFunction
from papers.near_records.release import NearMean
from tests.dpcore.releases.contract import CASES, KINDS, opened
from tests.dpcore.releases.test_contract import SERVED

PUBLIC = {name: case.release for name, case in KINDS.items()}
OF_KINDS = PUBLIC | {
    name: case.release
    for name, case in SERVED.items()
    if name.partition(", ")[0] in KINDS and case.release.adjacency == Adjacency("replace-one", 2)
}
"""The rows are private for the second half of them."""


def as_large_as_admitted(release: Release) -> Release:
    """The same release of as many rows as it admits, to a factor of two; no power of two."""
    for bits in reversed(range(62)):
        try:
            large = replace(release, rows=(release.rows << bits) - (bits > 0))
            _ = large.mechanism
        except ValueError:
            continue
        return large
    raise AssertionError("no number of rows is admitted")


def crossing(release: Release) -> Iterator[Release]:
    """The release, or the steps of one that has several: all statistics that cross the privacy line."""
    yield release
    if isinstance(release, TunedDensity):
        yield release.choice
        for last in (0, max(release.domain.shape) - 1):
            yield release.after(np.arange(release.chosen) % 2 * last)


@pytest.mark.parametrize("release", OF_KINDS.values(), ids=OF_KINDS)
def test_the_largest_tables_stay_below_the_claim_and_are_summed_exactly(release: Release):
    """All records in one cell: no table has larger sums, or larger scores of quantiles.

    Held against the statistic of one record, times their number in whole numbers of any size.
    """
    for step in crossing(as_large_as_admitted(release)):
        most = step.most_rows
        for cell in range(step.domain.size):
            one, all_ = (Tally(step.domain, np.array([cell]), np.array([n])) for n in (1, most))
            found = opened(step, all_).tolist()
            assert max(map(abs, found)) <= step.largest_statistic < LARGEST_STATISTIC
            if isinstance(step, KernelMachine | RecordQuality | NearMean | ListedFunction):
                continue  # these are no sums over records
            times, rounded = most, 0
            parts = step if isinstance(step, DensityOfParts) else None
            at_mass = parts and not parts.by.axes and cell >= parts.each.answered.size
            if hasattr(getattr(step, "each", step), "lattice") and not at_mass:
                # real numbers, of which each record counts a share
                shares = [step.adjacency.taper(n, most) for n in (1, most)]
                times, rounded = most * shares[1] / shares[0], most
            for number, of_one in zip(found, opened(step, one).tolist(), strict=True):
                assert abs(number - times * of_one) <= rounded


@pytest.mark.parametrize("name", ["smooth mean", "compressed microdata"])
def test_what_a_mechanism_makes_of_the_largest_counts_is_exact_too(name: str):
    release = as_large_as_admitted(CASES[name].release)
    mechanism, last, most = release.mechanism, release.domain.size - 1, release.most_rows
    tally = Tally(release.domain, np.array([last]), np.array([most]))
    if isinstance(mechanism, SmoothLaplace):
        assert int(tally.counts @ tally.cells) == most * last <= release.largest_statistic
    if isinstance(mechanism, CompressedMargins):
        grouping = mechanism.grouping(mechanism.alone(tally))
        tables = np.concatenate([mechanism.alone(tally), mechanism.together(tally, grouping)])
        assert set(tables.tolist()) == {0, most, *(most * times for times in mechanism.times)}
        assert tables.max() <= release.largest_statistic


@pytest.mark.parametrize("release", PUBLIC.values(), ids=PUBLIC)
def test_rows_that_would_need_larger_numbers_are_refused_when_the_release_is_made(release: Release):
    """For public reasons, the key of the plan first: the privacy line's refusal cannot be reached."""
    with pytest.raises(
        ValueError, match=r"^(rows|column|levels): .* (below 2\^61 .*;|use at most )"
    ):
        replace(release, rows=2**61)
    assert LARGEST_STATISTIC < LARGEST_VALUE


def test_a_release_that_does_not_state_its_largest_number_cannot_be_made():
    silent = type("Silent", (Histogram,), {"largest_statistic": Release.largest_statistic})
    histogram = CASES["histogram"].release
    with pytest.raises(TypeError, match="largest_statistic"):
        silent("h", histogram.domain, 3, histogram.share)
