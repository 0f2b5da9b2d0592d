"""Finds the alpha, or the rho, at which one release's expected error is as small as wanted.

Everything here is public: no data is opened.  The other releases keep theirs, so the plan's total
grows by the increase of this one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpcore.accounting.budget import Budget, decimal_text
from dpcore.errors import InputError
from dpcore.releases.base import Release
from dpcore.suggestion import suggestion
from schemas.plan import Plan
from schemas.plan.budget import LARGEST_ALPHA
from tasks.explain.tables import text_table

STEPS = 900
"""Decimals of three digits between two powers of ten: 1.00, 1.01, ..., 9.99."""


@dataclass(frozen=True)
class NeededBudget:
    """The least alpha or rho of three digits at which an expected error is as small as wanted.

    ``loss``: of the release; ``total``: what the plan then requests; ``weight``: the release's weight
    in the plan with which the others keep theirs; ``error``: the expected error.
    """

    release: str
    quantity: str
    loss: Fraction
    total: Budget
    weight: Fraction
    error: float


def find_target(plan: Plan, release: str, wanted: float, quantity: str = "") -> NeededBudget:
    """Find the budget for a wanted error.

    ``quantity``: part of an error statement's name; empty for the first statement.  Raises
    ``InputError`` if the plan has no such release or statement, or no alpha is large enough.
    """
    statement, name = _statement(plan, release, quantity)
    now = plan.built[release].share.loss
    others = plan.requested.loss - now

    def error_at(loss: Fraction) -> float:
        return statement(at_loss(plan, release, loss))

    step = _least_step(
        lambda step: _reaches(lambda: error_at(_decimal(step)), wanted),
        first=_nearest(now),
        last=_nearest(LARGEST_ALPHA - others),
    )
    if step is None:
        error = statement(plan.built[release])
        raise InputError(
            f"--target: no {_coordinate(plan)} that a plan may request brings {name!r} of {release} to"
            f" {wanted:g} (it is {error:.4g} now); try {plan.built[release].finer}"
        )
    loss = _decimal(step)
    weight = plan.section(release).weight * loss / now
    return NeededBudget(
        release, name, loss, _total_with(plan, release, loss), weight, error_at(loss)
    )


def at_loss(plan: Plan, release: str, loss: Fraction) -> Release:
    """One release of the plan with this alpha or rho as its share, while the others keep theirs.

    The plan's beta and gamma stay; they are shared by weight, and the weight of this release is
    proportional to its alpha or rho.
    """
    now = plan.built[release].share.loss
    sections: list[Any] = [
        s.model_copy(update={"weight": s.weight * loss / now}) if s.name == release else s
        for s in plan.releases
    ]
    budget = plan.budget.asking(_total_with(plan, release, loss))
    share = plan.changed(budget=budget, releases=sections).shares[list(plan.built).index(release)]
    return plan.release(plan.section(release), share)


def _total_with(plan: Plan, release: str, loss: Fraction) -> Budget:
    """What the plan requests if this release has another alpha or rho."""
    requested, now = plan.requested, plan.built[release].share.loss
    return replace(requested, **{_coordinate(plan): requested.loss - now + loss})


def _coordinate(plan: Plan) -> str:
    """alpha or rho."""
    return plan.requested.coordinates[0]


def _error_now(plan: Plan, target: NeededBudget) -> float:
    """The expected error of the plan as it is."""
    errors = plan.built[target.release].expected_error()
    return next(error.value for error in errors if error.quantity == target.quantity)


def target_facts(plan: Plan, target: NeededBudget) -> dict[str, Any]:
    """The target as JSON values; amounts are exact strings."""
    return {
        "release": target.release,
        "quantity": target.quantity,
        "error": target.error,
        "error_now": _error_now(plan, target),
        _coordinate(plan): str(target.loss),
        "requested": target.total.as_strings(),
        "weight": str(target.weight),
    }


def target_text(plan: Plan, target: NeededBudget) -> str:
    """The target as text, with the options that set it."""
    built, name = plan.built[target.release], _coordinate(plan)
    before = _error_now(plan, target)
    rows = [
        {
            "": label,
            "expected error": f"{error:.4g}",
            f"{name} of the release": decimal_text(loss),
            f"{name} of the plan": decimal_text(total.loss),
        }
        for label, error, loss, total in (
            ("now", before, built.share.loss, plan.requested),
            ("wanted", target.error, target.loss, target.total),
        )
    ]
    place, weight = list(plan.built).index(target.release), _written(target.weight)
    kept = f"The other releases keep their {name}."
    if getattr(plan.budget.requested, name) is None:
        amounts = {k: _written(getattr(target.total, k)) for k in target.total.coordinates}
        request = ", ".join(f'{k}: "{amount}"' for k, amount in amounts.items() if amount != "0")
        change = [
            f"{kept} Change the plan to",
            f"  requested: {{{request}}}",
            f"  weight: {weight}   # of {target.release}",
        ]
    else:
        change = [
            f"{kept} Change the plan, or give run, explain and audit:",
            f"  --set budget.requested.{name}={_written(target.total.loss)}"
            f" --set releases.{place}.weight={weight}",
        ]
    return "\n".join([f"{target.release}: {target.quantity}", text_table(rows), *change])


def _written(value: Fraction) -> str:
    """The number as a plan takes it: a short decimal if that is exact, else a fraction."""
    text = decimal_text(value)
    return str(value) if text.endswith("…") else text


def _statement(plan: Plan, release: str, quantity: str) -> tuple[Callable[[Release], float], str]:
    """A function that reads an error statement from a release, and the statement's full name."""
    if release not in plan.built:
        raise InputError(
            f"--target: the plan has no release {release!r}; its releases: {', '.join(plan.built)}"
            f"{suggestion(release, plan.built)}"
        )
    names = [error.quantity for error in plan.built[release].expected_error()]
    found = [i for i, name in enumerate(names) if quantity in name]
    exact = [i for i, name in enumerate(names) if quantity == name]
    if not found:
        raise InputError(
            f"--target: no error statement of {release} has {quantity!r} in its name; they are:"
            f" {'; '.join(names)}"
        )
    place = (exact or found)[0]
    return lambda built: built.expected_error()[place].value, names[place]


def _least_step(reached: Callable[[int], bool], first: int, last: int) -> int | None:
    """The smallest step for which ``reached`` is true; None if there is none up to ``last``."""
    low, high = -1, first
    while not reached(high):
        if high >= last:
            return None
        low, high = high, min(high + STEPS // 3, last)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _reaches(error: Callable[[], float], wanted: float) -> bool:
    """Whether the error is small enough; not if the share is too small for any noise."""
    try:
        return error() <= wanted
    except ValueError:
        return False


def _decimal(step: int) -> Fraction:
    """The decimal of three digits with this number, counted from 1e-6."""
    power, digits = divmod(step, STEPS)
    return Fraction(f"{100 + digits}e{power - 8}")


def _nearest(loss: Fraction) -> int:
    """The number of the largest decimal of three digits that is not above ``loss``."""
    digits, _, power = f"{float(loss):.12e}".partition("e")
    return max((int(power) + 6) * STEPS + int(float(digits) * 100) - 100, 0)
