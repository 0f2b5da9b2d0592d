"""The structure names every room; every path, name and link in README and the pages exists."""

import re
from importlib import import_module, util
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from docs.reference.mechanisms import offers, options
from schemas.plan import Plan
from tests.conftest import ROOT, plan_of_every_kind

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
FRONT = [README, CONTRIBUTING, ROOT / "CHANGELOG.md"]
TEXTS = [
    *FRONT,
    *sorted((ROOT / "docs" / "decisions").glob("*.md")),
    *sorted((ROOT / "docs" / "pages").rglob("*.md")),
    *sorted((ROOT / "papers").rglob("*.md")),
    *sorted((ROOT / "docs" / "pages").rglob("*.ipynb")),
]
FOLDERS = "dpcore|papers|tasks|schemas|flows|tests|benchmarks|deployments|docs"
PATH = re.compile(rf"(?<![\w./-])(?:{FOLDERS})/[\w*/.-]*[\w*/]")
NAME = re.compile(
    r"(?<![\w./-])(?:dpcore|papers|tasks|schemas|flows|benchmarks)(?:\.\w+)+(?::\w+)?"
)
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


def test_the_structure_names_every_room():
    house = CONTRIBUTING.read_text().partition("## The house")[2]
    for layer in ("flows", "tasks", "schemas", "dpcore"):
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


def test_the_readme_names_every_page_that_only_the_site_has():
    pages, readme = ROOT / "docs" / "pages", README.read_text()
    for text in sorted(pages.rglob("*.md")):
        for target, _ in LINK.findall(text.read_text()):
            page = (text.parent / target).resolve()
            if not page.exists():
                name = page.relative_to(pages)
                assert f"`{name}`" in readme or f"`{name.parent}/`" in readme, f"{text}: {target}"


@pytest.mark.parametrize(
    "name",
    ["tasks.nowhere", "dpcore.accounting.budget.Budgets", "flows.release:releases", "dpcore.a.b"],
)
def test_a_name_that_is_gone_is_noticed(name):
    assert not exists(name)
    assert exists("flows.release:release")


SPAN = re.compile(r"`([a-z]+(?:-[a-z0-9]+)+)`")
"""Hyphenated words in code: kinds, mechanisms and values of keys."""

OTHERS = re.compile(
    r"lint-imports|curves-\d+|approval-preview|income-\d+-\d+|ad-hoc-release"
    r"|cost-and-accuracy|audit-a-plan|change-on-year"
)
"""Words of programs, of Prefect artifacts and deployments, and of published tables."""


def words_of(schema: object) -> set[str]:
    """Every key, and every value that a key is limited to."""
    if isinstance(schema, list):
        return set().union(*map(words_of, schema))
    if not isinstance(schema, dict):
        return set()
    found = {str(value) for value in schema.get("enum", [])} | {str(schema.get("const", ""))}
    found |= set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
    return found.union(*map(words_of, schema.values()))


def test_every_mechanism_and_kind_that_a_page_names_exists():
    known = words_of(Plan.model_json_schema())
    for path in (README, *(ROOT / "docs" / "pages").rglob("*.md")):
        for word in SPAN.findall(path.read_text()):
            assert word in known or OTHERS.fullmatch(word), f"{path.name}: {word}"


def test_the_page_of_a_kind_names_the_mechanisms_that_a_plan_may_choose():
    """All of them in the first column of its table of mechanisms, or in its text."""
    offered: dict[str, set[str]] = {}
    for section, mechanism in offers():
        (kind,) = options(section, "kind")
        offered.setdefault(kind, set()).add(mechanism)
    pages = [*(ROOT / "docs/pages/kinds").glob("*.md"), *(ROOT / "papers").glob("*/*.md")]
    tables = 0
    for page in pages:
        text, several = page.read_text(), offered[page.stem]
        for table in re.findall(r"^\| `mechanism` \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M):
            first = " ".join(row.split("|")[1] for row in table.splitlines())
            assert set(SPAN.findall(first)) == several, page.name
            tables += 1
        assert several <= set(SPAN.findall(text)) or len(several) == 1, page.name
    assert tables >= 5


def test_the_self_assessment_names_the_mechanisms_of_classifiers():
    page = (ROOT / "docs" / "pages" / "explanation" / "nist-800-226.md").read_text()
    (row,) = re.findall(r"^\| Machine learning\? \| (.*?) \|", page, re.M)
    offered = {
        mechanism for section, mechanism in offers() if options(section, "kind") == ("classifier",)
    }
    assert set(SPAN.findall(row)) == offered


@pytest.mark.parametrize("bandwidth", [0.05, 0.1, 0.15, 0.3])
def test_the_mechanism_of_least_error_is_the_one_that_the_page_names(bandwidth):
    """Of the pure ones, for one column: binned-laplace below 0.15, coefficient-laplace from there."""
    error = {}
    for mechanism in ("binned-laplace", "spectral-gamma", "coefficient-laplace", "difference-body"):
        form = {"name": "d", "kind": "density", "columns": ["x"], "bandwidth": bandwidth}
        column = {"type": "continuous", "bounds": [0, 1]}
        document = plan_of_every_kind() | {"columns": {"x": column}, "synthesis": []}
        document["releases"] = [form | {"mechanism": mechanism}]
        document["budget"]["requested"] = {"alpha": "1"}
        try:
            error[mechanism] = Plan.model_validate(document).built["d"].expected_error()[-1].value
        except ValueError:
            continue  # more coefficients than it takes
    assert min(error, key=error.get) == (
        "binned-laplace" if bandwidth < 0.15 else "coefficient-laplace"
    )
