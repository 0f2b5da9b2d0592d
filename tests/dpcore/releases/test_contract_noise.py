"""Noise has the law that a release states at its own scale, and at neither two thirds nor 3/2 of it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpcore.line.mechanism import Mechanism
from dpcore.mechanisms import BlockGaussian, BlockLaplace, ExponentialMechanism
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import SeededSource
from papers.k_norm.mechanism import DiscreteKNorm
from papers.k_norm.sampler import lattice_norm
from tests.chance import FALSE_ALARM, most_failures
from tests.dpcore.mechanisms.noise_laws import goodness_of_fit
from tests.dpcore.releases.claims import moved_in_blocks
from tests.dpcore.releases.contract import (
    CASES,
    LAWS,
    RELATIONS,
    Case,
    opened,
    repeated_draws,
    under,
)


def every_law_with(has: Callable[[Mechanism], bool]) -> pytest.MarkDecorator:
    chosen = {name: case for name, case in LAWS.items() if has(case.release.mechanism)}
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


def drawing(*mechanisms: type[Mechanism]) -> Callable[[Mechanism], bool]:
    return lambda mechanism: isinstance(mechanism, mechanisms)


def require_stated_noise(case: Case) -> None:
    """The law of the noise is the stated one at its own scale, and at no other."""
    release, records = case.release, case.near
    if isinstance(release, Histogram):  # counts so high that no threshold drops them
        records = np.repeat(np.arange(release.domain.size), 1000)
    draws = repeated_draws(release, records, 30_000 // release.mechanism.size, SeededSource(11))
    # Sums in rounds are small beside their noise, and no function of the table alone.
    in_rounds = isinstance(release.mechanism, GaussianRounds)
    noise = (draws if in_rounds else draws - opened(release, records)).ravel()

    event = release.mechanism.event
    assert goodness_of_fit(noise, event) > FALSE_ALARM
    assert goodness_of_fit(noise, event, stretch=2 / 3) < 1e-9
    assert goodness_of_fit(noise, event, stretch=3 / 2) < 1e-9
    assert np.std(noise) == pytest.approx(release.mechanism.stddev, rel=0.04)
    for level in (0.5, 0.9):
        width = release.mechanism.half_width(level)
        assert np.sum(np.abs(noise) > width) <= most_failures(noise.size, 1 - level)
        assert np.sum(np.abs(noise) <= width - 1) <= most_failures(noise.size, level)


@every_law_with(lambda mechanism: hasattr(mechanism, "half_width"))
def test_the_noise_has_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it(case: Case):
    require_stated_noise(case)


@every_law_with(drawing(DiscreteKNorm))
def test_the_length_of_k_norm_noise_has_the_stated_scale_and_not_another(case: Case):
    release, event = case.release, case.release.mechanism.event
    noise = repeated_draws(release, case.near, 4000, SeededSource(13)) - opened(release, case.near)
    lengths = lattice_norm(noise.astype(np.int64)) / float(event.scale)
    law = stats.gamma(event.dimension)
    assert stats.kstest(lengths, law.cdf).pvalue > FALSE_ALARM
    for stretch in (2 / 3, 3 / 2):
        assert stats.kstest(lengths / stretch, law.cdf).pvalue < 1e-9
    assert np.std(noise) == pytest.approx(release.mechanism.stddev, rel=0.03)


@every_law_with(drawing(BlockGaussian, BlockLaplace))
def test_the_noise_of_blocks_has_the_stated_scales_and_neither_two_thirds_nor_three_halves(
    case: Case,
):
    """Block by block: numbers of their law, or differences whose squared norm is chi-square."""
    release, mechanism = case.release, case.release.mechanism
    draws = repeated_draws(release, case.near, 6000, SeededSource(14)) - opened(release, case.near)
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


@every_law_with(drawing(ExponentialMechanism))
def test_choices_have_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it(case: Case):
    release = case.release
    records = case.near + case.company
    draws = repeated_draws(release, records, 30_000, SeededSource(12)).astype(int)
    scores = opened(release, records).reshape(draws.shape[1], -1)
    for choice, score in zip(draws.T, scores, strict=True):
        counts = np.bincount(choice, minlength=len(score))
        for stretch, fits in ((1, True), (2 / 3, False), (3 / 2, False)):
            weights = np.exp(-score / (float(release.mechanism.scale) * stretch))
            p_value = stats.chisquare(counts, weights / weights.sum() * len(choice)).pvalue
            assert p_value > FALSE_ALARM if fits else p_value < 1e-9


@pytest.mark.parametrize("name", ["histogram", "gaussian margins"])
def test_the_noise_of_fewer_or_more_records_has_the_stated_scale(name: str):
    for adjacency in RELATIONS:
        require_stated_noise(under(CASES[name], adjacency))
