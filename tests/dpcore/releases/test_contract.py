"""What every release owes: its stated sensitivity, its stated noise, its stated privacy."""

import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.audit.bounds import loss_lower_bound
from dpcore.audit.outcomes import choose_outcomes
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Event, affordable
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import (
    THEOREMS,
    AdaptiveMargins,
    BlockGaussian,
    BlockLaplace,
    CompressedMargins,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Mechanism,
    SmoothLaplace,
    Staged,
    laplace,
)
from dpcore.mechanisms.adaptive_margins import AdaptiveMarginsEvent
from dpcore.mechanisms.block_gaussian import BlockGaussianEvent
from dpcore.mechanisms.compressed_margins import CompressedMarginsEvent
from dpcore.mechanisms.exponential import ExponentialEvent
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.mechanisms.gaussian_rounds import GaussianRoundsEvent
from dpcore.mechanisms.propose_test_release import ProposeTestReleaseEvent
from dpcore.mechanisms.smooth_laplace import SmoothLaplaceEvent
from dpcore.mechanisms.staged import StagedEvent
from dpcore.mechanisms.staged_gaussian import StagedGaussianEvent
from dpcore.releases.base import Release, Samplable
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import SeededSource
from papers import THEOREMS as OF_PAPERS
from papers.difference_body.mechanism import BodyEvent, DifferenceBody
from papers.k_norm.mechanism import DiscreteKNorm, KNormEvent
from papers.k_norm.sampler import lattice_norm
from papers.minimax_count.mechanism import TableEvent, TabulatedMechanism
from papers.near_records.by_distribution import NearRecordsEvent
from papers.near_records.by_series import NearMeansEvent
from papers.sampled_histogram.mechanism import Sampled, SampledEvent
from tests.chance import FALSE_ALARM
from tests.conftest import those_slow
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.contract import (
    CASES,
    KINDS,
    Case,
    concrete_mechanisms,
    concrete_releases,
    exact_vector,
    families,
    further_forms,
    kind_of,
    opened,
    repeated_draws,
    tally_of,
)

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def every_kind_with(has: Callable[[Mechanism], bool]) -> pytest.MarkDecorator:
    chosen = {name: case for name, case in KINDS.items() if has(case.release.mechanism)}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


def drawing(*mechanisms: type[Mechanism]) -> Callable[[Mechanism], bool]:
    return lambda mechanism: isinstance(mechanism, mechanisms)


ROUNDED = 1e-9
"""Claims about blocks are rounded up."""

SQUARED = (GaussianEvent, NearMeansEvent, BlockGaussianEvent)
"""Events that state the square of a Euclidean norm."""

OF_COUNTS = (
    SampledEvent,
    SmoothLaplaceEvent,
    NearRecordsEvent,
    ProposeTestReleaseEvent,
    StagedEvent,
    StagedGaussianEvent,
    GaussianRoundsEvent,
    CompressedMarginsEvent,  # what it makes of them is a claim of ``test_compressed_microdata``
)
"""Events of mechanisms that get the counts themselves."""

BY_RECORDS = CompressedMarginsEvent | StagedGaussianEvent | GaussianRoundsEvent
"""Those whose own steps count what a record moves."""


def claim(release: Release) -> Fraction:
    """The stated sensitivity, as a square where it is an L2 norm."""
    event = release.mechanism.event
    if isinstance(event, SQUARED) and not isinstance(event, OF_COUNTS):
        return event.l2_sensitivity_squared
    if isinstance(event, TableEvent):
        return Fraction(1)
    if isinstance(event, BY_RECORDS):
        return release.adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))
    if isinstance(event, OF_COUNTS):
        return Fraction(2)
    whole = isinstance(event, AdaptiveMarginsEvent | BodyEvent | ExponentialEvent | KNormEvent)
    return event.sensitivity if whole else event.l1_sensitivity


def squares(event: Event) -> bool:
    """Whether the claim is about a squared norm."""
    if isinstance(event, OF_COUNTS):
        return False
    return isinstance(event, SQUARED) or getattr(event, "noise", "") == "discrete-gaussian"


def moved(release: Release, difference: np.ndarray) -> np.ndarray:
    """The norm that the claim is about, along the last axis, in whole numbers."""
    event = release.mechanism.event
    if isinstance(release.mechanism, BlockGaussian | BlockLaplace):
        return moved_in_blocks(release.mechanism, difference)
    if isinstance(release.mechanism, AdaptiveMargins):  # later: ``test_adaptive_microdata``
        difference = difference[..., : release.mechanism.first.size]
    if squares(event):
        return (difference**2).sum(axis=-1)
    if isinstance(release.mechanism, DifferenceBody):
        lengths = release.mechanism.body.norm(difference.reshape(-1, difference.shape[-1]))
        return lengths.reshape(difference.shape[:-1])
    if isinstance(event, KNormEvent):
        lengths = lattice_norm(difference.reshape(-1, event.dimension))
        return lengths.reshape(difference.shape[:-1])
    if isinstance(event, ExponentialEvent):  # the most of any choice, and of all together
        shape = (*difference.shape[:-1], -1, release.mechanism.candidates)
        moves = np.abs(difference).reshape(shape).max(axis=-1)
        return np.maximum(moves.max(axis=-1), moves.sum(axis=-1) / event.selections)
    if not isinstance(event, TableEvent):
        return np.abs(difference).sum(axis=-1)
    return np.abs(difference).max(axis=-1)


def moved_in_blocks(mechanism: BlockGaussian | BlockLaplace, difference: np.ndarray) -> np.ndarray:
    """A block of differences has the norm of the shortest table with these differences."""
    total, start = np.zeros(difference.shape[:-1]), 0
    for block in mechanism.blocks:
        part = difference[..., start : start + block.size].astype(float)
        start += block.size
        if isinstance(mechanism, BlockLaplace):
            total += float(block.weight) * np.abs(part).sum(axis=-1)
            continue
        seen = np.eye(block.size if not block.axes else 1)
        for n in block.axes:
            seen = np.kron(seen, np.hstack([np.eye(n - 1), -np.ones((n - 1, 1))]))
        shortest = part @ np.linalg.pinv(seen).T
        total += float(block.weight) * (shortest**2).sum(axis=-1)
    return total


def test_every_release_and_every_mechanism_of_dpcore_is_registered():
    assert {type(case.release) for case in CASES.values()} == concrete_releases()
    assert {type(case.release.mechanism) for case in CASES.values()} == concrete_mechanisms()
    theorems = [*THEOREMS, *OF_PAPERS]
    assert concrete_mechanisms() == set(theorems)
    assert len(theorems) == len(set(theorems))


def test_a_release_or_mechanism_that_is_not_registered_is_noticed(monkeypatch: pytest.MonkeyPatch):
    unpriced = type("Unpriced", (laplace.DiscreteLaplace,), {})
    monkeypatch.setattr(laplace, "Unpriced", unpriced, raising=False)
    assert unpriced in concrete_mechanisms()

    forgotten = type("Forgotten", (Histogram,), {"__module__": "dpcore.releases.forgotten"})
    assert forgotten in concrete_releases()
    del forgotten
    gc.collect()


@every_case
def test_replacing_any_record_of_any_table_moves_the_statistic_by_at_most_the_claim(case: Case):
    farthest = 0.0
    for family in families(case.release):
        for table in family:
            farthest = max(farthest, float(moved(case.release, family - table).max()))
    assert 0 < farthest <= claim(case.release) * (1 + ROUNDED)


@every_case
def test_the_claim_is_attained_so_no_smaller_one_is_true(case: Case):
    near, far = (sorted(cells) for cells in (case.near, case.far))
    assert len(near) == len(far) == case.release.rows
    assert sum((Counter(far) - Counter(near)).values()) == 1
    vectors = [exact_vector(case.release, cells) for cells in (case.near, case.far)]
    attained = moved(case.release, vectors[1] - vectors[0])
    power = 2 if squares(case.release.mechanism.event) else 1
    assert attained >= case.attained**power * claim(case.release) * (1 - ROUNDED)


def require_stated_noise(case: Case) -> None:
    """The law of the noise is the stated one at its own scale, and at no other."""
    release, source = case.release, SeededSource(11)
    # Counts so high that no threshold drops them.
    everywhere = np.repeat(np.arange(release.domain.size), 1000)
    if not isinstance(release, Histogram):
        everywhere = np.array(case.near)
    tally = tally_of(release.domain, everywhere)
    size = release.mechanism.size
    draws = repeated_draws(release, tally, 30_000 // size, source)
    noise = (draws - opened(release, tally)).ravel()

    event = release.mechanism.event
    assert goodness_of_fit(noise, event) > FALSE_ALARM
    assert goodness_of_fit(noise, event, stretch=2 / 3) < 1e-9
    assert goodness_of_fit(noise, event, stretch=3 / 2) < 1e-9
    assert np.std(noise) == pytest.approx(release.mechanism.stddev, rel=0.03)
    for level in (0.5, 0.9):
        width = release.mechanism.half_width(level)
        assert np.mean(np.abs(noise) <= width) > level - 0.01
        assert np.mean(np.abs(noise) <= width - 1) < level + 0.01


@every_kind_with(lambda mechanism: hasattr(mechanism, "half_width"))
def test_the_noise_has_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it(case: Case):
    require_stated_noise(case)


@every_kind_with(drawing(DiscreteKNorm))
def test_the_length_of_k_norm_noise_has_the_stated_scale_and_not_another(case: Case):
    release, event = case.release, case.release.mechanism.event
    tally = tally_of(release.domain, case.near)
    noise = repeated_draws(release, tally, 4000, SeededSource(13)) - opened(release, tally)
    lengths = lattice_norm(noise.astype(np.int64)) / float(event.scale)
    law = stats.gamma(event.dimension)
    assert stats.kstest(lengths, law.cdf).pvalue > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        assert stats.kstest(lengths / stretch, law.cdf).pvalue < 1e-9
    assert np.std(noise) == pytest.approx(release.mechanism.stddev, rel=0.03)


@every_kind_with(drawing(BlockGaussian, BlockLaplace))
def test_the_noise_of_blocks_has_the_stated_scales_and_neither_two_thirds_nor_three_halves(
    case: Case,
):
    """Block by block: numbers of their law, or differences whose squared norm is chi-square."""
    release, mechanism = case.release, case.release.mechanism
    tally = tally_of(release.domain, case.near)
    draws = repeated_draws(release, tally, 6000, SeededSource(14)) - opened(release, tally)
    start = 0
    for block in mechanism.blocks:
        noise = draws[:, start : start + block.size]
        start += block.size
        if isinstance(mechanism, BlockLaplace):
            event = replace(mechanism.event, scale=mechanism.scale / block.weight)
            fits = [goodness_of_fit(noise.ravel(), event, each) for each in (1.0, 2 / 3, 1.5)]
        else:
            spread = noise + np.random.default_rng(1).uniform(-0.5, 0.5, noise.shape)
            lengths = moved_in_blocks(replace(mechanism, blocks=(block,)), spread)
            scaled, law = lengths / float(mechanism.variance), stats.chi2(block.size)
            fits = [stats.kstest(scaled / each**2, law.cdf).pvalue for each in (1.0, 2 / 3, 1.5)]
        assert fits[0] > FALSE_ALARM
        assert max(fits[1:]) < 1e-9
        assert np.std(draws[:, start - 1]) == pytest.approx(
            mechanism.stddev(block.weight) * 2 ** (len(block.axes) / 2), rel=0.05
        )


@every_kind_with(drawing(ExponentialMechanism))
def test_choices_have_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it(case: Case):
    release = case.release
    tally = tally_of(release.domain, case.near + case.company)
    draws = repeated_draws(release, tally, 30_000, SeededSource(12)).astype(int)
    scores = opened(release, tally).reshape(draws.shape[1], -1)
    for choice, score in zip(draws.T, scores, strict=True):
        counts = np.bincount(choice, minlength=len(score))
        for stretch, fits in ((1, True), (2 / 3, False), (3 / 2, False)):
            weights = np.exp(-score / (float(release.mechanism.scale) * stretch))
            p_value = stats.chisquare(counts, weights / weights.sum() * len(choice)).pvalue
            assert p_value > FALSE_ALARM if fits else p_value < 1e-9


LONG = {
    *further_forms(kind_of),
    "weighted compressed microdata",
    "function at a steady bandwidth",
    "additive classifier",
    "gradient classifier",
}
"""Cases whose audits are left to the slow run: all kinds and all mechanisms are in the fast one."""

every_case_audited = pytest.mark.parametrize("name", those_slow(CASES, LONG))


@every_case_audited
def test_an_audit_does_not_find_more_loss_than_alpha(name: str):
    """Either table may be the likelier one: events are chosen for both."""
    case = CASES[name]
    for company in {(), case.company}:
        found = audited(case, company, case.release.mechanism)
        assert found <= float(case.release.share.alpha)


@every_case_audited
def test_the_same_audit_finds_noise_that_is_too_small(name: str):
    case = CASES[name]
    faulty = with_less_noise(case)
    assert audited(case, case.company, faulty) > float(case.release.share.alpha)


def with_less_noise(case: Case) -> Mechanism:
    """The mechanism of the case with a fault that an audit must find."""
    mechanism = case.release.mechanism
    if isinstance(mechanism, TabulatedMechanism):
        return replace(case.release, share=Budget.of("2")).mechanism
    if isinstance(mechanism, SmoothLaplace):
        return replace(mechanism, alpha=4 * mechanism.alpha)
    if isinstance(mechanism, Sampled):
        return replace(mechanism, prior=mechanism.prior // 3)
    if isinstance(mechanism, Staged):
        generous = replace(case.release.share, alpha=case.fault * case.release.share.alpha)
        return replace(case.release, share=generous).mechanism
    if isinstance(mechanism, AdaptiveMargins | CompressedMargins):
        first, again = (quieter(each, case.fault) for each in (mechanism.first, mechanism.again))
        faulty = replace(mechanism, first=first, again=again)
        if isinstance(mechanism, AdaptiveMargins) and mechanism.triples:
            triples = replace(mechanism.triples, scale=mechanism.triples.scale / case.fault)
            faulty = replace(faulty, triples=triples)
        return faulty
    if isinstance(mechanism.event, GaussianEvent | BlockGaussianEvent):
        return replace(mechanism, variance=mechanism.variance / case.fault**2)
    return replace(mechanism, scale=mechanism.scale / case.fault)


def quieter(
    noise: DiscreteGaussian | DiscreteLaplace, times: int
) -> DiscreteGaussian | DiscreteLaplace:
    """The noise at so many times smaller a scale."""
    if isinstance(noise, DiscreteGaussian):
        return replace(noise, variance=noise.variance / times**2)
    return replace(noise, scale=noise.scale / times)


SEARCHED, DRAWS = 20_000, 40_000
"""On each side, to choose events with and to count them in; every planted fault is found so."""


def audited(case: Case, company: tuple[int, ...], mechanism: Mechanism) -> float:
    """The audit's lower bound on alpha; it is above the true one with a chance below 1e-6."""
    release, beta, source = case.release, float(case.release.share.beta), SeededSource(5)
    plenty = replace(release.share, alpha=release.share.alpha * 10)
    tables = [tally_of(release.domain, cells + company) for cells in (case.near, case.far)]
    near, far = (opened(release, table).astype(float) for table in tables)
    stated = mechanism.log_ratio(np.arange(mechanism.size), near, far)

    def scores(table: Tally, size: int) -> np.ndarray:
        draws = repeated_draws(release, table, size, source, mechanism, plenty)
        return draws if stated is None else stated(draws)[:, None]

    search, fresh = ([scores(table, size) for table in tables] for size in (SEARCHED, DRAWS))
    outcomes = choose_outcomes(*search, beta, digits=False).outcomes
    bounds = []
    for event in outcomes:
        hits = [int(event.holds(side).sum()) for side in fresh]
        this, other = hits[event.favoured], hits[1 - event.favoured]
        bounds.append(
            loss_lower_bound(this, DRAWS, other, DRAWS, beta=beta, error=1e-6 / len(outcomes))
        )
    return float(max(bounds))


@every_kind
def test_what_is_drawn_can_be_afforded_exactly_up_to_the_share(case: Case):
    release = case.release
    exact = release.statistic(tally_of(release.domain, case.near))
    less = replace(release.share, alpha=release.share.alpha * Fraction(999, 1000))
    perturb(exact, release.mechanism, release.share, SeededSource(1))
    with pytest.raises(PrivacyLineError, match="no price within its share"):
        perturb(exact, release.mechanism, less, SeededSource(1))


@every_kind
def test_a_share_of_rho_buys_every_kind_and_is_used_up(case: Case):
    exact = case.release.statistic(tally_of(case.release.domain, case.near))
    for rho in (Fraction(1, 2), Fraction(1, 50)):
        share = replace(case.release.share, alpha=Fraction(0), rho=rho)
        try:
            mechanism = replace(case.release, share=share).mechanism
        except ValueError:  # a share that is too small for any noise
            continue
        perturb(exact, mechanism, share, SeededSource(1))
        with pytest.raises(PrivacyLineError, match="no price within its share"):
            perturb(exact, mechanism, share * Fraction(999, 1000), SeededSource(1))
        with pytest.raises(PrivacyLineError, match="no price within its share"):
            perturb(exact, mechanism, replace(share, alpha=Fraction(1)), SeededSource(1))
        assert mechanism.event.concentrated is not None


def needs_beta(event: Event) -> bool:
    """Whether it has no pure form."""
    if isinstance(event, StagedEvent):
        return event.choice_beta + event.beta > 0
    if isinstance(event, NearMeansEvent):
        return False
    if isinstance(event, CompressedMarginsEvent | StagedGaussianEvent):
        return event.noise == "discrete-gaussian"
    by_noise = GaussianRoundsEvent | SmoothLaplaceEvent | ProposeTestReleaseEvent
    return squares(event) or isinstance(event, by_noise)


@every_kind
def test_a_share_without_beta_buys_a_pure_mechanism_or_none(case: Case):
    without = replace(case.release, share=replace(case.release.share, beta=Fraction(0)))
    if not needs_beta(case.release.mechanism.event):
        assert affordable(without.mechanism.event, without.share)
    else:
        with pytest.raises(ValueError, match="needs beta"):
            _ = without.mechanism


@pytest.mark.usefixtures("short_fits")
@every_kind
def test_the_same_noisy_statistic_publishes_the_same_tables_and_records(case: Case):
    release = case.release
    exact = release.statistic(tally_of(release.domain, case.near))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(2))
    again = Noisy.from_bytes(noisy.to_bytes())
    assert noisy.reproducible
    first, second = release.publish(noisy), replace(release).publish(again)
    assert first.facts == second.facts
    for one, other in zip(first.tables, second.tables, strict=True):
        assert one.columns.keys() == other.columns.keys() == one.descriptions.keys()
        for name, column in one.columns.items():
            np.testing.assert_array_equal(column, other.columns[name])
            assert len(column) == len(next(iter(one.columns.values())))
    if isinstance(release, Samplable):
        np.testing.assert_array_equal(release.sample(noisy, 7)[1], release.sample(again, 7)[1])


@every_kind
def test_expected_errors_are_positive_numbers_and_need_no_data(case: Case):
    statements = case.release.expected_error()
    assert statements
    assert all(0 < statement.value < np.inf and statement.quantity for statement in statements)
