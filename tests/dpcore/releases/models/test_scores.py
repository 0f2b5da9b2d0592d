"""Sums of clipped scores: exact, record by record, and never longer than is claimed."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.tally import Tally
from dpcore.releases.models.scores import PARTS
from tests.dpcore.releases.contract import measured_model

FAMILIES = ("gaussian", "binomial", "poisson")


def points(release, times=3):
    """The points of all rounds, along paths of noise alone."""
    generator, point = np.random.default_rng(0), release.first_point(times)
    for width, _ in release.scores.laws:
        yield point
        noise = generator.normal(0, release.mechanism.stddev, (times, width))
        point = release.next_point(point, np.rint(noise).astype(np.int64))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sum_is_that_of_its_records_to_the_last_bit(family):
    release = measured_model(family, Budget.of("1", "1e-6"))
    cells = np.arange(6)
    counts = np.array([3, 1, 4, 1, 5, 9])
    whole = release.records_of(Tally(release.domain, cells, counts))
    for point in points(release):
        scores = release.scores  # a release cuts what more records than planned add
        alone = sum(
            count * scores.at(scores.records_of(Tally.of(release.domain, cells[[i]])), point)
            for i, count in enumerate(counts)
        )
        assert np.array_equal(scores.at(whole, point), alone)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_record_adds_no_more_than_the_steps_of_a_round_and_some_as_much(family):
    release = measured_model(family, Budget.of("1", "1e-6"))
    longest = dict.fromkeys(release.scores.rounds, 0.0)
    for point in points(release, 20):
        name = release.scores.rounds[point.number]
        for cell in range(6):
            records = release.records_of(Tally.of(release.domain, np.array([cell])))
            length = np.linalg.norm(release.at(records, point).astype(float), axis=1).max()
            longest[name] = max(longest[name], length / release.scores.steps[name])
    slack = {name: np.sqrt(release.scores.width(name)) + 2 for name in PARTS}
    for name, length in longest.items():
        assert length <= 1 + slack[name] / release.scores.steps[name]
        assert length > 0.3, name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_null_adds_nothing(family):
    release = measured_model(family, Budget.of("1", "1e-6"))
    nulls = release.records_of(Tally.of(release.domain, np.array([6, 7])))
    assert all(not release.at(nulls, point).any() for point in points(release))
