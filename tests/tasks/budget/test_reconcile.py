"""Ledger, draws and bundles, put out of step in every way that was thought of."""

import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert, update

from dpcore.accounting.budget import Budget
from dpcore.errors import ApprovalError, BundleError
from dpcore.line.statistic import Noisy
from flows.cli import main
from schemas.documents import documents
from tasks.budget.reconcile import reconcile
from tasks.bundle.digests import DIGESTS, MANIFEST
from tasks.bundle.verify import read_manifest, verify_files
from tasks.ledger import Charge, ChargeRequest, Ledger, State, charge_id, tables
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release
from tests.tasks.bundle.damage import by_hand

WHO_WHY = ("--who", "A. Officer", "--why", "the disk was lost")
ROWS = {"neighbours": "replace-one"}


@pytest.fixture
def published(published, tmp_path, monkeypatch) -> Path:
    """The bundles in the test's own copy."""
    leave_out_audits(monkeypatch.setattr)
    shutil.copytree(published, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


@pytest.fixture
def ledger(published) -> Ledger:
    return Ledger(ledger_url())


def found(ledger: Ledger, published: Path | None, dataset: str | None = None) -> list[tuple]:
    faults = reconcile(ledger, published, dataset)
    assert all(fault.remedy for fault in faults)
    return [(fault.release_id, fault.release_name, fault.what) for fault in faults]


def tamper(ledger: Ledger, *statements) -> None:
    with by_hand(ledger) as connection:
        for statement in statements:
            connection.execute(statement)


def of(name: str):
    return tables.charge.c.charge_id == charge_id("survey", "r1", name)


def forge(bundle: Path) -> None:
    """Other numbers, with digests and documents to match."""
    path = bundle / "tables" / "people.parquet"
    table = pq.read_table(path)
    counts = pa.array(reversed(table["count"].to_pylist()))
    before = sha256(path.read_bytes()).hexdigest()
    pq.write_table(table.set_column(table.column_names.index("count"), "count", counts), path)
    after = sha256(path.read_bytes()).hexdigest()
    text = (bundle / MANIFEST).read_text().replace(before, after)
    (bundle / MANIFEST).write_text(text)
    for name, document in documents(read_manifest(bundle)).items():
        (bundle / name).write_text(document)
    lines = [line.split("  ") for line in (bundle / DIGESTS).read_text().splitlines()]
    (bundle / DIGESTS).write_text(
        "".join(
            f"{sha256((bundle / name).read_bytes()).hexdigest()}  {name}\n" for _, name in lines
        )
    )


@pytest.mark.slow
def test_what_agrees_has_no_faults(ledger, published):
    assert found(ledger, published) == []
    assert found(ledger, None) == []


def test_a_reservation_without_a_draw(ledger, published):
    ledger.reserve(ChargeRequest("survey", "r2", "p", {"people": Charge(Budget.of("1/2"), ROWS)}))
    assert found(ledger, published) == [("r2", "people", "reserved, not drawn")]
    ledger.void("survey", "r2", "people", "A. Officer", "the machine was lost")
    assert found(ledger, published) == []


def test_draws_without_their_bundle(ledger, published, tmp_path):
    (published / "survey" / "r1").rename(tmp_path / "gone")
    assert found(ledger, published) == [("r1", "", "drawn, but not published here")]
    assert found(ledger, None) == []


@pytest.mark.parametrize("drawn", [True, False])
def test_a_folder_that_holds_no_bundle_is_not_a_lost_ledger(ledger, published, drawn, tmp_path):
    name = "r1" if drawn else "r0"
    if drawn:
        (published / "survey" / "r1").rename(tmp_path / "gone")
    (published / "survey" / name / "tables").mkdir(parents=True)
    empty, *missing = found(ledger, published)
    assert empty == (name, "", "the folder holds no bundle")
    assert missing == [("r1", "", "drawn, but not published here")] * drawn
    if drawn:
        with pytest.raises(BundleError, match="r1: a folder without a bundle is in the bundle's"):
            release(tmp_path / "plan.yaml", "r1", published)


@pytest.mark.slow
@pytest.mark.parametrize("link", [True, False])
def test_a_file_in_the_place_of_a_bundle_is_to_be_moved_away(ledger, published, tmp_path, link):
    place = published / "survey" / "r1"
    place.rename(tmp_path / "gone")
    place.symlink_to("nowhere") if link else place.touch()
    ((_, _, what),) = found(ledger, published)
    assert what == "drawn, but not published here: a file is in the bundle's place"
    assert reconcile(ledger, published)[0].remedy.startswith("move the file away, then run")
    with pytest.raises(BundleError, match="r1: a file is in the bundle's place: move it away"):
        release(tmp_path / "plan.yaml", "r1", published)
    place.unlink()
    release(tmp_path / "plan.yaml", "r1", published)
    assert found(ledger, published) == []


def test_a_rejected_release_is_not_missing_and_must_not_be_published(ledger, published, tmp_path):
    ledger.decide("survey", "r1", approved=False, who="A. Officer", why="too few rows")
    with pytest.raises(ApprovalError, match=r"was rejected by A. Officer .*: withdraw this bundle"):
        release(tmp_path / "plan.yaml", "r1", published)
    assert found(ledger, tmp_path / "elsewhere") == []
    rejected = [("r1", "", "published, but a disclosure officer rejected it")]
    assert found(ledger, published) == rejected
    forge(published / "survey" / "r1")
    assert found(ledger, published) == rejected  # withdrawn, it is not to be made again


def test_a_bundle_without_its_charge(ledger, published, own_home):
    (own_home / "ledger.sqlite").unlink()
    assert found(Ledger(ledger_url()), published) == [("r1", "", "published, but never charged")]


def test_a_bundle_under_another_name(ledger, published):
    ledger.reserve(ChargeRequest("survey", "r2", "p", {"people": Charge(Budget(), ROWS)}))
    ledger.commit("survey", "r2", "people", Noisy(np.array([1])))
    shutil.copytree(published / "survey" / "r1", published / "survey" / "r2")
    assert found(ledger, published) == [("r2", "", "the bundle belongs to another release")]


@pytest.mark.parametrize("file", ["tables/people.parquet", "manifest.json", "SHA256SUMS"])
def test_a_bundle_that_lost_a_file_or_whose_manifest_is_none(ledger, published, file):
    (published / "survey" / "r1" / file).unlink()
    ((release_id, _, what),) = found(ledger, published)
    assert release_id == "r1"
    assert file in what
    (published / "survey" / "r1" / "manifest.json").write_text("{}")
    ((_, _, what),) = found(ledger, published)
    assert "not a valid manifest" in what


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("people", {"digest": "0" * 64}, "draw is missing or does not match its digest"),
        ("people", {"alpha": "1/3"}, "differ in its price"),
        ("people", {"plan_digest": "other"}, "different plans"),
        ("people", {"alpha": "99"}, "more was charged than was granted"),
    ],
)
def test_a_charge_that_was_changed_by_hand(ledger, published, name, values, says):
    tamper(ledger, update(tables.charge).where(of(name)).values(values))
    assert any(says in what for _, _, what in found(ledger, published))


def test_a_draw_that_was_lost_or_is_too_many(ledger, published):
    identity = charge_id("survey", "r2", "people")
    ledger.reserve(ChargeRequest("survey", "r2", "p", {"people": Charge(Budget(), ROWS)}))
    tamper(
        ledger,
        tables.draw.delete().where(tables.draw.c.charge_id == charge_id("survey", "r1", "people")),
        insert(tables.draw).values(charge_id=identity, payload=b"x"),
    )
    assert found(ledger, None) == [
        ("r1", "people", "committed, but its draw is missing or does not match its digest"),
        ("r2", "people", "RESERVED, but a draw is stored"),
    ]


def test_a_void_that_nobody_signed(ledger, published):
    ledger.reserve(ChargeRequest("survey", "r2", "p", {"people": Charge(Budget(), ROWS)}))
    wanted = tables.charge.c.release_id == "r2"
    tamper(ledger, update(tables.charge).where(wanted).values(state=State.VOID.value))
    assert found(ledger, None) == [("r2", "people", "voided, but without a record of who did so")]


@pytest.mark.slow
def test_the_commands_print_faults_and_remedies_and_repair_nothing(published, ledger, capsys):
    out = ("--out", str(published))
    assert main(["ledger", "check", *out]) == 0
    assert "agree" in capsys.readouterr().out
    ledger.reserve(ChargeRequest("survey", "r2", "p", {"people": Charge(Budget.of("1/2"), ROWS)}))
    history = ledger.history()
    for _ in range(2):
        assert main(["ledger", "check", "survey", *out]) == 6
        printed = capsys.readouterr()
        assert "r2 people" in printed.out
        assert "ledger void survey r2 people" in printed.out
        assert "1 fault found" in printed.err
    assert ledger.history() == history
    assert main(["ledger", "void", "survey", "r2", "people", *WHO_WHY]) == 0
    assert capsys.readouterr().out == (
        "survey: voided people of release r2; alpha = 1, beta = 0, gamma = 0 left\n"
    )
    assert ledger.history()[-1].why == "the disk was lost"
    assert main(["ledger", "check", *out]) == 0
    assert main(["ledger", "void", "survey", "r1", "people", *WHO_WHY]) == 1
    assert "COMMITTED: it cannot be voided" in capsys.readouterr().err


def test_a_folder_or_dataset_that_is_not_there(published, ledger, capsys, monkeypatch, tmp_path):
    assert main(["ledger", "check", "--out", str(tmp_path / "nowhere")]) == 2
    assert main(["ledger", "check", "nobody"]) == 2
    assert main(["ledger", "void", "nobody", "r1", "people", *WHO_WHY]) == 2
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    assert main(["ledger", "check"]) == 0
    assert "not compared" in capsys.readouterr().out


def test_a_forged_bundle_is_noticed_by_the_ledger_alone(ledger, published, capsys):
    bundle = published / "survey" / "r1"
    forge(bundle)
    verify_files(bundle, read_manifest(bundle))
    ((_, _, what),) = found(ledger, published)
    assert "this bundle is not recorded in the ledger" in what
    assert main(["verify", str(bundle), "--ledger", ledger_url()]) == 6
    assert "forged" in capsys.readouterr().err
