"""Contingency margins: what is counted, how far neighbours lie apart, what the errors are."""

import math
from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.line.statistic import Noisy
from dpcore.releases.tables.fitted import LARGEST_TOTAL
from dpcore.releases.tables.margins import MarginTables
from dpcore.releases.tables.names import file_word
from tests.dpcore.releases.contract import drawn, exact_vector, opened, tally_of

DOMAIN = Domain(
    (
        Categories("place", ("a", "b"), nullable=True),
        Bins("age", (0.0, 5.0, 20.0), integer=True),
        Categories("size", (1, 2, 3, 4)),
        Categories("same", ("x",)),
    )
)
SETS = ((0,), (0, 1), (1, 2), (0, 2, 3))
RECORDS = np.random.default_rng(8).choice(DOMAIN.size, p=np.arange(24) / 276, size=500)
SHARE = Budget.of("1", "1e-6")
NOISES = ("discrete-laplace", "discrete-gaussian")

every_noise = pytest.mark.parametrize("noise", NOISES)


def margins(noise: str = "discrete-laplace", sets: tuple = SETS, **rest: object) -> MarginTables:
    return MarginTables("pairs", DOMAIN, 500, SHARE, sets, noise, **rest)


def counted_by_hand(sets: tuple) -> np.ndarray:
    """The tables, by a loop over records."""
    tables = []
    for attributes in sets:
        table = np.zeros([DOMAIN.shape[a] for a in attributes], dtype=np.int64)
        for code in DOMAIN.unpack(RECORDS):
            table[tuple(code[a] for a in attributes)] += 1
        tables.append(table.ravel())
    return np.concatenate(tables)


@pytest.mark.parametrize("sets", [SETS, ((0, 1, 2), (3,)), ((1, 2), (0, 3))])
def test_the_statistic_is_the_tables_one_after_the_other(sets: tuple):
    counted = opened(margins(sets=sets), tally_of(DOMAIN, RECORDS))
    np.testing.assert_array_equal(counted, counted_by_hand(sets))


@pytest.mark.parametrize(("columns", "ways"), [(4, 1), (4, 2), (5, 3), (3, 3), (6, 2)])
def test_all_margins_of_one_order_move_by_twice_their_number(columns: int, ways: int):
    """L1 = 2 C(k, w), and L2 = sqrt(2 C(k, w)), by two records that share nothing."""
    domain = Domain(tuple(Categories(f"c{i}", (0, 1)) for i in range(columns)))
    sets = tuple(combinations(range(columns), ways))
    number = math.comb(columns, ways)
    pure = MarginTables("m", domain, 1, SHARE, sets)
    approximate = MarginTables("m", domain, 1, SHARE, sets, "discrete-gaussian")
    assert pure.mechanism.event.l1_sensitivity == 2 * number
    assert approximate.mechanism.event.l2_sensitivity_squared == 2 * number
    tables = np.stack([exact_vector(pure, (c,)) for c in range(domain.size)])
    moves = np.abs(tables - tables[0]).sum(axis=1)
    assert moves.max() == moves[-1] == 2 * number
    assert ((tables - tables[0]) ** 2).sum(axis=1).max() == 2 * number


@pytest.mark.slow
@every_noise
def test_published_tables_agree_with_each_other_and_with_the_rows(noise: str):
    release = margins(noise)
    noisy = drawn(release, RECORDS)
    tables = release.publish(noisy).tables
    assert [t.name for t in tables] == [
        "pairs.place",
        "pairs.place.age",
        "pairs.age.size",
        "pairs.place.size.same",
    ]
    for name in ("estimate", "count"):
        place, ages = tables[0].columns[name], tables[1].columns[name].reshape(3, 2)
        np.testing.assert_allclose(ages.sum(axis=1), place, atol=1e-6)
        np.testing.assert_allclose(
            tables[3].columns[name].reshape(3, 4).sum(axis=1), place, atol=1e-6
        )
        assert all(t.columns[name].sum() == pytest.approx(500) for t in tables)
    for table in tables:
        columns = table.columns
        assert columns["count"].dtype == np.int64
        assert columns["count"].min() >= 0
        half = 1.6448536 * columns["standard_error"]
        for end, value in (("lower_90", -half), ("upper_90", half)):
            far = np.minimum(columns["estimate"], 500 - columns["estimate"]) > 2 * half
            expected = columns["estimate"][far] + value[far]
            np.testing.assert_allclose(columns[end][far], expected, rtol=1e-6, atol=1e-5)
        assert np.all(columns["upper_90"] - columns["lower_90"] >= half - 1e-9)


@pytest.mark.slow
def test_records_have_the_published_margins():
    release = margins()
    noisy = Noisy(counted_by_hand(SETS))
    domain, codes = release.sample(noisy, 500)
    assert domain == DOMAIN
    for table, attributes in zip(release.publish(noisy).tables, SETS, strict=True):
        shape = [DOMAIN.shape[a] for a in attributes]
        cells = np.ravel_multi_index([codes[:, a] for a in attributes], shape)
        counted = np.bincount(cells, minlength=math.prod(shape))
        np.testing.assert_array_equal(counted, table.columns["count"])


@every_noise
def test_tables_of_one_cell_and_a_single_record_are_published(noise: str):
    one = Domain((Categories("only", ("cell",)), Categories("sex", ("f", "m"))))
    release = MarginTables("m", one, 1, SHARE, ((0,), (0, 1)), noise)
    noisy = drawn(release, (1,))
    tables = release.publish(noisy).tables
    assert tables[0].columns["count"].tolist() == [1]
    assert tables[0].columns["estimate"].tolist() == pytest.approx([1])
    assert tables[1].columns["count"].sum() == 1
    assert release.sample(noisy, 1)[1].shape == (1, 2)


def test_too_many_cells_are_refused_before_anything_is_drawn():
    large = Domain((Categories("a", tuple(range(2**12))), Categories("b", tuple(range(2**12)))))
    MarginTables("m", large, 1, SHARE, ((0, 1),))
    with pytest.raises(ValueError, match="too many"):
        MarginTables("m", large, 1, SHARE, ((0, 1), (0,)))
    assert LARGEST_TOTAL == 2**24


def test_tables_that_nothing_could_be_published_from_are_refused():
    """After the draw it would be too late: the budget is spent."""
    with pytest.raises(ValueError, match=r"no set contains the columns \['size', 'same'\]"):
        margins(sets=((0, 1),))


def test_file_words_hold_no_separators():
    assert file_word("Größe (cm)/../x.y") == "Größe--cm-----x-y"
