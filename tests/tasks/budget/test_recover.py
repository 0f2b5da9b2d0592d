"""A ledger that has forgotten draws stops their dataset alone, and their bundles bring it back."""

import hashlib
import io
import shutil
import subprocess

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import ApprovalError, BudgetError, BundleError, LostLedgerError
from flows.cli import main
from flows.course import carry_out
from flows.question import select_releases
from schemas.plan import load_plan
from tasks.budget.reconcile import reconcile
from tasks.bundle.verify import read_manifest, verify_budget, verify_seal
from tasks.ledger import Ledger, State
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tests import bare

WHO_WHY = ("--who", "A. Officer", "--why", "the disk was lost")


@pytest.fixture
def agency(tmp_path, monkeypatch):
    """Two datasets, each with a bundle ``r1``; then an old copy of the ledger is put back."""
    monkeypatch.setenv("DPRELEASE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("DPRELEASE_CHECKPOINT", str(tmp_path / "witness"))
    monkeypatch.setenv("DPRELEASE_OUT", str(tmp_path / "out"))
    bare.leave_out_audits(monkeypatch.setattr)
    plan = bare.small_plan(tmp_path)
    shutil.copy(tmp_path / "survey.parquet", tmp_path / "other.parquet")
    (tmp_path / "other.yaml").write_text(
        plan.read_text()
        .replace("dataset: survey", "dataset: other")
        .replace("survey.p", "other.p")
        .replace("title: A", "approval: true, title: A")
    )
    assert cli("grant", "survey", "--alpha", "3", *WHO_WHY) == 0
    assert cli("grant", "other", "--alpha", "3", *WHO_WHY) == 0
    assert cli("checkpoint") == 0
    return tmp_path


def cli(*arguments: object) -> int:
    return main(["ledger", *map(str, arguments)])


def sign_from_now_on(agency, monkeypatch) -> None:
    key = agency / "private.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    monkeypatch.setenv("DPRELEASE_SIGNING_KEY", str(key))
    (agency / "witness").unlink()
    assert cli("checkpoint") == 0


def forget(agency, dataset: str) -> None:
    """Publish a release, and put the ledger back that does not know it."""
    shutil.copy(agency / "ledger.db", agency / "old.db")
    publish(agency, dataset, "r1")
    shutil.copy(agency / "old.db", agency / "ledger.db")


def publish(agency, dataset: str, release_id: str) -> None:
    plan = agency / ("plan.yaml" if dataset == "survey" else "other.yaml")
    try:
        bare.release(plan, release_id, agency / "out")
    except Exception as error:
        if "waits for a disclosure officer" not in str(error):
            raise
        assert main(["approve", dataset, release_id, *WHO_WHY]) == 0
        bare.release(plan, release_id, agency / "out")


def faults(dataset: str | None = None) -> list[tuple[str, str, str]]:
    return [
        (each.dataset, each.release_id, each.release_name)
        for each in reconcile(Ledger(ledger_url()), None, dataset)
    ]


@pytest.mark.slow
def test_a_lost_draw_stops_its_dataset_and_no_other(agency):
    forget(agency, "survey")
    with pytest.raises(LostLedgerError, match="the ledger lacks"):
        bare.release(agency / "plan.yaml", "r2", agency / "elsewhere")
    publish(agency, "other", "r1")
    assert faults() == [("survey", "r1", "people"), ("survey", "r1", "sexes")]
    assert faults("other") == []
    assert cli("checkpoint") == 6
    lines = (agency / "witness").read_text()
    assert "survey/r1/people" in lines  # nothing that was seen is dropped
    assert "other/r1/people" in lines


@pytest.mark.slow
def test_a_bundle_brings_its_charges_draws_and_approval_back(agency, capsys):
    dataset = "other"
    publish(agency, dataset, "r0")  # which the old copy knows
    forget(agency, dataset)
    bundle = agency / "out" / dataset / "r1"
    assert cli("check") == 6
    assert f"ledger recover {dataset}" in capsys.readouterr().out
    assert cli("recover", dataset, *WHO_WHY) == 0
    assert "entered r1; alpha = 1" in capsys.readouterr().out
    ledger, manifest = Ledger(ledger_url()), read_manifest(bundle)
    assert verify_budget(manifest, ledger) == Budget.of(1)
    verify_seal(bundle, manifest, ledger)
    assert [line.who for line in ledger.history(dataset) if line.action == "recover"] == [
        "A. Officer"
    ]
    assert reconcile(ledger, agency / "out") == []
    before = bundle.stat().st_mtime_ns
    publish(agency, dataset, "r1")  # a retry draws and charges nothing
    assert bundle.stat().st_mtime_ns == before
    publish(agency, dataset, "r2")
    assert ledger.spent(dataset) == Budget.of(3)


@pytest.mark.slow
@pytest.mark.parametrize("signed", [True, False])
def test_a_signed_bundle_brings_back_the_approval_of_draws_that_the_ledger_has(
    agency, monkeypatch, capsys, signed
):
    if signed:
        sign_from_now_on(agency, monkeypatch)
    with pytest.raises(ApprovalError):
        bare.release(agency / "other.yaml", "r1", agency / "out")
    forget(agency, "other")
    assert cli("check") == 6
    assert "an old copy of the ledger was in use" in " ".join(capsys.readouterr().out.split())
    assert cli("recover", "other", *WHO_WHY) == 0
    assert f"entered {'r1' if signed else 'nothing'};" in capsys.readouterr().out
    left = reconcile(Ledger(ledger_url()), agency / "out")
    assert [each.what for each in left] == [
        "the approval in the manifest is not the one in the ledger"
    ] * (not signed)
    assert Ledger(ledger_url()).spent("other") == Budget.of(1)


@pytest.mark.slow
def test_a_bundle_of_which_more_was_changed_than_its_draws_show_enters_nothing(agency, monkeypatch):
    sign_from_now_on(agency, monkeypatch)
    with pytest.raises(ApprovalError):
        bare.release(agency / "other.yaml", "r1", agency / "out")
    forget(agency, "other")
    forged = agency / "out" / "other" / "r1"
    (forged / "README.md").write_text("other words")
    digests = (forged / "SHA256SUMS").read_text().splitlines()
    changed = hashlib.sha256(b"other words").hexdigest()
    digests = [f"{changed}  README.md" if d.endswith(" README.md") else d for d in digests]
    (forged / "SHA256SUMS").write_text("\n".join(digests) + "\n")
    assert cli("recover", "other", *WHO_WHY) == 6
    assert Ledger(ledger_url()).decision("other", "r1") is None


@pytest.mark.slow
def test_a_bundle_that_the_witness_has_not_seen_enters_nothing(agency, monkeypatch):
    with monkeypatch.context() as without:
        without.delenv("DPRELEASE_CHECKPOINT")
        forget(agency, "survey")
        forged = agency / "out" / "survey" / "r1"
    assert cli("recover", "survey", *WHO_WHY) == 6
    assert Ledger(ledger_url()).spent("survey") == Budget()
    (forged / "manifest.json").write_text("{}")
    with pytest.raises((BundleError, LostLedgerError)):
        bare.release(agency / "plan.yaml", "r2", agency / "out")


@pytest.mark.slow
def test_forgotten_grants_are_granted_again_first(agency, capsys):
    publish(agency, "survey", "r0")
    shutil.copy(agency / "ledger.db", agency / "old.db")
    assert cli("grant", "survey", "--alpha", "2", *WHO_WHY) == 0
    for release_id in ("r1", "r2", "r3"):
        publish(agency, "survey", release_id)
    shutil.copy(agency / "old.db", agency / "ledger.db")
    assert cli("recover", "survey", *WHO_WHY) == 3
    assert "would overspend dataset 'survey'" in capsys.readouterr().err
    assert cli("grant", "survey", "--alpha", "2", *WHO_WHY) == 0
    assert cli("recover", "survey", *WHO_WHY) == 0
    assert Ledger(ledger_url()).spent("survey") == Budget.of(4)


@pytest.mark.slow
def test_a_draw_that_nobody_saw_is_given_up_and_its_name_is_never_drawn_again(agency, capsys):
    forget(agency, "survey")
    shutil.rmtree(agency / "out" / "survey" / "r1")
    assert cli("recover", "survey", *WHO_WHY) == 6
    assert "ledger void survey r1 people" in capsys.readouterr().err
    for name in ("people", "sexes"):
        assert cli("void", "survey", "r1", name, *WHO_WHY) == 0
    assert cli("void", "survey", "r2", "people", *WHO_WHY) == 1  # the witness never saw that
    assert faults() == []
    ledger = Ledger(ledger_url())
    assert {charge.state for charge in ledger.release("survey", "r1").values()} == {State.VOID}
    with pytest.raises(Exception, match="under a new release id"):
        bare.release(agency / "plan.yaml", "r1", agency / "out")
    publish(agency, "survey", "r2")
    assert ledger.spent("survey") == load_plan(agency / "plan.yaml").requested


ANALYST = "B. Analyst"


@pytest.fixture
def asked(agency, monkeypatch, capsys):
    """An analyst who may spend 1 has spent 0.75, in a bundle that the ledger does not know any more.

    Yields what puts back a copy of the ledger, from before the allowance or after it.
    """
    with (agency / "plan.yaml").open("a") as plan:
        plan.write('operation: {requests: {columns: [sex, age], part: "1"}}\n')
    monkeypatch.setenv("DPRELEASE_PLANS", str(agency))
    (agency / "other.yaml").unlink()
    shutil.copy(agency / "ledger.db", agency / "without.db")
    capsys.readouterr()
    assert cli("allow", "survey", ANALYST, "--alpha", "1", *WHO_WHY) == 0
    token = capsys.readouterr().out
    shutil.copy(agency / "ledger.db", agency / "with.db")
    monkeypatch.setattr("sys.stdin", io.StringIO(token))
    assert ask("0.75") == 0
    return lambda copy: shutil.copy(agency / copy, agency / "ledger.db")


def ask(alpha: str) -> int:
    return main(["ask", "plan", "--as", ANALYST, "--alpha", alpha, "--table", "sex"])


@pytest.mark.slow
def test_what_an_analyst_has_spent_is_still_spent_after_a_recovery(asked, capsys):
    asked("with.db")
    assert cli("recover", "survey", *WHO_WHY) == 0
    allowance = Ledger(ledger_url()).allowance("survey", ANALYST)
    assert (allowance.left, allowance.spent) == (Budget.of("0.25"), Budget.of("0.75"))
    assert ask("0.5") == 3
    assert "left 0.25 of 1 allowed to B. Analyst" in capsys.readouterr().err


@pytest.mark.slow
def test_a_forgotten_allowance_is_given_again_before_what_was_spent_of_it(asked, capsys):
    asked("without.db")
    for given, needed in (("0", "0.75"), ("0.5", "0.25")):
        if given != "0":
            assert cli("allow", "survey", ANALYST, "--alpha", given, *WHO_WHY) == 0
        capsys.readouterr()
        assert cli("recover", "survey", *WHO_WHY) == 3
        command = f"dprelease ledger allow survey '{ANALYST}' --alpha {needed} --who WHO --why WHY"
        assert command in capsys.readouterr().err
        assert Ledger(ledger_url()).spent("survey") == Budget()
    assert cli("allow", "survey", ANALYST, "--alpha", "0.25", *WHO_WHY) == 0
    assert cli("recover", "survey", *WHO_WHY) == 0
    allowance = Ledger(ledger_url()).allowance("survey", ANALYST)
    assert (allowance.left, allowance.spent) == (Budget(), Budget.of("0.75"))


@pytest.mark.slow
def test_what_was_requested_still_counts_as_requested_after_a_recovery(agency, monkeypatch):
    """Also where nobody had an allowance, or somebody has one since."""
    with (agency / "plan.yaml").open("a") as plan:
        plan.write('operation: {requests: {releases: [people, sexes], part: "1/3"}}\n')
    monkeypatch.setenv("DPRELEASE_PLANS", str(agency))
    chosen, part = select_releases("plan", ["people"], "0.75", "", ANALYST)
    shutil.copy(agency / "ledger.db", agency / "old.db")
    carry_out(ReleaseJob(chosen, "plan-ad-hoc-1", agency / "out", part))
    shutil.copy(agency / "old.db", agency / "ledger.db")
    assert cli("allow", "survey", "C. Analyst", "--alpha", "1", *WHO_WHY) == 0
    assert cli("recover", "survey", *WHO_WHY) == 0
    more, part = select_releases("plan", ["people"], "0.5", "", "C. Analyst")
    with pytest.raises(BudgetError, match=r"asked 0\.5, left 0\.25 of 1 opened to requests"):
        carry_out(ReleaseJob(more, "plan-ad-hoc-2", agency / "out", part))
