"""A ledger that has forgotten draws is refused by its witness; backups are whole while others write."""

import errno
import os
import shutil
import subprocess
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import yaml

from dpcore.accounting.budget import Budget
from dpcore.errors import DPReleaseError, InputError, LedgerError, LostLedgerError
from dpcore.line.statistic import Noisy
from flows.cli import main
from tasks.budget import checkpoint
from tasks.budget.checkpoint import (
    add_to_checkpoint,
    lost_draws,
    require_checkpoint,
    write_checkpoint,
)
from tasks.ledger import Charge, ChargeRequest, Ledger
from tasks.workplace.home import ledger_url
from tests import bare


@pytest.fixture
def ledger(tmp_path, monkeypatch) -> Ledger:
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    ledger = Ledger(ledger_url())
    ledger.grant("wages", Budget.of(100), "A. Officer", "test")
    return ledger


@pytest.fixture
def witness(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRELEASE_CHECKPOINT", str(tmp_path / "witness"))
    return tmp_path / "witness"


def draw(ledger: Ledger, release_id: str) -> None:
    ledger.reserve(ChargeRequest("wages", release_id, "plan", {"a": Charge(Budget.of("1/100"))}))
    ledger.commit("wages", release_id, "a", Noisy(np.array([1, 2])))


def cli(*arguments: object) -> int:
    return main(["ledger", *map(str, arguments)])


@pytest.mark.slow
def test_an_old_copy_of_the_ledger_draws_nothing_a_second_time(tmp_path, monkeypatch, witness):
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(tmp_path)
    Ledger(ledger_url())
    shutil.copy(tmp_path / "ledger.db", tmp_path / "old.db")
    assert cli("checkpoint") == 0
    bare.release(plan, "r1", tmp_path / "out")
    assert "survey/r1/people" in witness.read_text()
    shutil.copy(tmp_path / "old.db", tmp_path / "ledger.db")
    with pytest.raises(LostLedgerError, match="lists the draw survey/r1/") as stopped:
        bare.release(plan, "r1", tmp_path / "elsewhere")
    assert stopped.value.exit_code == 6
    assert Ledger(ledger_url()).spent("survey") == Budget()
    monkeypatch.delenv("DPRELEASE_CHECKPOINT")
    bare.release(plan, "r1", tmp_path / "elsewhere")  # what the witness is for


def test_a_witness_that_is_missing_stops_the_run(ledger, witness):
    with pytest.raises(InputError, match="names no file"):
        require_checkpoint(ledger, "wages")
    draw(ledger, "r1")
    assert write_checkpoint(ledger, witness) == 1
    require_checkpoint(ledger, "wages")


@pytest.mark.slow
def test_a_run_that_is_refused_makes_no_ledger_in_place_of_one_that_was_lost(
    tmp_path, monkeypatch, witness
):
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(tmp_path)
    with pytest.raises(InputError, match="names no file"):
        bare.release(plan, "r1", tmp_path / "out")
    write_checkpoint(Ledger(ledger_url()), witness)
    bare.release(plan, "r1", tmp_path / "out")
    assert cli("backup", tmp_path / "copy") == 0
    (tmp_path / "ledger.db").unlink()
    for out in ("out", "elsewhere"):  # a bundle knows, and the witness does
        with pytest.raises(LostLedgerError):
            bare.release(plan, "r2", tmp_path / out)
    assert cli("restore", tmp_path / "copy") == 0


def test_nor_does_a_run_of_a_series(tmp_path, own_home, witness):
    plan = bare.small_plan(tmp_path)
    document = yaml.safe_load(bare.PLAN) | {"neighbours": "add-remove", "synthesis": []}
    document["series"] = {"period": "year", "periods": 2, "in_periods": 1}
    document["columns"]["year"] = {"type": "integer", "bounds": [1, 2]}
    document["releases"] = [{"name": "sexes", "kind": "histogram", "columns": ["sex"]}]
    plan.write_text(yaml.safe_dump(document))
    with pytest.raises(InputError, match="names no file"):
        bare.release(plan, "r1", tmp_path / "out")
    assert not (own_home / "ledger.sqlite").exists()


@pytest.mark.slow
def test_a_due_time_is_not_released_again_under_a_new_name_of_the_plan(tmp_path, monkeypatch):
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(tmp_path)
    bare.release(plan, "income-20261124-060000", tmp_path / "out")
    with pytest.raises(LedgerError, match="for the same due time as income-20261124-060000"):
        bare.release(plan, "revenue-20261124-060000", tmp_path / "out")
    bare.release(plan, "income-20261124-060000", tmp_path / "out")
    bare.release(plan, "revenue-20261125-060000", tmp_path / "out")


@pytest.mark.slow
def test_nor_where_another_run_came_first_after_the_check(tmp_path, monkeypatch):
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(tmp_path)
    monkeypatch.setattr("tasks.admission.check_budget", lambda *_: None)
    bare.release(plan, "income-20261124-060000", tmp_path / "out")
    with pytest.raises(LedgerError, match="for the same due time as income-20261124-060000"):
        bare.release(plan, "revenue-20261124-060000", tmp_path / "out")
    assert Ledger(ledger_url()).spent("survey") == Budget.of(1)


@pytest.mark.parametrize(("above", "mode"), [(0o2770, 0o660), (0o2750, 0o600), (0o770, 0o600)])
def test_a_witness_is_open_to_the_group_to_which_its_folder_is_handed_on(
    ledger, tmp_path, monkeypatch, above, mode
):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(above)
    witness = tmp_path / "shared" / "witness"
    monkeypatch.setenv("DPRELEASE_CHECKPOINT", str(witness))
    before = os.umask(0o077)
    try:
        write_checkpoint(ledger, witness)
        draw(ledger, "r1")
        add_to_checkpoint(ledger, "wages")
    finally:
        os.umask(before)
    lock = witness.with_name(".witness.lock")
    assert [path.stat().st_mode & 0o777 for path in (witness, lock)] == [mode, mode]
    witness.chmod(0o640)
    add_to_checkpoint(ledger, "wages")
    assert witness.stat().st_mode & 0o777 == 0o640


def test_a_witness_never_forgets(ledger, witness, tmp_path, capsys):
    ledger.copy_to(tmp_path / "old.db")
    draw(ledger, "r1")
    assert cli("checkpoint") == 0
    before = witness.read_bytes()
    assert cli("checkpoint", "--ledger", f"sqlite:///{tmp_path}/old.db") != 0
    assert witness.read_bytes() == before
    assert "wages/r1/a" in capsys.readouterr().err


@pytest.mark.parametrize("kept", [[], [0], [0, 2], [1, 2]], ids=str)
def test_a_witness_that_was_cut_or_emptied_is_known(ledger, witness, kept):
    for release_id in ("r1", "r2"):
        draw(ledger, release_id)
    write_checkpoint(ledger, witness)
    lines = witness.read_text().splitlines(keepends=True)
    assert len(lines) == 3
    witness.write_text("".join(lines[i] for i in kept))
    for act in (
        lambda: require_checkpoint(ledger, "wages"),
        lambda: write_checkpoint(ledger, witness),
    ):
        with pytest.raises(InputError, match="is incomplete, or not a witness"):
            act()


def test_what_is_drawn_while_a_witness_is_read_is_no_contradiction(ledger, witness, monkeypatch):
    write_checkpoint(ledger, witness)
    known_of = checkpoint._known

    def while_another_draws(own: Ledger) -> tuple[set[str], set[str]]:
        known = known_of(own)
        monkeypatch.setattr(checkpoint, "_known", known_of)
        draw(ledger, "other")
        write_checkpoint(ledger, witness)
        return known

    monkeypatch.setattr(checkpoint, "_known", while_another_draws)
    require_checkpoint(ledger, "wages")
    assert "wages/other/a" in witness.read_text()


@pytest.mark.slow
def test_no_writer_takes_back_what_another_wrote(ledger, witness, monkeypatch):
    write_checkpoint(ledger, witness)
    lost: list[Exception] = []
    replace, writing = checkpoint._replace, threading.Lock()

    def replace_alone(*given) -> None:
        if not writing.acquire(blocking=False):
            lost.append(RuntimeError("two write at once"))
            return
        for _ in range(100):
            os.sched_yield()  # the others run up to the lock
        replace(*given)
        writing.release()

    monkeypatch.setattr(checkpoint, "_replace", replace_alone)

    def run(number: int) -> None:
        own = Ledger(ledger_url())
        for round_ in range(5):
            draw(own, f"r{number}-{round_}")
            try:
                add_to_checkpoint(own, "wages")
            except DPReleaseError as error:
                lost.append(error)
            if f"wages/r{number}-{round_}/a" not in witness.read_text():
                lost.append(LookupError(number))

    writers = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert lost == []


def test_an_older_list_of_another_machine_does_not_stay(ledger, witness, monkeypatch):
    """Whose lock this one may not see."""
    monkeypatch.setattr(checkpoint, "_alone", lambda _: nullcontext())
    replace, own = checkpoint._replace, []

    def late(path, lines: list[str]) -> None:
        if not own:
            own.append(lines)
            draw(ledger, "other")
            write_checkpoint(ledger, witness)
        replace(path, lines)

    monkeypatch.setattr(checkpoint, "_replace", late)
    write_checkpoint(ledger, witness)
    assert "wages/other/a" in witness.read_text()


@pytest.mark.parametrize(
    ("place", "name", "number"),
    [
        pytest.param(checkpoint.tempfile, "TemporaryFile", errno.EROFS, id="a disk to read only"),
        pytest.param(checkpoint, "locked", errno.EACCES, id="another user's lock"),
    ],
)
def test_a_witness_that_cannot_be_replaced_stops_the_run_before_anything_is_drawn(
    ledger, witness, monkeypatch, place, name, number
):
    write_checkpoint(ledger, witness)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, name, refuse)
    with pytest.raises(InputError, match=rf"cannot be written \({os.strerror(number)}\)"):
        require_checkpoint(ledger, "wages")


def test_a_lock_that_cannot_be_written_is_told_of_the_witness_and_not_of_the_home(ledger, witness):
    write_checkpoint(ledger, witness)
    lock = witness.with_name(f".{witness.name}.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(InputError, match=rf"^{witness}: cannot be written \(Is a directory\)$"):
        require_checkpoint(ledger, "wages")


def test_a_witness_that_cannot_be_looked_at_is_not_taken_for_a_missing_one(ledger, witness):
    beyond = witness.with_name("x" * 300)  # no user may look there; nor may some into a folder
    with pytest.raises(InputError, match=r"x: cannot be read \(File name too long\)"):
        lost_draws(ledger, path=beyond)


def test_a_full_disk_leaves_the_witness_as_it_was(ledger, witness, monkeypatch):
    draw(ledger, "r1")
    write_checkpoint(ledger, witness)
    before = witness.read_bytes()
    draw(ledger, "r2")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for act in (
        lambda: require_checkpoint(ledger, "wages"),
        lambda: write_checkpoint(ledger, witness),
    ):
        with pytest.raises(InputError, match="No space left"):
            act()
    assert witness.read_bytes() == before
    assert [path.name for path in witness.parent.glob(".witness.*")] == [".witness.lock"]


def test_a_signed_witness_cannot_be_shortened(ledger, witness, tmp_path, monkeypatch):
    key = tmp_path / "private.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    monkeypatch.setenv("DPRELEASE_SIGNING_KEY", str(key))
    for release_id in ("r1", "r2"):
        draw(ledger, release_id)
    write_checkpoint(ledger, witness)
    require_checkpoint(ledger, "wages")
    monkeypatch.delenv("DPRELEASE_SIGNING_KEY")
    with pytest.raises(InputError, match="is signed; set DPRELEASE_SIGNING_KEY here too"):
        add_to_checkpoint(ledger, "wages")  # and so its signature is not lost
    monkeypatch.setenv("DPRELEASE_SIGNING_KEY", str(key))
    lines = witness.read_text().splitlines(keepends=True)
    for forged in (lines[1:], lines[:-1], []):
        witness.write_text("".join(forged))
        with pytest.raises(InputError, match="was not signed with the key"):
            require_checkpoint(ledger, "wages")


@pytest.mark.slow
def test_a_backup_taken_while_others_write_is_a_whole_ledger(ledger, tmp_path):
    def write() -> None:
        for number in range(40):
            draw(ledger, f"r{number}")

    writer = threading.Thread(target=write)
    writer.start()
    counts = []
    for number in range(10):
        path = tmp_path / f"backup{number}.db"
        assert cli("backup", path) == 0
        assert path.stat().st_mode & 0o777 == 0o600
        copy = Ledger(f"sqlite:///{path}", create=False)
        assert (
            copy.find_faults("wages") == []
            or copy.find_faults("wages")[0].what == "reserved, not drawn"
        )
        counts.append(len(copy.releases("wages")))
    writer.join()
    assert counts == sorted(counts)
    assert cli("backup", tmp_path / "backup0.db") == 2  # nothing is replaced


@pytest.mark.slow
def test_a_backup_is_restored_only_where_there_is_no_ledger(ledger, witness, tmp_path, capsys):
    draw(ledger, "r1")
    assert cli("backup", tmp_path / "copy.db") == 0
    assert cli("checkpoint") == 0
    assert cli("restore", tmp_path / "copy.db") == 2
    os.remove(tmp_path / "ledger.db")
    assert cli("restore", tmp_path / "copy.db") == 0
    assert Ledger(ledger_url()).spent("wages") == Budget.of("1/100")
    draw(Ledger(ledger_url()), "r2")
    assert cli("checkpoint") == 0
    os.remove(tmp_path / "ledger.db")
    assert cli("restore", tmp_path / "copy.db") == 0
    assert "the checkpoint lists draws of wages that the backup lacks" in capsys.readouterr().out
    with pytest.raises(LostLedgerError, match="wages/r2/a"):
        require_checkpoint(Ledger(ledger_url()), "wages")
