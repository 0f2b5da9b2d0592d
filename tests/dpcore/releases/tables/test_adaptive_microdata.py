"""Pairs measured twice where the first draw says so: what is chosen, what it costs, what it gains.

The sensitivity of the first round and the privacy of both are claims of ``test_contract``.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.analytic import analytic_gaussian_scale
from dpcore.accounting.zcdp import covers_rho
from dpcore.budget import Budget
from dpcore.domain import Categories, Domain, Tally
from dpcore.mechanism import affordable
from dpcore.mechanisms import read_event
from dpcore.privacy_line import perturb
from dpcore.releases.tables.adaptive_microdata import AdaptiveMicrodata
from dpcore.releases.tables.microdata import Microdata
from dpcore.repricing.history import RENYI, Charged, prices
from dpcore.sampling.source import SeededSource
from dpcore.statistic import ABSENT, Noisy
from tasks.evaluate.distances import margin_errors
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import APPROXIMATE, CUBE, PURE, families, repeated_draws

DOMAIN = Domain(tuple(Categories(name, tuple(range(5))) for name in "abcd"))
ROWS = 3000
SHARE = Budget.of("1", "1e-6")
NOISES = ("discrete-laplace", "discrete-gaussian")


def release(**changes: object) -> AdaptiveMicrodata:
    made = AdaptiveMicrodata("x", DOMAIN, ROWS, SHARE, noise="discrete-gaussian", chosen=1)
    return replace(made, **changes)


def codes() -> np.ndarray:
    """Column d repeats column b; the others are independent."""
    drawn = np.random.default_rng(4).integers(0, 5, (ROWS, 4))
    drawn[:, 3] = drawn[:, 1]
    return drawn


def tally() -> Tally:
    cells, counts = np.unique(DOMAIN.pack(codes()), return_counts=True)
    return Tally(DOMAIN, cells, counts.astype(np.int64))


def drawn(of: Microdata, seed: int = 3) -> Noisy:
    return perturb(of.statistic(tally()), of.mechanism, of.share, SeededSource(seed))


def test_the_pair_that_hangs_together_is_measured_twice_and_published_with_less_noise():
    noisy = drawn(release())
    tables = release().publish(noisy)
    assert tables.facts["measured_twice"] == [["b", "d"]]
    deviations = {t.name: t.columns["standard_error"][0] for t in tables.tables}
    once, again = release().mechanism.first.stddev, release().mechanism.again.stddev
    assert deviations.pop("x.b.d") < (once**-2 + again**-2) ** -0.5
    assert 0.8 * once < min(deviations.values()) <= max(deviations.values()) < once
    drawn_by_name = dict(zip(deviations, release().measured(noisy), strict=False))
    assert drawn_by_name["x.a.b"].variance == pytest.approx(once**2)


def test_what_was_drawn_twice_is_the_precision_weighted_mean_and_the_rest_is_as_drawn():
    noisy = drawn(release())
    once, twice = noisy.values.reshape(2, -1)
    again = np.flatnonzero(twice != ABSENT)
    assert len(again) == 25
    tables = [margin.table.ravel() for margin in release().noisy_margins(noisy)]
    weights = np.array(
        [r.stddev**-2 for r in (release().mechanism.first, release().mechanism.again)]
    )
    expected = once.astype(float)
    expected[again] = weights @ [once[again], twice[again]] / weights.sum()
    np.testing.assert_allclose(np.concatenate(tables), expected, atol=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_both_rounds_have_the_stated_noise_and_neither_two_thirds_nor_three_halves_of_it(noise):
    made = release(noise=noise, chosen=2)
    exact = made.statistic(tally())._values
    draws = repeated_draws(made, tally(), 200, SeededSource(8)).reshape(200, 2, -1)
    for i, each in enumerate((made.mechanism.first, made.mechanism.again)):
        found = (draws[:, i] - exact).ravel()
        found = found[~np.isnan(found)]
        assert len(found) == 200 * 25 * (6, 2)[i]
        assert goodness_of_fit(found, each.event) > 1e-4
        assert goodness_of_fit(found, each.event, stretch=2 / 3) < 1e-9
        assert goodness_of_fit(found, each.event, stretch=3 / 2) < 1e-9


@pytest.mark.parametrize("noise", NOISES)
def test_no_choice_of_tables_moves_by_more_than_the_second_round_claims(noise):
    made = AdaptiveMicrodata(
        "x", CUBE, 2, APPROXIMATE if "gauss" in noise else PURE, noise=noise, chosen=2
    )
    ends = np.cumsum([domain.size for domain in made.domains])
    farthest = 0
    for family in families(made):
        difference = family - family[:, None]
        norm = difference**2 if "gauss" in noise else np.abs(difference)
        tables = np.add.reduceat(norm, np.r_[0, ends[:-1]], axis=-1)
        farthest = max(
            farthest,
            *(int(tables[..., chosen].sum(-1).max()) for chosen in combinations(range(3), 2)),
        )
    assert farthest == made.mechanism.event.again_sensitivity


def test_the_choice_looks_at_the_first_noisy_round_only():
    made = release(share=Budget.of("0.0001"), noise="discrete-laplace", chosen=2)
    drawn_from = {
        tuple(np.flatnonzero(drawn(made, seed).values[made.cells :: 25] != ABSENT))
        for seed in range(12)
    }
    assert len(drawn_from) > 4  # all noise: the closest pair is not known any more


def test_both_gaussian_rounds_together_cost_what_the_share_allows():
    event = release().event
    first, again = event.sensitivity / event.scale, event.again_sensitivity / event.again_scale
    assert first / (first + again) == Fraction(4, 5)
    # What continuous noise of this precision costs, which is less than by zCDP alone.
    assert float(first + again) ** -0.5 == pytest.approx(analytic_gaussian_scale(1, 1e-6), rel=5e-3)
    assert not covers_rho((first + again) / 2, SHARE.alpha, SHARE.beta)
    assert affordable(event, SHARE)
    for key in ("scale", "again_scale"):
        less = replace(event, **{key: getattr(event, key) * Fraction(99, 100)})
        assert not affordable(less, SHARE)


def test_the_alpha_of_both_laplace_rounds_is_that_of_the_share_exactly():
    event = release(noise="discrete-laplace", share=PURE).event
    spent = event.sensitivity / event.scale + event.again_sensitivity / event.again_scale
    assert spent == PURE.alpha
    assert affordable(event, PURE)
    assert not affordable(replace(event, again_scale=event.again_scale * Fraction(9, 10)), PURE)
    assert not affordable(replace(event, noise="other"), Budget.of(100, "0.1"))


@pytest.mark.parametrize("noise", NOISES)
def test_its_event_is_read_back_and_priced_in_a_history(noise):
    made = release(noise=noise)
    assert read_event(made.event.to_dict()) == made.event
    found = prices([Charged(made.event, made.share)] * 60, Fraction("1e-4"))
    renyi = next(price for price in found if price.accountant == RENYI)
    assert renyi.budget.alpha < 59


def test_the_closest_pair_of_the_records_is_nearer_to_the_survey_than_without_the_choice():
    share = Budget.of("0.3", "1e-6")

    def worst(of: Microdata) -> float:
        found = [of.sample(drawn(of, seed), ROWS)[1][:, [1, 3]] for seed in (1, 2)]
        return sum(margin_errors(codes()[:, [1, 3]], r, (5, 5), 2).worst for r in found)

    fixed = Microdata("x", DOMAIN, ROWS, share, noise="discrete-gaussian")
    assert worst(release(share=share)) < worst(fixed)


def test_sums_of_its_counts_are_refused_as_their_noise_depends_on_the_choice():
    with pytest.raises(ValueError, match="cannot be added up"):
        release().sum_variance({"x.a.b": np.ones(25)})


@pytest.mark.parametrize("chosen", [0, 7])
def test_as_many_pairs_as_there_are_may_be_chosen(chosen: int):
    with pytest.raises(ValueError, match="between 1 and the 6 pairs"):
        release(chosen=chosen)


def test_tables_of_no_record_and_of_one_cell_are_measured_too():
    single = Domain((Categories("a", (1,)), Categories("b", (1,))))
    made = AdaptiveMicrodata("x", single, 1, PURE, chosen=1)
    empty = Tally(single, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    noisy = perturb(made.statistic(empty), made.mechanism, PURE, SeededSource(1))
    assert len(noisy.values) == 2
