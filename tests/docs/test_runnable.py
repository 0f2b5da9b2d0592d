"""Commands on the pages print what the pages show."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.runnable import Command, commands, files

PAGES = [page for page in sorted((ROOT / "docs" / "pages").rglob("*.md")) if list(commands(page))]


def run(page: Path, folder: Path, chosen: list[Command]) -> None:
    for name, text in files(page).items():
        (folder / name).write_text(text)
    for command in chosen:
        command.run(folder)


def test_quick_sessions_of_the_tutorial_go_as_shown(tmp_path):
    (page,) = (page for page in PAGES if page.stem == "tutorial")
    run(page, tmp_path, [command for command in commands(page) if not command.slow])


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whole_pages_go_as_shown(page, tmp_path):
    run(page, tmp_path, list(commands(page)))


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; exit 3  # exits with 3\ntwo\n```\n")
    (command,) = commands(page)
    with pytest.raises(AssertionError, match="one"):
        command.run(tmp_path)
    with pytest.raises(AssertionError):
        Command("echo one; exit 3", "one\n", False).run(tmp_path)
    Command("echo one; exit 3  # exits with 3", "one\n", False).run(tmp_path)
