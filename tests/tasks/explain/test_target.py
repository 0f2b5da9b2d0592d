"""The alpha that buys an accuracy reaches it, and the step below does not."""

import pytest

from dpcore.errors import InputError
from schemas.plan import load_plan
from tasks.explain.target import EXACT, at_loss, find_target

TARGETS = [
    ("people", 10.0, "standard error of a count"),
    ("pairs", 10.0, "at most"),
    ("wealth", 0.1, ""),
    ("rare", 100.0, "threshold"),
]


@pytest.mark.parametrize(("release", "wanted", "quantity"), TARGETS)
def test_the_plan_with_the_chosen_budget_reaches_the_target_and_the_step_below_does_not(
    plan_path, release, wanted, quantity
):
    plan = load_plan(plan_path)
    choice = find_target(plan, release, wanted, quantity)

    def error(built):
        return next(e.value for e in built.expected_error() if e.quantity == choice.quantity)

    alpha = choice.requested.alpha
    amounts = {f"budget.{key}.alpha": str(alpha) for key in ("granted", "requested")}
    changed = load_plan(plan_path, amounts)
    assert error(changed.built[release]) == choice.error <= wanted
    below = EXACT[EXACT.index(alpha) - 1]
    assert error(at_loss(plan, release, below)) > wanted
    for name, built in plan.built.items():
        part = built.share.alpha / plan.requested.alpha
        assert changed.built[name].share.alpha == part * alpha


@pytest.mark.parametrize(
    ("release", "wanted", "quantity", "says"),
    [
        ("peple", 2.0, "", "has no release 'peple'; its releases: people, rare"),
        ("people", 2.0, "colour", "its statements: standard error of a count"),
        ("people", 1e-300, "", "even with alpha 20,"),
        ("people", 1e-300, "", "; try coarser bins"),
    ],
)
def test_an_impossible_target_is_refused(plan_path, release, wanted, quantity, says):
    with pytest.raises(InputError, match=says):
        find_target(load_plan(plan_path), release, wanted, quantity)
