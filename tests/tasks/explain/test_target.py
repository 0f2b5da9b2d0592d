"""The alpha that buys an accuracy: it reaches it, nothing less of three digits does."""

from fractions import Fraction

import pytest

from dpcore.errors import InputError
from schemas.plan import load_plan
from tasks.explain.target import at_loss, find_target

TARGETS = [
    ("people", 2.0, "standard error of a count"),
    ("pairs", 3.0, "at most"),
    ("wealth", 0.01, ""),
    ("rare", 30.0, "threshold"),
]


@pytest.mark.parametrize(("release", "wanted", "quantity"), TARGETS)
def test_the_plan_with_the_chosen_budget_reaches_the_target_and_a_digit_less_does_not(
    plan_path, release, wanted, quantity
):
    plan = load_plan(plan_path)
    choice = find_target(plan, release, wanted, quantity)

    def error(built):
        return next(e.value for e in built.expected_error() if e.quantity == choice.quantity)

    place = list(plan.built).index(release)
    changed = load_plan(
        plan_path,
        {
            "budget.granted.alpha": str(choice.total.alpha),
            "budget.requested.alpha": str(choice.total.alpha),
            f"releases.{place}.weight": str(choice.weight),
        },
    )
    assert changed.built[release].share.alpha == choice.loss
    assert error(changed.built[release]) == choice.error <= wanted
    power = f"{float(choice.loss):.2e}".partition("e")[2]
    less = choice.loss - Fraction(f"0.01e{power}")
    assert Fraction(f"{float(choice.loss):.2e}") == choice.loss
    assert error(at_loss(plan, release, less)) > wanted
    for name, built in plan.built.items():
        if name != release:
            assert changed.built[name].share.alpha == built.share.alpha


@pytest.mark.parametrize(
    ("release", "wanted", "quantity", "says"),
    [
        ("peple", 2.0, "", "has no release 'peple'; its releases: people, rare"),
        ("people", 2.0, "colour", "they are: standard error of a count"),
        ("people", 1e-300, "", "no alpha that a plan may request"),
        ("people", 1e-300, "", "; try coarser bins"),
    ],
)
def test_an_impossible_target_is_refused(plan_path, release, wanted, quantity, says):
    with pytest.raises(InputError, match=says):
        find_target(load_plan(plan_path), release, wanted, quantity)
