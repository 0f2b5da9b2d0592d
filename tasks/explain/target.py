"""Finds the alpha or rho at which one release of a plan reaches a wanted error.

Every release keeps its share of the budget.  All of this is public: no data is opened.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpcore.accounting.budget import Budget, decimal_text
from dpcore.errors import InputError
from dpcore.releases.base import Release
from dpcore.suggestion import suggestion
from schemas.plan import Plan
from tasks.explain.tables import text_table

STEPS = ("1", "1.2", "1.5", "2", "2.5", "3", "4", "5", "6", "8")
LADDER = [Fraction(step) * Fraction(10) ** power for power in (-3, -2, -1, 0) for step in STEPS]
LADDER += [Fraction(10), Fraction(15), Fraction(20)]
"""Round amounts of alpha or rho to propose. Larger amounts would protect nobody."""

EXACT = [
    Fraction(step) * Fraction(10) ** power for power in range(-4, 0) for step in range(10, 100)
]
EXACT += [Fraction(step) for step in range(10, 21)]
"""All amounts of two digits."""


def least_loss(
    plan: Plan,
    name: str,
    reached: Callable[[Release], bool],
    amounts: Sequence[Fraction] = tuple(LADDER),
) -> Fraction | None:
    """The smallest amount with which a release satisfies ``reached``; None if there is none."""

    def enough(loss: Fraction) -> bool:
        with suppress(ValueError):  # the share is too small for any noise
            return reached(at_loss(plan, name, loss))
        return False

    # Errors fall with the budget, so halving finds the first amount that is enough.
    found = bisect_left(amounts, True, key=enough)
    return amounts[found] if found < len(amounts) else None


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


@dataclass(frozen=True)
class NeededBudget:
    """The request that a plan needs for an expected error, and the error before and after."""

    release: str
    quantity: str
    requested: Budget
    error: float
    error_now: float


def find_target(plan: Plan, release: str, wanted: float, quantity: str = "") -> NeededBudget:
    """Find the budget for a wanted error.

    ``quantity``: part of an error statement's name; empty for the first statement.  Raises
    ``InputError`` if the plan has no such release or statement, or no amount is large enough.
    """
    place = _statement(plan, release, quantity)

    def error(built: Release) -> float:
        return built.expected_error()[place].value

    name, now = plan.built[release].expected_error()[place].quantity, error(plan.built[release])
    loss = least_loss(plan, release, lambda built: error(built) <= wanted, EXACT)
    if loss is None:
        raise InputError(
            f"--target: even with {asked(plan).coordinates[0]} {LADDER[-1]}, {name!r} of {release} does"
            f" not reach {wanted:g} (now: {now:.4g}); try {plan.built[release].finer}"
        )
    reached = error(at_loss(plan, release, loss))
    return NeededBudget(release, name, requesting(plan, loss), reached, now)


def _statement(plan: Plan, release: str, quantity: str) -> int:
    """The index of an error statement of a release."""
    if release not in plan.built:
        raise InputError(
            f"--target: the plan has no release {release!r}; its releases: {', '.join(plan.built)}"
            f"{suggestion(release, plan.built)}"
        )
    names = [error.quantity for error in plan.built[release].expected_error()]
    if quantity in names:
        return names.index(quantity)
    found = [place for place, name in enumerate(names) if quantity in name]
    if not found:
        raise InputError(
            f"--target: no error statement of {release} has {quantity!r} in its name; its statements:"
            f" {'; '.join(names)}"
        )
    return found[0]


def target_facts(target: NeededBudget) -> dict[str, Any]:
    """The target as JSON values; amounts are exact decimals or fractions as text."""
    return {
        "release": target.release,
        "quantity": target.quantity,
        "error": target.error,
        "error_now": target.error_now,
        "requested": target.requested.as_strings(),
    }


def target_text(plan: Plan, target: NeededBudget) -> str:
    """The target as text, with the key of the plan that sets it."""
    coordinate = asked(plan).coordinates[0]
    rows = [
        {
            "": label,
            "expected error": f"{error:.4g}",
            f"{coordinate} of the plan": decimal_text(requested.loss),
        }
        for label, error, requested in (
            ("now", target.error_now, asked(plan)),
            ("wanted", target.error, target.requested),
        )
    ]
    texts = target.requested.as_strings() | {coordinate: decimal_text(target.requested.loss)}
    request = ", ".join(f'{name}: "{amount}"' for name, amount in texts.items() if amount != "0")
    return "\n".join(
        [
            f"{target.release}: {target.quantity}",
            text_table(rows),
            "Each release keeps its share of the budget. Change the plan to",
            f"  requested: {{{request}}}",
        ]
    )
