"""An analyst's own question: shown, then charged to the analyst's allowance, then published once."""

import functools
import io
import json
import shutil
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from dpcore.accounting.budget import Budget
from flows.cli import main
from tasks.bundle.verify import read_manifest, verify_budget
from tasks.ledger import Charge, ChargeRequest, Ledger
from tasks.survey.sources import find_in_package
from tasks.workplace.home import ledger_url
from tests.apart import apart
from tests.bare import leave_out_audits
from tests.conftest import ROOT
from tests.tasks.ledger.test_processes import compete

OFFICER = ["--who", "A. Officer", "--why", "a thesis"]
ANALYST = "B. Analyst"
MEAN = ["--mean", "affairs by rate_marriage"]


@pytest.fixture
def plans(tmp_path, monkeypatch) -> Path:
    """A folder of plans with the demo, whose dataset has a grant, and the folder of bundles."""
    (tmp_path / "plans").mkdir()
    demo = yaml.safe_load((ROOT / "deployments/plans/fair.yaml").read_text())
    write(tmp_path / "plans", demo)
    monkeypatch.setenv("DPRELEASE_PLANS", str(tmp_path / "plans"))
    monkeypatch.setenv("DPRELEASE_OUT", str(tmp_path / "out"))
    leave_out_audits(monkeypatch.setattr)
    granted = ["--alpha", "4", "--beta", "1e-5"]
    assert main(["ledger", "grant", "fair-1978", *granted, *OFFICER]) == 0
    return tmp_path / "plans"


def write(plans: Path, document: dict) -> None:
    (plans / "fair.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


@pytest.fixture
def token(plans, capsys) -> str:
    return allow(capsys, ANALYST, "0.5")


def allow(capsys, analyst: str, alpha: str) -> str:
    capsys.readouterr()
    command = ["ledger", "allow", "fair-1978", analyst, "--alpha", alpha, *OFFICER, "--json"]
    assert main(command) == 0
    return str(json.loads(capsys.readouterr().out)["token"])


@pytest.fixture
def ask(monkeypatch, capsys):
    """Ask with a token on standard input; returns the exit code and what was printed and said."""

    def asked(*words: str, token: str = "", analyst: str = ANALYST, alpha: str = "0.25"):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n" * bool(token)))
        capsys.readouterr()
        code = main(["ask", "fair", "--as", analyst, f"--alpha={alpha}", *words])
        return code, *capsys.readouterr()

    return asked


def charged() -> Budget:
    return Ledger(ledger_url()).spent("fair-1978")


@pytest.mark.slow
def test_a_question_is_shown_then_charged_then_answered_by_a_bundle_that_names_who_asked(
    plans, token, ask
):
    code, shown, said = ask(*MEAN)
    assert (code, charged()) == (0, Budget())
    assert "no token: nothing was charged" in said
    assert "mean-affairs-by-rate-marriage: rough. The standard error" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["this", "release", "0.25", "0", "0"] in rows
    assert ["allowance", "left", "afterwards", "0.25", "1.25e-06", "0"] in rows

    code, answer, _ = ask(*MEAN, token=token)
    bundle = Path(answer.splitlines()[-1])
    assert (code, bundle.parent) == (0, plans.parent / "out" / "fair-1978")
    assert charged() == Budget.of("0.25")
    manifest, ledger = read_manifest(bundle), Ledger(ledger_url())
    assert verify_budget(manifest, ledger) == Budget.of("0.25")
    assert manifest.title == "Mean affairs by rate_marriage"
    assert manifest.plan["publication"]["requester"] == ANALYST
    assert f"Asked by <bdi>{ANALYST}</bdi>" in (bundle / "report.html").read_text()
    assert f"Asked by {ANALYST}." in (bundle / "README.md").read_text()
    assert ledger.allowances("fair-1978")[ANALYST].spent == Budget.of("0.25")

    code, again, said = ask(*MEAN)  # without a token
    assert (code, again.strip(), charged()) == (0, str(bundle), Budget.of("0.25"))
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert (
        f"this was answered on {today}; nothing is charged; ask with another alpha for a new draw"
        in said
    )


@pytest.mark.slow
def test_the_same_question_is_answered_to_whoever_asks_and_charged_once(plans, token, ask, capsys):
    other = allow(capsys, "C. Analyst", "0.5")
    first = ask(*MEAN, token=token)[1].splitlines()[-1]
    for words in ([], ["--title", "Affairs"]):
        code, again, said = ask(*MEAN, *words, analyst="C. Analyst", token=other)
        assert (code, again.strip()) == (0, first)
        assert "nothing is charged" in said
    assert charged() == Budget.of("0.25")
    assert Ledger(ledger_url()).allowances("fair-1978")["C. Analyst"].spent == Budget()
    code, _, said = ask(*MEAN, analyst="D. Analyst")
    assert (code, "has no allowance" in said) == (3, True)  # and does not learn that it was asked
    code, drawn_again, _ = ask(*MEAN, analyst="C. Analyst", token=other, alpha="0.24")
    assert (code, drawn_again.splitlines()[-1] != first) == (0, True)
    assert charged() == Budget.of("0.49")


@pytest.mark.slow
def test_an_answer_that_waits_for_its_officer_is_not_drawn_for_another_analyst(
    plans, token, ask, capsys
):
    other = allow(capsys, "C. Analyst", "0.5")
    guarded = yaml.safe_load((plans / "fair.yaml").read_text())
    guarded["publication"]["approval"] = True
    write(plans, guarded)
    assert ask(*MEAN, token=token)[0] == 5
    code, _, said = ask(*MEAN, analyst="C. Analyst", token=other)
    assert (code, charged()) == (5, Budget.of("0.25"))
    assert "is not published; nothing more is charged" in said


CHANGES = {
    "a due time of the schedule": {"schedule": {"cron": "* * * * *"}},
    "another file": {},
    "a person's word": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_of_other_data_the_same_question_is_another(plans, token, ask, change, monkeypatch):
    first = ask(*MEAN, token=token)[1].splitlines()[-1]
    assert ask(*MEAN)[1].strip() == first
    document = yaml.safe_load((plans / "fair.yaml").read_text())
    if change == "another file":
        survey = plans.parent / "survey.csv"
        shutil.copy(find_in_package(document["source"]), survey)
        document["source"] = str(survey)
    document["operation"] |= CHANGES[change]
    write(plans, document)
    if change == "a person's word":
        assert main(["ledger", "source", str(plans / "fair.yaml"), *OFFICER]) == 0
    if change == "a due time of the schedule":
        later = datetime.now(UTC) + timedelta(minutes=2)
        monkeypatch.setattr("flows.question.datetime", Clock(later))
    code, _, said = ask(*MEAN)
    assert (code, charged()) == (0, Budget.of("0.25"))
    assert "no token: nothing was charged" in said
    assert "answered on" not in said
    code, answer, _ = ask(*MEAN, token=token)
    second = answer.splitlines()[-1]
    assert (code, second) == (0, f"{first}-2")
    assert charged() == Budget.of("0.5")


class Clock:
    """A ``datetime`` whose present is this."""

    def __init__(self, present: datetime) -> None:
        self.present = present

    def now(self, zone: object) -> datetime:
        return self.present

    def fromisoformat(self, text: str) -> datetime:
        return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("question", "code", "says"),
    [
        ({"token": "0" * 32}, 2, "not the analyst's newest token"),
        ({"analyst": "C. Analyst"}, 3, "'C. Analyst' has no allowance in dataset 'fair-1978'"),
        ({"analyst": "b. analyst"}, 3, "has no allowance"),
        ({"analyst": "two\nlines"}, 2, "one line of printable text"),
        ({"analyst": " "}, 2, "write who asks"),
        ({"alpha": "0.6"}, 3, "asked 0.6, left 0.5 of 0.5 allowed to B. Analyst"),
        ({"alpha": "2.5"}, 2, "more than one release of the plan may cost"),
        ({"alpha": "-0.1"}, 2, "must not be negative"),
        ({"alpha": "nan"}, 2, "not a decimal number"),
        ({"alpha": "0"}, 2, "must be positive"),
    ],
)
def test_a_hostile_question_is_refused_before_it_is_charged(
    plans, token, ask, question, code, says
):
    asked, _, said = ask(*MEAN, **{"token": token} | question)
    assert says in said
    assert (asked, charged()) == (code, Budget())


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (["--mean", "wealth"], "there is no column 'wealth'"),
        (["--mean", "affairs by occupation"], "there is no column 'occupation'"),
        (["--model", "affairs ~ log(occupation)"], "no column 'occupation'"),
        ([], "ask for something"),
        ([*MEAN, "--title", "two\nlines"], "publication.title"),
    ],
)
def test_a_wish_that_the_plan_does_not_open_is_refused(plans, token, ask, wish, says):
    code, _, said = ask(*wish, token=token)
    assert says in said
    assert (code, charged()) == (2, Budget())


@pytest.mark.slow
def test_what_the_agency_spends_bounds_what_an_analyst_may(plans, token, ask):
    own = {"a": Charge(Budget.of("3.9"), {"neighbours": "replace-one"})}
    Ledger(ledger_url()).reserve(ChargeRequest("fair-1978", "own", "p", own))
    code, shown, said = ask(*MEAN, token=token)
    assert code == 3
    assert "left 0.1 of 4 granted" in said
    assert "allowed to B. Analyst" in shown  # what it would cost is shown all the same
    assert charged() == Budget.of("3.9")


def test_before_the_first_allowance_nobody_can_ask(plans, ask):
    code, _, said = ask(*MEAN, token="0" * 32)
    assert (code, charged()) == (3, Budget())
    assert "has no allowance" in said


@pytest.mark.slow
def test_only_plans_of_the_agency_s_folder_can_be_asked(plans, token, tmp_path, capsys):
    for name in (str(ROOT / "deployments/plans/fair.yaml"), "../plans/fair.yaml", "adult", ""):
        assert main(["ask", name, "--as", ANALYST, "--alpha", "0.1", *MEAN]) == 2
        assert "its plans: fair" in capsys.readouterr().err
    closed = yaml.safe_load((plans / "fair.yaml").read_text())
    del closed["operation"]
    write(plans, closed)
    assert main(["ask", "fair", "--as", ANALYST, "--alpha", "0.1", *MEAN]) == 2
    assert "opens nothing to requests" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--ledger", "--out", "--plans", "--set"])
def test_whoever_asks_chooses_neither_ledger_nor_folders(plans, token, ask, option):
    """So an agency can let analysts call the command as the user who may read the survey."""
    code, _, said = ask(*MEAN, option, "x", token=token)
    assert (code, charged()) == (2, Budget())
    assert f"Unknown option: {option}" in said or f'Unknown option: "{option}"' in said


@pytest.mark.slow
def test_an_answer_waits_for_the_disclosure_officer_where_the_plan_asks_for_one(
    plans, token, ask, capsys
):
    guarded = yaml.safe_load((plans / "fair.yaml").read_text())
    guarded["publication"]["approval"] = True
    write(plans, guarded)
    code, _, said = ask(*MEAN, token=token)
    assert code == 5
    assert "once it is approved, ask the same question again" in said
    (release_id,) = Ledger(ledger_url()).releases("fair-1978")
    assert main(["approve", "fair-1978", release_id, *OFFICER]) == 0
    code, answer, _ = ask(*MEAN)
    assert code == 0
    assert read_manifest(Path(answer.strip())).approval.who == "A. Officer"
    assert charged() == Budget.of("0.25")


@pytest.mark.slow
def test_the_account_shows_what_each_analyst_has_left(plans, token, ask, capsys):
    allow(capsys, "C. Analyst", "0.125")
    assert ask(*MEAN, token=token)[0] == 0
    assert main(["ledger", "show", "fair-1978"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["B.", "Analyst:", "left", "0.25", "1.25e-06", "0"] in rows
    assert ["C.", "Analyst:", "left", "0.125", "3.125e-07", "0"] in rows
    assert main(["ledger", "show", "fair-1978", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts[0]["allowances"][ANALYST]["left"]["alpha"] == "1/4"
    key = Ledger(ledger_url()).allowances("fair-1978")[ANALYST].key
    assert key not in text + json.dumps(facts)


def asked_at_once(token: str, groups: list[str]) -> list[str]:
    """Exit code and last word of processes that ask for a mean by each group at the same time."""
    leave_out_audits()
    command = ["ask", "fair", "--as", ANALYST, "--alpha", "1/5", "--mean"]

    def ask(group: str) -> str:
        sys.stdin = io.StringIO(f"{token}\n")
        with redirect_stdout(io.StringIO()) as printed:
            code = main([*command, f"affairs by {group}"])
        return f"{code}:{printed.getvalue().split()[-1]}"

    return compete([functools.partial(ask, group) for group in groups])


@pytest.mark.slow
def test_processes_that_ask_at_the_same_time_spend_no_more_than_is_allowed(plans, token):
    """Each asks another question, and one of them twice; two of them can be paid."""
    said = apart(asked_at_once, token, ["rate_marriage", "religious", "educ", "educ"])
    assert len(said) == 4
    assert {each.partition(":")[0] for each in said} == {"0", "3"}, said
    assert len({each for each in said if "/out/" in each}) == 2, said
    assert charged() == Budget.of("2/5")
    assert len(list((plans.parent / "out" / "fair-1978").iterdir())) == 2
