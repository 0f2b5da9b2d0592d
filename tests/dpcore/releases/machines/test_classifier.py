"""The private kernel machine: where its sensitivity is sharp, and what is published of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.machines.features import coordinate_names, coordinates, scaled_positions
from dpcore.releases.machines.machine import KernelMachine
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, opened, repeated_draws
from tests.dpcore.releases.machines import test_regression as of_numbers
from tests.dpcore.releases.machines.test_regression import points_at

SHARE = Budget.of("1", "1e-6")
AGE = Grid("age", 18.0, 90.0, 72, integer=True)
SIZE = Categories("size", (1, 2, 3, 5))
LABEL = Categories("rich", ("no", "yes", "very"))
DOMAIN = Domain((AGE, SIZE, LABEL))
SIGNS = (-1, 1, 1)


def classifier(rows: int = 300, regularisation: float = 0.1, **rest: object) -> Classifier:
    return Classifier("c", DOMAIN, rows, SHARE, (0.5, 0.5), regularisation, 16, SIGNS, **rest)


def records(rows: int = 300) -> np.ndarray:
    random = np.random.default_rng(3)
    ages, sizes = random.integers(0, 72, rows), random.integers(0, 4, rows)
    label = np.where(ages + 10 * sizes + random.normal(0, 12, rows) > 50, 1, 0)
    return DOMAIN.pack(np.stack([ages, sizes, label], axis=1))


def moved(release: Classifier, one: np.ndarray, other: np.ndarray) -> float:
    """How far two tables are apart, as a part of kappa / (lambda n)."""
    vectors = [opened(release, table).astype(float) for table in (one, other)]
    bound = 1 / (release.regularisation * release.rows)
    return float(np.linalg.norm(vectors[0] - vectors[1])) * release.lattice.step / bound


def test_a_label_that_flips_where_all_margins_are_active_moves_the_machine_by_the_bound():
    """kappa / (lambda n) is sharp; the claim is at most 1.1 per cent above it."""
    release = classifier(rows=40, regularisation=0.5)
    table = records(40)
    flipped = table.copy()
    flipped[7] += 1 if DOMAIN.unpack(table[7:8])[0, 2] == 0 else -1
    assert moved(release, table, flipped) == pytest.approx(1.0, abs=0.01)
    claim = math.sqrt(release.mechanism.event.l2_sensitivity_squared) * release.lattice.step
    assert 1.0 < claim * 0.5 * 40 < 1.011


def test_equal_records_weigh_as_often_as_they_occur():
    yes, no, far = DOMAIN.pack(np.array([[10, 1, 1], [10, 1, 0], [60, 3, 1]]))
    point = np.column_stack([scaled_positions(AGE)[[10]], scaled_positions(SIZE)[[1]]])

    def decision(table: list[int], rows: int, signs: tuple = SIGNS) -> float:
        release = replace(classifier(rows=rows, regularisation=0.5), signs=signs)
        trained = Noisy(opened(release, np.array(table)))
        return float(release.decide(trained, point)[0])

    # All margins are active, so f is the mean of y K(x, .) over the records, by hand.
    assert decision([yes, no], 2) == pytest.approx(0, abs=0.01)
    assert decision([yes, yes, yes, no], 4) == pytest.approx(0.5, abs=0.01)
    assert decision([yes, no, no, no, no], 5) == pytest.approx(-0.6, abs=0.01)
    once, thrice = decision([yes, no, far], 3), decision([yes, no, far] * 3, 9)
    assert once == pytest.approx(thrice, abs=0.01)
    assert abs(once) > 0.01
    assert decision([yes, yes, yes, no], 4, (1, -1, -1)) == pytest.approx(-0.5, abs=0.01)


def of_loss(loss: str) -> tuple[KernelMachine, np.ndarray, float]:
    """A machine, its records, and M kappa / (lambda n): its standard error in units of sigma*."""
    if loss == "hinge":
        return classifier(), records(), 1 / (0.1 * 300)
    # Huber's slope is its threshold.
    return of_numbers.regression(), of_numbers.records(), 10_000 * 0.1 / (0.05 * 400)


every_loss = pytest.mark.parametrize("loss", ["hinge", "huber"])


@every_loss
def test_the_noise_in_a_decision_has_the_stated_standard_error_everywhere(loss: str):
    """Over 3,000 draws: within 6 per cent, which is 4.6 standard deviations."""
    release, table, by_hand = of_loss(loss)
    unit = 1 if loss == "hinge" else 10_000
    points = np.random.default_rng(2).random((5, 2 if loss == "hinge" else 4))
    clean = release.decide(Noisy(opened(release, table)), points)
    draws = repeated_draws(release, table, 3000, SeededSource(1))
    errors = (draws * release.lattice.step) @ release.features.transform(points).T - clean
    (statement,) = release.expected_error()
    np.testing.assert_allclose(unit * errors.std(axis=0), statement.value, rtol=0.06)
    assert unit * np.abs(errors.mean(axis=0)).max() < 5 * statement.value / math.sqrt(3000)
    sigma = math.sqrt(release.mechanism.variance / release.mechanism.l2_sensitivity_squared)
    assert statement.value == pytest.approx(sigma * by_hand, rel=0.012)


def test_the_published_function_can_be_evaluated_from_its_table_alone():
    release = classifier()
    noisy = drawn(release, records(), 2)
    published = release.publish(noisy)
    columns, facts = published.tables[0].columns, published.facts
    ages, sizes = np.array([18.0, 40.0, 89.0]), np.array([5.0, 1.0, 3.0])
    scaled = []
    for values, name in ((ages, "age"), (sizes, "size")):
        place = facts["coordinates"][name]
        scaled.append((values - place["lower"]) / place["width"])
    phases = np.outer(scaled[0], columns["w_age"]) + np.outer(scaled[1], columns["w_size"])
    f = np.cos(phases) @ columns["cos"] + np.sin(phases) @ columns["sin"]
    codes = np.array([[0, 3], [22, 0], [71, 2]])
    points = points_at(DOMAIN, codes)
    np.testing.assert_allclose(scaled, points.T)
    np.testing.assert_allclose(f, release.decide(noisy, points), atol=1e-12)
    assert facts["decision_standard_error"] == release.decision_stddev
    assert facts["label"] == "rich"


def test_null_lies_apart_from_every_value():
    age = Grid("age", 0.0, 10.0, 5, nullable=True)
    places = scaled_positions(age)
    assert coordinate_names(age) == ["age", "age is null"]
    assert places[-1].tolist() == [0.5, 1]
    apart = np.linalg.norm(places[:-1] - places[-1], axis=1)
    assert 1 <= apart.min() <= apart.max() <= math.sqrt(1.25)
    np.testing.assert_array_equal(places[:-1, 0], scaled_positions(Grid("age", 0.0, 10.0, 5)))
    assert "age is null" in str(coordinates(age)["null"])

    region = Categories("region", ("north", "south"), nullable=True)
    assert coordinate_names(region) == ["region=north", "region=south", "region is null"]
    apart = np.linalg.norm(scaled_positions(region)[:, None] - scaled_positions(region), axis=2)
    np.testing.assert_allclose(apart, 1 - np.eye(3))


@every_loss
def test_one_record_and_an_empty_table_train_a_machine(loss: str):
    release = classifier(rows=1) if loss == "hinge" else of_numbers.regression(rows=1)
    for table in ((5,), ()):
        columns = release.publish(drawn(release, table)).tables[0].columns
        assert len(columns["cos"]) == release.frequencies
    assert not opened(release, ()).any()


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Categories("c", tuple(f"c{i}" for i in range(65))), "may have at most [0-9,]*"),
        (Bins("c", (0.0, 1.0, 2.0)), "is binned"),
        (Grid("c", 0.0, 1.0, 2**24 + 1), "may have at most [0-9,]*"),
    ],
)
def test_features_without_a_place_in_a_kernel_are_refused(feature: object, text: str):
    with pytest.raises(ValueError, match=text):
        Classifier("c", Domain((feature, LABEL)), 10, SHARE, (0.5,), signs=SIGNS)
