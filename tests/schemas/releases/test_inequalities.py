"""Inequalities in rules: exact for cells, kept by every number, and refused where they cannot be."""

from itertools import product

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.cell_values import CellNumbers
from dpcore.domain.domain import Domain
from dpcore.post.records.rules import breaks_rules
from dpcore.synthesis.decode import decode_records
from schemas.releases.inequalities import read_inequality
from schemas.releases.rules import RuleSection, build_rules

DOMAIN = Domain(
    (
        Grid("start", 0, 6, 6, integer=True, nullable=True),
        Bins("end", (0.0, 2.0, 3.0, 7.0), integer=True),
        Bins("pay", (0.0, 0.0, 4.0, 9.0, 9.0), nullable=True),
        Categories("level", (1.0, 4.5, 8.0), ordered=True),
        Categories("sex", ("F", "M")),
    )
)


def rules_of(domain: Domain, *given: object):
    return build_rules([RuleSection.model_validate(one) for one in given], domain)


def numbers(domain: Domain, position: int, code: int) -> list[float | None]:
    """All numbers of a cell; of real ones its ends and some between."""
    axis = domain.axes[position]
    if axis.nullable and code == axis.size - 1:
        return [None]
    inside = CellNumbers.of(axis, np.full(41, code))
    return sorted(set(inside.at(np.linspace(0, 1 - 2**-53, 41)).tolist()) | {inside.last[0]})


TEXTS = {
    "start <= end": lambda s, e, p, v, x: s <= e,
    "end > start + 2": lambda s, e, p, v, x: e > s + 2,
    "pay - level >= 1": lambda s, e, p, v, x: p - v >= 1,
    "pay < 4": lambda s, e, p, v, x: p < 4,
    "3 <= start": lambda s, e, p, v, x: s >= 3,
    "level > start": lambda s, e, p, v, x: v > s,
    "end <= start + 3": lambda s, e, p, v, x: e <= s + 3,
    "start >= end": lambda s, e, p, v, x: s >= e,
    "pay < start + 2.5": lambda s, e, p, v, x: p < s + 2.5,
    "end >= 2 * start": lambda s, e, p, v, x: e >= 2 * s,
    "start >= end / 2 - 1": lambda s, e, p, v, x: 2 * s >= e - 2,
    "3 * (end - 1) <= 2 * pay": lambda s, e, p, v, x: 3 * (e - 1) <= 2 * p,
}


def holds(test, record) -> bool:
    """Null has nothing to keep."""
    try:
        return bool(test(*record))
    except TypeError:
        return True


@pytest.mark.parametrize(
    "texts",
    [
        ["start <= end"],
        ["end > start + 2"],
        ["pay - level >= 1"],
        ["pay < 4"],
        ["3 <= start"],
        ["level > start", "pay - level >= 1", "pay < 4"],
        ["start <= end", "3 <= start", "level > start"],
        ["start <= end", "end <= start + 3"],
        ["start <= end", "start >= end"],
        ["level > start", "pay - level >= 1", "pay < start + 2.5"],
        ["end >= 2 * start"],
        ["end >= 2 * start", "start >= end / 2 - 1"],
        ["end >= 2 * start", "3 * (end - 1) <= 2 * pay", "pay < 4"],
    ],
    ids=len,
)
def test_cells_stand_together_if_and_only_if_some_of_their_numbers_do(texts):
    rules = rules_of(DOMAIN, *texts)
    shape = DOMAIN.shape[:4]
    lists = [[numbers(DOMAIN, i, code) for code in range(shape[i])] for i in range(4)]
    for codes in product(*map(range, shape)):
        records = product(*(lists[i][code] for i, code in enumerate(codes)), ("F",))
        possible = any(all(holds(TEXTS[text], r) for text in texts) for r in records)
        assert breaks_rules(np.array([[*codes, 0]]), rules)[0] != possible, codes


@pytest.mark.slow
@pytest.mark.parametrize(
    "texts",
    [
        [*TEXTS][:3],
        ["start <= end", "start >= end"],
        ["end <= start + 3", "start <= end", "pay - level >= 1", "pay < start + 2.5"],
        ["end >= 2 * start", "start >= end / 2 - 1"],
        ["end >= 2 * start", "3 * (end - 1) <= 2 * pay"],
    ],
    ids=len,
)
def test_every_number_of_a_record_that_may_be_obeys(texts):
    rows = 4000
    rules = rules_of(DOMAIN, *texts)
    codes = np.random.default_rng(1).integers(0, DOMAIN.shape, (10 * rows, 5))
    codes = codes[~breaks_rules(codes, rules)][:rows]
    columns = decode_records(DOMAIN, codes, {}, np.random.default_rng(2), rules)
    for record in zip(*(column.tolist() for column in columns.values()), strict=True):
        assert all(holds(TEXTS[text], record) for text in texts), record
    again = decode_records(DOMAIN, codes, {}, np.random.default_rng(3))
    for name, axis in zip(DOMAIN.names, DOMAIN.axes, strict=True):
        null = np.ma.getmaskarray(columns[name])
        assert np.array_equal(null, np.ma.getmaskarray(again[name])), axis
    assert not all(
        holds(TEXTS[text], record)
        for record in zip(*(column.tolist() for column in again.values()), strict=True)
        for text in texts
    )


@pytest.mark.slow
def test_a_condition_says_where_an_inequality_holds():
    rules = rules_of(
        DOMAIN, {"if": {"sex": ["F"], "start": {"below": 3}}, "then": "end > start + 2"}
    )
    codes = np.random.default_rng(1).integers(0, DOMAIN.shape, (20_000, 5))
    codes = codes[~breaks_rules(codes, rules)]
    columns = decode_records(DOMAIN, codes, {}, np.random.default_rng(2), rules)
    start, end, sex = columns["start"], columns["end"], columns["sex"]
    applies = np.ma.filled((sex == "F") & (start < 3), False)
    assert np.all((end > start + 2)[applies])
    assert not np.all(np.ma.filled(end > start + 2, True)[~applies])


def test_pairs_in_one_bin_are_drawn_from_all_that_obey():
    """Two uniform numbers of one bin, the second above: the first has the law of the smaller of two."""
    domain = Domain((Bins("x", (0.0, 1.0)), Bins("y", (0.0, 1.0))))
    rules = rules_of(domain, "y >= x")
    codes = np.zeros((20_000, 2), dtype=np.int64)
    columns = decode_records(domain, codes, {}, np.random.default_rng(3), rules)
    assert np.all(columns["y"] >= columns["x"])
    assert abs(columns["x"].mean() - 1 / 3) < 0.01
    assert abs(columns["y"].mean() - 2 / 3) < 0.01


def test_real_numbers_keep_a_band_however_narrow():
    """Of a thousand pairs in one bin next to none is so near by chance."""
    domain = Domain(tuple(Bins(name, (0.0, 1.0, 2.0, 5.0)) for name in "xyz"))
    rules = rules_of(domain, "y >= x", "y <= x + 0.001", "z > y", "z < x + 0.002")
    codes = np.random.default_rng(1).integers(3, size=(9000, 3))
    codes = codes[~breaks_rules(codes, rules)]
    assert len(codes) > 500
    x, y, z = decode_records(domain, codes, {}, np.random.default_rng(2), rules).values()
    assert np.all((x <= y) & (y <= x + 0.001) & (y < z) & (z < x + 0.002))


def test_months_are_those_of_a_year_of_age():
    """Also in wide bins, most of whose pairs of numbers disagree."""
    ages = Bins("age", (0.0, 1.0, 4.0, 20.0), integer=True)
    domain = Domain((ages, Bins("months", (0.0, 6.0, 60.0, 240.0), integer=True)))
    rules = rules_of(domain, "months >= 12 * age", "months <= 12 * age + 11")
    codes = np.random.default_rng(1).integers(3, size=(9000, 2))
    codes = codes[~breaks_rules(codes, rules)]
    age, months = decode_records(domain, codes, {}, np.random.default_rng(2), rules).values()
    assert np.array_equal(months // 12, age)
    assert len(set(months.tolist())) > 150


def test_a_circle_of_different_multiples_may_exclude_no_number():
    """As two columns that are often equal, with one at most twice the other."""
    bins = (0.0, 1.0, 8.0, 20.0)
    domain = Domain(tuple(Bins(name, bins, integer=True) for name in "ab"))
    rules = rules_of(domain, "a <= b", "b <= 2 * a")
    codes = np.random.default_rng(1).integers(3, size=(9000, 2))
    codes = codes[~breaks_rules(codes, rules)]
    a, b = decode_records(domain, codes, {}, np.random.default_rng(2), rules).values()
    assert np.all((a <= b) & (b <= 2 * a))
    assert len({*zip(a.tolist(), b.tolist(), strict=True)}) > 50
    below = Domain(tuple(Bins(name, (-1.0, *bins), integer=True) for name in "ab"))
    with pytest.raises(ValueError, match="`often_equal` has one for each side"):
        rules_of(below, "a <= b", "b <= 2 * a")
    with pytest.raises(ValueError, match="with different multiples"):
        rules_of(domain, "a <= b", "b < 2 * a")


def test_a_name_of_several_words_is_told_to_need_backticks():
    domain = Domain(tuple(Bins(name, (0.0, 1.0, 2.0)) for name in ("home weight", "own")))
    with pytest.raises(ValueError, match="; write `home weight` <= own: names that are not single"):
        rules_of(domain, "home weight <= own")


def test_a_chain_is_a_rule_about_its_ends():
    """a < b < c, whole numbers of one bin of two: there is no room for three."""
    bins = (0.0, 2.0, 4.0)
    domain = Domain(tuple(Bins(name, bins, integer=True) for name in "abc"))
    rules = rules_of(domain, "a < b", "b < c")
    assert breaks_rules(np.array([[0, 0, 0], [0, 0, 1]]), rules).tolist() == [True, False]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["start < end < pay"], r"rules\[0\].then: at character 1: write one comparison"),
        (["start + end < 3"], "write one comparison"),
        (["end >= 2 * end"], "at character 1: write one comparison"),
        (["start * end < 3"], "at character 1: write one comparison"),
        (["start / 0 < end"], "at character 1: write one comparison"),
        (["start < 3 / end"], "at character 9: write one comparison"),
        (["1e-300 * start < 1e300 * end"], "numbers are too large"),
        (["1e999 * start < end"], "write one comparison"),
        (["start < " + "9" * 900], "numbers are too large"),
        (["end >= 2 * start", "end <= start + 3"], "with different multiples"),
        (["end > 2 * start", "start >= end / 2"], "circle, start below end below start, which no"),
        (["start < sex"], "at character 9: sex is not a column of numbers"),
        (["start < nothing"], "'nothing' is not among the columns"),
        (["start < end", "end < start"], "rules: inequalities form a circle"),
        (
            ["start < end", "end <= start"],
            "a circle, start below end below start, which no numbers",
        ),
        (["end > start", "level >= end - 1", "start >= level + 1"], "inequalities form a circle"),
        (["start < "], "is not a formula"),
        ([{"then": {"sex": ["F"]}}], "state conditions under both if"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(given, said):
    with pytest.raises(ValueError, match=said):
        rules_of(DOMAIN, *given)


@pytest.mark.slow
def test_inequalities_that_never_apply_together_close_no_circle():
    women, men = ({"if": {"sex": [each]}} for each in ("F", "M"))
    rules = rules_of(DOMAIN, women | {"then": "end >= start"}, men | {"then": "end < start"})
    codes = np.random.default_rng(1).integers(0, DOMAIN.shape, (20_000, 5))
    codes = codes[~breaks_rules(codes, rules)]
    made = decode_records(DOMAIN, codes, {}, np.random.default_rng(2), rules)
    start, end, sex = made["start"], made["end"], made["sex"]
    assert np.ma.filled((end >= start) == (sex == "F"), True).all()
    with pytest.raises(ValueError, match="circle, start below end below start"):
        rules_of(DOMAIN, women | {"then": "end >= start"}, "end < start")


def test_a_contradiction_leaves_no_record():
    rules = rules_of(DOMAIN, "level > 4.5", "level < 8")
    every = np.array([*product(*map(range, DOMAIN.shape))])
    assert breaks_rules(every, rules).all()


def test_an_inequality_is_read_from_either_side():
    one, other = (read_inequality(DOMAIN, t) for t in ("end >= start + 5", "start + 2 <= end - 3"))
    assert one == other == (1, 0, 5.0, False, 1.0, 1.0)
