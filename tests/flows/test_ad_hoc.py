"""The ad hoc release: choices are checked, told and carried out as a plan of their own."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, InputError
from tasks.bundle.verify import read_manifest, verify_budget
from tasks.ledger import Action, Ledger
from tasks.ledger.records import require_text
from tasks.workplace.home import ledger_url

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def plans(plan_path, monkeypatch):
    """The folder of plans, which holds one, named plan; it opens two releases to requests."""
    document = yaml.safe_load(plan_path.read_text())
    document["operation"] = {"requests": {"releases": ["people", "pairs"], "part": "1/8"}}
    plan_path.write_text(yaml.safe_dump(document, sort_keys=False))
    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    monkeypatch.setenv("DPRELEASE_OUT", str(plan_path.parent / "out"))
    return plan_path.parent


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"plan": "census"}, "no plan 'census' in .*; its plans: plan"),
        ({"plan": "../plan"}, "no plan"),
        ({"releases": ["census: people"]}, "choose releases of one plan"),
        ({"releases": ["plan: folk"]}, "no release 'folk'"),
        (
            {"releases": ["people", "rare"]},
            "'rare' may not be requested; the plan opens people, pairs",
        ),
        ({"requester": "  "}, "write who asks"),
        ({"requester": "two\nlines"}, "requester"),
        ({"percent": 0}, "a whole number from 1 to 100"),
        ({"percent": 101}, "a whole number from 1 to 100"),
        ({"title": "two\nlines"}, "title"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_the_reason(plans, choice, says):
    from flows.ad_hoc import select_releases

    form = {"plan": "plan", "releases": [], "percent": 100, "title": "", "requester": "B. Analyst"}
    with pytest.raises(InputError, match=says):
        select_releases(**(form | choice))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("B. Analyst, Ministry of Health (unit 3)", True),
        ("Ñandú Øst-王小明", True),
        (" ", False),
        ("two\nlines", False),
        ("reversed \u202e", False),
        ("joined \u200b", False),
        ("A.\u00a0Analyst", False),
    ],
)
def test_forms_take_the_names_that_the_ledger_takes(text, accepted):
    from flows.ad_hoc import ad_hoc
    from flows.operation.form import Review

    asked = {"plan": "plan", "requester": text}
    for take in (
        lambda: require_text(who=text),
        lambda: Review(decision="approve", name=text, reason=text),
        lambda: ad_hoc.validate_parameters(asked),
    ):
        with (
            nullcontext()
            if accepted
            else pytest.raises((InputError, ValueError, ParameterTypeError))
        ):
            take()
    pattern = parameter_schema(ad_hoc.fn).properties["requester"]["pattern"]
    assert bool(re.search(pattern, text)) == accepted


def test_what_was_chosen_is_released_and_recorded(plans):
    from prefect.client.orchestration import get_client

    from flows.ad_hoc import ad_hoc

    path = ad_hoc(
        "plan",
        releases=["plan: people", "plan: pairs"],
        percent_of_budget=25,
        title="Two tables",
        requester="B. Analyst",
    )
    bundle = Path(path)
    assert bundle.parent == plans / "out" / "survey"
    assert bundle.name.startswith("plan-ad-hoc-")
    manifest = read_manifest(bundle)
    assert [record.name for record in manifest.releases] == ["people", "pairs"]
    assert manifest.title == "Two tables"
    assert manifest.plan["publication"]["requester"] == "B. Analyst"
    ledger = Ledger(ledger_url())
    assert verify_budget(manifest, ledger) == Budget.of(1, "1/4000000")
    requests = [r for r in ledger.history("survey") if r.action is Action.REQUEST]
    assert [(r.release_id, r.who, r.why) for r in requests] == [
        (bundle.name, "B. Analyst", "Two tables")
    ]
    with get_client(sync_client=True) as client:
        artifacts = {a.key: a.data for a in client.read_artifacts(limit=200)}
    told = artifacts["cost-and-accuracy"]
    assert "Requested by B. Analyst" in told
    assert "| this release | 1 | 2.5e-07 |" in told
    assert "standard error of a count" in told


def test_a_plan_that_opens_nothing_can_not_be_asked_for(plan_path, monkeypatch):
    from flows.ad_hoc import select_releases

    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    with pytest.raises(InputError, match="opens nothing to requests"):
        select_releases("plan", [], 100, "", "B. Analyst")


def test_requests_together_spend_no_more_than_the_plan_opens(plans):
    from flows.ad_hoc import ad_hoc

    ad_hoc("plan", releases=["people"], percent_of_budget=25, requester="B. Analyst")
    for percent in (100, 10):  # an eighth of 10 is 1.25, and a request asks for per cents of 4
        with pytest.raises(BudgetError, match="opened to requests"):
            ad_hoc("plan", releases=["people"], percent_of_budget=percent, requester="B. Analyst")
    assert Ledger(ledger_url()).spent("survey") == Budget.of(1)


def test_a_dry_run_charges_nothing_and_needs_somebody_who_can_resume_it(plans):
    from flows.ad_hoc import ad_hoc

    with pytest.raises(InputError, match="use `dprelease explain` elsewhere"):
        ad_hoc("plan", dry_run=True, requester="B. Analyst")
    assert Ledger(ledger_url()).datasets() == []
