"""Microdata: the privacy of margins of all pairs, and records that follow their common model.

Sensitivity, noise and price are claims of ``test_contract``, made of every release.
"""

import tracemalloc
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.estimates.distances import margin_errors
from dpcore.line.statistic import Noisy
from dpcore.post.tables.margins import margins_of
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.margins import Margins
from dpcore.releases.tables.microdata import Microdata
from tests.dpcore.releases.contract import drawn

SHARE = Budget.of("1", "1e-6")
DOMAIN = Domain(
    (
        Categories("work", ("a", "b", "c")),
        Bins("age", tuple(float(10 * i) for i in range(13)), integer=True),
        Bins("income", tuple(map(float, range(9))), nullable=True),
        Categories("old", (False, True)),
    )
)
ROWS = 5000


def population() -> np.ndarray:
    generator = np.random.default_rng(1)
    age = generator.binomial(11, generator.choice([0.25, 0.75], ROWS))
    income = np.where(age < 2, 8, np.clip(age // 2 + generator.integers(0, 3, ROWS), 0, 7))
    return np.stack([np.minimum(age // 4, 2), age, income, age >= 6], axis=1).astype(np.int64)


def release(**changes: object) -> Microdata:
    return replace(Microdata("people", DOMAIN, ROWS, SHARE, noise="discrete-gaussian"), **changes)


def noisy_of(of: Margins) -> Noisy:
    return drawn(of, DOMAIN.pack(population()), 3)


def test_it_measures_all_pairs_with_the_noise_of_margins_at_the_same_share():
    pairs = tuple(combinations(range(4), 2))
    margins = Margins("people", DOMAIN, ROWS, SHARE, pairs, "discrete-gaussian")
    assert release().tables == pairs
    assert release().mechanism == margins.mechanism
    assert release().mechanism.l2_sensitivity_squared == Fraction(12)
    np.testing.assert_array_equal(noisy_of(release()).values, noisy_of(margins).values)


def test_fewer_pairs_have_less_noise_each():
    few = release(sets=((0, 1), (1, 2), (1, 3)))
    assert few.mechanism.stddev < 0.75 * release().mechanism.stddev


@pytest.mark.parametrize("noise", ["discrete-gaussian", "discrete-laplace"])
def test_records_resemble_the_survey(noise: str):
    codes = population()
    noisy = noisy_of(release(noise=noise))
    domain, records = release(noise=noise).sample(noisy, ROWS)
    assert domain == DOMAIN
    assert records.shape == (ROWS, 4)
    assert margin_errors(codes, records, DOMAIN.shape, 1).mean < 0.03
    assert margin_errors(codes, records, DOMAIN.shape, 2).mean < 0.08


def test_published_counts_are_the_margins_of_the_records():
    noisy = noisy_of(release())
    _, records = release().sample(noisy, ROWS)
    published = release().publish(noisy)
    assert published.facts == {"tables": 6, "cells": release().measurement.cells}
    for table, attrs in zip(published.tables, release().tables, strict=True):
        whole = margins_of(records, DOMAIN.shape, [attrs])[0]
        np.testing.assert_array_equal(table.columns["count"], whole.ravel())


@pytest.mark.parametrize("rows", [0, 1, 777, 2 * ROWS])
def test_any_number_of_records_can_be_drawn(rows: int):
    noisy = noisy_of(release())
    records = release().sample(noisy, rows)[1]
    assert records.shape == (rows, 4)
    assert np.all((records >= 0) & (records < DOMAIN.shape))


def test_a_single_column_has_its_own_table():
    one = Domain((Categories("x", (1, 2, 3)),))
    single = Microdata("x", one, 6, Budget.of("5"))
    noisy = drawn(single, 4 * [0] + 2 * [2], 3)
    assert single.tables == ((0,),)
    assert len(single.publish(noisy).tables) == 1
    assert single.sample(noisy, 6)[1].shape == (6, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": ((0, 1), (), (2, 3))}, "one to six columns"),
        ({"sets": ((0, 1), (1, 2))}, "no set holds the columns .*'old'"),
    ],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        release(**changes)
    with pytest.raises(ValueError, match="all pairs at once"):
        release().sampler(ROWS, "auto")


def test_what_may_need_more_memory_than_the_plan_allows_is_refused():
    wide = Domain(tuple(Categories(f"c{i}", tuple(range(700))) for i in range(6)))
    assert Microdata("w", wide, 5, SHARE).memory_needed(5) > 2 * 2**30
    with pytest.raises(
        ValueError,
        match=r"^memory: the tables of counts and what is fitted to them need up to 2\.22 GiB, and the"
        r" plan allows 2\.00; .* or fewer columns$",
    ):
        Microdata("w", wide, 5, SHARE, memory=2 * 2**30)
    assert release(rows=10**9, memory=2**27).memory_needed(0) < 2**27 < 32 * 10**9
    few = release(memory=2**26)
    with pytest.raises(ValueError, match="10000000 records, need"):
        few.sample(noisy_of(few), 10**7)


def married_by_sex(rows: int) -> tuple[Domain, np.ndarray]:
    """Incomes of women fall with marriage, and those of men rise; other columns know nothing of it."""
    generator = np.random.default_rng(1)
    sex, age, region = (generator.integers(0, n, rows) for n in (2, 8, 5))
    married = (generator.random(rows) < 0.2 + 0.07 * age).astype(np.int64)
    income = 4 + 0.6 * sex + 1.2 * married + INTERACTION * sex * married
    decile = np.clip(np.rint(income + generator.normal(0, 1.5, rows)), 0, 9)
    codes = np.stack([sex, married, decile, age, region], axis=1).astype(np.int64)
    names = ("sex", "married", "decile", "age", "region")
    axes = (Categories(n, tuple(range(s))) for n, s in zip(names, (2, 2, 10, 8, 5), strict=True))
    return Domain(tuple(axes)), codes


INTERACTION = -1.11


def interaction(sex: np.ndarray, married: np.ndarray, income: np.ndarray, weights: np.ndarray):
    """The last coefficient of income on sex, marriage and their product; linear in the weights."""
    terms = np.stack([np.ones(len(sex)), sex, married, sex * married], axis=1)
    inverse = np.linalg.inv(terms.T @ (terms * np.abs(weights)[:, None]))
    return (inverse @ (terms.T @ (weights * income)))[-1]


@pytest.mark.parametrize("more", [((0, 1, 2),), ((0, 1, 2, 3),)])
def test_an_interaction_of_three_columns_is_in_the_records_where_a_set_names_them(more):
    """Within two standard errors of sampling and noise, and far off from pairs alone."""
    rows = 20_000
    domain, codes = married_by_sex(rows)
    pairs = tuple(combinations(range(5), 2))
    found = []
    for sets in (pairs, pairs + more):
        made = Microdata("x", domain, rows, SHARE, sets, "discrete-gaussian", aim="records")
        noisy = drawn(made, domain.pack(codes), 5)
        records = made.sample(noisy, rows)[1]
        found.append(interaction(*records.T[:3], np.ones(rows)))
    sex, married, income = np.indices((2, 2, 10)).reshape(3, -1)
    table = margins_of(codes, domain.shape, [(0, 1, 2)])[0].ravel()
    noise = [
        interaction(
            sex,
            married,
            income,
            table + generator.normal(0, made.of_nothing.margin((0, 1, 2)).variance ** 0.5, 40),
        )
        for generator in [np.random.default_rng(7)]
        for _ in range(400)
    ]
    sampling = 1.5 * (1 / np.bincount(2 * codes[:, 0] + codes[:, 1])).sum() ** 0.5
    error = np.hypot(np.std(noise), sampling)
    without, with_set = (abs(coefficient - INTERACTION) for coefficient in found)
    assert with_set < 2 * error < 0.25 < 0.6 < without


SHAPES = [
    (Microdata, (40,) * 5, 2, 2000, {}),
    (Microdata, (4,) * 6, 2, 5000, {"chosen": 1}),
    (Microdata, (7,) * 5, 5, 5000, {}),
    (Microdata, (500, 4), 2, 100, {}),
    (CompressedMicrodata, (1000,) * 3, 2, 5000, {"keep": 32}),
    pytest.param(Microdata, (3,) * 8, 2, 30_000, {}, marks=pytest.mark.slow),
]


@pytest.mark.usefixtures("short_fits")
@pytest.mark.parametrize(("kind", "sizes", "ways", "rows", "more"), SHAPES)
def test_publishing_and_records_stay_within_the_memory_that_is_stated(
    kind: type, sizes: tuple[int, ...], ways: int, rows: int, more: dict[str, int]
):
    domain = Domain(tuple(Categories(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))
    sets = tuple(combinations(range(len(sizes)), ways))
    made = kind("x", domain, rows, SHARE, sets, "discrete-gaussian", **more)
    codes = np.random.default_rng(1).integers(0, sizes, (rows, len(sizes)))
    noisy = drawn(made, domain.pack(codes), 3)
    tracemalloc.start()
    made.publish(noisy)
    made.sample(noisy, 2 * rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < made.memory_needed(2 * rows) < 12 * peak + 2**25


def test_adaptive_microdata_of_triples_are_refused():
    with pytest.raises(ValueError, match="pairs"):
        Microdata("x", DOMAIN, ROWS, SHARE, ((0, 1, 2), (0, 3)), chosen=1)
