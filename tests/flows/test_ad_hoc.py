"""The ad hoc release: choices are checked, told and carried out as a plan of their own."""

import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, InputError, PlanError
from schemas.first_plan.wishes import Said
from schemas.plan import load_plan
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
        ({"releases": ["census: people"]}, "choose releases of one plan"),
        ({"releases": ["plan: folk"]}, "no release 'folk'"),
        (
            {"releases": ["people", "rare"]},
            "'rare' may not be requested; the plan opens people, pairs",
        ),
        ({"requester": "  "}, "write who asks"),
        ({"alpha": "4.1"}, "more than one release of the plan may cost"),
        ({"alpha": "nan"}, "not a decimal number"),
        ({"alpha": "-1"}, "must not be negative"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_with_the_reason(plans, choice, says):
    from flows.ad_hoc import select_releases

    form = {"plan": "plan", "releases": [], "alpha": "", "title": "", "requester": "B. Analyst"}
    with pytest.raises(InputError, match=says):
        select_releases(**(form | choice))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("B. Analyst, Ministry of Health (unit 3)", True),
        ("two\nlines", False),
        ("reversed \u202e", False),
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


@pytest.mark.slow
def test_what_was_chosen_is_released_and_recorded(plans):
    from prefect.client.orchestration import get_client

    from flows.ad_hoc import ad_hoc

    path = ad_hoc(
        "plan",
        releases=["plan: people", "plan: pairs"],
        alpha="1",
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
        made = sorted(client.read_artifacts(limit=200), key=lambda each: each.created)
    told = {each.key: each.data for each in made}["cost-and-accuracy"]  # the newest one
    assert "Requested by B. Analyst" in told
    assert "| this release | 1 | 2.5e-07 |" in told
    assert "standard error of a count" in told


def test_a_plan_that_opens_nothing_can_not_be_asked_for(plan_path, monkeypatch):
    from flows.ad_hoc import select_releases

    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    with pytest.raises(InputError, match="opens nothing to requests"):
        select_releases("plan", [], 100, "", "B. Analyst")


@pytest.mark.slow
def test_a_dry_run_charges_nothing_and_needs_somebody_who_can_resume_it(plans):
    from flows.ad_hoc import ad_hoc

    with pytest.raises(InputError, match="use `dprelease explain` elsewhere"):
        ad_hoc("plan", dry_run=True, requester="B. Analyst")
    assert Ledger(ledger_url()).datasets() == []


OPENED = ["sex", "region", "age", "children"]
ASKED = {"plan": "plan", "alpha": "2", "title": "", "requester": "B. Analyst"}


def open_columns(path, opened, **changes):
    """Let the plan open these columns to wishes, and no release."""
    document = yaml.safe_load(path.read_text()) | changes
    document["operation"] = {"requests": {"columns": opened, "part": "1/8"}}
    path.write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.fixture
def opened(plans, plan_path):
    """The plan opens all columns but income."""
    open_columns(plan_path, OPENED)
    return plan_path


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"tables": ["sex x income"]}, r"^table 'sex x income': there is no column 'income'"),
        ({"tables": ["sex x sexe"]}, "did you mean 'sex'"),
        ({"models": ["age ~ sex + log(income + 1)"]}, "no column 'income'"),
        ({"models": ["{income > 2000} ~ age"]}, "no column 'income'"),
        ({"models": ["age ~ `income`"]}, "no column 'income'"),
        ({"models": ["age ~ __import__('os')"]}, "model"),
        (
            {"records": True, "releases": ["plan: people"]},
            "leave them out, because there are wishes",
        ),
        ({}, "opens no releases; write wishes over sex, region, age, children"),
    ],
)
def test_a_wish_that_cannot_be_served_is_refused_in_words(opened, said, says):
    from flows.ad_hoc import select_releases

    asked = ASKED | {"releases": []} | {k: v for k, v in said.items() if k in ("releases", "alpha")}
    wishes = Said(**{k: v for k, v in said.items() if k not in asked})
    with pytest.raises(InputError, match=says) as refused:
        select_releases(**asked, said=wishes)
    assert "--" not in str(refused.value)
    assert Ledger(ledger_url()).datasets() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        Said(tables=["sex x region", "age"]),
        Said(records=True, means=["age by sex x region"]),
        Said(models=["age ~ sex + children", "age ~ sex * children"], densities=["age"]),
        Said(maps=["age children"], models=["sex ~ age * region"]),
    ],
)
def test_wishes_become_releases_of_the_plan_over_opened_columns_alone(opened, said):
    from flows.ad_hoc import select_releases

    own = load_plan(opened)
    chosen, part = select_releases(**ASKED, releases=[], said=said)
    assert [*chosen.columns] == OPENED
    assert {name for built in chosen.built.values() for name in built.domain.names} <= {*OPENED}
    kept = ("dataset", "source", "rows", "privacy_unit", "neighbours", "invalid")
    assert [getattr(chosen, key) for key in kept] == [getattr(own, key) for key in kept]
    assert chosen.budget.granted == own.budget.granted
    assert (chosen.requested.alpha, part) == (own.requested.alpha / 2, own.operation.requests.part)
    assert chosen.requested.beta in (0, own.requested.beta / 2)
    assert bool(chosen.synthesis) == said.records
    assert len(chosen.built) + len(chosen.analyses) >= len(said.models)
    assert select_releases(**ASKED, releases=[], said=said)[0].digest == chosen.digest


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (Said(models=["children ~ sex"]), "model"),
        (Said(means=["children"]), "model"),
        (Said(tables=["sex"]), "histogram"),
    ],
)
def test_the_survey_design_holds_for_wishes_without_being_opened(plans, plan_path, said, kind):
    from flows.ad_hoc import select_releases

    model = {"name": "pay", "kind": "model", "formula": "income ~ sex"}
    design = {"strata": "region", "cluster": "age", "clusters": 40}
    open_columns(plan_path, ["sex", "children"], releases=[model], synthesis=[], **design)
    chosen, _ = select_releases(**ASKED, releases=[], said=said)
    assert [section.kind for section in chosen.releases] == [kind]
    assert {key: getattr(chosen, key) for key in design} == design
    with pytest.raises(InputError, match="no column 'age'"):
        select_releases(**ASKED, releases=[], said=Said(tables=["age"]))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([], "opens nothing: name releases, columns or both"),
        (["sexe"], "no column 'sexe'; did you mean 'sex'"),
        (["town"], "also open the columns to which these columns refer: .*'sex' is not another"),
        (["write-in"], "'write-in' is `open`"),
    ],
)
def test_columns_that_cannot_be_opened_are_refused_when_the_plan_is_read(plan_path, columns, says):
    known = yaml.safe_load(plan_path.read_text())["columns"]
    town = {"categories": ["x", "y"], "refines": {"sex": {"x": "F", "y": "M"}}}
    more = {"town": town, "write-in": {"categories": "open"}}
    more = {name: {"type": "categorical"} | more[name] for name in more if name in columns}
    open_columns(plan_path, columns, columns=known | more)
    with pytest.raises(PlanError, match=says):
        load_plan(plan_path)


@pytest.mark.slow
def test_wishes_show_their_cost_and_are_charged_only_once_somebody_agrees(opened, monkeypatch):
    from prefect.client.orchestration import get_client

    from flows import ad_hoc as flow

    wished = {
        "tables": ["sex x region"],
        "models": ["age ~ sex"],
        "requester": "B. Analyst",
        "alpha": "1",
    }
    with pytest.raises(InputError, match="only a run of a deployment can wait"):
        flow.ad_hoc("plan", **wished)
    ledger = Ledger(ledger_url())
    assert ledger.datasets() == []
    agreed = []

    def agree(plan):
        with get_client(sync_client=True) as client:
            told = [str(a.data) for a in client.read_artifacts(limit=200)]
        (told, *_) = [text for text in told if "table-sex-region: " in text]
        assert "| this release | 1 |" in told
        assert re.search("table-sex-region: (good|rough)", told)
        assert [*ledger.datasets()] == ([] if not agreed else ["survey"])
        agreed.append(plan.digest)

    monkeypatch.setattr(flow, "await_submission", agree)
    bundle = Path(flow.ad_hoc("plan", **wished))
    manifest = read_manifest(bundle)
    assert "table-sex-region" in [record.name for record in manifest.releases]
    assert {*manifest.plan["columns"]} == {*OPENED}
    assert verify_budget(manifest, ledger).alpha == 1
    asked_again = wished | {"requester": "C. Analyst", "title": "Another title"}
    assert flow.ad_hoc("plan", **asked_again) == str(bundle)
    with get_client(sync_client=True) as client:
        told = [str(a.data) for a in client.read_artifacts(limit=200)]
    assert any(text.startswith("This was answered on 2") for text in told)
    monkeypatch.setattr(flow, "await_submission", lambda plan: None)
    with pytest.raises(BudgetError, match="opened to requests"):  # more than 1.25 together
        flow.ad_hoc("plan", **wished | {"alpha": "0.99"})
    assert (ledger.spent("survey").alpha, len({*agreed})) == (1, 1)


def test_who_agreed_to_a_plan_did_not_agree_to_another(opened, monkeypatch):
    from flows.ad_hoc import select_releases
    from flows.operation import form

    keys = []
    monkeypatch.setattr(form, "deployment", SimpleNamespace(id="a deployment"))
    monkeypatch.setattr(form, "_suspended", lambda key, **_: keys.append(key))
    for rows in (400, 400, 500):
        open_columns(opened, OPENED, rows=rows)
        chosen, _ = select_releases(**ASKED, releases=[], said=Said(tables=["sex"]))
        form.await_submission(chosen)
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.slow
def test_the_form_names_the_columns_that_are_open(opened, prefect, monkeypatch):
    from prefect.client.orchestration import get_client

    from flows.deployment.deploy import deploy

    deploy(opened.parent, 1)
    with get_client(sync_client=True) as client:
        found = client.read_deployment_by_name("ad hoc release/ad-hoc-release")
    assert found.description.endswith("plan: sex, region, age, children")
    fields = found.parameter_openapi_schema["properties"]
    assert fields["plan"]["enum"] == ["plan"]
    assert "enum" not in fields["releases"]["items"]
    assert fields["models"]["items"]["type"] == "string"
