"""Convert a promise (alpha, beta, gamma) into caps on spending in (rho, beta, gamma), and back.

Claim.  Let mechanisms be chosen one after the other, each in view of all earlier results, and let each
be b-approximately r-zCDP.  If the sums of r and of b stay within caps (rho, beta') that were fixed
before the first choice, then their composition is beta'-approximately rho-zCDP, and so
(alpha, beta)-DP for every alpha with which rho-zCDP implies (alpha, beta - beta').

Proof.  The filter for concentrated differential privacy allows as much as composition of mechanisms that
were chosen beforehand (Whitehouse, Ramdas, Rogers & Wu 2023, Theorem 1).  Except for events of total
probability beta', the composition is rho-zCDP (Bun & Steinke 2016, section 8), which implies (alpha,
beta - beta'); the two probabilities add up.

>>> promise = Budget.of("2", "1e-6")
>>> kept = caps("concentrated", promise)
>>> round(float(kept.rho), 4), float(kept.beta)
(0.0874, 1e-07)
>>> keeps(kept, promise)
True
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal

from dpcore.accounting.budget import Budget
from dpcore.accounting.digits import round_down
from dpcore.accounting.zcdp import affordable_rho, covers_rho, least_alpha

Composition = Literal["basic", "concentrated"]
"""How prices add up: in (alpha, beta, gamma), or in (rho, beta, gamma)."""

FAILURES = Fraction(1, 10)
"""The fraction of beta that is reserved for mechanisms that may fail; rho is converted with the rest.

Without this reserve rho would be only about one per cent larger.
"""


@lru_cache(maxsize=256)
def caps(composition: Composition, promise: Budget) -> Budget:
    """The spending caps, rounded down, that guarantee a promise (alpha, beta, gamma).

    Under basic composition they equal the promise.  Raises ``ValueError`` under concentrated
    composition if the promise has no beta.
    """
    if composition == "basic":
        return promise
    if not promise.beta:
        raise ValueError("concentrated composition needs a beta; without one, use `basic`")
    failures = promise.beta * FAILURES
    rho = round_down(affordable_rho(promise.alpha, promise.beta - failures))
    return Budget(beta=failures, gamma=promise.gamma, rho=rho)


def keeps(spent: Budget, promise: Budget) -> bool:
    """Whether spending (rho, beta, gamma) is proved to keep a promise (alpha, beta, gamma)."""
    left = promise.beta - spent.beta
    if left <= 0 or spent.gamma > promise.gamma:
        return False
    return not spent.rho or covers_rho(spent.rho, promise.alpha, left)


def promise_of(spent: Budget, beta: Fraction) -> Budget:
    """The promise with this beta that spending (rho, beta, gamma) keeps; its alpha is rounded up."""
    return Budget(least_alpha(spent.rho, beta - spent.beta), beta, spent.gamma)
