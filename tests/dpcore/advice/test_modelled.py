"""What is expected of tables that records follow is what comes, and less where values crowd."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.modelled import ModelledTables
from dpcore.advice.usable import ROUGH, table_error
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource

SIZES = {"area": 8, "visits": 10, "sex": 2, "trade": 6}
DOMAIN = Domain(tuple(Categories(name, tuple(range(size))) for name, size in SIZES.items()))
RELEASE = Microdata("m", DOMAIN, 6000, Budget.of("1", "1e-6"), noise="discrete-gaussian")
EVEN = {name: np.full(size, 1 / size) for name, size in SIZES.items()}
CROWDED = {**EVEN, "visits": np.r_[0.95, np.full(9, 0.05 / 9)]}


@pytest.mark.slow
@pytest.mark.parametrize("shares", [EVEN, CROWDED], ids=["even", "crowded"])
def test_what_is_expected_of_pairs_comes(shares):
    generator = np.random.default_rng(1)
    codes = [generator.choice(size, 6000, p=shares[name]) for name, size in SIZES.items()]
    cells, counts = np.unique(DOMAIN.pack(np.column_stack(codes)), return_counts=True)
    tally = Tally(DOMAIN, cells, counts)
    exact, pairs = RELEASE.statistic(tally), [("area", "visits"), ("visits", "sex")]
    missed = np.zeros((3, len(pairs)))
    for seed in range(len(missed)):
        noisy = perturb(exact, RELEASE.mechanism, RELEASE.share, SeededSource(seed))
        sets = [tuple(sorted(DOMAIN.names.index(name) for name in pair)) for pair in pairs]
        made = RELEASE.fit(noisy, RELEASE.total(noisy)).margins(DOMAIN.shape, sets)
        for i, (pair, margin) in enumerate(zip(pairs, made, strict=True)):
            true = tally.margin(pair).reshape(margin.shape)
            missed[seed, i] = np.abs(margin - true).sum() / 2 / 6000
    expected = [ModelledTables(RELEASE, shares).moved(pair) for pair in pairs]
    assert (missed.mean(0) / expected < 2).all()
    assert (missed.mean(0) / expected > 0.5).all()


def test_less_is_expected_where_values_crowd_and_where_the_budget_is_larger():
    def expected(shares, alpha="1"):
        release = replace(RELEASE, share=Budget.of(alpha, "1e-6"))
        return table_error(release, ["area", "visits"], shares)

    assert expected(CROWDED) < 0.6 * expected(EVEN)
    assert expected(EVEN, "4") < expected(EVEN) < expected(EVEN, "1/4")


def test_a_table_of_nothing_but_noise_is_not_usable():
    release = replace(RELEASE, share=Budget.of("1/1000", "1e-6"))
    assert table_error(release, ["area", "visits"], EVEN) > ROUGH


def test_a_wide_column_is_expected_in_its_groups_and_a_table_that_is_not_drawn_is_none():
    edges = tuple(map(float, range(101)))
    domain = Domain((Bins("age", edges, integer=True), *DOMAIN.axes[1:]))
    share = Budget.of("1", "1e-6")
    release = CompressedMicrodata("m", domain, 6000, share, (), "discrete-gaussian", keep=10)
    shares = {**EVEN, "age": np.full(100, 0.01)}
    wide = table_error(release, ["age", "visits"], shares)
    assert 0 < wide < 0.5
    only = replace(release, sets=((0, 1), (2, 3)))
    assert table_error(only, ["age", "visits"], shares) < wide
    assert table_error(only, ["age", "sex"], shares) is None
