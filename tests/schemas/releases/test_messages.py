"""An option that a message recommends is one that a plan may state."""

import ast
import re
from typing import get_args

import pytest

from docs.reference.mechanisms import options
from dpcore.errors import PlanError
from schemas.plan import load_plan
from schemas.releases import AnyRelease
from tests.conftest import ROOT, write_plan

SECTIONS = get_args(get_args(AnyRelease)[0])
OPTIONS = {
    option
    for section in SECTIONS
    for key in ("kind", "mechanism")
    for option in options(section, key)
}
RECOMMENDED = re.compile(r"(?:\buse(?: the mechanism)?|\bor) ([a-z]+(?:-[a-z]+)+)")


def messages() -> list[str]:
    """The texts of all errors that releases and their sections raise, without their values."""
    folders = ("dpcore/releases", "papers", "schemas/releases")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    raised = [n for f in files for n in ast.walk(ast.parse(f.read_text())) if type(n) is ast.Raise]
    return ["".join(_texts(node)) for node in raised]


def _texts(node: ast.Raise) -> list[str]:
    found = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return [value for value in found if isinstance(value, str)]


@pytest.mark.slow
def test_mechanisms_that_messages_recommend_exist():
    named = {option for text in messages() for option in RECOMMENDED.findall(text)}
    assert {"discrete-laplace", "binned-laplace", "thresholded-laplace"} <= named <= OPTIONS


def test_a_table_for_too_many_rows_names_the_mechanism_that_serves(tmp_path, plan_document):
    count = next(s for s in plan_document["releases"] if s["kind"] == "count")
    count.pop("prior")
    plan_document["rows"] = 300
    plan_document["releases"], plan_document["synthesis"] = [count], []
    plan_document["budget"]["requested"]["beta"] = "0"
    path = write_plan(tmp_path, plan_document)
    with pytest.raises(PlanError, match=r"mechanism: .* not 300; use discrete-laplace"):
        load_plan(path, {"releases.0.mechanism": "minimax-table"})
    load_plan(path, {"releases.0.mechanism": "discrete-laplace"})
