"""The command line: what it prints, where, and with which exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpcore.budget import Budget
from dpcore.statistic import Noisy
from flows.cli import main
from schemas.plan import load_plan
from tasks.ledger import Charge, Ledger
from tests.bare import small_plan
from tests.conftest import ROOT, write_plan


def dprelease(*arguments: object, capsys) -> tuple[int, str, str]:
    try:
        code = main([str(a) for a in arguments])
    except SystemExit as stop:  # argparse's own usage errors
        code = int(stop.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def ledger(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


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
    assert code == 1
    assert "manifest.json was changed" in err


def test_a_budget_that_does_not_suffice_exits_with_3(prefect, plan_path, ledger, capsys):
    for release_id in ("r1", "r2"):
        arguments = ("--ledger", ledger, "--out", plan_path.parent, "--release-id", release_id)
        assert dprelease("run", plan_path, *arguments, capsys=capsys)[0] == 0
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


def test_a_ledger_about_other_neighbours_exits_with_3_and_explain_says_so_before(
    prefect, plan_path, ledger, capsys
):
    place = ("--ledger", ledger, "--out", plan_path.parent)
    assert dprelease("run", plan_path, *place, capsys=capsys)[0] == 0
    changed = ("--set", "neighbours=add-remove")
    asked = ("explain", plan_path, *changed, "--ledger", ledger)
    code, out, err = dprelease(*asked, capsys=capsys)
    assert code == 3
    assert (
        "would be refused: earlier releases of dataset 'survey' protect one row (replace-one)"
        in out
    )
    assert "this plan protects one row (add-remove)" in err
    code, out, err = dprelease("run", plan_path, *changed, *place, capsys=capsys)
    assert (code, out) == (3, "")
    assert "this plan protects one row (add-remove)" in err


def test_gamma_after_a_first_release_exits_with_3_and_explain_says_so_before(
    prefect, plan_document, plan_path, ledger, capsys
):
    for amount in plan_document["budget"].values():
        amount |= {"beta": "0", "gamma": "0.1"}
    plan_document["releases"] = [
        {"name": "rare", "kind": "histogram", "columns": ["sex"], "mechanism": "random-zero-cells"}
    ]
    plan_document["synthesis"] = []
    write_plan(plan_path.parent, plan_document)
    granted, event = Budget.of(10, 0, "0.1"), {"neighbours": "replace-one"}
    known = Ledger(ledger)
    known.grant("survey", granted, who="the board", why="test")
    known.reserve("survey", "r0", "another plan", {"people": Charge(Budget.of(1), event)})
    assert dprelease("explain", plan_path, "--ledger", ledger, capsys=capsys)[0] == 0
    known.commit("survey", "r0", "people", Noisy(np.array([1])))
    code, out, err = dprelease("explain", plan_path, "--ledger", ledger, capsys=capsys)
    assert code == 3
    assert "would be refused: this plan asks for gamma" in out
    assert "fixed before the dataset's first release" in err
    place = ("--ledger", ledger, "--out", plan_path.parent)
    code, out, err = dprelease("run", plan_path, *place, capsys=capsys)
    assert (code, out) == (3, "")
    assert "this plan asks for gamma" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "nowhere.yaml"), "cannot be read"),
        (("run", "PLAN", "--set", "sauce=x"), "sauce: unknown key"),
        (("run", "PLAN", "--set", "source"), "KEY=VALUE"),
        (("run", "PLAN", "--release-id", "../r"), "release id"),
        (("run", "PLAN", "--set", "rows=many"), "rows"),
        (("run", "PLAN", "--set", "releases.99.weight=2"), "no such key"),
        (("explain", "nowhere.yaml"), "cannot be read"),
        (("explain", "PLAN", "--target", "people"), "write RELEASE=ERROR"),
        (("explain", "PLAN", "--target", "people=-1"), "a positive number"),
        (("explain", "PLAN", "--target", "nobody=1"), "no release 'nobody'"),
        (("run", "PLAN", "--due", "2026-12-01"), "--due: the plan has no operation.schedule"),
        (("run", "PLAN", "--due", "2026-12-01", "--release-id", "r1"), "not allowed with"),
        (("ledger", "show"), "no ledger yet"),
        (
            ("ledger", "grant", "d", "--alpha", "x", "--who", "a", "--why", "b"),
            "--alpha: not a decimal",
        ),
        (
            ("ledger", "grant", "d", "--alpha", "-1", "--who", "a", "--why", "b"),
            "--alpha: must not",
        ),
        (("ledger", "grant", "d", "--alpha", "1e500", "--who", "a", "--why", "b"), "--alpha"),
        (("ledger", "grant", "d", "--beta", "2", "--who", "a", "--why", "b"), "--beta: must be"),
        (("ledger", "grant", "A b", "--alpha", "1", "--who", "a", "--why", "b"), "dataset"),
        (("ledger", "show", "--ledger", "nonsense"), "cannot be read"),
        (("run", "PLAN", "--ledger", "sqlite:////nowhere/l.sqlite"), "no such folder"),
        (("ledger", "grant", "d", "--who", "a", "--why", "b"), "nothing to grant"),
        (("ledger", "grant", "d", "--alpha", "1", "--why", "b"), "--who"),
        (("publish",), "invalid choice"),
        ((), "required"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(plan_path, capsys, arguments, says):
    arguments = [str(plan_path) if a == "PLAN" else a for a in arguments]
    code, out, err = dprelease(*arguments, capsys=capsys)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_a_missing_survey_exits_with_2_and_spends_nothing(prefect, plan_path, ledger, capsys):
    os.remove(plan_path.parent / "survey.parquet")
    arguments = ("--ledger", ledger, "--out", plan_path.parent)
    code, _, err = dprelease("run", plan_path, *arguments, capsys=capsys)
    assert code == 2
    assert "no such file" in err
    _, out, _ = dprelease("ledger", "show", "--ledger", ledger, capsys=capsys)
    assert "reserve" not in out


def test_the_wrong_number_of_rows_is_refused_without_telling_the_right_one(
    prefect, plan_path, plan_document, ledger, capsys
):
    write_plan(plan_path.parent, plan_document | {"rows": 401})
    arguments = ("--ledger", ledger, "--out", plan_path.parent, "--release-id", "r1")
    code, _, err = dprelease("run", plan_path, *arguments, capsys=capsys)
    assert code == 2
    assert "rows" in err
    assert "400" not in err


def test_a_target_is_priced_and_one_beyond_the_grant_exits_with_3(plan_path, capsys):
    code, out, _ = dprelease("explain", plan_path, "--target", "people=8", capsys=capsys)
    assert code == 0
    settings = re.findall(r"--set (\S+)", out)
    assert [s.partition("=")[0] for s in settings] == [
        "budget.requested.alpha",
        "releases.0.weight",
    ]
    changed = [word for setting in settings for word in ("--set", setting)]
    code, out, _ = dprelease("explain", plan_path, *changed, capsys=capsys)
    assert code == 0
    assert float(re.search(r"people +standard error of a count +(\S+)", out)[1]) <= 8
    target = "people:standard error=0.01"
    code, out, err = dprelease("explain", plan_path, "--target", target, capsys=capsys)
    assert code == 3
    assert "wanted" in out
    assert "does not cover" in err


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


def test_explain_and_ledger_show_say_how_many_runs_are_left_and_when_a_schedule_runs_dry(
    plan_path, plan_document, ledger, capsys
):
    def said(*arguments: object) -> str:
        code, out, err = dprelease(*arguments, "--ledger", ledger, capsys=capsys)
        assert code == 0, err
        return next(line for line in out.splitlines() if "rant covers" in line)

    assert said("explain", plan_path) == "The grant covers 2 more runs of this plan."
    charge = Charge(Budget.of("3.5"), {"neighbours": "replace-one"})
    known = Ledger(ledger)
    known.grant("survey", Budget.of("16", "1e-5"), who="the board", why="test")
    known.reserve("survey", "r1", "another plan", {"people": charge, "pairs": charge})
    assert said("explain", plan_path) == "The grant covers 2 more runs of this plan."
    assert said("ledger", "show") == "The grant covers 1 more release at the price of the last, r1."
    plan_document["operation"] = {"schedule": {"cron": "0 0 1 1 *", "timezone": "Asia/Kathmandu"}}
    write_plan(plan_path.parent, plan_document)
    (plan_path.parent / "draft.yaml").write_text("dprelease: 1\n")
    words = re.escape("2 more runs of this plan: the schedule runs dry on ")
    dry = rf"he grant covers {words}\d{{4}}-01-01T00:00 \(Asia/Kathmandu\)\."
    assert re.fullmatch(f"T{dry}", said("explain", plan_path))
    shown = said("ledger", "show", "survey", "--plans", plan_path.parent)
    assert re.fullmatch(f"plan.yaml: t{dry}", shown)


def test_schema_prints_a_json_schema(capsys):
    code, out, _ = dprelease("schema", capsys=capsys)
    assert code == 0
    row, unit = json.loads(out)["properties"]["privacy_unit"]["anyOf"]
    assert row["const"] == "row"
    assert unit["$ref"].endswith("UnitColumn")


def test_light_commands_do_not_import_prefect_or_pandas(tmp_path):
    script = (
        "import sys; from flows.cli import main; main(['explain', sys.argv[1]]);"
        "sys.exit(any(name in sys.modules for name in ('prefect', 'pandas', 'ibis', 'duckdb')))"
    )
    plan = small_plan(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", script, plan], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_run_without_any_server_leaves_a_bundle_and_no_noise(plan_path, tmp_path, own_home):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
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
    ours = re.compile(r"release |first run in this home|the ledger does not know| *\d+\.\d\d s  \w")
    assert [line for line in done.stderr.splitlines() if not ours.match(line)] == []
    assert (own_home / "prefect").stat().st_mode & 0o077 == 0
