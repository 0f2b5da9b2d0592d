"""Densities: the kernel estimate behind the noise, its sensitivity, and the stated errors."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.transforms import TRANSFORMS
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.bandwidth import Bandwidth
from dpcore.releases.densities.basis import Basis
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.cosines import Cosines
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.densities.splines import kept, shares, strange
from dpcore.releases.densities.tuned import TunedDensity
from dpcore.releases.densities.waves import Waves
from dpcore.sampling.source import SeededSource
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import drawn, grid, opened, repeated_draws, tally_of
from tests.dpcore.releases.densities.density_oracles import (
    centres,
    damping,
    kernel_density,
    reflected_kernel,
    spline_binning,
)

PURE, APPROXIMATE, LITTLE = Budget.of("1"), Budget.of("1", "1e-6"), Budget.of("0.002", "1e-6")
ROWS = 2000


def density(kind: type, sizes: tuple, bandwidths: tuple, rows: int = ROWS) -> Density:
    domain = Domain(tuple(grid(f"x{i}", size) for i, size in enumerate(sizes)))
    share = PURE if kind is BinnedDensity else APPROXIMATE
    return kind("d", domain, rows, share, bandwidths)


def records(release: Density) -> np.ndarray:
    """Cells of records from a smooth, two-humped law."""
    random = np.random.default_rng(4)
    columns = []
    for size in release.domain.shape:
        humps = np.where(
            random.random(ROWS) < 0.6, random.beta(3, 9, ROWS), random.beta(9, 2, ROWS)
        )
        columns.append(np.minimum((humps * size).astype(int), size - 1))
    return release.domain.pack(np.stack(columns, axis=1))


def noiseless(release: Density) -> Noisy:
    return Noisy(opened(release, records(release)))


CASES = [
    (SpectralDensity, (200,), (0.08,)),
    (SpectralDensity, (24, 30), (0.2, 0.3)),
    (BinnedDensity, (400,), (0.08,)),
    (BinnedDensity, (64, 60), (0.3, 0.4)),
    (BinnedDensity, (12,), (0.1,)),
    (BinnedDensity, (16,), (0.1,)),
    (BinnedDensity, (5, 64), (0.2, 0.4)),
]
every_density = pytest.mark.parametrize(("kind", "sizes", "bandwidths"), CASES)


@every_density
def test_without_noise_the_estimate_is_the_reflected_kernel_density(
    kind: type, sizes: tuple, bandwidths: tuple
):
    """To the lattice step for the spectral kind; to what binning leaves out for the other, which is
    little beside the noise."""
    release = density(kind, sizes, bandwidths)
    counts = tally_of(release.domain, records(release)).dense().reshape(sizes)
    expected = kernel_density(counts.astype(float), bandwidths)
    estimate = release.fine.density(release.coefficients(noiseless(release)))
    left = release.left_out
    if min(np.multiply(sizes, bandwidths)) > 1.5:  # else the column's own grid is too coarse
        assert left.fixed < 0.2 * release.error_parts["noise"]
    np.testing.assert_allclose(
        estimate, expected, atol=1e-5 + left.fixed if kind is SpectralDensity else left.fixed + 1e-9
    )
    probabilities = release.probabilities(noiseless(release))
    np.testing.assert_allclose(probabilities, expected / expected.sum(), atol=1e-2 / counts.size)


@pytest.mark.parametrize("bandwidth", [0.005, 0.05, 0.1, 0.3, 1.0])
def test_the_spectral_sensitivity_is_eight_times_the_odd_dampings(bandwidth: float):
    """Reflected: Delta^2 = (8 / n^2) sum over odd j of lambda_j."""
    release = density(SpectralDensity, (500,), (bandwidth,))
    odd = sum(damping(j, bandwidth) for j in range(1, 4001, 2))
    exact = math.sqrt(8 * odd) / ROWS
    assert exact <= release.lattice.sensitivity <= exact * (1 + 1e-9)
    grown = math.sqrt(release.mechanism.event.l2_sensitivity_squared) * release.lattice.step
    assert exact < grown < 1.0001 * exact


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "bandwidths"), [(case[1], case[2]) for case in CASES[2:]])
def test_a_record_is_shared_out_by_splines_in_whole_parts(sizes: tuple, bandwidths: tuple):
    release = density(BinnedDensity, sizes, bandwidths)
    codes = release.domain.unpack(np.arange(release.domain.size))
    cells, parts = release.parts(codes)
    assert parts.min() >= 0
    assert set(parts.sum(axis=1)) == {release.whole}
    some = slice(0, None, 1 + release.domain.size // 60)
    for code, where, share in zip(codes[some], cells[some], parts[some], strict=True):
        point = tuple(centres(size)[c] for c, size in zip(code, sizes, strict=True))
        expected = spline_binning(point, sizes, release.cells).ravel() * release.whole
        np.testing.assert_allclose(
            np.bincount(where, share, minlength=len(expected)), expected, atol=64
        )


@pytest.mark.parametrize("basis", [Cosines, Waves])
@pytest.mark.parametrize("wide", [1, 2, 3, 7, 10, 33])
def test_what_sharing_does_to_a_wave_is_bounded_for_any_record(basis: type[Basis], wide: int):
    """Of cosine and sine together where the ends meet: in the complex plane."""
    fine = 997
    cells, share = shares(np.arange(fine), fine, wide, periodic=basis is Waves)
    numbers = np.arange(len(basis.line(wide, 1.0)))
    factors, bounds = kept(basis, fine, wide), strange(basis, fine, wide)
    farthest = []
    for number, j in enumerate(basis.frequency(numbers)):
        wave = np.exp if basis is Waves else (lambda turned: np.cos(turned.imag))
        seen = (wave(1j * np.pi * j * centres(wide))[cells] * share).sum(axis=1) / factors[number]
        error = np.abs(seen - wave(1j * np.pi * j * centres(fine))).max()
        assert error <= bounds[number] + 1e-12
        farthest.append(error / max(bounds[number], 1e-12))
    assert wide < 3 or max(farthest) > 0.95


@pytest.mark.parametrize("kind", [SpectralDensity, BinnedDensity])
@pytest.mark.parametrize(
    ("sizes", "bandwidths"), [((60,), (0.05,)), ((12,), (0.03,)), ((30, 20), (0.1, 0.2))]
)
def test_rounding_to_the_grid_stays_within_its_bound(kind: type, sizes: tuple, bandwidths: tuple):
    """Records at the left edges of their cells, as whole minutes are: the worst that a grid can do."""
    release = density(kind, sizes, bandwidths)
    codes = release.domain.unpack(records(release))
    theta = release.coefficients(noiseless(release))
    true = [codes[:, i] / size for i, size in enumerate(sizes)]
    kernels = [
        reflected_kernel(centres(n), x, h)
        for n, x, h in zip(release.printed.shape, true, bandwidths, strict=True)
    ]
    exact = kernels[0].mean(axis=1) if len(sizes) == 1 else kernels[0] @ kernels[1].T / ROWS
    stated = release.stated(theta, 0.0, release.printed.density, release.printed_variance)
    away = np.abs(stated["estimate"] - exact)
    assert np.all(away <= stated["left_out_bound"] + 1e-9)
    assert sizes == (12,) or away.max() > 0.1 * stated["left_out_bound"].max()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sizes", "bandwidths"), [CASES[0], CASES[2], CASES[6]])
def test_stated_errors_and_intervals_hold_in_simulation(
    kind: type, sizes: tuple, bandwidths: tuple
):
    """Over 3000 draws: the integrated squared error to 10 per cent, standard errors to 7, intervals of
    90 per cent to 3: each more than five standard errors of the simulation."""
    release = density(kind, sizes, bandwidths)
    truth = noiseless(release)
    draws = repeated_draws(
        release, tally_of(release.domain, records(release)), 3000, SeededSource(6)
    )
    clean = release.coefficients(truth)
    errors = np.stack(
        [release.coefficients(Noisy(draw.astype(np.int64))) - clean for draw in draws]
    )
    ise, typical = (statement.value for statement in release.expected_error())
    assert (errors**2).sum(axis=1).mean() == pytest.approx(ise, rel=0.1)
    assert typical == pytest.approx(math.sqrt(ise) + sum(release.left_out.parts.values()))
    np.testing.assert_allclose(errors.std(axis=0) ** 2, release.coefficient_variances, rtol=0.2)

    (table, coefficients), facts = release.publish(truth).tables, release.publish(truth).facts
    assert facts["noise_integrated_squared_error"] == ise
    np.testing.assert_allclose(
        coefficients.columns["standard_error"] ** 2, release.coefficient_variances
    )
    unit = math.prod(sizes)
    basis, flat = release.printed, (-1, math.prod(release.printed.shape))
    values = np.stack([basis.density(clean + error) for error in errors]).reshape(flat) / unit
    centre, error = table.columns["estimate"], table.columns["standard_error"]
    np.testing.assert_allclose((values - centre).std(axis=0), error, rtol=0.07)
    half = table.columns["upper_90"] - centre
    np.testing.assert_allclose(half, centre - table.columns["lower_90"], rtol=1e-9, atol=1e-15)
    half -= table.columns["left_out_bound"]
    assert np.mean(np.abs(values - centre) <= half) == pytest.approx(0.9, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sizes", "bandwidths"), [CASES[1], CASES[2], CASES[6]])
def test_published_densities_are_of_mass_one_and_in_the_units_of_the_columns(
    kind: type, sizes: tuple, bandwidths: tuple
):
    domain = Domain(tuple(Grid(f"x{i}", -3.0, 5.0, size) for i, size in enumerate(sizes)))
    release = kind("d", domain, ROWS, LITTLE, bandwidths)
    noisy = drawn(release, records(release), 9)
    columns = release.publish(noisy).tables[0].columns
    cell = math.prod(8 / size for size in release.printed.shape)
    assert (columns["density"] * cell).sum() == pytest.approx(1)
    assert columns["estimate"].min() < 0
    # The nearest density is the estimate, lower by one and the same amount, where that is positive.
    kept = columns["density"] > 0
    lower = columns["estimate"] - columns["density"]
    assert np.ptp(lower[kept]) < 1e-9
    assert (columns["estimate"][~kept] <= lower[kept].max() + 1e-9).all()
    assert (columns["estimate"] * cell).sum() == pytest.approx(1)
    assert -3 < columns["x0"].min() < columns["x0"].max() < 5


@pytest.mark.parametrize("kind", [SpectralDensity, BinnedDensity])
def test_records_follow_the_density(kind: type):
    release = density(kind, (50,), (0.08,))
    noisy = noiseless(release)
    domain, codes = release.sample(noisy, 20_000)
    assert domain == release.domain
    expected = 20_000 * release.probabilities(noisy)
    # Systematic draws: each cell gets its share, up to one record.
    np.testing.assert_allclose(np.bincount(codes[:, 0], minlength=50), expected, atol=1.01)
    assert stats.kendalltau(codes[:, 0], np.arange(20_000)).pvalue > FALSE_ALARM
    assert len(release.sample(noisy, 0)[1]) == 0


def test_columns_that_have_no_density_are_refused():
    line, nothing = Grid("x", 0.0, 1.0, 9), ()
    for domain, bandwidths, text in [
        (Domain((line,)), (0.1, 0.1), "one number"),
        (Domain(nothing), nothing, "one or two columns"),
        (Domain((Categories("c", ("a", "b")),)), (0.1,), "integer or continuous"),
        (Domain((line,)), (0.001,), "between 0.002 and 1"),
        (Domain((line,)), (1.1,), "between 0.002 and 1"),
        (Domain((line,)), (math.nan,), "between 0.002 and 1"),
        (Domain((Grid("x", 0.0, 1.0, 2**24 + 1),)), (0.1,), "too many for a density"),
    ]:
        for kind in (SpectralDensity, BinnedDensity):
            with pytest.raises(ValueError, match=text):
                kind("d", domain, 10, APPROXIMATE, bandwidths)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BinnedDensity, SpectralDensity, GammaDensity, CoefficientDensity])
def test_records_without_a_value_leave_a_density_as_it_is_and_are_counted(kind: type[Density]):
    """As of the table without them, in which the number of records is public, but for the noise."""
    line = Grid("x", 0.0, 2.0, 30)
    values, generous = 1000 * np.arange(30) ** 2, Budget.of("2", "0.01")
    with_nulls = Domain((replace(line, nullable=True),))
    tables = [
        Tally(Domain((line,)), np.arange(30), values),
        Tally(with_nulls, np.arange(31), np.append(values, values.sum())),
    ]
    estimates = []
    for table, rows in zip(tables, (values.sum(), 2 * values.sum()), strict=True):
        release = kind("d", table.domain, int(rows), generous, (0.3,))
        noisy = drawn(release, table)
        published = release.publish(noisy)
        estimates.append(published.tables[0].columns["estimate"])
    np.testing.assert_allclose(*estimates, atol=2e-3)
    assert published.facts["noisy_rows"] == pytest.approx(values.sum(), rel=1e-3)
    margin, _ = release.supported_margin(noisy, ("x",))
    assert margin.shape == (31,)
    assert release.sample(noisy, 100)[1].max() < 30


@pytest.mark.slow
def test_a_density_of_no_records_and_one_of_two_columns_with_nulls_are_published():
    square = Domain((Grid("x", 0.0, 1.0, 8, nullable=True), Grid("y", 0.0, 1.0, 6)))
    release = BinnedDensity("d", square, 500, Budget.of("1"), (0.3, 0.3))
    for cells, counts in (([50], [500]), ([0, 53], [250, 250])):  # x is null in the last six cells
        tally = Tally(square, np.array(cells), np.array(counts))
        exact = release.statistic(tally)
        known = sum(n for cell, n in zip(cells, counts, strict=True) if cell < 48)
        assert exact._statistic.values.sum() == known * release.whole
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
        columns = release.publish(noisy).tables[0].columns
        values = np.ma.filled(columns["density"], np.nan)
        assert np.isfinite(values).all() == (known > 0)
        assert np.isnan(values).all() == (known == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "transform"),
    [(BinnedDensity, "log"), (SpectralDensity, "sqrt"), (SmoothFunction, "log1p")],
)
def test_a_transformed_density_is_that_of_the_columns_own_scale(kind: type, transform):
    """By definition: a mean of kernels of t(x) - t(y), times the derivative of t at x."""
    t, slope = TRANSFORMS[transform].forward, TRANSFORMS[transform].slope
    axis, h = Grid("x", 1.0, 200.0, 900, transform=transform), 0.06
    share = Budget.of("1000") if kind is BinnedDensity else Budget.of("1000", "1e-6")
    if kind is SmoothFunction:
        release = SmoothFunction("f", Domain((axis,)), 4000, share, "gaussian", (h,), (100,))
    else:
        release = kind("d", Domain((axis,)), 4000, share, (h,))
    values = np.array([3.0, 20.0, 21.0, 90.0])
    cells = np.searchsorted(axis.edges, values, "right") - 1
    noisy = Noisy(opened(release, Tally(release.domain, cells, np.full(4, 1000))))
    table = release.publish(noisy).tables[0].columns
    at, width, (start, end) = table["x"], h * axis.span, t(np.array(axis.bounds))
    expected = np.zeros(len(at))
    for own in t(values):
        images = [own] if kind is SmoothFunction else [own, 2 * start - own, 2 * end - own]
        for image in images:
            away = (t(at) - image) / width
            expected += np.exp(-0.5 * away**2) / width / math.sqrt(2 * math.pi) / 4
    expected *= slope(at)
    bound = table["left_out_bound"] + 4 * table["standard_error"]
    assert np.all(np.abs(table["estimate"] - expected) <= bound)
    assert bound.max() < 0.1 * expected.max()
    found = release.evaluate(noisy, {"x": at})
    for name in ("estimate", "standard_error", "lower_90", "upper_simultaneous_90"):
        np.testing.assert_allclose(found[name], table[name], rtol=1e-4, atol=1e-6)


def test_a_density_by_the_root_is_infinite_at_zero_only():
    domain = Domain((Grid("x", 0.0, 9.0, 90, transform="sqrt"),))
    release = BinnedDensity("d", domain, ROWS, LITTLE, (0.1,))
    noisy = noiseless(release)
    assert np.isfinite(release.publish(noisy).tables[0].columns["estimate"]).all()
    with pytest.raises(ValueError, match="with sqrt, x has no density at 0; use points above 0"):
        release.evaluate(noisy, {"x": np.array([0.0, 1.0])})


def test_no_body_and_no_private_bandwidth_for_columns_with_nulls():
    line = Domain((Grid("x", 0.0, 1.0, 9, nullable=True),))
    smooth = BinnedDensity("d", line, 10, PURE, (0.1,))
    for build in (
        lambda: BodyDensity("d", line, 10, PURE, (0.3,)),
        lambda: Bandwidth("b", line, 10, PURE, smallest=0.1),
        lambda: TunedDensity("d", line, 10, PURE, smooth, Fraction(1, 2)),
    ):
        with pytest.raises(ValueError, match=r"columns with(out)? nulls"):
            build()
