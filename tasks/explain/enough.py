"""Finds the alpha or rho from which one release of a plan is accurate enough.

Every release keeps its share of the budget.  All of this is public: no data is opened.
"""

from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from schemas.plan import Plan

STEPS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
LADDER = [Fraction(step) * Fraction(10) ** power for power in (-3, -2, -1, 0) for step in STEPS]
LADDER += [Fraction(10), Fraction(15), Fraction(20)]
"""Round amounts of alpha or rho to propose. Larger amounts would protect nobody."""


def least_loss(plan: Plan, name: str, reached: Callable[[Release], bool]) -> Fraction | None:
    """The smallest amount of the ladder that makes ``reached`` true of a release; None if none does."""

    def enough(loss: Fraction) -> bool:
        with suppress(ValueError):  # the share is too small for any noise
            return reached(at_loss(plan, name, loss))
        return False

    found = bisect_left(LADDER, True, key=enough)
    return LADDER[found] if found < len(LADDER) else None


def at_loss(plan: Plan, name: str, loss: Fraction) -> Release:
    """One release of the plan, as if the plan requested this alpha or rho."""
    changed = plan.changed(budget=plan.budget.asking(requesting(plan, loss)))
    return changed.release(changed.section(name), changed.shares[list(plan.built).index(name)])


def asked(plan: Plan) -> Budget:
    """The plan's request as stated: in rho only if the plan states rho, or a part of a grant in rho."""
    return plan.budget.as_asked(plan.requested)


def requesting(plan: Plan, loss: Fraction) -> Budget:
    """The plan's request with another alpha or rho."""
    now = asked(plan)
    return replace(now, **{now.coordinates[0]: loss})
