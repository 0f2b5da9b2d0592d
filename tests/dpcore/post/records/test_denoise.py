"""A model of all tables removes noise from noisy tables and keeps their signal."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.denoise import denoise
from dpcore.post.records.mixture import STEP, Mixture, _Descent, fit_mixture
from dpcore.post.records.nested import Nested, tied
from dpcore.post.tables.margins import Margin, Residual, margins_of

SIZES = (3, 12, 9, 2)
COLUMNS = RecordColumns(SIZES, in_order={1: 12, 2: 9})
PAIRS = list(combinations(range(4), 2))
ROWS = 4000


def population(seed: int) -> np.ndarray:
    """Two kinds of people: they differ in every column."""
    generator = np.random.default_rng(seed)
    kind = generator.random(ROWS) < 0.4
    columns = [
        np.where(kind, generator.binomial(s - 1, 0.3, ROWS), generator.binomial(s - 1, 0.8, ROWS))
        for s in SIZES
    ]
    return np.stack(columns, axis=1)


def noisy_tables(
    codes: np.ndarray, variance: float, seed: int, sets: list[tuple[int, ...]] = PAIRS
) -> list[Margin]:
    generator = np.random.default_rng(seed)
    return [
        Margin(attrs, table + generator.normal(0, variance**0.5, table.shape), variance)
        for attrs, table in zip(sets, margins_of(codes, SIZES, sets), strict=True)
    ]


def distance(tables: list[Margin], codes: np.ndarray) -> float:
    exact = margins_of(codes, SIZES, PAIRS)
    return sum(np.abs(a.table - b).sum() for a, b in zip(tables, exact, strict=True))


def test_denoised_tables_are_closer_to_the_truth_than_noisy_ones():
    codes = population(1)
    noisy = noisy_tables(codes, 40.0**2, 2)
    found = denoise(COLUMNS, noisy, np.random.default_rng(3), total=ROWS)
    assert distance(found, codes) < 0.7 * distance(noisy, codes)


def told(measured: Margin | Residual, table: np.ndarray) -> np.ndarray:
    """The table, or what a residual says of it."""
    if isinstance(measured, Residual):
        for axis in range(table.ndim):
            table = table - table.mean(axis=axis, keepdims=True)
    return table


def residuals(tables: list[Margin]) -> list[Margin | Residual]:
    """Every third table as a residual."""
    return [
        Residual(m.attributes, told(Residual(*m), m.table), m.variance) if i % 3 == 1 else m
        for i, m in enumerate(tables)
    ]


ANY = np.ones((1, sum(SIZES)), dtype=bool)
FORMS = np.ones((2, sum(SIZES)), dtype=bool)
FORMS[0, 0] = FORMS[1, -1] = False
"""Components without the first cell of the first attribute, and without the last one of the last."""


def objective(descent: _Descent, noisy: list[Margin | Residual]) -> float:
    """What the mixture minimises, in double precision and by its formula."""
    weights, parts = (values.astype(np.float64) for values in descent.probabilities())
    mixture = Mixture(weights, tuple(np.split(parts, descent.starts[1:], axis=1)))
    misfit = sum(
        np.sum((told(m, ROWS * mixture.shares(m.attributes)) - m.table) ** 2) / (2 * m.variance)
        for m in noisy
    )
    ratio = np.log(parts) - descent.reference
    return float(
        misfit
        + weights @ (descent.divergence * parts * ratio).sum(axis=1)
        + weights @ (descent.links * np.diff(ratio, axis=1) ** 2).sum(axis=1) / 2
    )


SETS = [PAIRS, [*PAIRS, (0, 1, 3), (0, 2, 3), (0, 1, 2, 3), (2,), (3,)], [(0, 1), (1, 2, 3)]]


@pytest.fixture(params=[(sets, mixed) for sets in SETS for mixed in (False, True)][:-1])
def noisy(request: pytest.FixtureRequest) -> list[Margin | Residual]:
    """Noisy pairs; with more sets of any size; and some that overlap; also with residuals."""
    sets, mixed = request.param
    tables = noisy_tables(population(1), 400.0, 2, sets)
    return residuals(tables) if mixed else list(tables)


@pytest.mark.parametrize("forms", [ANY, FORMS])
def test_the_descent_lowers_the_stated_objective(noisy: list[Margin | Residual], forms: np.ndarray):
    descent = _Descent(COLUMNS, noisy, ROWS, forms, 20, np.random.default_rng(3))
    values = []
    for _ in range(60):
        values.append(objective(descent, noisy))
        descent.step(STEP)
    assert values[-1] < values[20] < values[0]
    assert values[-1] < 0.5 * values[0]
    parts = descent.probabilities()[1]
    assert parts[~forms[np.arange(20) % len(forms)]].sum() < 1e-20


NESTED = (Nested(group=0, detail=1, of=(0,) * 4 + (1,) * 5 + (2,) * 3),)


@pytest.mark.parametrize("nested", [(), NESTED])
def test_its_gradients_are_those_of_the_stated_objective(
    noisy: list[Margin | Residual], nested: tuple[Nested, ...]
):
    columns = replace(COLUMNS, nested=nested)
    noisy = [each for each in noisy if not tied(each.attributes, nested)]
    noisy += noisy_tables(population(1), 400.0, 5, [(each.group,) for each in nested])

    def at(logs: np.ndarray, log_weights: np.ndarray) -> _Descent:
        descent = _Descent(columns, noisy, ROWS, ANY, 5, np.random.default_rng(3))
        descent.logs = logs.astype(np.float32)
        descent.log_weights = log_weights.astype(np.float32)
        return descent

    generator = np.random.default_rng(4)
    logs, log_weights = generator.normal(-2, 0.5, (5, sum(SIZES))), generator.normal(0, 0.5, 5)
    for stated, shape in zip(at(logs, log_weights).gradients(), (logs.shape, (5,)), strict=True):
        for _ in range(5):
            direction = 0.02 * generator.standard_normal(shape)
            moves = (direction, 0) if len(shape) == 2 else (0, direction)
            up, down = (
                objective(at(logs + sign * moves[0], log_weights + sign * moves[1]), noisy)
                for sign in (1, -1)
            )
            expected = float(np.sum(stated * direction))
            assert (up - down) / 2 == pytest.approx(expected, rel=0.03, abs=0.05)


def test_a_mixture_is_a_distribution_whose_tables_agree():
    noisy = noisy_tables(population(1), 400.0, 2)
    seen: list[int] = []
    mixture = fit_mixture(
        RecordColumns(SIZES), noisy, np.random.default_rng(3), total=ROWS, steps=30,
        progress=lambda done, steps: seen.append(done),
    )  # fmt: skip
    assert seen == list(range(1, 31))
    assert mixture.weights.sum() == pytest.approx(1.0)
    for part in mixture.distributions:
        assert part.min() >= 0
        np.testing.assert_allclose(part.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        mixture.shares((0, 1)).sum(axis=1), mixture.shares((0, 2)).sum(axis=1)
    )


def test_no_records_and_bad_margins():
    table = np.array([[1.0, -2.0], [0.0, 1.0]])
    noisy, generator = [Margin((0, 1), table, 1.0)], np.random.default_rng(3)
    untouched = denoise(RecordColumns((2, 2)), noisy, generator, total=0)
    np.testing.assert_array_equal(untouched[0].table, table)
    with pytest.raises(ValueError, match=r"no measurement covers the attributes \(2,\)"):
        fit_mixture(RecordColumns((2, 2, 2)), noisy, generator, total=3)
