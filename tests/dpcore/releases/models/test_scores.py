"""Sums of clipped scores: exact, unit by unit, and never farther apart than is claimed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.tally import Tally
from dpcore.releases.models.design import SIMPLE, SurveyDesign
from dpcore.releases.models.rounds import PARTS
from dpcore.releases.models.scores import _relative
from dpcore.releases.models.terms import ModelTerms, TermGroup
from tests.dpcore.releases.contract import IN_STRATA, means_of_groups, measured_model

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
IN_GROUPS = {
    "a record, in groups": ("gaussian", SIMPLE),
    "a unit, in groups": ("gaussian", SurveyDesign(members=2)),
    "a weight, in groups": ("poisson", SurveyDesign(steps=2, usual=1.0)),
    "a unit of a cluster, in groups": ("binomial", IN_CLUSTERS),
}
every = pytest.mark.parametrize(("family", "design"), RELEASES.values(), ids=RELEASES)


def at(release, records, points):
    """The sums of all parts; a release cuts what more records than planned add."""
    sums = [release.scores.at(*each) for each in zip(records, points, strict=True)]
    return np.hstack(sums)


def points(release, times=3):
    """The points of all rounds, along paths of noise alone."""
    generator, point = np.random.default_rng(0), release.first_point(times)
    for width, _ in release.scores.laws:
        yield point
        noise = generator.normal(0, release.mechanism.stddev, (times, width))
        point = release.next_point(point, np.rint(noise).astype(np.int64))


def brought(release, cells):
    """What the units in these cells bring to every round."""
    return release.records_of(Tally.of(release.domain, np.array(cells)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("design", [SIMPLE, DESIGNS["units"], IN_STRATA])
def test_a_sum_is_that_of_its_units_to_the_last_bit(family, design):
    """But for squares of clusters."""
    release = measured_model(family, Budget.of("1", "1e-6"), design)
    cells = np.arange(release.domain.size)[::5]
    counts = 1 + np.arange(len(cells)) % 4
    whole = release.records_of(Tally(release.domain, cells, counts))
    for point in points(release):
        each = sum(
            count * at(release, brought(release, [cell]), point)
            for cell, count in zip(cells, counts, strict=True)
        )
        assert np.array_equal(at(release, whole, point), each)


@pytest.mark.slow
@every
def test_no_two_tables_are_farther_apart_than_a_round_claims_and_some_nearly_are(family, design):
    require_near(measured_model(family, Budget.of("1", "1e-6"), design), company=0)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_nor_are_two_tables_in_which_others_are(design):
    require_near(measured_model("binomial", Budget.of("1", "1e-6"), design), company=9)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "design"), IN_GROUPS.values(), ids=IN_GROUPS)
def test_groups_side_by_side_cost_what_one_does_or_as_many_as_a_unit_is_in(family, design):
    release = means_of_groups(family, Budget.of("1", "1e-6"), design)
    assert release.groups > 1
    require_near(release, 0)
    one = measured_model(family, Budget.of("1", "1e-6"), design)
    for name, (_, of_all), (_, of_one) in zip(
        release.scores.rounds, release.scores.laws, one.scores.laws, strict=True
    ):
        if release.scores.parts_of(name) != one.scores.parts_of(name):
            assert name == "middle"  # squares of clusters have another weight for a mean
            continue
        steps = release.scores.steps[name] / one.scores.steps[name]
        ratio = float(of_all / of_one) / steps**2 / min(release.groups, design.members)
        assert ratio == pytest.approx(1, rel=0.01)  # but for rounding


def with_many_values(family, number, design=SIMPLE, powers=(2,)):
    """A model of y by powers of this many columns, with enough values for an interval to be found: 18,
    or 200 with several powers."""
    small, k = measured_model(family, Budget.of("1", "1e-6"), design), len(powers)
    size = 18 if k == 1 else 200
    axes = tuple(Categories(f"x{i}", tuple(range(size))) for i in range(number))
    values = np.arange(float(size))[:, None] ** powers
    terms = [TermGroup((i,), tuple(range(1 + k * i, 1 + k * i + k)), values) for i in range(number)]
    one, y = (
        TermGroup((), (0,), np.ones((1, 1))),
        TermGroup((number,), (0,), np.arange(2.0)[:, None]),
    )
    names = ("Intercept", *(f"{axis.name}^{power}" for axis in axes for power in powers))
    scale = small.terms.scale
    axes = (*axes, Categories("y", (0, 1)))
    found = ModelTerms(axes, names, (one, *terms), y, scale)
    assert len(found.edges) == number
    return replace(small, domain=design.domain(axes), terms=found)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("number", "design", "powers"),
    [(2, SIMPLE, (2,)), (1, DESIGNS["units"], (2,)), (1, SIMPLE, (1, 2)), (1, SIMPLE, (1, 2, 3))],
)
def test_nor_are_tables_of_terms_that_are_measured_within_intervals(family, number, design, powers):
    release = with_many_values(family, number, design, powers)
    several = len(powers) > 1
    near = ("response", "moments") if several else PARTS
    *_, last = points(release)
    squeezed = not np.allclose(last[0].squeeze, np.eye(release.terms.size))
    assert squeezed == release.scores.weighed
    require_near(release, company=0, every=3 if several else 7, near=near)


def test_functions_of_one_column_are_uncorrelated_within_its_interval_and_shortened_outside():
    release = with_many_values("binomial", 1, powers=(1, 2))
    scores, (point,) = release.scores, release.first_point(1)
    rows = scores.terms.rows(np.array([[x, 0] for x in range(200)]))
    within = np.arange(100)
    middle, half = rows[within, 1].mean(), np.ptp(rows[within, 1]) / 2 * 1.01
    centre, local = scores.terms.inside(1, middle, half)
    local = block_diag(1.0, local)
    near = replace(point.near, middle=np.r_[0, centre][None], local=local[None])
    found = _relative(rows[:, None], [1, 2], near)[0, :, 0]
    assert np.abs(found[within].mean(axis=0)).max() < 1e-9
    assert found[within, 0] @ found[within, 1] == pytest.approx(0, abs=1e-9)
    lengths = np.linalg.norm(found, axis=1)
    assert lengths[within].max() == pytest.approx(1)
    assert lengths[100:] == pytest.approx(1)
    assert np.abs(np.corrcoef(rows[within, 1:].T)[0, 1]) > 0.9
    # A part of few cells does not tell the terms apart.
    assert np.array_equal(scores.terms.inside(1, rows[3, 1], 0.01)[1], np.eye(2))


def test_the_farthest_value_of_a_column_with_powers_is_the_longest_within_its_interval():
    release = with_many_values("gaussian", 1, powers=(1, 2))
    scores, random = release.scores, np.random.default_rng(0)
    codes = np.array([[x, 0] for x in np.minimum(random.geometric(0.05, 5_000), 150)])
    rows = scores.terms.rows(codes)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    white = vectors / np.sqrt(values)
    value = scores.terms.rows(np.array([[x, 0] for x in range(200)]))
    centre, local = scores.terms.inside(1, value[60, 1], value[120, 1] - value[60, 1])
    middle, local = np.r_[0, centre], block_diag(1.0, local)
    found = scores.terms.farthest(1, white[None], middle[None], local[None])[0]
    assert found == pytest.approx(value[120] @ white)


def test_an_interval_holds_most_values_of_a_term_whatever_its_bounds():
    release = with_many_values("binomial", 1)
    (point,), (edges,) = release.first_point(1), release.scores.terms.edges.values()
    values = release.scores.terms.rows(np.array([[x, 0] for x in range(18)]))[:, 1]
    for some in ([0, 1, 2], [9, 10], [16, 17], list(range(18))):
        counts, _ = np.histogram(np.repeat(values[some], 500), edges)
        here = replace(point, rows=np.array([500.0 * len(some)]))
        found = release.scores._within_intervals(here, counts[None] * 1.0, np.array([5.0]))
        reach, middle = 1 / found.near.local[0, 1, 1], found.near.middle[0, 1]
        assert np.all(np.abs(values[some] - middle) <= reach)
        assert (reach < 0.5) == (len(some) < 18)


def test_a_group_has_the_sums_of_its_records_alone():
    release = means_of_groups("gaussian", Budget.of("1", "1e-6"), SurveyDesign(members=2))
    both = np.arange(release.domain.size)[::7]
    *_, last = points(release)
    parts = release.records_of(Tally.of(release.domain, both))
    codes, weights, _ = release.design.unpacked(release.domain.unpack(both), release.terms.axes)
    for i, part in enumerate(parts):
        assert part.weights.sum() == np.sum((codes[:, :, 0] == i) * weights)
    assert release.at(parts, last).shape[1] == release.groups


def require_near(release, company, every=1, near=tuple(PARTS)):
    """Neighbours: one unit of any cell is replaced by any other, or left out; beside equal units.

    ``near``: the rounds of which some tables must be nearly as far apart as claimed.
    """
    largest = dict.fromkeys(release.scores.rounds, 0.0)
    everywhere = range(0, release.domain.size, every)
    others = company * [release.domain.size - 2]
    for point in points(release, 12):
        number = point[0].number
        name, (_, squared) = release.scores.rounds[number], release.scores.laws[number]
        tables = [[*others, cell] for cell in everywhere] + [others]
        sums = [at(release, brought(release, cells), point) for cells in tables]
        vectors = np.stack(sums, axis=1).astype(float)
        vectors -= vectors[:, -1:]
        lengths = np.sum(vectors**2, axis=2)
        apart = lengths[:, :, None] + lengths[:, None] - 2 * vectors @ np.swapaxes(vectors, 1, 2)
        largest[name] = max(largest[name], float(apart.max() / squared))
    assert all(0.02 * (name in near) < each <= 1 for name, each in largest.items()), largest
    assert set(largest) <= set(PARTS)


def test_squares_of_clusters_are_those_of_a_naive_sum():
    release = measured_model("gaussian", Budget.of("200", "1e-6"), IN_CLUSTERS)
    scores, cells = release.scores, np.arange(release.domain.size)[::3]
    *_, (middle,), _ = points(release, 1)
    place = scores._place("middle", "squares")
    width, step = scores.numbers_of("squares"), scores.per_step("squares", middle)
    (records,) = brought(release, cells)
    found = scores.at(records, middle)[0, place : place + width] * step
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


def test_fewer_drawn_clusters_than_are_listed_are_longer():
    """Of as many units in a tenth of the clusters each has ten times as many."""
    places = Categories("place", tuple(range(1000)))
    all_drawn = SurveyDesign(clusters=places)
    few = replace(all_drawn, drawn_clusters=100)
    share = Budget.of("1", "1e-6")

    def length(design, groups, rows=20_000):
        scores = means_of_groups("gaussian", share, design).scores
        return replace(scores, groups=groups, rows=rows // groups).radii["cluster"]

    assert length(few, 1) > 5 * length(all_drawn, 1)
    # A cluster may lie in one group altogether: of half the records in half the clusters.
    assert length(few, 2) == length(replace(few, drawn_clusters=50), 1, rows=10_000)
