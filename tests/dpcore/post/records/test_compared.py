"""Records follow the measured relation of two numbers, and keep their groups."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.post.records.compared import (
    EQUAL,
    LESS,
    MORE,
    UNKNOWN,
    Comparison,
    follow_comparisons,
    in_turn,
    with_few,
)
from dpcore.post.tables.margins import Margin

ROWS = 6000
HUNDRED = Bins("a", tuple(map(float, range(101))), integer=True)
DOMAIN = Domain(
    (
        HUNDRED,
        Bins("b", HUNDRED.edges, nullable=True, integer=True),
        Categories("a_against_b", ("less", "equal", "more"), True, compares=("a", "b")),
    )
)
TENS = np.arange(100) // 10


def records(seed: int) -> np.ndarray:
    """Two independent numbers; one in ten of the second is null."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 100, (ROWS, 3))
    codes[random.random(ROWS) < 0.1, 1] = 100
    return codes


def inside(codes: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    groups = np.append(TENS, 10)
    return {0: (TENS[codes[:, 0]], TENS), 1: (groups[codes[:, 1]], groups)}


def shares(codes: np.ndarray) -> np.ndarray:
    known = codes[:, 1] < 100
    return np.bincount(1 + np.sign(codes[known, 0] - codes[known, 1]), minlength=3)


def followed(codes: np.ndarray, counts: list[float], error: float = 20.0) -> np.ndarray:
    comparison = Comparison(2, (0, 1), np.array(counts), error)
    return follow_comparisons(DOMAIN, codes, inside(codes), [comparison], np.random.default_rng(1))


def test_relations_are_as_frequent_as_measured_and_groups_stay():
    codes = records(1)
    before = shares(codes)
    found = followed(codes, [before[0] - 150, before[1] + 300, before[2] - 150])
    assert abs(shares(found) - before - [-150, 300, -150]).max() <= 2
    for place, (groups, of_cells) in inside(codes).items():
        assert (of_cells[found[:, place]] == groups).all()
    known = found[:, 1] < 100
    assert (found[known, 2] == 1 + np.sign(found[known, 0] - found[known, 1])).all()
    assert (found[~known, 2] == UNKNOWN).all()


def test_more_than_groups_allow_are_changed_as_far_as_they_allow():
    codes = records(2)
    found = followed(codes, [0.0, 0.0, 5400.0])
    groups = inside(codes)
    apart = (codes[:, 1] < 100) & (groups[0][0] > groups[1][0])
    alike = (codes[:, 1] < 100) & (groups[0][0] == groups[1][0])
    assert shares(found)[MORE] == pytest.approx((apart | alike).sum(), abs=80)


def test_counts_within_their_noise_change_nothing():
    codes = records(3)
    before = shares(codes)
    found = followed(codes, (before + np.array([40, -20, -20])).tolist(), error=40.0)
    assert (found[:, :2] == codes[:, :2]).all()
    assert (found[:, 2] == UNKNOWN).all()


def test_cells_that_can_only_have_a_rare_relation_lose_their_records():
    table = np.random.default_rng(4).integers(50, 100, (100, 101)).astype(float)
    margin = Margin((0, 1), table, 1.0)
    axes = DOMAIN.axes[:2]
    counts = np.array([0.4, 0.6, 1e-5]) * table.sum()
    found = with_few(margin, axes, Comparison(2, (0, 1), counts, 50.0)).table
    assert np.tril(found[:, :100], -1).sum() == 0
    assert (found[:, 100] == table[:, 100]).all()
    plenty = np.array([0.5, 0.0, 0.5]) * table.sum()
    same = with_few(margin, axes, Comparison(2, (0, 1), plenty, table.sum()))
    assert (same.table == table).all()


def test_pairs_that_close_a_circle_are_left_out():
    turns = list(in_turn([(0, 1), (1, 2), (0, 2), (4, 5), (2, 4)]))
    assert [pair for pair, _ in turns] == [(0, 1), (1, 2), (2, 4), (4, 5)]
    assert [free for _, free in turns] == [(0, 1), (2,), (4,), (5,)]


def test_names_of_relations_are_codes_of_the_axis():
    axis = DOMAIN.axes[2]
    assert isinstance(axis, Categories)
    assert [axis.categories[code] for code in (LESS, EQUAL, MORE)] == ["less", "equal", "more"]
