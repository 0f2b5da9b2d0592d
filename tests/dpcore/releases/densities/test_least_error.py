"""The bandwidth of least error: its score by definition, and how far one record moves it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.mechanisms.exponential import WHOLE
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.least_error import LeastError
from dpcore.releases.densities.tuned import TunedDensity
from tests.dpcore.releases.contract import drawn, tally_of

CELLS = 256
DOMAIN = Domain((Grid("x", 0.0, 10.0, CELLS),))


def density(rows: int, periodic: bool = False, alpha: int = 1) -> TunedDensity:
    share = Budget.of(alpha)
    smooth = BinnedDensity("d", DOMAIN, rows, share, (0.02,), periodic=periodic)
    return TunedDensity("d", DOMAIN, rows, share, smooth, Fraction(1, 2), "error")


def choice(rows: int, periodic: bool = False, alpha: int = 1) -> LeastError:
    found = density(rows, periodic, alpha).choice
    assert isinstance(found, LeastError)
    return found


@pytest.mark.parametrize("periodic", [False, True])
def test_the_score_of_a_bandwidth_is_the_error_of_records_left_out(periodic: bool):
    """From the definition, for six records: images of a normal kernel, and the integral on the grid."""
    cells, least = np.array([0, 5, 6, 90, 180, 255]), choice(6, periodic)
    places, middles, n = (cells + 0.5) / CELLS, (np.arange(CELLS) + 0.5) / CELLS, len(cells)
    for found, h in zip(least.errors(tally_of(DOMAIN, cells)), least.ladder, strict=True):

        def kernel(one, other, h=h):
            turns = np.arange(-6, 7) * (1 if periodic else 2)
            mirrored = [one - other] if periodic else [one - other, one + other]
            return sum(
                stats.norm.pdf(np.add.outer(each, turns), scale=h).sum(-1) for each in mirrored
            )

        estimate = kernel(*np.meshgrid(middles, places, indexing="ij")).mean(axis=1)
        left_out = kernel(*np.meshgrid(places, places, indexing="ij"))
        np.fill_diagonal(left_out, 0)
        expected = (estimate**2).mean() - 2 * left_out.sum() / n / (n - 1)
        # The constant function is left out of both parts.
        assert found == pytest.approx(expected + 1, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("periodic", [False, True])
def test_no_record_moves_an_error_by_more_than_its_sensitivity_and_some_by_as_much(periodic: bool):
    """Neighbours of tables with all records at one point, which move most, and of others."""
    rows, least = 40, choice(40, periodic)
    generator, errors, scores = np.random.default_rng(1), [], []
    for others in [[0] * 39, [100] * 39, *generator.integers(0, CELLS, (6, 39)).tolist()]:
        tables = [tally_of(DOMAIN, [*others, c]) for c in {others[0], *range(0, CELLS, 3), 255}]
        assert {int(table.counts.sum()) for table in tables} == {rows}
        of_each = np.array([least.errors(table) for table in tables])
        errors.append(np.ptp(of_each, axis=0) / least.sensitivities)
        scores.append(np.ptp([least.scores(table) for table in tables], axis=0).max())
    most = np.max(errors, axis=0)
    assert np.all(most <= 1)
    assert np.all(most[:30] > 0.97)
    assert 0.8 * WHOLE < max(scores) <= least.mechanism.sensitivity


@pytest.mark.slow
def test_two_peaks_have_a_bandwidth_that_shows_them_unlike_by_the_rule_of_thumb():
    generator, rows = np.random.default_rng(3), 20_000
    cells = generator.choice([0.3, 0.7], rows) * CELLS + generator.normal(0, 0.02 * CELLS, rows)
    table = tally_of(DOMAIN, np.clip(cells, 0, CELLS - 1).astype(int))
    release = density(rows, alpha=2)
    (chosen,) = release.settled(drawn(release, table))[0].bandwidths
    assert chosen < 0.035
    published = release.publish(drawn(release, table))
    facts = published.facts["bandwidth_choice"]
    assert (facts["rule"], facts["spent"]["alpha"]) == ("error", "1")
    assert published.facts["bandwidths"]["x"] == pytest.approx(10 * chosen)
    by_rule = TunedDensity("d", DOMAIN, rows, release.share, release.smooth, Fraction(1, 2))
    assert by_rule.settled(drawn(by_rule, table))[0].bandwidths[0] > 0.04


def test_functions_and_two_columns_are_refused():
    share = Budget.of("1", "1e-6")
    smooth = SmoothFunction("f", DOMAIN, 50, share, "gaussian", (0.02,), (200,))
    with pytest.raises(ValueError, match="error needs a density of one"):
        TunedDensity("f", DOMAIN, 50, share, smooth, Fraction(1, 2), "error")
    square = Domain((Grid("x", 0.0, 1.0, 20), Grid("y", 0.0, 1.0, 20)))
    two = BinnedDensity("d", square, 50, share, (0.1, 0.1))
    with pytest.raises(ValueError, match="error needs a density of one"):
        TunedDensity("d", square, 50, share, two, Fraction(1, 2), "error")
