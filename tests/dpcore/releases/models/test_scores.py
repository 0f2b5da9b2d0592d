"""Sums of clipped scores: exact, unit by unit, and never farther apart than is claimed."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.tally import Tally
from dpcore.releases.models.design import SIMPLE, SurveyDesign
from dpcore.releases.models.scores import PARTS
from tests.dpcore.releases.contract import IN_STRATA, measured_model

FAMILIES = ("gaussian", "binomial", "poisson")
IN_CLUSTERS = SurveyDesign(members=2, clusters=Categories("place", ("a", "b")))
DESIGNS = {
    "records": SIMPLE,
    "units": SurveyDesign(members=2),
    "weights in strata": IN_STRATA,
    "units in clusters": IN_CLUSTERS,
}
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


def brought(release, cells):
    """What the units in these cells bring to every round."""
    return release.scores.records_of(Tally.of(release.domain, np.array(cells)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("design", [SIMPLE, DESIGNS["units"], IN_STRATA])
def test_a_sum_is_that_of_its_units_to_the_last_bit(family, design):
    """But for squares of clusters."""
    release = measured_model(family, Budget.of("1", "1e-6"), design)
    cells = np.arange(release.domain.size)[::5]
    counts = 1 + np.arange(len(cells)) % 4
    whole = release.records_of(Tally(release.domain, cells, counts))
    for point in points(release):
        scores = release.scores  # a release cuts what more records than planned add
        each = sum(
            count * scores.at(brought(release, [cell]), point)
            for cell, count in zip(cells, counts, strict=True)
        )
        assert np.array_equal(scores.at(whole, point), each)


@every
@pytest.mark.parametrize("company", [0, 9])
def test_no_two_tables_are_farther_apart_than_a_round_claims_and_some_nearly_are(
    family, design, company
):
    """Neighbours: one unit of any cell is replaced by any other, or left out; beside equal units."""
    release = measured_model(family, Budget.of("1", "1e-6"), design)
    largest = dict.fromkeys(release.scores.rounds, 0.0)
    everywhere = range(release.domain.size)
    others = company * [release.domain.size - 2]
    for point in points(release, 12):
        name = release.scores.rounds[point.number]
        _, squared = release.scores.laws[point.number]
        tables = [[*others, cell] for cell in everywhere] + [others]
        sums = [release.scores.at(brought(release, cells), point) for cells in tables]
        vectors = np.stack(sums, axis=1).astype(float)
        vectors -= vectors[:, -1:]
        lengths = np.sum(vectors**2, axis=2)
        apart = lengths[:, :, None] + lengths[:, None] - 2 * vectors @ np.swapaxes(vectors, 1, 2)
        largest[name] = max(largest[name], float(apart.max() / squared))
    assert all(0.05 < each <= 1 for each in largest.values()), largest
    assert set(largest) <= set(PARTS)


def test_squares_of_clusters_are_those_of_a_naive_sum():
    release = measured_model("gaussian", Budget.of("200", "1e-6"), IN_CLUSTERS)
    scores, cells = release.scores, np.arange(release.domain.size)[::3]
    *_, middle, _ = points(release, 1)
    place = scores._place("middle", "squares")
    width, step = scores.numbers_of("squares"), scores.per_step("squares", middle)
    found = scores.at(brought(release, cells), middle)[0, place : place + width] * step
    records = brought(release, cells)
    short = dict(scores._vectors("middle", records, middle))["squares"][0]
    expected = np.zeros((2, 2))
    for cluster in range(2):
        total = short[records.clusters == cluster].sum(axis=0)
        total *= min(1, scores.radii["cluster"] / np.linalg.norm(total))
        expected += np.outer(total, total)
    parts = [expected[0, 0], np.sqrt(2) * expected[0, 1], expected[1, 1]]
    assert np.allclose(found, parts, atol=5 * step, rtol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_null_adds_nothing(family):
    release = measured_model(family, Budget.of("1", "1e-6"))
    nulls = release.records_of(Tally.of(release.domain, np.array([6, 7])))
    assert all(not release.at(nulls, point).any() for point in points(release))
