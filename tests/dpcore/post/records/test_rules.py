"""Rules hold in every record, for any noisy tables, at little cost to the fit."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.rules import (
    Order,
    Rule,
    breaks_rules,
    clear_forbidden_cells,
    forbidden_values,
    repair_records,
    require_satisfiable,
)
from dpcore.post.records.weighted import fit_weighted
from dpcore.post.tables.margins import Margin

SIZES = (3, 4, 2)
CHILD = Rule(when=((0, (0,)),), then=((1, (3,)),))
BOTH = Rule(when=((0, (1, 2)), (2, (1,))), then=((1, (0, 1)),))
TWO = Rule(when=((1, (3,)),), then=((0, (0, 1)), (2, (0,))))
LATER = Rule(when=((2, (0,)),), then=(), orders=(Order(0, 1, (0, 1, 3)),))
RULES = (CHILD, BOTH, TWO, LATER)


def breaks(record: tuple[int, ...], rule: Rule) -> bool:
    """Read word for word: the oracle."""
    applies = all(record[attribute] in allowed for attribute, allowed in rule.when)
    then = all(record[attribute] in allowed for attribute, allowed in rule.then)
    return applies and not (
        then and all(record[o.high] >= o.least[record[o.low]] for o in rule.orders)
    )


def test_a_record_breaks_a_rule_as_the_oracle_says():
    every = list(product(*map(range, SIZES)))
    expected = [any(breaks(record, rule) for rule in RULES) for record in every]
    assert breaks_rules(np.array(every), RULES).tolist() == expected
    assert 0 < sum(expected) < len(every)


def test_the_forbidden_values_are_those_with_which_a_record_that_obeys_would_not():
    every = np.array(list(product(*map(range, SIZES))))
    good = every[~breaks_rules(every, RULES)]
    for attribute, size in enumerate(SIZES):
        found = forbidden_values(good.T, attribute, size, RULES)
        for value in range(size):
            changed = good.copy()
            changed[:, attribute] = value
            np.testing.assert_array_equal(found[:, value], breaks_rules(changed, RULES))


def test_records_that_obey_do_not_change_and_the_others_are_repaired():
    generator = np.random.default_rng(1)
    codes = generator.integers(0, SIZES, (500, 3))
    bad = breaks_rules(codes, RULES)
    mended = repair_records(codes, SIZES, RULES, generator)
    assert bad.sum() > 100
    assert not breaks_rules(mended, RULES).any()
    np.testing.assert_array_equal(mended[~bad], codes[~bad])


def test_rules_that_leave_no_record_are_refused():
    never = Rule(when=((0, (0, 1, 2)),), then=((1, (0,)),))
    nor = Rule(when=((2, (0, 1)),), then=((1, (1,)),))
    require_satisfiable(SIZES, (never,))
    with pytest.raises(ValueError, match="contradict each other"):
        require_satisfiable(SIZES, (never, nor))


def test_a_rare_valid_record_that_the_plan_found_is_found_again():
    """Only one record in 2401 is valid, so another seed may find none among those it tries."""
    sizes, zero, other = (7, 7, 7, 7, 2), (0,), tuple(range(1, 7))
    rules = [
        Rule(when=((column, other),), then=((4, value),))
        for column in range(4)
        for value in (zero, (1,))
    ]
    require_satisfiable(sizes, rules)
    for seed in range(8):
        mended = repair_records(np.ones((3, 5), int), sizes, rules, np.random.default_rng(seed))
        assert not breaks_rules(mended, rules).any()


def test_cells_of_a_table_that_no_record_can_be_in_are_zero_and_only_those():
    margin = Margin((0, 1), np.full((3, 4), 5.0), 1.0)
    table = clear_forbidden_cells(
        margin, RULES
    ).table  # BOTH and TWO need the third attribute as well
    assert table[0].tolist() == [0, 0, 0, 5]
    assert np.all(table[1:] == 5)
    whole = Margin((0, 1, 2), np.ones(SIZES), 1.0)
    zero = clear_forbidden_cells(whole, RULES).table == 0
    every = np.array(list(product(*map(range, SIZES))))
    np.testing.assert_array_equal(zero.ravel(), breaks_rules(every, RULES))


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_every_fitted_record_obeys_however_many_there_are(rows: int):
    generator = np.random.default_rng(2)
    pairs = ((0, 1), (0, 2), (1, 2))
    noisy = [
        Margin(p, generator.normal(max(rows, 1) / 8, 9, (SIZES[p[0]], SIZES[p[1]])), 81.0)
        for p in pairs
    ]
    columns = RecordColumns(SIZES, rules=RULES)
    fitted = fit_weighted(columns, noisy, rows, generator, total=max(rows, 1))
    assert fitted.weights.sum() == rows
    assert not breaks_rules(fitted.codes, RULES).any()


def test_a_size_says_which_others_are_there():
    none = 2  # the last cell of both members' columns, whose size is attribute 0
    absent = [Rule(((0, (0,)),), ((a, (none,)),)) for a in (1, 2)]
    there = [Rule(((0, (1,)),), ((a, (0, 1)),)) for a in (1, 2)]
    columns = RecordColumns((2, 3, 3, 2), rules=[*absent, *there])
    assert columns.forms.astype(int).tolist() == [
        [1, 0, 0, 0, 1, 0, 0, 1, 1, 1],
        [0, 1, 1, 1, 0, 1, 1, 0, 1, 1],
    ]
    for rules in ([absent[0], there[0]], []):  # about one column, and none
        assert replace(columns, rules=rules).forms.tolist() == [[True] * 10]
