"""Sums of clipped scores: exact, unit by unit, and never farther apart than is claimed."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.tally import Tally
from dpcore.releases.models.design import SIMPLE, Design
from dpcore.releases.models.scores import PARTS
from tests.dpcore.releases.contract import IN_STRATA, measured_model

FAMILIES = ("gaussian", "binomial", "poisson")
DESIGNS = {"records": SIMPLE, "units": Design(members=2), "weights in strata": IN_STRATA}
RELEASES = {
    f"{family}, {name}": (family, design) for family in FAMILIES for name, design in DESIGNS.items()
}
every = pytest.mark.parametrize(("family", "design"), RELEASES.values(), ids=RELEASES)


def points(release, times=3):
    """The points of all rounds, along paths of noise alone."""
    generator, point = np.random.default_rng(0), release.first_point(times)
    for width, _ in release.scores.laws:
        yield point
        noise = generator.normal(0, release.mechanism.stddev, (times, width))
        point = release.next_point(point, np.rint(noise).astype(np.int64))


def alone(release, cell):
    """What the one unit of a table brings to every round."""
    return release.scores.records_of(Tally.of(release.domain, np.array([cell])))


@every
def test_a_sum_is_that_of_its_units_to_the_last_bit(family, design):
    release = measured_model(family, Budget.of("1", "1e-6"), design)
    cells = np.arange(release.domain.size)[::5]
    counts = 1 + np.arange(len(cells)) % 4
    whole = release.records_of(Tally(release.domain, cells, counts))
    for point in points(release):
        scores = release.scores  # a release cuts what more records than planned add
        each = sum(
            count * scores.at(alone(release, cell), point)
            for cell, count in zip(cells, counts, strict=True)
        )
        assert np.array_equal(scores.at(whole, point), each)


@every
def test_no_two_units_are_farther_apart_than_a_round_claims_and_some_nearly_are(family, design):
    """All pairs of cells, one unit replaced by the other or left out."""
    release = measured_model(family, Budget.of("1", "1e-6"), design)
    largest = dict.fromkeys(release.scores.rounds, 0.0)
    for point in points(release, 20):
        name = release.scores.rounds[point.number]
        _, squared = release.scores.laws[point.number]
        sums = [release.at(alone(release, c), point) for c in range(release.domain.size)]
        vectors = np.stack([*sums, 0 * sums[0]], axis=1).astype(float)
        lengths = np.sum(vectors**2, axis=2)
        apart = lengths[:, :, None] + lengths[:, None] - 2 * vectors @ np.swapaxes(vectors, 1, 2)
        largest[name] = max(largest[name], float(apart.max() / squared))
    assert all(0.05 < each <= 1 for each in largest.values()), largest
    assert set(largest) <= set(PARTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_null_adds_nothing(family):
    release = measured_model(family, Budget.of("1", "1e-6"))
    nulls = release.records_of(Tally.of(release.domain, np.array([6, 7])))
    assert all(not release.at(nulls, point).any() for point in points(release))
