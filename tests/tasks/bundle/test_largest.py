"""At the largest alpha noise is too small for a float, and every kind is still published."""

from pathlib import Path

import pytest

from schemas.plan import load_plan
from tests.conftest import plan_of_every_kind, write_plan
from tests.tasks.made_up import publish_made_up

PEOPLE = {
    "name": "records",
    "kind": "microdata-margins",
    "columns": ["sex", "region", "children", "income"],
    "bins": {"income": 5},
}
RARE = "rare"
SPENDS_BETA = ("pairs", "ages", "rich", "rarer", "path", "pay")
KINDS = [PEOPLE | {"mechanism": "discrete-laplace"}, *plan_of_every_kind()["releases"]]


@pytest.mark.parametrize("columns", [PEOPLE["columns"], ["sex", "region"]])
@pytest.mark.parametrize("mechanism", ["discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_records_are_drawn(tmp_path, columns, mechanism, neighbours):
    bins = {"income": 5} if "income" in columns else {}
    release = PEOPLE | {"columns": columns, "bins": bins, "mechanism": mechanism}
    published(tmp_path, release, neighbours)


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(each, id=each["name"], marks=[pytest.mark.slow] * (each["name"] != RARE))
        for each in KINDS
    ],
)
def test_every_kind_is_published(tmp_path, release):
    published(tmp_path, release, "add-remove")


def published(folder: Path, release: dict, neighbours: str) -> None:
    """Publish made-up counts of it; with a beta if its mechanism spends one."""
    mechanism = release.get("mechanism", "")
    beta = "1e-6" if release["name"] in SPENDS_BETA or mechanism == "discrete-gaussian" else "0"
    amount = {"alpha": "1000", "beta": beta, "gamma": "0"}
    document = plan_of_every_kind() | {
        "neighbours": neighbours,
        "budget": {"granted": amount, "requested": amount},
        "releases": [release],
        "synthesis": [],
    }
    publish_made_up(load_plan(write_plan(folder, document)), "r1", folder / "out")
