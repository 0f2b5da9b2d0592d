"""Where the ledger is: every command knows it by the same address."""

import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpcore.errors import DPReleaseError, InputError
from flows.cli import main
from tasks.ledger import Ledger
from tasks.workplace.home import (
    home,
    ledger_exists,
    ledger_file,
    ledger_url,
    one_at_a_time,
    private_workspace,
)


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


def test_what_only_reads_works_on_a_disk_that_is_read_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DPRELEASE_HOME", str(tmp_path / "home"))
    Ledger(ledger_url())
    (home() / "locks").mkdir(mode=0o700)

    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    assert main(["ledger", "show"]) == 0
    lock = re.escape(str(tmp_path / "home/locks/survey.dataset"))
    with (
        pytest.raises(InputError, match=rf"{lock} cannot be written \(Read-only file system\)"),
        one_at_a_time("survey"),
    ):
        pass


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_nobody(action: Callable[[], object]) -> str:
    """What an action gives, or its error says, in a process of another user of this machine."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            said = str(action())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode()[:60_000])
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, encoding="utf-8") as answer:
        return answer.read()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only a superuser can be two users")
def test_another_user_of_the_machine_gets_into_no_home_and_no_ledger(open_folder, monkeypatch):
    place = open_folder / "home"
    monkeypatch.setenv("DPRELEASE_HOME", str(place))
    before = os.umask(0)  # a careless one
    try:
        with private_workspace("survey", "r1") as workspace:
            (workspace / "survey.duckdb").write_text("private")
            Ledger(ledger_url())
            assert as_nobody(lambda: (workspace / "survey.duckdb").read_text()).startswith(
                "PermissionError"
            )
            for file in ("ledger.sqlite", "private"):
                assert as_nobody(lambda f=file: os.stat(place / f)).startswith("PermissionError")
    finally:
        os.umask(before)
    assert "Permission denied" in as_nobody(lambda: Ledger(ledger_url()).datasets())
    said = as_nobody(lambda: one_at_a_time("survey").__enter__())
    assert said.startswith("InputError")
    assert said.endswith("(Permission denied); name another folder in DPRELEASE_HOME")
    assert as_nobody(os.getuid) == "65534"
