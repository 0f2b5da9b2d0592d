"""Rules hold in every record, whatever the noisy tables say, and cost the fit as little as may be."""

from itertools import product

import numpy as np
import pytest

from dpcore.post.margins import Margin
from dpcore.post.records import fit_records, margins_of
from dpcore.post.rules import (
    Rule,
    broken,
    forbidden,
    obeying,
    require_obeyable,
    without_forbidden,
)
from dpcore.post.weighted import fit_weighted

SIZES = (3, 4, 2)
CHILD = Rule(when=((0, (0,)),), then=((1, (3,)),))
BOTH = Rule(when=((0, (1, 2)), (2, (1,))), then=((1, (0, 1)),))
TWO = Rule(when=((1, (3,)),), then=((0, (0, 1)), (2, (0,))))
RULES = (CHILD, BOTH, TWO)


def breaks(record: tuple[int, ...], rule: Rule) -> bool:
    """Read word for word: the oracle."""
    applies = all(record[attribute] in allowed for attribute, allowed in rule.when)
    return applies and not all(record[attribute] in allowed for attribute, allowed in rule.then)


def test_a_record_breaks_a_rule_as_the_words_say():
    every = list(product(*map(range, SIZES)))
    expected = [any(breaks(record, rule) for rule in RULES) for record in every]
    assert broken(np.array(every), RULES).tolist() == expected
    assert 0 < sum(expected) < len(every)


def test_the_forbidden_values_are_those_with_which_a_record_that_obeys_would_not():
    every = np.array(list(product(*map(range, SIZES))))
    good = every[~broken(every, RULES)]
    for attribute, size in enumerate(SIZES):
        found = forbidden(good.T, attribute, size, RULES)
        for value in range(size):
            changed = good.copy()
            changed[:, attribute] = value
            np.testing.assert_array_equal(found[:, value], broken(changed, RULES))


def test_records_that_obey_stay_as_they_are_and_the_others_are_mended():
    generator = np.random.default_rng(1)
    codes = generator.integers(0, SIZES, (500, 3))
    bad = broken(codes, RULES)
    mended = obeying(codes, SIZES, RULES, generator)
    assert bad.sum() > 100
    assert not broken(mended, RULES).any()
    np.testing.assert_array_equal(mended[~bad], codes[~bad])


def test_records_none_of_which_obeys_are_mended_all_the_same():
    codes = np.tile([0, 1, 1], (50, 1))
    mended = obeying(codes, SIZES, RULES, np.random.default_rng(1))
    assert not broken(mended, RULES).any()


def test_rules_that_leave_no_record_are_refused():
    never = Rule(when=((0, (0, 1, 2)),), then=((1, (0,)),))
    nor = Rule(when=((2, (0, 1)),), then=((1, (1,)),))
    require_obeyable(SIZES, (never,))
    with pytest.raises(ValueError, match="contradict each other"):
        require_obeyable(SIZES, (never, nor))


def test_cells_of_a_table_that_no_record_can_be_in_are_zero_and_only_those():
    margin = Margin((0, 1), np.full((3, 4), 5.0), 1.0)
    table = without_forbidden(margin, RULES).table  # BOTH and TWO need the third attribute as well
    assert table[0].tolist() == [0, 0, 0, 5]
    assert np.all(table[1:] == 5)
    whole = Margin((0, 1, 2), np.ones(SIZES), 1.0)
    zero = without_forbidden(whole, RULES).table == 0
    every = np.array(list(product(*map(range, SIZES))))
    np.testing.assert_array_equal(zero.ravel(), broken(every, RULES))


@pytest.mark.parametrize("rows", [0, 1, 300, 2**18 + 7])
def test_every_fitted_record_obeys_however_many_there_are(rows: int):
    generator = np.random.default_rng(2)
    pairs = ((0, 1), (0, 2), (1, 2))
    noisy = [
        Margin(p, generator.normal(max(rows, 1) / 8, 9, (SIZES[p[0]], SIZES[p[1]])), 81.0)
        for p in pairs
    ]
    fitted = fit_weighted(SIZES, noisy, rows, generator, total=max(rows, 1), rules=RULES)
    assert fitted.weights.sum() == rows
    assert not broken(fitted.codes, RULES).any()


def test_the_fit_moves_on_among_records_that_obey():
    generator = np.random.default_rng(3)
    every = np.array(list(product(*map(range, SIZES))))
    good = every[~broken(every, RULES)]
    population = good[generator.choice(len(good), 2000, p=generator.dirichlet(np.ones(len(good))))]
    pairs = ((0, 1), (0, 2), (1, 2))
    exact = [
        Margin(p, t, 4.0) for p, t in zip(pairs, margins_of(population, SIZES, pairs), strict=True)
    ]
    fitted = fit_records(SIZES, exact, 2000, generator, rules=RULES)
    found = margins_of(fitted, SIZES, pairs)
    for margin, table in zip(exact, found, strict=True):
        assert np.abs(margin.table - table).sum() < 0.05 * 2000
