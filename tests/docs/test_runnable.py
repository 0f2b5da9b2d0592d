"""Commands on the pages print what the pages show."""

import pytest

from tests.conftest import ROOT
from tests.docs.runnable import Command, commands, files

PAGES = [page for page in sorted((ROOT / "docs" / "pages").rglob("*.md")) if list(commands(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whole_pages_go_as_shown(page, tmp_path, own_home, put_database, monkeypatch):
    put_database(own_home / "prefect")
    monkeypatch.setenv("PREFECT_HOME", str(own_home / "prefect"))
    for name, text in files(page).items():
        (tmp_path / name).write_text(text)
    for command in commands(page):
        command.run(tmp_path)


def test_a_page_that_shows_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; exit 3  # exits with 3\ntwo\n```\n")
    (command,) = commands(page)
    with pytest.raises(AssertionError, match="one"):
        command.run(tmp_path)
    with pytest.raises(AssertionError):
        Command("echo one; exit 3", "one\n", False).run(tmp_path)
    Command("echo one; exit 3  # exits with 3", "one\n", False).run(tmp_path)
