"""Histograms under random differential privacy: the chance gamma is counted out over all tables."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import audit_release
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import affordable
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Statistic
from dpcore.mechanisms.random_laplace import RandomLaplace, chance_of_exposure
from dpcore.releases.counts.random_histogram import RandomHistogram
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, tally_of

THREE = Domain((Categories("place", ("a", "b", "c")),))
ALPHA = Budget.of("1", 0, "0.5")


def histogram(rows: int, exact_below: int | None = 1, share: Budget = ALPHA) -> RandomHistogram:
    return RandomHistogram("h", THREE, rows, share, exact_below=exact_below)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "exact_below"), [(6, 1), (9, 1), (9, 2), (10, 3)])
def test_the_chance_that_a_random_replacement_is_not_covered_is_at_most_gamma(rows, exact_below):
    gamma = chance_of_exposure(THREE.size, rows, exact_below)
    release = histogram(rows, exact_below, Budget.of("1", 0, gamma))
    worst = Fraction(0)
    for draws in combinations_with_replacement(range(THREE.size), rows + 1):
        outcomes = Counter()
        # Given the n + 1 draws, any two of them are as likely to be the record and its replacement.
        for record, replacement in permutations(range(rows + 1), 2):
            near, far = (
                tally_of(THREE, tuple(cell for i, cell in enumerate(draws) if i != left_out))
                for left_out in (replacement, record)
            )
            outcomes[release.promises(near, far)] += 1
        worst = max(worst, Fraction(outcomes[False], outcomes.total()))
    assert gamma / 3 < worst <= gamma


def test_low_counts_are_told_and_higher_ones_get_the_stated_noise():
    rows = 4000
    mechanism = RandomLaplace.within(Budget.of("0.1", 0, "0.01"), 3, Fraction(2), rows, None)
    values = np.array([mechanism.exact_below - 1, mechanism.exact_below, 2000])
    exact = Statistic(values)
    draws = np.array([mechanism.draw(exact, SeededSource(i)).values for i in range(400)])
    assert (draws[:, 0] == values[0]).all()
    noise = (draws - values)[:, 1:].ravel()
    assert np.std(noise) == pytest.approx(mechanism.stddev, rel=0.1)


def test_as_many_counts_are_told_as_gamma_covers_and_not_one_more():
    share = Budget.of("1", 0, "0.05")
    mechanism = RandomLaplace.within(share, 3, Fraction(2), 4000, None)
    assert pytest.approx(mechanism.exact_below, rel=0.05) == 4000 * 0.05 / (2 * 3)
    assert affordable(mechanism.event, share)
    exposure = chance_of_exposure(3, 4000, mechanism.exact_below + 1)
    more = replace(mechanism, exact_below=mechanism.exact_below + 1, exposure=exposure)
    assert not affordable(more.event, share)


def test_gamma_that_is_too_small_for_the_cells_is_refused():
    with pytest.raises(ValueError, match=r"3 cells and 20 records costs a gamma of at least 0.271"):
        _ = histogram(20, share=Budget.of("1", 0, "0.2")).mechanism


def test_nothing_is_drawn_without_gamma():
    release = histogram(100)
    exact = release.statistic(tally_of(THREE, (0,) * 100))
    for share in (Budget.of("1"), Budget.of("1", "0.5"), Budget.of("0.9", 0, "0.5")):
        with pytest.raises(PrivacyLineError, match="no price"):
            perturb(exact, release.mechanism, share, SeededSource(1))


def test_all_records_in_one_cell_are_not_covered_and_the_empty_cells_are_told():
    release = histogram(50)
    alone, other = tally_of(THREE, (0,) * 50), tally_of(THREE, (0,) * 49 + (1,))
    assert not release.promises(alone, other)
    noisy = drawn(release, alone, 3)
    assert noisy.values.tolist()[1:] == [0, 0]
    facts = release.publish(noisy).facts
    assert facts["exact_below"] == 1
    (exposed,) = [e.value for e in release.expected_error() if "number of records" in e.quantity]
    assert exposed == pytest.approx(float(chance_of_exposure(3, 50, 1)) * 50)


def test_an_audit_keeps_to_neighbours_that_the_promise_covers():
    result = audit_release(histogram(400), draws=4000, source=SeededSource(4))
    assert 0.2 < result.lower_bound <= 1


def test_an_audit_of_neighbours_that_it_does_not_cover_finds_them_exposed(monkeypatch):
    monkeypatch.setattr(RandomHistogram, "promises", lambda self, near, far: True)
    assert audit_release(histogram(400), draws=4000, source=SeededSource(4)).lower_bound > 2
