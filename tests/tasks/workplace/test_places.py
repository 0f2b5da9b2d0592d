"""What the environment names outlasts a run, or is refused before anything is charged."""

from pathlib import Path

import pytest

from dpcore.errors import InputError
from flows.cli import main
from flows.deployment.serve import environment
from tasks.budget.checkpoint import checkpoint_file
from tasks.bundle.sign import signing_key
from tasks.workplace.events import record_event
from tasks.workplace.home import home, ledger_url
from tasks.workplace.places import FLOW_RUN, NAMED_FILES
from tasks.workplace.plans import plans_folder, published_folder, usual_plans
from tests import bare


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """The folder that a worker makes for one run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    """In the process of a worker's run, where an absolute ledger is named."""
    monkeypatch.setenv(FLOW_RUN, "a run of a worker")
    monkeypatch.setenv("DPRELEASE_LEDGER", "sqlite:////nowhere/ledger.sqlite")


NAMED = [
    ("DPRELEASE_HOME", "private", home),
    ("DPRELEASE_LEDGER", "sqlite:///ledger.sqlite", ledger_url),
    ("DPRELEASE_OUT", "published", published_folder),
    ("DPRELEASE_PLANS", "plans", plans_folder),
    ("DPRELEASE_CHECKPOINT", "witness", checkpoint_file),
    ("DPRELEASE_SIGNING_KEY", "key.pem", signing_key),
]


@pytest.mark.parametrize(("variable", "value", "read"), NAMED)
def test_what_would_be_removed_with_a_run_is_refused(
    run, folder, monkeypatch, variable, value, read
):
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"{variable}: .* is relative to the folder of this run"):
        read()
    assert not [*folder.iterdir()]


@pytest.mark.parametrize("read", [published_folder, plans_folder])
def test_a_folder_that_nobody_named_is_refused_too(run, read):
    with pytest.raises(InputError, match="is relative to the folder of this run"):
        read()


@pytest.mark.parametrize("value", [None, ""])
def test_a_worker_without_a_named_ledger_is_refused(run, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("DPRELEASE_LEDGER")
    else:
        monkeypatch.setenv("DPRELEASE_LEDGER", value)
    with pytest.raises(InputError, match="DPRELEASE_LEDGER: is not set where the worker"):
        ledger_url()


def test_an_absolute_place_is_taken(run, folder, monkeypatch):
    for variable, value, read in NAMED[:5]:
        engine, _, path = value.rpartition(":///")
        monkeypatch.setenv(
            variable, f"{engine}:///{folder / path}" if engine else f"{folder / path}"
        )
        assert str(folder / path) in str(read())


def test_a_run_with_a_relative_ledger_or_out_charges_nothing(run, folder, monkeypatch):
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(folder)
    with pytest.raises(InputError, match="out: out is relative"):
        bare.release(plan, "r1", Path("out"))
    monkeypatch.setenv("DPRELEASE_LEDGER", "sqlite:///ledger.sqlite")
    with pytest.raises(InputError, match=r"DPRELEASE_LEDGER: ledger\.sqlite is relative"):
        bare.release(plan, "r1", folder / "out")
    assert not [*folder.rglob("*.sqlite")]
    assert not (folder / "out").exists()


def test_events_that_would_be_lost_are_missed_and_stop_nothing(run, monkeypatch, caplog, folder):
    monkeypatch.setenv("DPRELEASE_EVENTS", "events")
    record_event("run")
    assert "DPRELEASE_EVENTS: events is relative to the folder of this run" in caplog.text
    assert not [*folder.iterdir()]


def test_a_server_hands_its_runs_absolute_places(folder, monkeypatch):
    monkeypatch.setenv("DPRELEASE_LEDGER", "sqlite:///ledger.sqlite")
    for variable in NAMED_FILES:
        monkeypatch.setenv(variable, "file")
    given = environment(folder, Path("plans"), Path("out"), 4200)
    assert given["DPRELEASE_LEDGER"] == f"sqlite:///{folder}/ledger.sqlite"
    assert {given[variable] for variable in NAMED_FILES} == {f"{folder}/file"}
    assert (given["DPRELEASE_PLANS"], given["DPRELEASE_OUT"]) == (
        f"{folder}/plans",
        f"{folder}/out",
    )


@pytest.mark.parametrize("password", ["", "user:password"])
def test_a_server_that_every_user_of_the_machine_may_open_says_so(
    folder, monkeypatch, caplog, password
):
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", password)
    with caplog.at_level("INFO", "dprelease"):
        environment(folder, Path("plans"), Path("out"), 4200)
    assert ("no password: every user" in caplog.text) is (not password)


@pytest.mark.slow
def test_commands_use_the_folders_that_the_environment_names(folder, monkeypatch, capsys):
    named, asked = folder / "named", []
    (named / "plans").mkdir(parents=True)
    (folder / "plans").mkdir()
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(named / "plans")
    monkeypatch.setenv("DPRELEASE_PLANS", str(named / "plans"))
    monkeypatch.setenv("DPRELEASE_OUT", str(named / "out"))
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr(
        "flows.deployment.deploy.deploy", lambda *given: asked.append(given) or ([], [])
    )
    monkeypatch.setattr("flows.operation.lost.watch_over_runs", lambda: None)
    monkeypatch.setattr("flows.deployment.serve.serve", lambda *given, ready: asked.append(given))
    assert main(["deploy"]) == main(["serve"]) == 0
    assert [given[0] for given in asked] == [named / "plans"] * 2
    assert asked[1][1] == named / "out"
    bare.release(plan, "r1", published_folder())
    assert main(["ledger", "check"]) == 0
    assert "ledger, draws and bundles agree; no scheduled" in capsys.readouterr().out


@pytest.mark.parametrize("variable", ["DPRELEASE_PLANS", "DPRELEASE_OUT"])
def test_a_named_folder_that_is_missing_is_not_one_that_nobody_named(
    folder, monkeypatch, capsys, variable
):
    assert usual_plans() == {}
    assert main(["ledger", "grant", "survey", "--alpha", "1", "--who", "me", "--why", "it"]) == 0
    assert main(["ledger", "check"]) == 0
    monkeypatch.setenv(variable, "nowhere")
    capsys.readouterr()
    assert main(["ledger", "check"]) == 2
    assert "nowhere" in capsys.readouterr().err
