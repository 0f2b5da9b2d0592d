"""Microdata: the privacy of margins of all pairs, and records that follow their common model.

Sensitivity, noise and price are claims of ``test_contract``, made of every release.
"""

import tracemalloc
from dataclasses import replace
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
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.microdata import Microdata
from tests.apart import apart
from tests.conftest import short_fits
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


def noisy_of(of: MarginTables) -> Noisy:
    return drawn(of, DOMAIN.pack(population()), 3)


@pytest.mark.slow
def test_records_resemble_the_survey_and_published_counts_are_their_margins():
    codes, noisy = population(), noisy_of(release())
    domain, records = release().sample(noisy, ROWS)
    assert domain == DOMAIN
    assert records.shape == (ROWS, 4)
    assert margin_errors(codes, records, DOMAIN.shape, 1).mean < 0.03
    assert margin_errors(codes, records, DOMAIN.shape, 2).mean < 0.08
    published = release().publish(noisy)
    assert published.facts == {"tables": 6, "cells": release().measurement.cells}
    for table, attrs in zip(published.tables, release().tables, strict=True):
        whole = margins_of(records, DOMAIN.shape, [attrs])[0]
        np.testing.assert_array_equal(table.columns["count"], whole.ravel())


@pytest.mark.parametrize("rows", [0, 1, 777])
def test_any_number_of_records_can_be_drawn(rows: int):
    noisy = noisy_of(release())
    records = release().sample(noisy, rows)[1]
    assert records.shape == (rows, 4)
    assert np.all((records >= 0) & (records < DOMAIN.shape))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sets": ((0, 1), (), (2, 3))}, "one to six columns"),
        ({"sets": ((0, 1), (1, 2))}, "no set contains the columns .*'old'"),
    ],
)
def test_what_it_cannot_do_is_refused(changes: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        release(**changes)


def test_what_may_need_more_memory_than_the_plan_allows_is_refused():
    wide = Domain(tuple(Categories(f"c{i}", tuple(range(700))) for i in range(6)))
    assert Microdata("w", wide, 5, SHARE).memory_needed(5) > 2 * 2**30
    with pytest.raises(
        ValueError,
        match=r"^memory: the tables of counts and their model need up to 2\.22 GiB, but the"
        r" plan allows 2\.00; .* or fewer columns$",
    ):
        Microdata("w", wide, 5, SHARE, memory=2 * 2**30)
    assert release(rows=10**9, memory=2**27).memory_needed(0) < 2**27 < 32 * 10**9
    few = release(memory=2**26)
    with pytest.raises(ValueError, match="10000000 records, need"):
        few.sample(noisy_of(few), 10**7)


SHAPES = [
    (Microdata, (40,) * 4, 2, 2000, {}),
    (CompressedMicrodata, (1000,) * 3, 2, 1000, {"keep": 32}),
]


def memory_measured_and_stated(
    kind: type, sizes: tuple[int, ...], ways: int, rows: int, more: dict[str, int]
) -> tuple[int, int]:
    """Bytes at the peak, traced in a process of one thread: tracing may crash where others allocate."""
    domain = Domain(tuple(Categories(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))
    sets = tuple(combinations(range(len(sizes)), ways))
    made = kind("x", domain, rows, SHARE, sets, "discrete-gaussian", **more)
    codes = np.random.default_rng(1).integers(0, sizes, (rows, len(sizes)))
    noisy = drawn(made, domain.pack(codes), 3)
    with short_fits():
        tracemalloc.start()
        made.publish(noisy)
        made.sample(noisy, 2 * rows)
    return tracemalloc.get_traced_memory()[1], made.memory_needed(2 * rows)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_publishing_and_records_stay_within_the_memory_that_is_stated(shape: tuple[object, ...]):
    peak, stated = apart(memory_measured_and_stated, *shape)
    assert peak < stated < 12 * peak + 2**25
