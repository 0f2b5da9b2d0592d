"""The total price of a list of events, by several accountants; each gives an upper bound.

    basic composition             the sum of the events' charges in alpha
    concentrated composition      the sums of rho and of the chances to fail
    privacy-loss distributions    the whole list (``loss_distributions``), if the package is installed

gamma always adds up.  For the last accountant, mechanisms may depend on earlier outputs, but prices may
not: prices chosen in view of outputs cost more together (odometers, Rogers, Roth, Ullman & Vadhan 2016).
With caps that are fixed beforehand, prices may depend on outputs too; then the composition of the grant
applies, basic or concentrated.

>>> from dpcore.mechanisms.laplace import LaplaceEvent
>>> each = Charged(LaplaceEvent(Fraction(1), Fraction(10)), Budget.of("0.1"))
>>> [str(price.budget.alpha) for price in prices([each] * 100, Fraction(1, 10**6))
...     if price.accountant == BASIC]
['10']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcore.accounting.budget import Budget, total
from dpcore.accounting.loss_distributions import installed, loss_distribution_alpha
from dpcore.accounting.zcdp import least_alpha
from dpcore.line.mechanism import Event

BASIC = "basic composition"
CONCENTRATED = "concentrated composition"
LOSS_DISTRIBUTIONS = "privacy-loss distributions"


@dataclass(frozen=True)
class Charged:
    """An event and its charge, which covers its price."""

    event: Event
    budget: Budget


@dataclass(frozen=True)
class Price:
    """The total price of a list of events by one accountant."""

    accountant: str
    budget: Budget


def prices(history: Sequence[Charged], beta: Fraction) -> list[Price]:
    """Upper bounds on the total price of the events, the smallest alpha first.

    ``beta``: the beta at which alpha is computed; an accountant without a price at this beta is left
    out.  Raises ``ValueError`` if ``beta`` is negative or not below 1.
    """
    if not 0 <= beta < 1:
        raise ValueError(f"beta must be 0 or more and below 1, not {beta}")
    charged = total(each.budget for each in history)
    in_alpha = not charged.rho and charged.beta <= beta
    found = {BASIC: charged.alpha if in_alpha else None}
    if history and beta > 0:
        found[CONCENTRATED] = _by_concentration(history, beta)
        if installed():
            found[LOSS_DISTRIBUTIONS] = _by_loss_distributions(history, beta)
    known = [
        Price(accountant, Budget(alpha, beta, charged.gamma))
        for accountant, alpha in found.items()
        if alpha is not None
    ]
    return sorted(known, key=lambda price: price.budget.alpha)


def _by_concentration(history: Sequence[Charged], beta: Fraction) -> Fraction | None:
    known = [_concentrated(each) for each in history]
    rho = sum((price[0] for price in known if price), Fraction(0))
    failures = sum((price[1] for price in known if price), Fraction(0))
    if None in known or failures >= beta:
        return None
    return least_alpha(rho, beta - failures)


def _concentrated(each: Charged) -> tuple[Fraction, Fraction] | None:
    """(rho, beta) of an event: its charge if that is in rho (in a series less than its price)."""
    if each.budget.rho:
        return each.budget.rho, each.budget.beta
    return each.event.concentrated


def _by_loss_distributions(history: Sequence[Charged], beta: Fraction) -> Fraction | None:
    mu_squared, loss, others = Fraction(0), Fraction(0), Counter[Budget]()
    for each in history:
        alpha, inherited = each.event.pure_alpha, each.event.inherited_gaussian
        # Only the event's rho is known, which does not bound single losses.
        if inherited is None and alpha is None and each.budget.rho:
            return None
        if inherited:
            mu_squared, loss = mu_squared + inherited[0], loss + inherited[1]
        else:
            others[each.budget if alpha is None else Budget(alpha)] += 1
    return loss_distribution_alpha(mu_squared, loss, others, beta)
