"""Choices that are not made with the stated chances are found, and right ones pass."""

import numpy as np
import pytest
from scipy import stats

from dpcore.audit import short_audit
from dpcore.audit.chosen import Hits
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import CASES

CHANCES = np.tile([0.5, 0.3, 0.2], (500, 1))


def hits_of(*choices) -> Hits:
    hits = Hits()
    hits.add(choices)
    return hits


def test_other_chances_than_those_stated_are_found_in_any_round():
    generator = np.random.default_rng(1)
    right, wrong = (generator.choice(3, 500, p=p) for p in ([0.5, 0.3, 0.2], [0.3, 0.5, 0.2]))
    assert hits_of((right, CHANCES), (right, CHANCES)).bound(1e-6).passed
    assert not hits_of((right, CHANCES), (wrong, CHANCES)).bound(1e-6).passed
    assert Hits().bound(1e-6) is None


def test_right_choices_are_accused_no_more_often_than_stated():
    """400 times at 5%: the tolerance is exceeded by chance once in a million."""
    generator = np.random.default_rng(2)
    accused = sum(
        not hits_of((generator.choice(3, 500, p=CHANCES[0]), CHANCES)).bound(0.05).passed
        for _ in range(400)
    )
    assert accused <= stats.binom.ppf(1 - 1e-6, 400, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["density at a private bandwidth", "quantiles"])
def test_the_short_audit_counts_choices(name: str):
    (_, found) = short_audit([CASES[name].release], 1 - 1e-6, SeededSource(3))
    assert found.chosen.passed
