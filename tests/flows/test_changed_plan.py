"""A plan that is changed between a run and its retry: the retry is refused until it is as before."""

import pytest

import flows.course
from dpcore.accounting.budget import Budget
from dpcore.errors import LedgerError
from tasks.bundle.verify import read_manifest
from tasks.ledger import Ledger, State
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan

ENDED = {
    "tally_survey": (State.RESERVED, State.RESERVED),
    "a second draw": (State.COMMITTED, State.RESERVED),
}
CHANGES = {
    "bins": ("bins: {age: 3}", "bins: {age: 4}"),
    "budget": ('requested: {alpha: "1"', 'requested: {alpha: "1/2"'),
}


class EndedError(Exception):
    """The run ended here."""


def end_at(step, monkeypatch):
    """Let the run end before a step, or between the two draws."""
    if step != "a second draw":
        monkeypatch.setattr(flows.course, step, _end)
        return
    submit = flows.course.draw.submit
    monkeypatch.setattr(
        flows.course.draw,
        "submit",
        lambda plan, release_id, name, *rest: (
            submit(plan, release_id, name, *rest) if name == "people" else _end()
        ),
    )


def _end(*_: object) -> None:
    raise EndedError


@pytest.mark.parametrize(
    ("step", "change"),
    [
        ("a second draw", "bins"),
        pytest.param("tally_survey", "budget", marks=pytest.mark.slow),
    ],
)
def test_a_retry_of_a_changed_plan_is_refused_and_charges_nothing(
    tmp_path, monkeypatch, step, change
):
    leave_out_audits(monkeypatch.setattr)
    plan = small_plan(tmp_path)
    with monkeypatch.context() as patch:
        end_at(step, patch)
        with pytest.raises(EndedError):
            release(plan, "r1", tmp_path / "out")
    ledger = Ledger(ledger_url())
    before = ledger.history("survey")
    states = {name: charge.state for name, charge in ledger.release("survey", "r1").items()}
    assert (states["people"], states["sexes"]) == ENDED[step]
    text = plan.read_text()
    plan.write_text(text.replace(*CHANGES[change]))
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
