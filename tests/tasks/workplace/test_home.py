"""Where the ledger is: every command knows it by the same address."""

from pathlib import Path

import pytest

from dpcore.errors import DPReleaseError
from flows.cli import main
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_exists, ledger_file, ledger_url


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("engine", "place"), [("sqlite", "~/x.sqlite"), ("sqlite+pysqlite", "a%20b c.sqlite")]
)
def test_a_ledger_that_was_made_is_found_and_restored_at_its_address(
    tmp_path, monkeypatch, engine, place
):
    monkeypatch.setenv("DPRELEASE_LEDGER", f"{engine}:///{place.format(tmp_path)}")
    assert not ledger_exists()
    Ledger(ledger_url())
    assert ledger_exists()
    assert main(["ledger", "show"]) == 0
    assert main(["ledger", "backup", "copy"]) == 0
    ledger_file().unlink()
    assert main(["ledger", "restore", "copy"]) == 0
    assert main(["ledger", "show"]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".sqlite", ""}


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///:memory:", "sqlite://host/x"],
)
def test_what_is_no_address_of_a_file_is_refused_by_every_command_alike(url, monkeypatch, capsys):
    monkeypatch.setenv("DPRELEASE_LEDGER", url)
    with pytest.raises(DPReleaseError, match="the URL of an SQLite ledger is") as refused:
        Ledger(url)
    assert main(["ledger", "show"]) == refused.value.exit_code
    assert str(refused.value) in capsys.readouterr().err
    Path("copy").touch()
    assert main(["ledger", "restore", "copy"]) == 2
    assert "--ledger sqlite:///FILE" in capsys.readouterr().err


def test_a_folder_that_nobody_may_enter_is_not_one_without_a_ledger(tmp_path, monkeypatch, capsys):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("DPRELEASE_LEDGER", "sqlite:///closed/x.sqlite")
    monkeypatch.setattr(Path, "exists", refuse)
    assert main(["ledger", "show"]) == 1
    assert "cannot open or create the ledger" in capsys.readouterr().err
