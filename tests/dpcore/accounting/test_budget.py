"""Budgets are exact: shares add up to the whole, and nothing is ever rounded."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget, ShareWeight, decimal_text, split, total


def test_a_hundred_shares_add_up_to_the_whole_to_the_last_digit():
    random = np.random.default_rng(3)
    whole = Budget.of("1.1", "1e-6", "1/7")
    for _ in range(20):
        weights = [
            ShareWeight(*(Fraction(int(n), int(d)) for n, d in random.integers(1, 999, (3, 2))))
            for _ in range(100)
        ]
        shares = split(whole, weights)
        assert total(shares) == whole
        assert shares[0].alpha / shares[1].alpha == Fraction(weights[0].alpha) / weights[1].alpha


def test_a_release_without_a_claim_gets_nothing_and_a_coordinate_without_claims_stays_unspent():
    shares = split(
        Budget.of("1", "1e-6", "0.5"), [ShareWeight(1), ShareWeight(1, 1), ShareWeight(2)]
    )
    assert [share.alpha for share in shares] == [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
    assert [share.beta for share in shares] == [0, Fraction("1e-6"), 0]
    assert [share.gamma for share in shares] == [0, 0, 0]
    assert split(Budget.of("1"), []) == []


@pytest.mark.parametrize(
    ("asked", "times"),
    [
        (Budget.of("0.1"), 10),
        (Budget.of("1/3"), 3),
        (Budget.of("0.1000000000000000001"), 9),
        (Budget.of("0.1", "4e-7"), 2),
        (Budget.of(0, 0, "1e-9"), 0),
        (Budget.of("1.1"), 0),
        (Budget(), None),
    ],
)
def test_the_scarcest_coordinate_decides_how_often_a_budget_is_covered(asked, times):
    left = Budget.of("1", "1e-6")
    assert left.times(asked) == times
    if times is not None:
        assert left.covers(total([asked] * times))
        assert not left.covers(total([asked] * (times + 1)))


def test_budgets_add_subtract_and_compare_coordinate_by_coordinate():
    one, other = Budget.of("0.1", "1e-9", "0.3"), Budget.of("0.2", "0", "0.1")
    assert one + other == Budget.of("0.3", "1e-9", "0.4")
    assert (one + other) - other == one
    for smaller in (Budget.of("0.1"), Budget.of(0, "1e-9"), Budget(gamma=Fraction("0.3")), one):
        assert one.covers(smaller)
    for larger in (Budget.of("0.11"), Budget.of(0, "1.1e-9"), Budget.of(0, 0, "0.31")):
        assert not one.covers(larger)
    with pytest.raises(ValueError, match="alpha must not be negative"):
        _ = one - other
    with pytest.raises(ValueError, match="beta must not be negative"):
        _ = other - Budget.of("0", "1e-30")


@pytest.mark.parametrize("value", [0.1, True, None, np.float64(1)])
def test_a_budget_is_never_made_from_a_float(value: object):
    with pytest.raises(TypeError, match="decimal string"):
        Budget.of(value)
    with pytest.raises(TypeError, match="alpha must be a Fraction"):
        Budget(value)


def test_a_budget_is_written_exactly_for_machines_and_shortly_for_people():
    budget = Budget.of("0.1", "1e-6", "1/3")
    assert budget.as_strings() == {"alpha": "1/10", "beta": "1/1000000", "gamma": "1/3"}
    assert Budget(**{k: Fraction(v) for k, v in budget.as_strings().items()}) == budget
    assert str(budget) == "alpha = 0.1, beta = 1e-06, gamma = 0.333333…"
    assert decimal_text(Fraction(2)) == "2"
