"""Finds the alpha at which one release's expected error is as small as wanted.

Everything here is public: no data is opened.  The other releases keep their alpha, so the plan's total
grows by the increase of this one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcore.budget import decimal_text
from dpcore.errors import InputError
from dpcore.releases.base import Release
from schemas.plan import LARGEST_ALPHA, Plan
from tasks.explain.explain import text_table

STEPS = 900
"""Decimals of three digits between two powers of ten: 1.00, 1.01, ..., 9.99."""


@dataclass(frozen=True)
class Target:
    """The least alpha of three digits at which an expected error is as small as wanted.

    ``alpha``: of the release; ``total``: what the plan then requests; ``weight``: the release's weight
    in the plan with which the others keep their alpha; ``error``: the expected error.
    """

    release: str
    quantity: str
    alpha: Fraction
    total: Fraction
    weight: Fraction
    error: float


def find_target(plan: Plan, release: str, wanted: float, quantity: str = "") -> Target:
    """Find the budget for a wanted error.

    ``quantity``: part of an error statement's name; empty for the first statement.  Raises
    ``InputError`` if the plan has no such release or statement, or no alpha is large enough.
    """
    statement, name = _statement(plan, release, quantity)
    others = plan.budget.requested.alpha - plan.built[release].share.alpha

    def error_at(alpha: Fraction) -> float:
        return statement(at_alpha(plan, release, alpha))

    step = _least_step(
        lambda step: _reaches(lambda: error_at(_decimal(step)), wanted),
        first=_nearest(plan.built[release].share.alpha),
        last=_nearest(LARGEST_ALPHA - others),
    )
    if step is None:
        now = statement(plan.built[release])
        raise InputError(
            f"--target: no alpha that a plan may request brings {name!r} of {release} to {wanted:g}"
            f" (it is {now:.4g} now); try coarser bins, fewer cells or another mechanism"
        )
    alpha = _decimal(step)
    section = plan.section(release)
    weight = section.weight * alpha / plan.built[release].share.alpha
    return Target(release, name, alpha, others + alpha, weight, error_at(alpha))


def at_alpha(plan: Plan, release: str, alpha: Fraction) -> Release:
    """One release of the plan with ``alpha`` as its share, while the others keep theirs.

    The plan's beta and gamma stay; they are shared by weight, and the weight of this release is
    proportional to its alpha.
    """
    now, requested = plan.built[release].share.alpha, plan.budget.requested
    amount = requested.model_copy(update={"alpha": requested.alpha - now + alpha})
    sections: list[Any] = [
        s.model_copy(update={"weight": s.weight * alpha / now}) if s.name == release else s
        for s in plan.releases
    ]
    budget = plan.budget.model_copy(update={"requested": amount})
    changed = plan.model_copy(update={"budget": budget, "releases": sections})
    share = changed.shares[list(plan.built).index(release)]
    return plan.section(release).release(plan.facts, share)


def target_text(plan: Plan, target: Target) -> str:
    """The target as text, with the options that set it."""
    built = plan.built[target.release]
    before = next(e.value for e in built.expected_error() if e.quantity == target.quantity)
    rows = [
        _row("now", before, built.share.alpha, plan.budget.requested.alpha),
        _row("wanted", target.error, target.alpha, target.total),
    ]
    place = list(plan.built).index(target.release)
    total, weight = _written(target.total), _written(target.weight)
    return "\n".join(
        [
            f"{target.release}: {target.quantity}",
            text_table(rows),
            "The other releases keep their alpha. Change the plan, or give run, explain and audit:",
            f"  --set budget.requested.alpha={total} --set releases.{place}.weight={weight}",
        ]
    )


def _row(label: str, error: float, alpha: Fraction, total: Fraction) -> dict[str, str]:
    return {
        "": label,
        "expected error": f"{error:.4g}",
        "alpha of the release": decimal_text(alpha),
        "alpha of the plan": decimal_text(total),
    }


def _written(value: Fraction) -> str:
    """The number as a plan takes it: a short decimal if that is exact, else a fraction."""
    text = decimal_text(value)
    return str(value) if text.endswith("…") else text


def _statement(plan: Plan, release: str, quantity: str) -> tuple[Callable[[Release], float], str]:
    """A function that reads an error statement from a release, and the statement's full name."""
    if release not in plan.built:
        raise InputError(
            f"--target: the plan has no release {release!r}; its releases: {', '.join(plan.built)}"
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


def _nearest(alpha: Fraction) -> int:
    """The number of the largest decimal of three digits that is not above ``alpha``."""
    digits, _, power = f"{float(alpha):.12e}".partition("e")
    return max((int(power) + 6) * STEPS + int(float(digits) * 100) - 100, 0)
