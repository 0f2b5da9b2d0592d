"""A part of a plan is a plan of its own."""

from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget, total
from dpcore.errors import InputError, PlanError
from schemas.plan import load_plan
from schemas.plan.selection import asked_for, select
from tests.conftest import write_plan


@pytest.fixture
def plan(plan_path):
    return load_plan(plan_path)


def test_the_whole_plan_selected_is_the_plan(plan):
    assert select(plan, []).digest == plan.digest
    assert select(plan, list(plan.built)).digest == plan.digest


def test_a_part_costs_exactly_its_share_and_has_a_digest_of_its_own(plan):
    part = select(
        plan, ["pairs", "people"], asked_for(plan, "1.2"), title="A part", requester="B. Analyst"
    )
    assert list(part.built) == ["people", "pairs"]
    spent = total(release.share for release in part.built.values())
    assert spent.alpha == plan.budget.requested.alpha * Fraction(3, 10)
    assert spent.beta == plan.budget.requested.beta * Fraction(3, 10)
    assert part.built["pairs"].share.alpha == 3 * part.built["people"].share.alpha
    assert [table.name for table in part.synthesis] == ["everybody", "hundred", "from-counts"]
    assert (part.publication.title, part.publication.requester) == ("A part", "B. Analyst")
    assert part.digest != plan.digest
    assert part.source == plan.source


@pytest.mark.parametrize(
    "alpha", ["0", "4.000001", "-5", "nan", "inf", "1e999999999", "x", "１e99"]
)
def test_an_alpha_is_positive_and_at_most_what_the_plan_requests(plan, alpha):
    with pytest.raises(InputError, match="alpha: "):
        asked_for(plan, alpha)
    assert asked_for(plan, "4") == asked_for(plan, "") == plan.requested == Budget.of(4, "1e-6")


def test_an_unknown_release_is_told_with_those_that_there_are(plan):
    with pytest.raises(InputError, match=r"no release 'folk'; its releases: people, rare"):
        select(plan, ["folk"])


def test_words_that_cannot_be_published_are_refused(plan):
    with pytest.raises(PlanError, match="requester"):
        select(plan, [], requester="two\nlines")


def test_moving_the_schedule_does_not_change_the_digest(plan, plan_path, plan_document):
    plan_document["operation"] = {
        "schedule": {"cron": "0 6 1 * *", "timezone": "Europe/Lisbon"},
        "warn_runs": 5,
    }
    moved = load_plan(write_plan(plan_path.parent, plan_document))
    assert moved.digest == plan.digest
    assert moved.operation.schedule.timezone == "Europe/Lisbon"
    assert "operation" not in moved.public()


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ({"cron": "daily"}, "five fields"),
        ({"cron": "0 6 1 *"}, "five fields"),
        ({"cron": "0 6 1 * *", "timezone": "Atlantis"}, "unknown time zone"),
        ({"timezone": "UTC"}, "missing"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(plan_path, plan_document, schedule, says):
    plan_document["operation"] = {"schedule": schedule}
    with pytest.raises(PlanError, match=says):
        load_plan(write_plan(plan_path.parent, plan_document))
