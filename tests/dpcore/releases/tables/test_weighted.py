"""Counts of weight: what is done to steps, published as weights."""

from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from tests.dpcore.releases.contract import drawn, opened

TABLE = Domain((Categories("sex", ("F", "M")), Categories("size", (1, 2, 3))))
STEPS = np.repeat(np.arange(6), (0, 900, 40, 2000, 7, 500))
SHARE = Budget.of("2", "1e-6")
OF_WEIGHTS = Adjacency("replace-one", 12, weighted=True)
PAIRS = ((0,), (0, 1))
PLAIN = {
    "histogram": Histogram("h", TABLE, 3000, SHARE, adjacency=OF_WEIGHTS),
    "thresholded": ThresholdedHistogram("t", TABLE, 3000, Budget.of("2"), adjacency=OF_WEIGHTS),
    "margins": MarginTables(
        "m", TABLE, 3000, SHARE, PAIRS, "discrete-gaussian", adjacency=OF_WEIGHTS
    ),
    "microdata": Microdata("d", TABLE, 3000, SHARE, adjacency=OF_WEIGHTS),
}
every_kind = pytest.mark.parametrize("name", PLAIN)


def both(name: str, step: str) -> tuple[Histogram | MarginTables, Histogram | MarginTables]:
    return PLAIN[name], PLAIN[name].weighed(Fraction(step))


def noisy_of(release: Histogram | MarginTables) -> Noisy:
    return drawn(release, STEPS, 5)


@every_kind
def test_the_statistic_and_its_noise_are_those_of_steps(name: str):
    plain, weighted = both(name, "1/2")
    assert weighted.mechanism == plain.mechanism
    assert weighted.event == plain.event
    assert weighted.event.to_dict()["weighted"] == "yes"
    assert opened(weighted, STEPS).tolist() == opened(plain, STEPS).tolist()


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
@every_kind
@pytest.mark.parametrize("step", ["5/2"])
def test_all_that_counts_is_published_in_weights_and_nothing_else_changes(name: str, step: str):
    plain, weighted = both(name, step)
    noisy = noisy_of(plain)
    pairs = zip(plain.publish(noisy).tables, weighted.publish(noisy).tables, strict=True)
    for one, other in pairs:
        assert list(one.columns) == list(other.columns)
        for column, values in one.columns.items():
            counts = column not in ("sex", "size")
            expected = values * float(Fraction(step)) if counts else values
            np.testing.assert_array_equal(other.columns[column], expected)
        whole = other.columns["count"].dtype.kind == "i"
        assert whole == (step == "10")
        unbiased = "estimate" if "estimate" in other.columns else "noisy_count"
        assert "Sum of weights" in other.descriptions[unbiased]
        assert not any("records" in text for text in other.descriptions.values())
    facts = [release.publish(noisy).facts for release in (plain, weighted)]
    assert facts[1]["step"] == step
    for fact in {"sum_of_counts", "threshold"} & set(facts[0]):
        assert facts[1][fact] == facts[0][fact] * Fraction(step)


def test_a_release_of_steps_has_the_adjacency_of_weights():
    stated = {each.name: getattr(PLAIN["histogram"], each.name) for each in fields(Histogram)}
    with pytest.raises(ValueError, match="adjacency: must be weighted"):
        Histogram(**stated | {"adjacency": Adjacency("replace-one", 12), "step": Fraction(2)})
