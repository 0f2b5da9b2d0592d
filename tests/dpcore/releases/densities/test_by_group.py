"""Densities of groups: those of the records of each, with bands that hold."""

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
from papers.difference_body.release import BodyDensity
from tests.dpcore.releases.densities.density_oracles import kernel_density

SEX, AGE = Categories("sex", ("F", "M")), Grid("age", 0.0, 60.0, 60)
ROWS, H = 3000, 0.1
KINDS = {
    "binned": (BinnedDensity, Budget.of("1")),
    "spectral": (SpectralDensity, Budget.of("1", "1e-6")),
}


def by_group(kind: str, share: Budget | None = None, relation="replace-one") -> DensityOfParts:
    of, usual = KINDS[kind]
    age, share, adjacency = Domain((AGE,)), share or usual, Adjacency(relation)
    density = of("d", age, ROWS, share, (H,), adjacency=adjacency)
    domain = Domain((SEX, AGE))
    return DensityOfParts("d", domain, ROWS, share, density, adjacency=adjacency)


def tally() -> Tally:
    """A fifth of the records are women, and younger."""
    random = np.random.default_rng(2)
    sex = (np.arange(ROWS) >= ROWS // 5).astype(int)
    age = np.clip(random.normal(20 + 20 * sex, 6), 0, 59).astype(int)
    return Tally.of(Domain((SEX, AGE)), Domain((SEX, AGE)).pack(np.stack([sex, age], axis=1)))


def without_noise(release: DensityOfParts, survey: Tally) -> Noisy:
    groups = (survey.cells // 60 == code for code in range(2))
    age = Domain((AGE,))
    numbers = (
        release.each.numbers(Tally(age, survey.cells[here] % 60, survey.counts[here]))
        for here in groups
    )
    return Noisy(np.concatenate([*numbers]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_each_group_has_the_density_of_its_own_records(kind):
    release, survey = by_group(kind), tally()
    columns = release.publish(without_noise(release, survey)).tables[0].columns
    for counts, sex in zip(survey.dense().reshape(2, 60), SEX.categories, strict=True):
        expected, mine = kernel_density(counts, (H,)) / 60, columns["sex"] == sex
        away = np.abs(columns["estimate"][mine] - expected)
        assert (away <= columns["left_out_bound"][mine] + 1e-3 * expected.max()).all()


def test_what_cannot_be_of_groups_is_refused():
    age, share = Domain((AGE,)), Budget.of("1")
    body = BodyDensity("d", age, ROWS, share, (H,))
    with pytest.raises(ValueError, match="by: needs the mechanism"):
        DensityOfParts("d", Domain((SEX, AGE)), ROWS, share, body)
    many = Categories("area", tuple(range(257)))
    binned = BinnedDensity("d", age, ROWS, share, (H,))
    with pytest.raises(ValueError, match="257 groups are too many"):
        DensityOfParts("d", Domain((many, AGE)), ROWS, share, binned)
