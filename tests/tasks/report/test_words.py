"""What the page says of the promise."""

import math
from fractions import Fraction

import pytest

from schemas.bundle import Guarantee
from tasks.report.words import best_guess


def guarantee(alpha: str, beta: str) -> Guarantee:
    amounts = {"alpha": alpha, "beta": beta, "gamma": "0", "epsilon": alpha, "delta": beta}
    words = {"privacy_unit": "row", "neighbours": "replace-one", "statement": ""}
    return Guarantee.model_validate(amounts | words)


@pytest.mark.parametrize(("alpha", "beta"), [("0.1", "0"), ("2", "1e-6"), ("1", "0.2")])
def test_the_best_guess_is_that_of_the_mechanism_that_leaks_most(alpha, beta):
    # With probability beta it tells the record; else it answers at random, as alpha allows.
    odds = math.exp(float(alpha))
    told, answered = float(Fraction(beta)), odds / (1 + odds)
    assert best_guess(guarantee(alpha, beta)) == pytest.approx(told + (1 - told) * answered)


def test_an_endless_alpha_protects_nobody():
    assert best_guess(guarantee("1000", "0")) == 1
