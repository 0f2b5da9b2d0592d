"""Pairs measured twice where the first draw says so, and triples that pairs do not imply: what is
chosen, what it costs, what it gains.

The sensitivity of the first round and the privacy of both are claims of ``test_contract``.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import affordable
from dpcore.line.mechanism import event_from_dict as read_event
from dpcore.line.statistic import ABSENT, Noisy
from dpcore.mechanisms import AdaptiveMargins
from dpcore.mechanisms.selection import GAUSSIAN_PRICE
from dpcore.mechanisms.third_order import implied_triples, shrunk_pairs
from dpcore.releases.tables.measured_again import candidates_among
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import (
    APPROXIMATE,
    CUBE,
    FOUR,
    PURE,
    drawn,
    families,
    opened,
    repeated_draws,
    tally_of,
)

DOMAIN = Domain(tuple(Categories(name, tuple(range(5))) for name in "abcd"))
ROWS = 3000
SHARE = Budget.of("1", "1e-6")
NOISES = ("discrete-laplace", "discrete-gaussian")


def release(**changes: object) -> Microdata:
    made = Microdata("x", DOMAIN, ROWS, SHARE, noise="discrete-gaussian", chosen=1)
    return replace(made, **changes)


def codes() -> np.ndarray:
    """Column d repeats column b; the others are independent."""
    drawn = np.random.default_rng(4).integers(0, 5, (ROWS, 4))
    drawn[:, 3] = drawn[:, 1]
    return drawn


def tally() -> Tally:
    return tally_of(DOMAIN, DOMAIN.pack(codes()))


def noisy_of(of: Microdata, seed: int = 3) -> Noisy:
    return drawn(of, tally(), seed)


@pytest.mark.usefixtures("short_fits")
def test_the_pair_that_hangs_together_is_measured_twice_and_published_with_less_noise():
    noisy = noisy_of(release())
    tables = release().publish(noisy)
    assert tables.facts["measured_twice"] == [["b", "d"]]
    deviations = {t.name: t.columns["standard_error"][0] for t in tables.tables}
    once, again = release().mechanism.first.stddev, release().mechanism.again.stddev
    assert deviations.pop("x.b.d") < (once**-2 + again**-2) ** -0.5
    assert 0.8 * once < min(deviations.values()) <= max(deviations.values()) < once
    drawn_by_name = dict(zip(deviations, release().measurement.measured(noisy), strict=False))
    assert drawn_by_name["x.a.b"].variance == pytest.approx(once**2)


def test_the_choice_looks_at_the_first_noisy_round_only():
    made = release(share=Budget.of("0.0001"), noise="discrete-laplace", chosen=2)
    drawn_from = {
        tuple(np.flatnonzero(noisy_of(made, seed).values[made.measurement.cells :: 25] != ABSENT))
        for seed in range(12)
    }
    assert len(drawn_from) > 4  # all noise: the closest pair is not known any more


def test_sums_of_its_counts_are_refused_as_their_noise_depends_on_the_choice():
    with pytest.raises(ValueError, match="cannot be added up"):
        release().sum_variance({"x.a.b": np.ones(25)})


@pytest.mark.parametrize("chosen", [-1, 7])
def test_as_many_pairs_as_there_are_may_be_chosen(chosen: int):
    with pytest.raises(ValueError, match="between 1 and the 6 pairs"):
        release(chosen=chosen)


SIX = Domain(tuple(Categories(f"c{i}", (0, 1)) for i in range(6)))
PLANTED = ("c1", "c2", "c4")


def planted(rows: int = 5000) -> np.ndarray:
    """Six fair coins; in four of five records c4 is whether c1 and c2 differ: no pair shows it."""
    generator = np.random.default_rng(6)
    codes = generator.integers(0, 2, (rows, 6))
    codes[:, 4] = np.where(generator.random(rows) < 0.8, codes[:, 1] ^ codes[:, 2], codes[:, 4])
    return codes


def among_coins(triples: int, seed: int) -> tuple[Microdata, Noisy]:
    made = Microdata("x", SIX, 5000, SHARE, noise="discrete-gaussian", chosen=3, triples=triples)
    return made, drawn(made, SIX.pack(planted()), seed)


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_an_interaction_that_no_pair_shows_is_found_measured_and_in_the_records():
    made, noisy = among_coins(2, 0)
    found = made.publish(noisy)
    assert found.facts["triples"][0] == list(PLANTED)
    assert len(found.tables) == 17
    table = next(t for t in found.tables if t.name == "x.c1.c2.c4")
    cells = planted()[:, [1, 2, 4]] @ [4, 2, 1]
    exact = np.bincount(cells, minlength=8)
    error = table.columns["standard_error"]
    assert np.all(np.abs(table.columns["estimate"] - exact) < 5 * error)
    assert np.all(error < made.mechanism.again.stddev)

    def distance(of: Microdata, noisy: Noisy) -> float:
        records = of.sample(noisy, 5000)[1][:, [1, 2, 4]] @ [4, 2, 1]
        return float(np.abs(np.bincount(records, minlength=8) - exact).sum() / 10_000)

    assert distance(made, noisy) < 0.05 < 0.3 < distance(*among_coins(0, 0))


def test_triples_are_scored_by_noisy_pairs_and_by_no_exact_one():
    made = Microdata("x", SIX, 5000, SHARE, noise="discrete-gaussian", chosen=3, triples=2)
    law, exact = made.mechanism, opened(made, tally_of(SIX, SIX.pack(planted())))
    pairs = law.first.size
    noisy = exact[None, :pairs] + np.arange(pairs) % 7 * 50
    scores = law.exact(1, exact, noisy)
    without = np.where(np.arange(law.size) < pairs, 0, exact)
    np.testing.assert_array_equal(law.exact(1, without, noisy), scores)
    assert (law.exact(1, exact, noisy[:, ::-1]) != scores).any()


def test_only_triples_that_were_chosen_are_supported():
    made, noisy = among_coins(2, 1)
    counts, error = made.supported_margin(noisy, PLANTED)
    assert len(counts) == 8
    assert 0 < error < made.mechanism.again.stddev
    assert made.supported_margin(noisy, ("c0", "c3", "c5")) is None
    assert sum(len(d.names) > 2 for d in made.domains_of(noisy)) == 2
    assert len(made.domains_of(None)) == 15 + 20


def of_four(noise: str = "discrete-laplace", triples: int = 2) -> Microdata:
    share = APPROXIMATE if "gauss" in noise else PURE
    return Microdata("x", FOUR, 2, share, noise=noise, chosen=1, triples=triples)


def test_no_neighbour_moves_a_score_by_more_than_the_choice_claims_whatever_was_seen_before():
    mechanism = of_four().mechanism
    seen = np.random.default_rng(2).integers(-60, 60, (6, mechanism.first.size))
    farthest = 0
    for family in families(of_four()):
        scores = np.stack([mechanism._scores(seen, table) for table in family])
        farthest = max(farthest, int(np.abs(scores - scores[:, None]).max()))
    assert farthest == mechanism.event.score_sensitivity


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("domain", "pairs", "triples"), [(CUBE, 2, 0), (FOUR, 1, 2)])
def test_no_choice_of_tables_moves_by_more_than_the_second_round_claims(
    noise: str, domain: Domain, pairs: int, triples: int
):
    share, more = APPROXIMATE if "gauss" in noise else PURE, {"chosen": pairs, "triples": triples}
    made, farthest = Microdata("x", domain, 2, share, noise=noise, **more), 0
    ways = len(made.domains)
    for family in families(made):
        difference = family - family[:, None]
        norm = difference**2 if "gauss" in noise else np.abs(difference)
        tables = np.add.reduceat(norm, made.mechanism._starts, axis=-1)
        of_pairs, of_triples = (
            np.sort(part, axis=-1) for part in np.split(tables, [ways], axis=-1)
        )
        chosen = of_pairs[..., ways - pairs :].sum(-1)
        chosen += of_triples[..., of_triples.shape[-1] - triples :].sum(-1)
        farthest = max(farthest, int(chosen.max()))
    assert farthest == made.mechanism.event.again_sensitivity


def test_triples_are_chosen_in_turn_with_the_stated_scale_and_neither_two_thirds_nor_three_halves():
    selection, scores = of_four().mechanism.laws[1], np.array([0, 40, -60, 200])
    scale = float(selection.scale)
    drawn = selection.draw(np.tile(scores, 20_000), None, SeededSource(4)).values
    order = drawn.reshape(-1, 2)
    seen = np.array([np.all(order == pair, axis=1).sum() for pair in permutations(range(4), 2)])
    for stretch, fits in ((1, True), (2 / 3, False), (3 / 2, False)):
        weights = np.exp(-scores / (scale * stretch))
        expected = [
            weights[a] / weights.sum() * weights[b] / (weights.sum() - weights[a])
            for a, b in permutations(range(4), 2)
        ]
        p_value = stats.chisquare(seen, np.array(expected) * len(order)).pvalue
        assert p_value > FALSE_ALARM if fits else p_value < 1e-9


def test_chances_of_choices_are_finite_however_far_apart_the_scores_are():
    selection = of_four().mechanism.laws[1]
    scale = float(selection.scale)
    order = np.array([[1, 2], [0, 3], [3, 0]])
    for apart in (1, 1e6):
        scores = np.array([0, 40, -60, 200]) * apart
        (drawn,) = selection.rounds_of(order, np.arange(4), np.tile(scores, (3, 1)))
        costs = -scores / scale
        expected = [
            costs[a] - logsumexp(costs) + costs[b] - logsumexp(np.delete(costs, a))
            for a, b in order
        ]
        np.testing.assert_allclose(drawn.logs[:, 0], expected, rtol=1e-9)


@pytest.mark.slow
def test_its_likelihood_ratio_is_that_of_what_it_draws():
    """The mean over one side of how much likelier the other is must be 1; of another law it is not."""
    made = of_four()
    tables = [tally_of(FOUR, cells) for cells in ((0, 0), (0, 15))]
    near, far = (opened(made, table).astype(float) for table in tables)
    law = made.mechanism
    clear = replace(law, triples=replace(law.triples, scale=Fraction(2)))
    wrong = replace(law, triples=replace(law.triples, scale=Fraction(1)))
    plenty = replace(made.share, alpha=Fraction(100))
    ratio = clear.log_ratio(np.arange(law.size), near, far)

    def mean(drawn_by: AdaptiveMargins) -> tuple[float, float]:
        draws = repeated_draws(made, tables[1], 20_000, SeededSource(9), drawn_by, plenty)
        factors = np.exp(ratio(draws))
        return float(factors.mean()), float(factors.std() / len(factors) ** 0.5)

    found, error = mean(clear)
    assert abs(found - 1) < 4 * error
    found, error = mean(wrong)
    assert abs(found - 1) > 6 * error


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rho", [False, True])
def test_what_the_choice_costs_is_in_the_price_and_no_more_is_spent(noise, rho):
    share = (
        Budget(Fraction(0), rho=Fraction("0.1"))
        if rho
        else APPROXIMATE
        if "gauss" in noise
        else PURE
    )
    event = replace(of_four(noise), share=share).event
    assert read_event(event.to_dict()) == event
    assert affordable(event, share)
    for key, factor in (("score_scale", Fraction(9, 10)), ("selections", 0), ("score_scale", -1)):
        changed = getattr(event, key) * factor
        changed = int(changed) if key == "selections" else Fraction(changed)
        assert not affordable(replace(event, **{key: changed}), share)
    less = share * Fraction(999, 1000)
    assert not affordable(event, less)
    each = 2 * event.score_sensitivity / event.score_scale
    without = replace(of_four(noise, 0), share=share).event
    assert without.selections == 0
    if noise == "discrete-laplace":
        spent = event.sensitivity / event.scale + event.again_sensitivity / event.again_scale
        assert event.pure_alpha == spent + 2 * each
    rounds = (event.sensitivity / event.scale, event.again_sensitivity / event.again_scale)
    noisy = sum(rounds) / 2 if "gauss" in noise else sum(r**2 for r in rounds) / 2
    assert event.concentrated == (noisy + 2 * each**2 / 8, 0)


@pytest.mark.parametrize("length", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("lean", [0.1, 0.5, 0.8])
def test_choices_and_gaussian_noise_together_lose_no_more_than_the_noise_that_stands_for_them(
    length: float, lean: float
):
    """Exactly, for the choices of two answers that dominate all others, leaning to either side."""

    def beta(mu: float, alpha: float) -> float:
        upper, lower = stats.norm.cdf([mu / 2 - alpha / mu, -mu / 2 - alpha / mu])
        return float(upper - np.exp(alpha) * lower)

    times, mu = 6, 0.4
    gain, loss = length * lean, length * (lean - 1)
    chance = np.exp(gain) * np.expm1(loss) / (np.exp(loss) - np.exp(gain))
    stands = (mu**2 + times * float(GAUSSIAN_PRICE) * length**2) ** 0.5
    for alpha in (0.1, 1.0, 3.0):
        exact = sum(
            stats.binom.pmf(j, times, chance) * beta(mu, alpha - j * gain - (times - j) * loss)
            for j in range(times + 1)
        )
        assert exact <= beta(stands, alpha) * (1 + 1e-9)
    # It is nearly as little as can be said: half of it would be too little for some alpha.
    less = (mu**2 + times * float(GAUSSIAN_PRICE) / 2 * length**2) ** 0.5
    if lean == 0.5:
        exact = sum(
            stats.binom.pmf(j, times, chance) * beta(mu, 0.1 - j * gain - (times - j) * loss)
            for j in range(times + 1)
        )
        assert exact > beta(less, 0.1)


def test_candidates_are_the_triples_of_fewest_cells_whose_pairs_are_measured(monkeypatch):
    every = tuple(combinations(range(4), 2))
    assert candidates_among((2, 3, 1, 4), every) == ((0, 1, 3),)
    assert candidates_among((2, 3, 2, 4), every[1:]) == ((0, 2, 3), (1, 2, 3))
    module = "dpcore.releases.tables.measured_again.MOST_CELLS"
    monkeypatch.setattr(module, 12 + 16 + 23)
    assert candidates_among((2, 3, 2, 4), every) == ((0, 1, 2), (0, 2, 3))
    with pytest.raises(ValueError, match="triples: must lie between 0 and the 2 triples"):
        Microdata("x", CUBE_OF_FOUR, 9, PURE, chosen=1, triples=3)


CUBE_OF_FOUR = Domain(
    tuple(
        Categories(name, tuple(range(size)))
        for name, size in zip("abcd", (2, 3, 2, 4), strict=True)
    )
)


def test_pairs_without_an_interaction_imply_their_triple_and_noise_is_no_dependence():
    shares = np.random.default_rng(3).dirichlet(np.ones(2), 3)
    table = 10_000 * np.einsum("i,j,k->ijk", *shares)[None]
    pairs = [table.sum(axis=axis) for axis in (3, 2, 1)]
    np.testing.assert_allclose(implied_triples(*pairs), table, atol=1)
    noisy = np.rint(pairs[0]).astype(np.int64) + np.array([[3, -3], [-3, 3]])
    shrunk = shrunk_pairs(noisy, 100.0)
    product = shrunk.sum(2)[:, :, None] * shrunk.sum(1)[:, None] / shrunk.sum()
    np.testing.assert_allclose(shrunk, product, rtol=1e-6)
    assert np.all(np.isfinite(shrunk_pairs(np.array([[[-5, -2], [-4, 0]]]), 9.0)))
