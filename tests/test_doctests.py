"""Every example in a docstring gives what it shows."""

import doctest
from importlib import import_module
from types import ModuleType

import pytest

from tests.conftest import ROOT

HOUSE = ("dpcore", "schemas", "tasks", "flows", "papers", "docs", "benchmarks")
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in HOUSE
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str):
    result = doctest.testmod(import_module(name))
    assert result.attempted
    assert not result.failed


def test_an_example_that_is_wrong_fails():
    wrong = ModuleType("wrong", ">>> 1 + 1\n3\n")
    assert doctest.testmod(wrong).failed == 1
