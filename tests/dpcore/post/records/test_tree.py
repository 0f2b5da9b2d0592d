"""Spanning trees of noisy margins, records sampled along them, and systematic sampling."""

from itertools import combinations

import numpy as np
import pytest

from dpcore.post.records.systematic import draw_systematically
from dpcore.post.records.tree import sample_tree, spanning_tree
from dpcore.post.tables.margins import Margin, margins_of
from tests.dpcore.post.records.population import noisy_margins, total_variation


def chain(rows=4000, seed=0):
    """0 -> 2 -> 1 -> 3, each a noisy copy of the one before; 4 on its own."""
    generator = np.random.default_rng(seed)
    codes = np.zeros((rows, 5), dtype=np.int64)
    codes[:, 0] = generator.integers(0, 3, rows)
    for child, parent in [(2, 0), (1, 2), (3, 1)]:
        keep = generator.random(rows) < 0.8
        codes[:, child] = np.where(keep, codes[:, parent], generator.integers(0, 3, rows))
    codes[:, 4] = generator.integers(0, 3, rows)
    return codes


SIZES = (3, 3, 3, 3, 3)
PAIRS = list(combinations(range(5), 2))


def test_the_tree_follows_the_strong_associations_and_leaves_noise_out():
    noisy = noisy_margins(chain(), SIZES, PAIRS, 100.0, seed=1)
    tree = spanning_tree(SIZES, noisy, 4000)
    assert {(0, 2), (1, 2), (1, 3)} <= set(tree)
    assert tree == spanning_tree(SIZES, noisy[::-1], 4000)
    assert tree == spanning_tree(SIZES, noisy)  # the margins know the total well enough


def test_records_follow_the_edges_and_the_single_margins():
    codes = chain()
    exact = noisy_margins(codes, SIZES, PAIRS, 1e-12, seed=1)
    edges = [(2, 0), (1, 2), (3, 1)]
    sampled = sample_tree(SIZES, edges, exact, 4000, np.random.default_rng(1))
    for one, two in zip(
        margins_of(sampled, SIZES, [(a,) for a in range(5)]),
        margins_of(codes, SIZES, [(a,) for a in range(5)]),
        strict=True,
    ):
        assert np.abs(one - two).max() <= 12  # at most one record per parent value, per generation
    along = [(0, 2), (1, 2), (1, 3)]
    assert total_variation(sampled, codes, SIZES, along) < 0.003
    assert total_variation(sampled, codes, SIZES, [(0, 1), (0, 3), (2, 3)]) < 0.03


def test_few_rows_and_attributes_of_one_value():
    margins = [Margin((0, 1), np.array([[-3.0, 1.0]]), 1.0)]
    assert spanning_tree((1, 2), margins) == []
    for rows in (0, 1, 2):
        sampled = sample_tree((1, 2), [(0, 1)], margins, rows, np.random.default_rng(0))
        assert sampled.shape == (rows, 2)
        assert np.all(sampled == [0, 1])


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (0, 2)], "close a cycle"),
        ([(0, 1), (1, 0)], "close a cycle"),
        ([(1, 1)], "two different attributes"),
        ([(0, 7)], r"two different attributes of 0\.\.3"),
        ([(0, 3)], r"no margin contains both attributes of the edge \(0, 3\)"),
    ],
)
def test_edges_that_are_no_forest_over_the_margins_are_refused(edges, message):
    margins = [Margin((0, 1, 2), np.ones((2, 2, 2)), 1.0), Margin((3,), np.ones(2), 1.0)]
    with pytest.raises(ValueError, match=message):
        sample_tree((2, 2, 2, 2), edges, margins, 8, np.random.default_rng(0))


def test_an_attribute_in_no_margin_is_named():
    with pytest.raises(ValueError, match="attribute 1 is in no margin"):
        sample_tree((2, 2), [], [Margin((0,), np.ones(2), 1.0)], 8, np.random.default_rng(0))


def test_systematic_draws_are_within_one_of_expectation_in_every_group():
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.full(7, 0.3), 5) * generator.uniform(0.1, 9, (5, 1))
    weights[2] = 0.0
    groups = generator.integers(0, 5, 999)
    values = draw_systematically(groups, weights, generator)
    weights[2] = weights.sum(axis=0)
    for group in range(5):
        share = weights[group] / weights[group].sum() * np.sum(groups == group)
        counts = np.bincount(values[groups == group], minlength=7)
        assert np.all(np.abs(counts - share) < 1 + 1e-9)
        assert np.all(counts[weights[group] == 0] == 0)
