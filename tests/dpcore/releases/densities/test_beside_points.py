"""A density beside point masses: of the records elsewhere, beside the number of records at each mass."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.parts import DensityOfParts
from dpcore.releases.densities.spectral_density import SpectralDensity
from tests.chance import most_failures
from tests.dpcore.releases.contract import draws, opened
from tests.dpcore.releases.densities.density_oracles import kernel_density

PAY = Grid("pay", 0.0, 100.0, 200, nullable=True, points=(0.0, 99.0))
DOMAIN, ROWS, H = Domain((PAY,)), 4000, 0.05
AT_ZERO, AT_TOP, SILENT = 900, 150, 100
KINDS = {
    "binned": (BinnedDensity, Budget.of("1")),
    "spectral": (SpectralDensity, Budget.of("1", "1e-6")),
}


def beside(kind: str, relation: str = "replace-one") -> DensityOfParts:
    of, share = KINDS[kind]
    adjacency = Adjacency(relation)
    density = of("d", DOMAIN, ROWS, share, (H,), adjacency=adjacency)
    return DensityOfParts("d", DOMAIN, ROWS, share, density, adjacency=adjacency)


def tally() -> Tally:
    codes = np.clip(np.random.default_rng(3).normal(80, 24, ROWS), 0, 199).astype(int)
    ends = np.cumsum([AT_ZERO, AT_TOP, SILENT])
    for code, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
        codes[first:last] = PAY.cells + code
    return Tally.of(DOMAIN, codes)


def without_noise(release: DensityOfParts) -> Noisy:
    return Noisy(opened(release, tally()))


def test_units_of_very_many_records_are_refused_where_a_count_would_lie_between_steps():
    facts = {"rows": 1_000_000, "adjacency": Adjacency("add-remove", most=1000)}
    release = beside("spectral")
    density = replace(release.density, **facts, bandwidths=(0.01,))
    with pytest.raises(ValueError, match="a point mass of pay is too light to be counted"):
        replace(release, **facts, density=density).require_publishable()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_masses_are_counted_and_the_density_is_that_of_the_other_records(kind):
    release = beside(kind)
    published = release.publish(without_noise(release))
    density, _, points = published.tables
    np.testing.assert_allclose(points.columns["estimate"], [AT_ZERO, AT_TOP], rtol=1e-6)
    assert points.columns["pay"].tolist() == [0.0, 99.0]
    counts = np.bincount(tally().cells, tally().counts, minlength=200)[:200]
    assert published.facts["noisy_rows"] == pytest.approx(counts.sum(), rel=1e-3)
    columns, expected = density.columns, kernel_density(counts, (H,)) / 100
    missed = np.abs(columns["estimate"] - expected)
    assert (missed <= columns["left_out_bound"] + 1e-3 * expected.max()).all()


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_the_masses_hold_as_often_as_they_say(kind, relation):
    release = beside(kind, relation)
    held, errors = 0, []
    for noisy in draws(release, tally(), 200):
        table = release.table_of_points(release.of_group(noisy, 0)[0]).columns
        inside = (table["lower_90"] <= [AT_ZERO, AT_TOP]) & (table["upper_90"] >= [AT_ZERO, AT_TOP])
        held += int(inside.sum())
        errors += [*(table["estimate"] - [AT_ZERO, AT_TOP])]
    assert 400 - held <= most_failures(400, 0.1)
    assert held <= most_failures(400, 0.9)
    assert np.std(errors) == pytest.approx(release.stddev, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_masses_are_counted_in_each_group(kind):
    """All women are at zero, and all men as in ``tally``."""
    sex, men = Categories("sex", ("F", "M")), tally()
    both = Domain((sex, PAY))
    release = replace(beside(kind), domain=both)
    cells = np.append(PAY.cells, PAY.size + men.cells)
    noisy = Noisy(opened(release, Tally(both, cells, np.append(500, men.counts))))
    density, points = release.publish(noisy).tables
    assert points.columns["sex"].tolist() == ["F", "F", "M", "M"]
    np.testing.assert_allclose(points.columns["estimate"], [500, 0, AT_ZERO, AT_TOP], rtol=1e-6)
    assert np.ma.getmaskarray(density.columns["estimate"])[density.columns["sex"] == "F"].all()
    counts, _ = release.supported_margin(noisy, ("sex", "pay"))
    likely = counts.reshape(2, PAY.size)[:, PAY.cells :] * (ROWS + 500 - SILENT) / ROWS
    np.testing.assert_allclose(likely, [[500, 0, 0], [AT_ZERO, AT_TOP, 0]], atol=5)
    at = {"sex": np.array(["M", "F", "M"]), "pay": np.array([80.0, 80.0, 50.0])}
    found = release.evaluate(noisy, at)["estimate"]
    assert np.ma.getmaskarray(found).tolist() == [False, True, False]
    alone = release.each.evaluate(release.of_group(noisy, 1)[1], {"pay": at["pay"]})["estimate"]
    np.testing.assert_allclose(found[[0, 2]], alone[[0, 2]])


def test_a_survey_of_nobody_else_says_so():
    release = beside("binned")
    everyone = Tally.of(DOMAIN, np.full(ROWS, PAY.cells))
    published = release.publish(Noisy(opened(release, everyone)))
    assert published.tables[-1].columns["estimate"].tolist() == [ROWS, 0]
    assert np.ma.getmaskarray(published.tables[0].columns["density"]).all()
    _, codes = release.sample(Noisy(opened(release, everyone)), 50)
    assert (codes == PAY.cells).sum() >= 49
