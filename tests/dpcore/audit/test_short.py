"""A short audit keeps to its time, which is not spent on loading libraries."""

import time

import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import short_audit
from dpcore.audit.short import audit_seconds, duration
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from tests.dpcore.audit.gallery import TABLE
from tests.dpcore.releases.contract import CASES

RELEASE = Histogram("h", TABLE, 9, Budget.of("1"))


@pytest.mark.slow
@pytest.mark.parametrize(("slow", "more"), [(1, True), (10**6, False)])
def test_only_a_release_that_is_always_slow_is_replayed_on_no_further_tables(
    slow, more, monkeypatch
):
    """``slow``: how many of the statistics take 0.1 s."""
    honest, calls = Histogram.statistic, []

    def statistic(self, tally):
        calls.append(tally)
        until = time.process_time() + 0.1 * (len(calls) <= slow)
        while time.process_time() < until:
            pass
        return honest(self, tally)

    monkeypatch.setattr(Histogram, "statistic", statistic)
    (_, alone) = short_audit([RELEASE], 0.999, SeededSource(1), seconds=0.3)
    assert (alone.replay.tables > 1) == more


def test_its_duration_is_stated_without_data_and_names_what_is_trained():
    assert duration([RELEASE]).endswith("about 4 s of processor time")
    machine = CASES["classifier"].release
    assert duration([RELEASE, machine]).endswith(f", and two trainings of {machine.name}")


def test_its_duration_grows_with_the_pairs_of_columns():
    """As measured: 3 s for 60 columns, 13 s for 150 and 19 s for 200."""

    def seconds(columns):
        domain = Domain(tuple(Categories(f"c{i}", (0, 1)) for i in range(columns)))
        share = Budget.of("1", "1e-6")
        return audit_seconds(
            [Microdata("m", domain, 9, share, noise="discrete-gaussian", aim="records")]
        )

    assert 10 < seconds(150) < 15
    assert seconds(60) < 6
