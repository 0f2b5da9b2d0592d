"""Records fitted to noisy margins, and the records that the fit starts from."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.fit import fit_records
from dpcore.post.records.nested import Nested, tied
from dpcore.post.tables.consistency import make_consistent
from dpcore.post.tables.margins import Margin, margins_of
from tests.dpcore.post.records.population import misfit, noisy_margins, population


def pairs(k):
    return list(combinations(range(k), 2))


def naive_margin(codes, sizes, attributes):
    table = np.zeros([sizes[a] for a in attributes], dtype=np.int64)
    for record in codes:
        table[tuple(record[a] for a in attributes)] += 1
    return table


def test_margins_are_counted_record_by_record():
    sizes = (2, 3, 1, 4)
    codes = population(sizes, 60, 0)
    attributes = [(0,), (1, 3), (0, 1, 2), (0, 1, 2, 3), ()]
    for table, attrs in zip(margins_of(codes, sizes, attributes), attributes, strict=True):
        assert np.array_equal(table, naive_margin(codes, sizes, attrs))
    empty = margins_of(np.zeros((0, 4), dtype=int), sizes, [(1, 3)])[0]
    assert empty.shape == (3, 4)
    assert not empty.any()


@pytest.mark.parametrize(
    ("sizes", "rows"), [((10,), 100), ((3, 4), 50), ((2, 2, 2, 2), 40), ((5, 4, 6), 1000)]
)
def test_a_margin_of_all_attributes_is_met_exactly(sizes, rows):
    codes = population(sizes, rows, 1)
    every = tuple(range(len(sizes)))
    targets = [Margin(every, margins_of(codes, sizes, [every])[0].astype(float), 1.0)]
    fitted = fit_records(RecordColumns(sizes), targets, rows, np.random.default_rng(1))
    assert misfit(fitted, sizes, targets) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_the_fit_is_near_the_best_of_all_tables_of_few_records():
    """Enumeration of all multisets of six records over eight cells is the oracle."""
    from itertools import combinations_with_replacement

    cells = np.array(np.unravel_index(np.arange(8), (2, 2, 2))).T
    columns = RecordColumns((2, 2, 2))
    multisets = [cells[list(m)] for m in combinations_with_replacement(range(8), 6)]
    for seed in range(5):
        noisy = noisy_margins(population((2, 2, 2), 6, seed), (2, 2, 2), pairs(3), 1.0, seed)
        agreed = [Margin(m.attributes, m.table, 1.0) for m in make_consistent((2, 2, 2), noisy, 6)]
        best = min(misfit(records, (2, 2, 2), agreed) for records in multisets)
        fitted = min(
            misfit(fit_records(columns, noisy, 6, np.random.default_rng(s)), (2, 2, 2), agreed)
            for s in range(3)
        )
        assert best <= fitted + 1e-9
        assert fitted <= best + 4.0  # one more record out of place


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.data())
def test_any_margins_give_records_within_their_sizes_that_fit_no_worse_than_the_start(seed, data):
    generator = np.random.default_rng(seed)
    sizes = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)))
    rows = data.draw(st.integers(0, 60))
    subsets = [s for r in (1, 2, 3) for s in combinations(range(len(sizes)), r)]
    chosen = data.draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=6))
    chosen += [(a,) for a in range(len(sizes))]
    noisy = [
        Margin(attrs, generator.normal(3, 5, [sizes[a] for a in attrs]), generator.uniform(0.1, 9))
        for attrs in chosen
    ]
    fits = [
        fit_records(RecordColumns(sizes), noisy, rows, np.random.default_rng(seed), sweeps=sweeps)
        for sweeps in (0, 1, 30)
    ]
    misfits = []
    for codes in fits:
        assert codes.shape == (rows, len(sizes))
        assert codes.dtype == np.int64
        assert np.all((codes >= 0) & (codes < np.array(sizes)))
        agreed = make_consistent(sizes, noisy, rows)
        targets = [
            Margin(a.attributes, a.table, b.variance) for a, b in zip(agreed, noisy, strict=True)
        ]
        misfits.append(misfit(codes, sizes, targets))
    assert misfits[2] <= misfits[1] + 1e-6
    assert misfits[1] <= misfits[0] + 1e-6


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.data())
def test_groups_follow_their_details_and_the_fit_is_no_worse_than_the_start(seed, data):
    """Attributes 0 and 1 are groups of attribute 2, of three and of two."""
    generator, rows = np.random.default_rng(seed), data.draw(st.integers(0, 60))
    sizes = (3, 2, 6, 4)
    nested = [Nested(0, 2, (0, 0, 1, 1, 1, 0)), Nested(1, 2, (1, 0, 0, 0, 1, 1))]
    columns = RecordColumns(sizes, nested=nested)
    subsets = [s for r in (1, 2) for s in combinations(range(4), r) if not tied(s, nested)]
    chosen = [*data.draw(st.lists(st.sampled_from(subsets), max_size=6)), *((a,) for a in range(4))]
    noisy = [
        Margin(attrs, generator.normal(3, 5, [sizes[a] for a in attrs]), generator.uniform(0.1, 9))
        for attrs in chosen
    ]
    agreed = make_consistent(sizes, noisy, rows)
    targets = [
        Margin(a.attributes, a.table, b.variance) for a, b in zip(agreed, noisy, strict=True)
    ]
    misfits = []
    for sweeps in (0, 1, 30):
        codes = fit_records(columns, noisy, rows, np.random.default_rng(seed), sweeps=sweeps)
        for each in nested:
            assert (codes[:, each.group] == np.array(each.of)[codes[:, each.detail]]).all()
        misfits.append(misfit(codes, sizes, targets))
    assert misfits[2] <= misfits[1] + 1e-6
    assert misfits[1] <= misfits[0] + 1e-6


@pytest.mark.parametrize("rows", [0, 1])
def test_no_rows_and_one_row(rows):
    noisy = [Margin((0, 1), np.array([[-1.0, 0.2], [0.1, 1.4]]), 1.0)]
    codes = fit_records(RecordColumns((2, 2)), noisy, rows, np.random.default_rng(0))
    assert codes.tolist() == [[1, 1]] * rows


def test_an_attribute_in_no_margin_is_named():
    margins = [Margin((0, 1), np.full((2, 2), 2.0), 1.0)]
    with pytest.raises(ValueError, match="attribute 2 is in no margin"):
        fit_records(RecordColumns((2, 2, 2)), margins, 8, np.random.default_rng(0))
