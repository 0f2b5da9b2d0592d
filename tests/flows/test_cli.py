"""The command line: what it prints, where, and with which exit code."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dpcore.accounting.budget import Budget
from flows.cli import main
from schemas.plan import load_plan
from tasks.ledger import Charge, ChargeRequest, Ledger
from tests.bare import small_plan
from tests.conftest import ROOT, write_plan
from tests.flows.served import BRIEFLY


def dprelease(*arguments: object, capsys) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def ledger(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.mark.slow
def test_run_prints_the_bundle_s_path_last_and_verify_accepts_it(
    prefect, plan_path, tmp_path, ledger, capsys, monkeypatch
):
    arguments = ("--ledger", ledger, "--out", tmp_path / "out", "--release-id", "r1")
    code, out, err = dprelease("run", plan_path, *arguments, capsys=capsys)
    assert code == 0, err
    bundle = Path(out.splitlines()[-1])
    assert (bundle / "manifest.json").is_file()
    assert "histogram: people (sex x region x age)" in err
    code, out, _ = dprelease("verify", bundle, "--ledger", ledger, capsys=capsys)
    assert code == 0
    assert "alpha = 4, beta = 1e-06, gamma = 0" in out
    monkeypatch.delenv("DPRELEASE_LEDGER")
    code, out, _ = dprelease("verify", bundle, capsys=capsys)
    assert code == 0
    assert "not checked" in out
    code, out, _ = dprelease("ledger", "show", "survey", "--ledger", ledger, capsys=capsys)
    assert code == 0
    assert "r1 people" in out
    assert out.count("commit") == len(load_plan(plan_path).releases)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["guarantee"]["alpha"] = "1"
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = dprelease("verify", bundle, "--ledger", ledger, capsys=capsys)
    assert code == 6
    assert "manifest.json was changed" in err
    (bundle / "manifest.json").unlink()
    for command in (("verify", bundle), ("run", plan_path, *arguments)):
        code, _, err = dprelease(*command, capsys=capsys)
        assert code == 6
        assert f"{bundle}: manifest.json is missing" in err


@pytest.mark.slow
def test_a_budget_that_does_not_suffice_exits_with_3(prefect, plan_path, ledger, capsys):
    known = Ledger(ledger)
    known.grant("survey", Budget.of(10, "1e-5"), who="the board", why="test")
    charge = Charge(Budget.of(8, "2e-6"), {"neighbours": "replace-one"})
    known.reserve(ChargeRequest("survey", "r0", "another plan", {"people": charge}))
    arguments = ("--ledger", ledger, "--out", plan_path.parent)
    code, out, err = dprelease("run", plan_path, *arguments, capsys=capsys)
    assert (code, out) == (3, "")
    assert "alpha" in err
    assert "dprelease ledger grant" in err
    code, out, err = dprelease("explain", plan_path, "--ledger", ledger, capsys=capsys)
    assert code == 3
    assert "would be refused" in out
    assert "does not cover" in err
    grant = ("--alpha", "2", "--who", "the board", "--why", "a second year")
    code, out, _ = dprelease("ledger", "grant", "survey", *grant, "--ledger", ledger, capsys=capsys)
    assert (code, out) == (0, "survey: granted alpha = 12, beta = 1e-05, gamma = 0 in all\n")
    assert dprelease("run", plan_path, *arguments, capsys=capsys)[0] == 0


def test_a_first_grant_beside_a_server_says_which_ledger_it_made(tmp_path, capsys, monkeypatch):
    """A server with another home does not know it."""
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example.org/api")
    monkeypatch.setattr("flows.cli.ledger._resume_schedules", list)
    url, who = f"sqlite:///{tmp_path}/new.sqlite", ("--who", "the board", "--why", "a year")
    for first in (True, False):
        _, _, said = dprelease(
            "ledger", "grant", "survey", "--alpha", "1", *who, "--ledger", url, capsys=capsys
        )
        assert (f"This ledger is new: {tmp_path}/new.sqlite" in said) is first


def test_only_a_further_concentrated_grant_ends_earlier_ones(tmp_path, capsys):
    who = ("--who", "the board", "--why", "a year", "--ledger", f"sqlite:///{tmp_path}/l.sqlite")
    amount = ("--alpha", "1", "--beta", "1e-6", "--composition", "concentrated")
    for first in (True, False):
        _, said, _ = dprelease("ledger", "grant", "survey", *amount, *who, capsys=capsys)
        assert "From now on charges count against rho" in said
        assert ("unspent rest is lost" in said) is not first


def test_explain_says_that_plan_and_grant_are_composed_by_other_rules(plan_path, ledger, capsys):
    grant = {"who": "the board", "why": "test", "composition": "concentrated"}
    Ledger(ledger).grant("survey", Budget.of(10, "1e-5"), **grant)
    code, out, err = dprelease("explain", plan_path, "--ledger", ledger, capsys=capsys)
    assert code == 3
    for said in (out, err):
        assert "the plan says basic, but the ledger records a concentrated grant" in said
        assert "does not cover" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "nowhere.yaml"), "cannot be read"),
        (("run", "PLAN", "--set", "sauce=x"), "sauce: unknown key"),
        (("run", "PLAN", "--set", "source"), "KEY=VALUE"),
        (("run", "PLAN", "--release-id", "../r"), "release id"),
        (("explain", "PLAN", "--target", "people"), "write RELEASE=ERROR"),
        (("explain", "PLAN", "--target", "people=-1"), "a positive number"),
        (("explain", "PLAN", "--target", "nobody=1"), "no release 'nobody'"),
        (("run", "PLAN", "--due", "2026-12-01"), "--due: the plan has no operation.schedule"),
        (("ledger", "show"), "no ledger yet"),
        (
            ("ledger", "grant", "d", "--alpha", "x", "--who", "a", "--why", "b"),
            "--alpha: not a decimal",
        ),
        (("ledger", "show", "--ledger", "nonsense"), "cannot be read"),
        (("run", "PLAN", "--ledger", "sqlite:////nowhere/l.sqlite"), "no such folder"),
        (("ledger", "grant", "d", "--who", "a", "--why", "b"), "nothing to grant"),
        (("ledger", "grant", "d", "--alpha", "1", "--why", "b"), "--who"),
        (("aprove",), 'Did you mean "approve"?'),
        (("-q", "run", "PLAN"), "Options follow the command."),
        (("run", "PLAN", "--releaseid", "r1"), "Did you mean --release-id?"),
        (("run", "PLAN", "--release-id", "a", "--release-id", "b"), "multiple times"),
        (
            ("explain", "PLAN", "--set", "budget.requested.epsilon=1"),
            "epsilon is called alpha here",
        ),
        (("explain", "PLAN", "--set", "releases.0.kind=histogramm"), "did you mean 'histogram'?"),
        ((), "Usage: dprelease"),
        (("ledger",), "Usage: dprelease ledger"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(plan_path, capsys, arguments, says):
    arguments = [str(plan_path) if a == "PLAN" else a for a in arguments]
    code, out, err = dprelease(*arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [("--set", "source=nowhere.parquet"), ("--ledger", "sqlite:////nowhere/l.sqlite")],
    ids=["source", "ledger"],
)
def test_a_wrong_address_is_found_before_the_audit(prefect, plan_path, ledger, wrong, capsys):
    asked = ("run", plan_path, "--out", plan_path.parent)
    given = wrong if "--ledger" in wrong else (*wrong, "--ledger", ledger)
    code, out, err = dprelease(*asked, *given, capsys=capsys)
    assert (code, out) == (2, "")
    assert "audit" not in err


@pytest.mark.slow
def test_quiet_runs_print_the_answer_alone_and_verbose_ones_each_beginning(
    prefect, plan_path, ledger, tmp_path, capsys
):
    place = ("--ledger", ledger, "--out", tmp_path / "out")
    asked = ("run", plan_path, *place, "--release-id", "r1", "-q", "--json")
    code, out, err = dprelease(*asked, capsys=capsys)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["dataset"], answer["release_id"]) == ("survey", "r1")
    assert dprelease("verify", answer["bundle"], *place[:2], "--json", capsys=capsys)[0] == 0
    code, _, err = dprelease("run", plan_path, *place, "-v", capsys=capsys)
    assert code == 0
    assert re.search(r"^ +check budget \.\.\.$", err, re.M)


def test_verify_needs_a_bundle(tmp_path, capsys):
    code, _, err = dprelease("verify", tmp_path, capsys=capsys)
    assert code == 2
    assert "not a bundle" in err


def test_explain_opens_no_data_and_makes_no_ledger(plan_path, own_home, capsys):
    os.remove(plan_path.parent / "survey.parquet")
    code, out, _ = dprelease("explain", plan_path, capsys=capsys)
    assert code == 0
    assert "standard error of a count" in out
    assert "expected L1 error" in out
    assert not (own_home / "ledger.sqlite").exists()


@pytest.mark.slow
def test_explain_and_ledger_show_say_how_many_runs_are_left_and_when_a_schedule_runs_dry(
    plan_path, plan_document, ledger, capsys
):
    def said(*arguments: object) -> str:
        code, out, err = dprelease(*arguments, "--ledger", ledger, capsys=capsys)
        assert code == 0, err
        return next(line for line in out.splitlines() if "rant covers" in line)

    assert said("explain", plan_path) == "The grant covers 2 more runs of this plan."
    charge = Charge(Budget.of("3.5"), {"neighbours": "replace-one"})
    charges = {"people": charge, "pairs": charge}
    known = Ledger(ledger)
    known.grant("survey", Budget.of("16", "1e-5"), who="the board", why="test")
    known.reserve(ChargeRequest("survey", "r1", "another plan", charges))
    assert said("explain", plan_path) == "The grant covers 2 more runs of this plan."
    assert said("ledger", "show") == "The grant covers 1 more release at the price of the last, r1."
    plan_document["operation"] = {"schedule": {"cron": "0 0 1 1 *", "timezone": "Asia/Kathmandu"}}
    write_plan(plan_path.parent, plan_document)
    (plan_path.parent / "draft.yaml").write_text("dprelease: 1\n")
    words = re.escape("2 more runs of this plan: the schedule exhausts the budget on ")
    dry = rf"he grant covers {words}\d{{4}}-01-01T00:00 \(Asia/Kathmandu\)\."
    assert re.fullmatch(f"T{dry}", said("explain", plan_path))
    shown = said("ledger", "show", "survey", "--plans", plan_path.parent)
    assert re.fullmatch(f"plan.yaml: t{dry}", shown)


HEAVY = ("prefect", "pandas", "ibis", "duckdb", "formulaic", "sqlalchemy", "scipy.stats")


@pytest.mark.slow
def test_a_command_ends_with_its_code_after_threads_and_exit_functions():
    script = """
import atexit, threading
from flows.cli import console
atexit.register(print, "exit function")
wait = threading.main_thread().join
threading.Thread(target=lambda: (wait(), print("thread"))).start()
console()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "explain", "absent.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "thread\nexit function\n"), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["explain", "PLAN"], (*HEAVY, "scipy.optimize")),
        (["--help"], (*HEAVY, "numpy", "pydantic")),
    ],
    ids=lambda value: " ".join(value),
)
def test_light_commands_do_not_import_what_is_slow(tmp_path, arguments, heavy):
    script = (
        f"import sys; from flows.cli import main; code = main(sys.argv[1:]);"
        f"sys.exit(code or any(name in sys.modules for name in {heavy}))"
    )
    arguments = [str(small_plan(tmp_path)) if a == "PLAN" else a for a in arguments]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_installed_one(capsys):
    assert dprelease("--version", capsys=capsys) == (0, f"{version('dprelease')}\n", "")


@pytest.mark.slow
def test_every_command_of_the_ledger_answers_in_json_with_exact_amounts(
    plan_path, ledger, tmp_path, capsys
):
    def asked(*arguments: object, code: int = 0) -> Any:
        found, out, err = dprelease(*arguments, "--json", "--ledger", ledger, capsys=capsys)
        assert found == code, err
        return json.loads(out)

    who = ("--who", "the board", "--why", "test")
    granted = asked("ledger", "grant", "survey", "--epsilon", "1/3", "--delta", "1e-6", *who)
    assert granted["left"] == {"alpha": "1/3", "beta": "1/1000000", "gamma": "0"}
    charge = Charge(Budget.of("1/7"), {"neighbours": "replace-one"})
    Ledger(ledger).reserve(ChargeRequest("survey", "r1", "a plan", {"people": charge}))
    (shown,) = asked("ledger", "show")
    assert shown["spent"]["alpha"] == "1/7"
    assert [line["action"] for line in shown["history"]] == ["grant", "reserve"]
    assert asked("ledger", "check", code=6)["faults"][0]["what"] == "reserved, not drawn"
    voided = asked("ledger", "void", "survey", "r1", "people", *who)
    assert voided["spent"]["alpha"] == "0"
    assert asked("ledger", "check") == {"bundles_compared": False, "faults": []}
    assert asked("ledger", "checkpoint", tmp_path / "witness")["draws"] == 0
    assert asked("ledger", "backup", tmp_path / "copy")["file"] == str(tmp_path / "copy")
    found = asked("explain", plan_path, "--target", "people=3", code=3)
    assert found["error"] <= 3 < found["error_now"]


def test_a_file_that_is_no_ledger_is_not_restored_and_exits_with_2(tmp_path, ledger, capsys):
    (tmp_path / "letter.txt").write_text("not a ledger")
    asked = ("ledger", "restore", tmp_path / "letter.txt", "--ledger", ledger)
    code, out, err = dprelease(*asked, capsys=capsys)
    assert (code, out) == (2, "")
    assert "is not the backup of a ledger" in err


def test_a_column_whose_name_yaml_misreads_is_to_be_quoted(tmp_path, capsys):
    plan = tmp_path / "plan.yaml"
    plan.write_text("columns:\n  NO: {type: integer, bounds: [0, 1]}\n")
    code, _, err = dprelease("explain", plan, capsys=capsys)
    assert code == 2
    assert "line 2: YAML reads the key NO as" in err
    assert 'write "NO", in quotes' in err


@pytest.mark.slow
def test_a_run_without_any_server_leaves_a_bundle_and_no_noise(
    plan_path, tmp_path, own_home, put_database
):
    put_database(own_home / "prefect")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    environment["PYTHONPATH"] = os.pathsep.join([BRIEFLY, str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", "run", plan_path, "--out", tmp_path / "out"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment | {"DPRELEASE_HOME": str(own_home)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_dir()
    ours = re.compile(
        r"release |first run in this home|this dataset is new in the ledger| *\d+\.\d\d s  \w"
    )
    assert [line for line in done.stderr.splitlines() if not ours.match(line)] == []
    assert (own_home / "prefect").stat().st_mode & 0o077 == 0
