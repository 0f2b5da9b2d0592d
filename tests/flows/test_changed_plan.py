"""A plan that is changed between a run and its retry: the retry is refused until it is as before."""

import pytest

import flows.course
from dpcore.accounting.budget import Budget
from dpcore.errors import LedgerError
from tasks.bundle.verify import read_manifest
from tasks.ledger import Ledger, State
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan


class EndedError(Exception):
    """The run ended here."""


def test_a_retry_of_a_changed_plan_is_refused_and_charges_nothing(tmp_path, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    plan, submit = small_plan(tmp_path), flows.course.draw.submit

    def end_at_the_second(job, name, *rest):
        if name != "people":
            raise EndedError
        return submit(job, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(flows.course.draw, "submit", end_at_the_second)
        with pytest.raises(EndedError):
            release(plan, "r1", tmp_path / "out")
    ledger = Ledger(ledger_url())
    before = ledger.history("survey")
    states = {name: charge.state for name, charge in ledger.release("survey", "r1").items()}
    assert states == {"people": State.COMMITTED, "sexes": State.RESERVED}
    text = plan.read_text()
    plan.write_text(text.replace("bins: {age: 3}", "bins: {age: 4}"))
    assert plan.read_text() != text
    with pytest.raises(LedgerError, match="charged for another plan: run the changed plan under a"):
        release(plan, "r1", tmp_path / "out")
    assert ledger.history("survey") == before
    assert not (tmp_path / "out" / "survey" / "r1").exists()
    plan.write_text(text)
    manifest = read_manifest(release(plan, "r1", tmp_path / "out"))
    drawn = {record.name: record.draw_sha256 for record in manifest.releases}
    known = {line.release_name: line.digest for line in before if line.digest}
    assert known.items() <= drawn.items()
    assert ledger.spent("survey") == Budget.of(1)
