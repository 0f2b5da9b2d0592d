"""Shares of noisy totals: the stated error is the one that is made, numerator and denominator alike."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.estimates.estimate import Estimate, Quotient
from dpcore.estimates.joined import DrawnRelease
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from tasks.bundle.listing import Columns
from tasks.bundle.reader import BundleReader
from tests.chance import shares

ADDED, SHARE = Adjacency("add-remove"), Budget.of("1")
TABLE = Domain((Categories("place", ("a", "b", "c")), Categories("answer", ("yes", "no"))))
COUNTS = np.array([[90, 10], [60, 20], [15, 45]])
DRAWS = 700


class OneTable(BundleReader):
    """A bundle of one table of one release, in memory."""

    def table(self, name: str) -> Columns:
        return self.columns

    def record_of(self, table: str) -> SimpleNamespace:
        return SimpleNamespace(name="r", draw_sha256="one")


def test_a_table_without_rows_says_why_it_has_none(monkeypatch):
    release = ThresholdedHistogram("r", TABLE, 200, SHARE)
    none = np.array([], dtype=np.int64)
    published = release.publish(Noisy(none, none))
    bundle, record = OneTable(None, None), SimpleNamespace(facts=dict(published.facts))
    vars(bundle)["columns"] = published.tables[0].columns
    monkeypatch.setattr(OneTable, "record_of", lambda self, table: record)
    said = rf"r: has no rows\. .*not published\. The threshold is {release.mechanism.threshold}\."
    for ask in (bundle.total, lambda table: bundle.share(table, None)):
        with pytest.raises(InputError, match=said):
            ask("r")


def drawn(release: Release, seed: int) -> OneTable:
    exact = release.statistic(Tally(TABLE, np.arange(6), COUNTS.ravel()))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
    bundle = OneTable(None, None)
    vars(bundle)["plan"] = SimpleNamespace(built={"r": release})
    counted = [DrawnRelease("r", release, release.agreement(noisy), noisy, "one")]
    vars(bundle)["drawn"] = SimpleNamespace(counted=counted)
    if isinstance(release, MarginTables):
        counts = {"estimate": release.consistent_margins(noisy)[-1].table.ravel()}
    else:
        counts = {"noisy_count": noisy.values.astype(float)}
    codes = TABLE.unpack(np.arange(6))
    vars(bundle)["columns"] = counts | {"place": codes[:, 0], "answer": codes[:, 1]}
    return bundle


RELEASES = {
    "r": Histogram("r", TABLE, 200, SHARE, adjacency=ADDED),
    "r.place.answer": MarginTables("r", TABLE, 200, SHARE, ((0,), (0, 1)), adjacency=ADDED),
}


@pytest.mark.slow
@pytest.mark.parametrize(("table", "places"), [("r", 2), ("r.place.answer", 3)])
def test_the_stated_error_is_the_one_that_is_made(table, places):
    """Of yes among all records, or among those of two places."""
    exact = COUNTS[:places, 0].sum() / COUNTS[:places].sum()
    found, independent = [], []
    for seed in range(DRAWS):
        bundle = drawn(RELEASES[table], seed)
        group = bundle.columns["place"] < places
        yes = bundle.columns["answer"] == 0
        found.append(bundle.share(table, yes, group))
        part, whole = bundle.total(table, yes & group), bundle.total(table, group)
        independent.append(replace(part, draws=frozenset()) / whole)
    made = np.std([share.value - exact for share in found])
    stated = np.mean([share.standard_error for share in found])
    assert 0.87 < stated / made < 1.15  # more than five standard deviations
    held = np.mean([share.interval[0] <= exact <= share.interval[1] for share in found])
    least, most = shares(DRAWS, 0.9)
    assert least <= held <= most
    assert np.mean([share.standard_error for share in independent]) > 1.3 * made


def test_the_error_of_a_histogram_s_share_by_hand():
    bundle = drawn(RELEASES["r"], 7)
    counts = bundle.table("r")["noisy_count"].reshape(3, 2)
    share = bundle.share("r", lambda t: t["answer"] == 0)
    value = counts[:, 0].sum() / counts.sum()
    assert share.value == pytest.approx(value)
    variance = 3 * (1 - value) ** 2 + 3 * value**2
    error = RELEASES["r"].mechanism.stddev * variance**0.5 / counts.sum()
    assert share.standard_error == pytest.approx(error)
    everything = bundle.share("r", np.ones(6))
    assert (everything.value, everything.standard_error) == (1, 0)
    with pytest.raises(InputError, match="ask for the share"):
        _ = bundle.total("r", np.arange(6) < 2) / bundle.total("r")


def test_a_quotient_by_next_to_nothing_says_what_is_known_of_it():
    some = Estimate(30.0, 3.0, frozenset("a"))
    assert "is possible" in (Estimate(1.0, 3.0) / Estimate(1.0, 3.0)).words
    assert "unbounded: all numbers up to" in (some / Estimate(1.0, 1.0, frozenset("b"))).words
    two = (some / Estimate(1.0, 1.0, frozenset("b"))).within(-100, 100).words
    assert "-100 to 100, without " in two
    assert Quotient(0.0, 1.0, pieces=((2.0, 3.0),)).within(0, 1).interval == (0, 1)
    assert "is not symmetric" in (some / Estimate(4.0, 1.0, frozenset("b"))).words
    with pytest.raises(InputError, match="the divisor is zero"):
        _ = some / 0


def test_a_quotient_of_independent_numbers_has_the_error_of_both():
    quotient = Estimate(30.0, 3.0, frozenset("a")) / Estimate(60.0, 4.0, frozenset("b"))
    assert quotient.value == 0.5
    assert quotient.standard_error == pytest.approx((3**2 + 0.25 * 4**2) ** 0.5 / 60)
    assert quotient.draws == {"a", "b"}
    assert (Estimate(30.0, 3.0) / 60).standard_error == pytest.approx(0.05)


def test_a_sum_and_a_multiple_have_the_errors_of_what_they_are_made_of():
    some, other = Estimate(30.0, 3.0, frozenset("a")), Estimate(60.0, 4.0, frozenset("b"))
    assert some + other == Estimate(90.0, 5.0, frozenset("ab")) == sum([some, other])
    assert some - other == Estimate(-30.0, 5.0, frozenset("ab"))
    assert -2 * some == some * -2 == Estimate(-60.0, 6.0, frozenset("a"))
    assert some - 10 == Estimate(20.0, 3.0, frozenset("a"))
    with pytest.raises(InputError, match="come from one draw"):
        _ = some + 2 * some
    with pytest.raises(TypeError):
        _ = some * other


@pytest.mark.parametrize(
    ("value", "error", "read"),
    [
        (423.7, 34.2, "424 ± 34"),
        (56_789.0, 1234.0, "56,800 ± 1,200"),
        (6366.0, 0.0, "6366, exact"),
    ],
)
def test_an_estimate_reads_as_a_number_and_its_error(value: float, error: float, read: str):
    assert repr(Estimate(value, error)) == read
