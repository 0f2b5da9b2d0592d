"""What can be said of the compose file without a container engine: its words are known."""

import re
import shlex

import yaml

from flows.cli import command_line
from flows.serve import POOL
from tests.conftest import ROOT

FOLDER = ROOT / "deployments"


def commands() -> dict[str, list[str]]:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return {
        name: shlex.split(service["command"])
        for name, service in services.items()
        if "command" in service
    }


def test_every_prefect_setting_is_one_that_prefect_knows():
    from prefect.settings.legacy import _get_valid_setting_names
    from prefect.settings.models.root import Settings

    text = (FOLDER / "compose.yaml").read_text() + (FOLDER / "Dockerfile").read_text()
    used = set(re.findall(r"PREFECT_[A-Z0-9_]+", text)) - {"PREFECT_LOGIN"}
    assert len(used) > 8
    assert used <= _get_valid_setting_names(Settings)


def test_what_it_runs_of_dprelease_is_a_command():
    command, *arguments = commands()["deployments"]
    assert command == "dprelease"
    _, bound, _ = command_line().parse_args(arguments, exit_on_error=False, print_error=False)
    assert bound.arguments["runs_at_once"] == 2


def test_the_worker_works_for_the_pool_that_is_deployed_to():
    assert f"--pool {POOL} --type process" in " ".join(commands()["worker"])
