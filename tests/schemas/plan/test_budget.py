"""Requests of a plan: amounts, rho or a part of the grant, under either rule of composition."""

from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget, total
from dpcore.accounting.concentrated import caps, keeps
from dpcore.accounting.digits import round_down
from schemas.plan import Plan, load_plan
from schemas.plan.selection import asked_for, select
from tests.schemas.refusals import refused

GRANT = {"alpha": "2", "beta": "1e-6"}
CAPS = caps("concentrated", Budget.of("2", "1e-6"))


@pytest.fixture
def document(plan_document: dict) -> dict:
    plan_document["budget"] = {
        "composition": "concentrated",
        "granted": GRANT,
        "requested": {"part": "1/12"},
    }
    return plan_document


def requesting(document: dict, **request: str) -> Plan:
    document["budget"]["requested"] = request
    return load_plan(document)


def test_a_part_of_the_grant_is_split_by_weight_and_nothing_is_lost(document):
    plan = load_plan(document)
    assert plan.requested == CAPS * Fraction(1, 12)
    assert total(release.share for release in plan.built.values()) == plan.requested
    heavier, lighter = plan.built["pairs"].share, plan.built["people"].share
    assert heavier.rho == 3 * lighter.rho
    failing = [name for name, release in plan.built.items() if release.share.beta]
    assert failing == ["rarer"]  # Gaussian noise never fails
    assert keeps(plan.requested, plan.promise)
    assert plan.promise.beta == Fraction("1e-6")


def test_amounts_are_a_promise_that_fits_the_same_grant(document):
    plan = requesting(document, **GRANT)
    assert plan.requested == CAPS
    assert plan.promise == Budget.of("2", "1e-6")


def test_rho_is_spent_as_it_is_written(document):
    plan = requesting(document, rho="0.01", beta="1e-9")
    assert plan.requested == Budget(beta=Fraction("1e-9"), rho=Fraction("0.01"))


def test_a_plan_of_pure_mechanisms_stays_pure(document):
    document["releases"] = [document["releases"][0]]
    document["synthesis"] = []
    plan = load_plan(document)
    assert plan.promise.beta == 0
    assert plan.promise.alpha**2 == pytest.approx(2 * plan.requested.rho, rel=1e-6)


def test_a_part_can_be_asked_of_a_basic_grant_too(document):
    document["budget"]["composition"] = "basic"
    plan = load_plan(document)
    assert plan.requested == Budget.of("2", "1e-6") * Fraction(1, 12)
    document["releases"] = [document["releases"][0]]
    document["synthesis"] = []
    assert load_plan(document).requested == Budget.of("1/6")


@pytest.mark.parametrize(
    ("composition", "request_", "says"),
    [
        ("basic", {"rho": "0.01"}, "requested.rho: the grant is in alpha"),
        ("concentrated", {"rho": "0.09", "beta": "1e-9"}, "requested is more than granted"),
        ("concentrated", {"rho": "0.01"}, "stability-laplace spends beta"),
        ("concentrated", {"alpha": "1"}, "requested.beta: with concentrated composition"),
        ("concentrated", {"alpha": "1", "rho": "0.01"}, "state one of alpha, rho and part"),
        ("concentrated", {}, "state one of alpha, rho and part"),
        ("concentrated", {"part": "1/2", "beta": "1e-9"}, "part: applies to beta and gamma too"),
        ("concentrated", {"part": "0"}, "part must be positive"),
    ],
)
def test_what_cannot_be_requested_is_refused(document, composition, request_, says):
    document["budget"] |= {"composition": composition, "requested": request_}
    assert says in refused(document)


def test_a_concentrated_grant_needs_a_beta(document):
    document["budget"]["granted"] = {"alpha": "2"}
    assert "granted.beta: concentrated composition needs a beta" in refused(document)


def test_a_selection_spends_the_rho_of_its_alpha_at_the_beta_of_the_grant(document):
    plan = load_plan(document)
    asked = asked_for(plan, "0.125")
    assert asked.rho == caps("concentrated", Budget.of("0.125", plan.budget.granted.beta)).rho
    assert asked.beta == round_down(plan.requested.beta * asked.rho / plan.requested.rho)
    assert select(plan, [], asked).requested == asked
    pure = select(plan, ["people"], asked)
    assert pure.requested == Budget(rho=asked.rho)
    assert pure.budget.composition == "concentrated"
