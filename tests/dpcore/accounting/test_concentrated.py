"""Caps that keep a promise, whatever is chosen in view of what came before."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import caps, keeps, promise_of

PROMISES = [
    Budget.of("2", "1e-6"),
    Budget.of("0.1", "1e-9"),
    Budget.of("8", "0.01"),
    Budget.of("1", "0.1"),
]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_caps_keep_their_promise_and_waste_little_of_it(promise: Budget):
    kept = caps("concentrated", promise)
    assert keeps(kept, promise)
    assert not keeps(kept * Fraction(101, 100), promise)
    back = promise_of(kept, promise.beta)
    assert back.beta == promise.beta
    assert (
        Fraction(9999, 10000) * promise.alpha
        < back.alpha
        <= promise.alpha * (1 + Fraction(1, 10**6))
    )
    assert keeps(kept, back)


def test_basic_caps_are_the_promise_and_concentrated_ones_need_a_beta():
    assert caps("basic", Budget.of("2")) == Budget.of("2")
    with pytest.raises(ValueError, match="needs a beta"):
        caps("concentrated", Budget.of("2"))


def test_gamma_is_capped_as_promised_and_failures_count():
    promise = Budget.of("1", "1e-3", "0.1")
    kept = caps("concentrated", promise)
    assert (kept.gamma, kept.beta) == (Fraction(1, 10), Fraction(1, 10**4))
    assert not keeps(Budget(beta=promise.beta, rho=kept.rho), promise)
    assert not keeps(Budget(gamma=Fraction(1, 5)), promise)


def randomised_response(alpha: float) -> list[tuple[float, float]]:
    right = 1 / (1 + math.exp(-alpha))
    return [(right, 1 - right), (1 - right, right)]


def gaussian(variance: float) -> list[tuple[float, float]]:
    """Discrete Gaussian noise on 0 and on 1; its far tails as one output each."""
    z = np.arange(-12, 14)
    near, far = (np.exp(-((z - x) ** 2) / (2 * variance)) for x in (0, 1))
    return list(zip((near / near.sum()).tolist(), (far / far.sum()).tolist(), strict=True))


def largest_divergence(menu, promise: Budget, rho: float, failures: float, depth: int) -> float:
    """The largest hockey-stick divergence at the promised alpha over all adaptive strategies.

    ``menu``: mechanisms as (rho, failures, chances of each output on either table).  A strategy sees all
    outputs so far, and may ask for any mechanism that the caps still cover, or stop.
    """
    factor = math.exp(float(promise.alpha))

    @cache
    def best(ratio: float, left: float, spare: float, steps: int) -> float:
        """Per unit of the chance on the second table, of which the first has ``ratio`` times as much."""
        found = max(ratio - factor, 0.0)
        if steps == 0:
            return found
        for price, chance, outputs in menu:
            if price > left + 1e-12 or chance > spare + 1e-12:
                continue
            total = sum(p * ratio for p, q in outputs if q == 0)
            total += sum(
                q
                * best(
                    round(ratio * p / q, 10),
                    round(left - price, 9),
                    round(spare - chance, 12),
                    steps - 1,
                )
                for p, q in outputs
                if q > 0
            )
            found = max(found, total)
        return found

    return best(1.0, rho, failures, depth)


def strategies(promise: Budget, understated: float = 1.0) -> float:
    """The worst strategy over a menu of pure, Gaussian and failing mechanisms of several sizes."""
    kept = caps("concentrated", promise)
    rho, failures = float(kept.rho), float(kept.beta)
    menu = []
    for part in (1, 2, 4):
        alpha = math.sqrt(2 * rho / part)
        menu.append((rho / part * understated, 0.0, tuple(randomised_response(alpha))))
        chance = failures / part
        failing = [(p * (1 - chance), q * (1 - chance)) for p, q in randomised_response(alpha)]
        menu.append((rho / part * understated, chance, (*failing, (chance, 0.0), (0.0, chance))))
    menu.append((rho / 2 * understated, 0.0, tuple(gaussian(1 / rho))))
    return largest_divergence(tuple(menu), promise, rho, failures, 3)


@pytest.mark.parametrize("promise", [Budget.of("1", "0.1"), Budget.of("0.5", "0.02")], ids=str)
def test_no_adaptive_strategy_loses_more_than_was_promised(promise: Budget):
    worst = strategies(promise)
    assert float(promise.beta) / 20 < worst <= float(promise.beta)


def test_strategies_that_pay_a_third_of_the_price_break_the_promise():
    promise = Budget.of("1", "0.1")
    assert strategies(promise, understated=1 / 3) > float(promise.beta)
