"""The image and the compose file: their words are known, secrets reach the programs, and the image is
built where there is an engine."""

import json
import os
import re
import shlex
import shutil
import subprocess

import pytest
import yaml
from sqlalchemy import make_url

from dpcore.accounting.budget import Budget
from dpcore.errors import LedgerError
from flows.cli import command_line, main
from flows.operation import gate, pages
from flows.operation.lost import POOL
from tasks.ledger import Charge, ChargeRequest, Ledger
from tests.conftest import ROOT
from tests.tasks.ledger.test_postgresql import shared_server

FOLDER = ROOT / "deployments"


def composed() -> dict:
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def commands() -> dict[str, list[str]]:
    services = composed()["services"]
    return {
        name: shlex.split(service["command"])
        for name, service in services.items()
        if "command" in service
    }


def test_every_prefect_setting_is_one_that_prefect_knows():
    from prefect.settings.legacy import _get_valid_setting_names
    from prefect.settings.models.root import Settings

    text = (FOLDER / "compose.yaml").read_text() + (FOLDER / "Dockerfile").read_text()
    used = {name.removesuffix("_FILE") for name in re.findall(r"PREFECT_[A-Z0-9_]+", text)}
    assert len(used) > 8
    assert used <= _get_valid_setting_names(Settings)


def test_what_it_runs_of_dprelease_is_a_command():
    for service, option in (("deployments", "runs_at_once"), ("ledger", "apply")):
        command, *arguments = commands()[service]
        assert command == "dprelease"
        _, bound, _ = command_line().parse_args(arguments, exit_on_error=False, print_error=False)
        assert bound.arguments[option]


def test_only_who_makes_the_ledger_and_who_grants_have_their_logins():
    services = composed()["services"]
    logins = {
        name: (environment["DPRELEASE_LEDGER"], environment["PGPASSWORD_FILE"])
        for name, service in services.items()
        if "DPRELEASE_LEDGER" in (environment := service.get("environment", {}))
    }
    publisher = ("postgresql://publisher@database/ledger", "/run/secrets/publisher")
    assert logins == {
        "deployments": publisher,
        "worker": publisher,
        "server": (publisher[0], "/run/secrets/publisher"),
        "ledger": ("postgresql://ledger@database/ledger", "/run/secrets/ledger"),
        "officer": ("postgresql://officer@database/ledger", "/run/secrets/officer"),
    }
    for name, service in services.items():
        if name != "database":
            assert {"ledger", "officer"} & set(service.get("secrets", ())) <= {name}
    assert "officer" in services["officer"]["profiles"]


@pytest.mark.slow
def test_the_roles_that_it_makes_are_those_that_the_ledger_knows():
    """The SQL of the compose file, then what the service `ledger` runs."""
    psycopg = pytest.importorskip("psycopg")
    server = shared_server()
    sql = composed()["configs"]["roles"]["content"].partition("<<'SQL'\n")[2].partition("SQL")[0]
    for name in ("prefect", "publisher", "officer"):
        sql = sql.replace(f":'{name}'", f"'{name}-word'")
    server.administer("CREATE DATABASE ledger")
    with psycopg.connect(server.url("ledger"), autocommit=True) as connection:
        for statement in filter(str.strip, sql.split(";")):
            try:
                connection.execute(statement)
            except psycopg.errors.DuplicateObject:  # other tests share this server and its roles
                assert "CREATE ROLE dprelease_" in statement
    assert main(["ledger", "roles", "--apply", "--ledger", server.url("ledger")]) == 0

    def login(name: str) -> str:
        return str(
            make_url(server.url("ledger"))
            .set(username=name, password=f"{name}-word")
            .render_as_string(hide_password=False)
        )

    granted = ("visits", Budget.of(20), "the board", "a year")
    with pytest.raises(LedgerError, match="lacks a right"):
        Ledger(login("publisher")).grant(*granted)
    Ledger(login("officer")).grant(*granted)
    request = ChargeRequest("visits", "r", "p", {"a": Charge(Budget.of(1))})
    Ledger(login("publisher")).reserve(request, sources=["visits.parquet"])
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger(login("prefect"))


def test_the_worker_works_for_the_pool_that_is_deployed_to():
    assert f"--pool {POOL} --type process" in " ".join(commands()["worker"])


def test_what_services_name_is_there():
    document = composed()
    services = document["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert set(service.get("secrets", ())) <= set(document["secrets"])
        for needed, when in service.get("depends_on", {}).items():
            assert when["condition"] != "service_healthy" or "healthcheck" in services[needed]
        for name, value in service.get("environment", {}).items():
            if name.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in service["secrets"]
            assert "PASSWORD:?" not in str(value), "no password in the environment"
    for secret in document["secrets"].values():
        assert set(secret) == {"file"}


def test_secrets_come_from_files_as_they_are(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("p@ss:wo/rd % $HOME 'x' \"y\"\n")
    found = subprocess.run(
        [FOLDER / "entrypoint.sh", "sh", "-c", 'printf %s "$PGPASSWORD"; umask'],
        env={"PATH": os.environ["PATH"], "PGPASSWORD_FILE": str(secret), "UMASK": "077"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found == "p@ss:wo/rd % $HOME 'x' \"y\"0077\n"


@pytest.mark.parametrize("key", ["plain", """a "quoted" \\ 'key' %s $HOME"""])
def test_all_but_the_server_show_the_agencys_key_in_requests(tmp_path, key):
    secret = tmp_path / "secret"
    secret.write_text(key + "\n")
    found = subprocess.run(
        [FOLDER / "entrypoint.sh", "sh", "-c", f'printf %s "${gate.HEADERS}"'],
        env={"PATH": os.environ["PATH"], f"{gate.KEY}_FILE": str(secret)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(found) == {gate.NAME: key}


def test_a_secret_that_cannot_be_read_stops_the_start(tmp_path):
    run = subprocess.run(
        [FOLDER / "entrypoint.sh", "echo", "started"],
        env={"PATH": os.environ["PATH"], "PGPASSWORD_FILE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "started" not in run.stdout


def test_what_the_image_copies_is_let_through():
    let = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    assert {"build/requirements.txt", "pyproject.toml", "deployments/entrypoint.sh"} <= let
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {
        "tests",
        "benchmarks",
    } <= let
    assert all((ROOT / name).exists() for name in let - {"build/requirements.txt"})


@pytest.mark.slow
def test_the_image_is_built_and_runs():
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        pytest.skip("no container engine runs here")
    subprocess.run(["make", "image"], cwd=ROOT, check=True)
    ask = [docker, "run", "--rm", "dprelease"]
    assert "dprelease" in subprocess.check_output([*ask, "dprelease", "--help"], text=True)
    assert subprocess.check_output([*ask, "id", "-u"], text=True).strip() == "10001"
    subprocess.run([*ask, "sh", "-c", "touch /private/x /published/x"], check=True)


def test_a_server_in_the_image_is_one_whose_pages_ask_nobody(tmp_path):
    command = commands()["server"]
    assert command[:2] == ["prefect", "server"]
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    said = subprocess.check_output(
        [FOLDER / "entrypoint.sh", *command],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        text=True,
    )
    assert said.split() == ["-m", pages.__name__, *command[2:]]
