"""Densities whose ends meet: their sensitivity, noise and estimate, and expansions of few terms."""

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.spectral_density import SpectralDensity
from tests.dpcore.releases.contract import grid, opened, tally_of
from tests.dpcore.releases.densities.density_oracles import kernel_density, wrapped_kernel


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "bandwidths"), [((200,), (0.05,)), ((24, 31), (0.1, 0.2))])
def test_without_noise_the_estimate_is_the_wrapped_kernel_density(sizes, bandwidths):
    domain = Domain(tuple(grid(f"x{i}", size) for i, size in enumerate(sizes)))
    release = SpectralDensity("p", domain, 500, Budget.of("1", "1e-6"), bandwidths, periodic=True)
    tally = tally_of(domain, np.random.default_rng(1).integers(0, domain.size, 500))
    density = kernel_density(tally.dense().reshape(sizes), bandwidths, wrapped_kernel)
    noisy = Noisy(opened(release, tally))
    np.testing.assert_allclose(
        release.fine.density(release.coefficients(noisy)), density, atol=1e-4
    )
    assert "sin(pi j x)" in release.publish(noisy).tables[1].descriptions["coefficient"]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("terms", [1, 2, 3, 7])
def test_a_truncated_expansion_is_no_farther_apart_than_its_sensitivity(periodic, terms):
    """Over all pairs of cells; and fewer terms are never dearer."""
    line = Domain((grid("x", 60),))
    share, widths = Budget.of("1", "1e-6"), (0.03,)
    release = SpectralDensity("t", line, 1, share, widths, terms, periodic=periodic)
    whole = SpectralDensity("t", line, 1, share, widths, periodic=periodic)
    assert release.basis.size == (2 * terms if periodic else terms)
    assert release.printed.size == release.fine.size == release.basis.size
    rows = np.stack([release.basis.means(cell) for cell in np.eye(60)]) * np.sqrt(
        release.basis.lambdas
    )
    apart = np.linalg.norm(rows[:, None] - rows[None, :], axis=2).max()
    assert apart <= release.lattice.sensitivity <= whole.lattice.sensitivity
    assert apart > 0.7 * release.lattice.sensitivity


def test_no_terms_are_refused():
    with pytest.raises(ValueError, match="terms: must be positive"):
        SpectralDensity("t", Domain((grid("x", 6),)), 1, Budget.of("1", "0.1"), (0.1,), terms=0)
