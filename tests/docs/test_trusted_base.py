"""The trusted base is closed: what its files import is listed, or left out for a stated reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reference import PAGES
from docs.reference.trusted_base import PARTS, REVIEWED, ROOT, UNREAD, trusted

PAGE = PAGES["explanation/trusted-base.md"]()
EXPLAINED = ROOT / "docs" / "pages" / "explanation"


def imported(path: Path) -> Iterator[Path]:
    """The files of this project that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            place = ROOT / name.replace(".", "/")
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file() and file.stat().st_size:
                    yield file


@pytest.mark.slow
def test_what_a_trusted_file_imports_is_listed():
    needed = {file for path in trusted() for file in imported(path)} - set(trusted())
    left_out = {pattern: set(ROOT.glob(pattern)) for pattern in UNREAD}
    assert needed <= set().union(*left_out.values())
    assert all(needed & files for files in left_out.values()), "is imported by none of them"


@pytest.mark.slow
def test_every_file_is_in_one_part_with_its_lines_and_opens_with_what_it_is():
    assert len(trusted()) == len(set(trusted()))
    for part in PARTS:
        for pattern in part.files:
            assert list(ROOT.glob(pattern)), pattern
        section = PAGE.partition(f"\n## {part.title}\n")[2].partition("\n## ")[0]
        for path in part.paths():
            folder = path.parent.relative_to(ROOT).as_posix()
            files = re.search(rf"^\| `{folder}` \| [\d,]+ \| `(.+)` \|$", section, flags=re.M)
            assert files, folder
            assert path.stem in files[1].split()
            assert ast.get_docstring(ast.parse(path.read_text())), path


def test_nothing_before_the_line_is_missing():
    names = {path.relative_to(ROOT).as_posix() for path in trusted()}
    for folder in ("mechanisms", "sampling", "accounting", "releases", "machines"):
        files = (ROOT / "dpcore" / folder).rglob("*.py")
        assert {p.relative_to(ROOT).as_posix() for p in files if p.stat().st_size} <= names
    assert {"dpcore/line/privacy_line.py", "tasks/survey/bounding.py", "tasks/draw.py"} <= names


def test_until_somebody_outside_has_reviewed_it_every_page_says_so():
    texts = [PAGE, PAGES["reference/mechanisms.md"]()]
    texts += [(EXPLAINED / f"{name}.md").read_text() for name in ("composition", "stability-map")]
    for text in texts:
        assert REVIEWED.rstrip(".") in text


def test_every_step_of_the_stability_map_names_its_code_and_a_test():
    """That the files exist is tested with all other paths."""
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (.+) \|$", (EXPLAINED / "stability-map.md").read_text(), re.M
    )
    assert len(rows) > 12
    for step, _, held in rows[1:]:
        assert "`tests/" in held, step
        assert re.search(r"`(dpcore|tasks)/", step), step
    steps = " ".join(step for step, *_ in rows)
    for file in ("ingest", "sql", "validate", "bounding", "cells", "tally"):
        assert f"tasks/survey/{file}.py" in steps
