"""The house has no circles, and the tests mirror it."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("dpcore", "schemas", "tasks", "flows", "dprelease", "papers", "benchmarks")


def modules(root: Path) -> dict[str, Path]:
    """The file of every module, by its dotted name; a package's is its ``__init__``."""
    files = (file for package in PACKAGES for file in sorted((root / package).rglob("*.py")))
    return {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for file in files
    }


def imported(name: str, file: Path, known: dict[str, Path]) -> Iterator[str]:
    """The files that a module imports from, at its top, in its functions and for its types.

    ``from a import b`` reads a's ``__init__`` only where b is no module of its own.
    """
    package = name.split(".") if file.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            inner = [f"{source}.{alias.name}" for alias in node.names]
            yield from (name if name in known else source for name in inner)


def circle(root: Path) -> list[str]:
    """The modules of one circle of imports, the first one again at the end; empty without one."""
    known = modules(root)
    graph = {
        name: sorted(found for found in imported(name, file, known) if found in known)
        for name, file in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]  # each imports the next
    return []


def singular(name: str) -> str:
    """The name with each of its words in the singular."""
    return re.sub(r"s(?=[A-Z]|$)", "", name)


def test_every_class_has_a_name_of_its_own_even_in_the_plural():
    product = (file for name, file in modules(ROOT).items() if not name.startswith("benchmarks"))
    trees = [ast.parse(file.read_text()) for file in product if "test_" not in file.name]
    names = [n.name for tree in trees for n in tree.body if isinstance(n, ast.ClassDef)]
    assert len(names) > 400
    alike = Counter(map(singular, names))
    assert [name for name in names if alike[singular(name)] > 1] == []


def asked_for(root: Path) -> list[str]:
    """The places where a file outside ``dpcore.releases`` asks for a kind of release by its class.

    A new kind has no part in what follows such a question.  It has one if the question is for an ability
    (``dpcore.releases.abilities``), or if a function is registered for each kind.
    """
    trees = {
        name: ast.parse(file.read_text())
        for name, file in modules(root).items()
        if not name.startswith("benchmarks") and "test_" not in file.name
    }
    within = [name for name in trees if name.startswith("dpcore.releases.")]
    classes = {
        node.name: (name, {getattr(b, "id", "") for base in node.bases for b in ast.walk(base)})
        for name in within
        for node in trees[name].body
        if isinstance(node, ast.ClassDef)
    }
    kinds = {"Release"}
    while more := {name for name, (_, bases) in classes.items() if bases & kinds} - kinds:
        kinds |= more
    kinds -= {name for name, (of, _) in classes.items() if of == "dpcore.releases.abilities"}
    return [
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        if name not in within
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"
        if kinds & {getattr(each, "id", "") for each in ast.walk(node.args[1])}
    ]


def test_hardly_any_room_asks_for_a_kind_of_release():
    found = asked_for(ROOT)
    assert len(found) <= 4, found


def test_a_question_for_a_kind_is_found(tmp_path: Path):
    kinds, abilities = tmp_path / "dpcore" / "releases", "class Able(Release): pass\n"
    kinds.mkdir(parents=True)
    (kinds / "abilities.py").write_text(abilities)
    (kinds / "first.py").write_text("class First(Able): pass\nclass Second(First): pass\n")
    (tmp_path / "tasks").mkdir()
    room = tmp_path / "tasks" / "room.py"
    room.write_text("isinstance(release, Able)\n\nisinstance(release, Second | str)\n")
    assert asked_for(tmp_path) == ["tasks.room:3"]


@pytest.mark.slow
def test_no_file_imports_itself_through_others():
    found = circle(ROOT)
    assert not found, " imports ".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "import dpcore.first\n",
        "def late():\n    from dpcore import first\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpcore.first import name\n",
        "from . import first\n",
        "from dpcore import name\n",
    ],
    ids=["at the top", "in a function", "for a type", "relative", "of names of the package"],
)
def test_a_circle_is_found(tmp_path: Path, text: str):
    house = tmp_path / "dpcore"
    house.mkdir()
    (house / "__init__.py").write_text("from dpcore.first import name\n")
    (house / "first.py").write_text("from dpcore.second import other\n\nname = other\n")
    (house / "second.py").write_text("other = 1\n")
    assert not circle(tmp_path)
    (house / "second.py").write_text(text)
    assert {"dpcore.first", "dpcore.second"} <= set(circle(tmp_path))


def test_the_tests_mirror_the_code_folder_by_folder():
    folders = {
        file.parent.relative_to(ROOT / "tests")
        for package in ("dpcore", "schemas", "tasks", "flows", "dprelease")
        for file in (ROOT / "tests" / package).rglob("test_*.py")
    }
    assert len(folders) > 20
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []
