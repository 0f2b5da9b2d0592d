"""README lists every kind and room; every path, name and link in README and the pages exists."""

import re
from importlib import import_module, util
from pathlib import Path
from typing import get_args

import pytest
from markdown.extensions.toc import slugify

from docs.reference.mechanisms import offers
from tests.conftest import ROOT

README = ROOT / "README.md"
FRONT = [README, ROOT / "CHANGELOG.md"]
TEXTS = [
    *FRONT,
    ROOT / "docs" / "METHODS.md",
    *sorted((ROOT / "docs" / "pages").rglob("*.md")),
    *sorted((ROOT / "docs" / "pages").rglob("*.ipynb")),
]
FOLDERS = "dpcore|tasks|schemas|flows|tests|benchmarks|deployments|docs"
PATH = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w*/.-]*[\w*/]")
NAME = re.compile(r"(?<![\w./-])(?:dpcore|tasks|schemas|flows|benchmarks)(?:\.\w+)+(?::\w+)?")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, *attributes = re.split(r"[.:]", name)
    thing = import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        if hasattr(thing, "__path__") and util.find_spec(module):
            thing = import_module(module)
        elif hasattr(thing, attribute):
            thing = getattr(thing, attribute)
        else:
            return False
    return True


def spent(section: type, mechanism: str) -> str:
    """What a mechanism spends, as README's table writes it."""
    stated = section.model_construct(mechanism=mechanism, bandwidth=1.0)
    more = {"beta": stated.spends_beta("basic"), "gamma": stated.spends_gamma}
    return ", ".join(["alpha", *(name for name, spends in more.items() if spends)])


def promised() -> dict[tuple[str, str], str]:
    """The guarantee that README's table states, by kind and mechanism."""
    rows = re.findall(r"^\| `([\w-]+)` \| (`.+?) \| (alpha.*?) \| ", README.read_text(), re.M)
    return {
        (kind, mechanism): guarantee
        for kind, mechanisms, guarantees in rows
        for group, guarantee in zip(mechanisms.split("; "), guarantees.split("; "), strict=True)
        for mechanism in re.findall(r"`([\w-]+)`", group)
    }


def test_readme_states_every_kind_and_mechanism_with_its_guarantee():
    offered = {
        (get_args(section.model_fields["kind"].annotation)[0], mechanism): spent(section, mechanism)
        for section, mechanism in offers()
    }
    assert promised() == offered


def test_readme_names_every_room():
    house = README.read_text().partition("## The house")[2]
    for layer in ("tasks", "dpcore"):
        rooms = {path.parent.name for path in (ROOT / layer).glob("*/__init__.py")}
        (row,) = re.findall(rf"^\| \[`{layer}/`\].*", house, re.M)
        assert rooms == set(re.findall(r"`(\w+)/`", row)) - {layer}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_path_and_name_exists(text):
    written = text.read_text()
    for path in set(PATH.findall(written)):
        assert list(ROOT.glob(path)), path
    for name in set(NAME.findall(written)):
        assert exists(name), name


@pytest.mark.parametrize("text", FRONT, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_a_heading(text):
    for target, anchor in LINK.findall(text.read_text()):
        page = ROOT / target
        assert page.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)", Path(page).read_text(), re.M)
            assert anchor in {slugify(heading, "-") for heading in headings}, anchor


@pytest.mark.parametrize(
    "name", ["tasks.nowhere", "dpcore.budget.Budgets", "flows.release:releases", "dpcore.a.b"]
)
def test_a_name_that_is_gone_is_noticed(name):
    assert not exists(name)
    assert exists("flows.release:release")
