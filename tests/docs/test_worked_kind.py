"""A kind of another package works like one of our own, and is held to the same contract."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from docs.worked_kind import shortest_half
from docs.worked_kind.shortest_half import ShortestHalf
from dpcore.domain.domain import Domain
from tests.conftest import ROOT
from tests.dpcore.releases import test_contract as contract
from tests.dpcore.releases import test_contract_noise as noise
from tests.dpcore.releases.contract import PURE, Case, grid
from tests.flows.served import BRIEFLY

CASE = Case(
    ShortestHalf("s", Domain((grid("x", 5),)), 4, PURE),
    near=(0, 0, 4, 4),
    far=(0, 4, 4, 4),
    fault=4,
)
PLAN = """\
dprelease: 1
dataset: people
source: people.csv
rows: 400
privacy_unit: row
neighbours: replace-one
budget: {granted: {alpha: "1"}, requested: {alpha: "1"}}
columns: {income: {type: integer, bounds: [0, 99]}}
releases: [{name: spread, kind: shortest-half, column: income}]
publication: {title: Incomes}
"""


@pytest.mark.parametrize(
    "claim",
    [
        contract.require_stated_sensitivity,
        contract.require_stated_privacy,
        contract.test_what_is_drawn_can_be_afforded_exactly_up_to_the_share,
        noise.test_choices_have_the_stated_scale_and_neither_two_thirds_nor_three_halves_of_it,
    ],
)
def test_the_worked_kind_fulfils_the_contract(claim):
    claim(CASE)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a plan, its survey and an installed package that names the worked kind."""
    (tmp_path / "people.yaml").write_text(PLAN)
    pd.DataFrame({"income": list(range(100)) * 4}).to_csv(tmp_path / "people.csv", index=False)
    installed = tmp_path / "site" / "shortest_half-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: shortest-half\nVersion: 1.0\n"
    )
    name_module(installed, shortest_half.__name__)
    return tmp_path


def name_module(installed: Path, module: str) -> None:
    (installed / "entry_points.txt").write_text(f"[dprelease.kinds]\nshortest-half = {module}\n")


COMMAND = "from flows.cli import console; console()"
RELEASE = """
import dprelease

dprelease.release("people.yaml", release_id="r", out="out", ledger="sqlite:///l.sqlite")
from flows.cli import main

assert main(["verify", "out/people/r"]) == 0
"""
"""From Python, as nothing here concerns Prefect, whose first start takes longer than the release."""


def dprelease(
    folder: Path, *arguments: str, site: bool = True, program: str = COMMAND
) -> subprocess.CompletedProcess[str]:
    """A command of dprelease, or a program, with the package on the path or without it."""
    code = f"import sys; sys.path[:0] = sys.argv.pop(1).split(); {program.strip()}"
    path = f"{ROOT} {folder / 'site'}" if site else str(ROOT)
    return subprocess.run(
        [sys.executable, "-c", code, path, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": BRIEFLY},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_plan_with_a_kind_of_another_package_is_audited_and_published(package: Path):
    run = dprelease(package, program=RELEASE)
    assert run.returncode == 0, run.stderr
    bundle = package / "out" / "people" / "r"
    width = pd.read_parquet(bundle / "tables" / "spread.parquet").width.item()
    assert (
        10 < width < 90
    )  # half of 400 even records need 50; at most 32 are missed, nine in ten times
    page = (bundle / "report.html").read_text()
    assert f"holds half of the records: {width:.6g}." in page
    assert "With probability 90% the fullest interval" in page


@pytest.mark.slow
def test_without_the_package_its_plan_is_refused_with_the_kinds_that_there_are(package: Path):
    run = dprelease(package, "explain", "people.yaml", site=False)
    assert run.returncode != 0
    assert "shortest-half" in run.stderr
    assert "'histogram'" in run.stderr
    assert "If another package brings it, install that package" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_package_that_cannot_be_loaded_is_named(package: Path):
    name_module(package / "site" / "shortest_half-1.0.dist-info", "nowhere.at_all")
    run = dprelease(package, "explain", "people.yaml")
    assert run.returncode != 0
    assert "the kind 'shortest-half' (nowhere.at_all) cannot be loaded" in run.stderr
    assert "Traceback" not in run.stderr


NUMBER = """
import schemas.plan
from docs.worked_kind.shortest_half import ShortestHalf

ShortestHalf.chart = "number"
"""


@pytest.mark.slow
def test_a_number_without_an_interval_is_published_all_the_same(package: Path):
    run = dprelease(package, program=NUMBER + RELEASE)
    assert run.returncode == 0, run.stderr
    page = (package / "out" / "people" / "r" / "report.html").read_text()
    assert "holds half of the records: " in page


@pytest.mark.slow
def test_a_bundle_of_a_removed_package_names_the_package_as_a_cause(package: Path):
    assert dprelease(package, program=RELEASE).returncode == 0
    run = dprelease(package, "verify", "out/people/r", site=False)
    assert run.returncode == 6
    assert "a package that brings one of its kinds is not installed" in run.stderr
