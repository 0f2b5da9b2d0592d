"""`dprelease audit`, and the short audit before every release."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import AuditError
from flows.cli import main
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import audited, write_plan

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def small_plan(plan_path, plan_document):
    """Histogram and margins alone: machines take long to train on many made-up tables."""
    plan_document["releases"] = plan_document["releases"][:3]
    plan_document["synthesis"] = []
    return write_plan(plan_path.parent, plan_document)


@pytest.fixture
def too_little_noise(monkeypatch):
    """Releases that count a sixteenth of their sensitivity, and so draw a sixteenth of the noise."""
    monkeypatch.setattr("dpcore.releases.counts.histogram.Histogram.l1_sensitivity", Fraction(1, 8))


@pytest.fixture
def sure(monkeypatch):
    """An audit that does not accuse a right plan by chance in one of twenty runs of the tests."""
    monkeypatch.setattr("flows.course.ATTENDED", 0.99999)


@pytest.mark.slow
def test_right_releases_pass_and_nothing_is_charged(small_plan, sure, own_home, capsys):
    assert main(["audit", str(small_plan), "--quick", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in results[:3]] == ["people", "rare", "pairs"]
    assert len(results) == 4
    assert all(result["passed"] for result in results)
    assert all(result["lower_bound"] >= 0 for result in results)
    assert not (own_home / "ledger.sqlite").exists()


@pytest.mark.slow
def test_too_little_noise_is_found_with_exit_code_4(small_plan, too_little_noise, capsys):
    assert main(["audit", str(small_plan), "--quick"]) == 4
    printed = capsys.readouterr()
    assert "FAILED" in printed.out
    assert "passed  0" not in printed.out.splitlines()[1]
    assert "people" in printed.err


@pytest.mark.slow
def test_one_release_with_half_its_noise_is_stopped_though_the_sum_of_claims_holds(
    small_plan, monkeypatch
):
    from flows.release import release

    monkeypatch.setattr("dpcore.releases.counts.histogram.Histogram.l1_sensitivity", Fraction(1))
    told = r"people \(.*neighbours differ by 2 times.*; rare \("
    with audited(), pytest.raises(AuditError, match=told):
        release(str(small_plan), "r1", str(small_plan.parent / "out"))
    assert Ledger(ledger_url()).spent("survey") == Budget()


@pytest.mark.slow
def test_the_full_audit_rehearses_the_path_of_the_survey(small_plan, sure, monkeypatch, capsys):
    assert main(["audit", str(small_plan), "--draws", "500"]) == 0
    assert "rehearse the survey's path" in capsys.readouterr().err
    # A path that codes a column wrongly makes the audit worthless, and stops it.
    from tasks.survey.tally import tallies

    def shifted(*arguments):
        return [
            replace(found, cells=(found.cells + 1) % found.domain.size)
            for found in tallies(*arguments)
        ]

    monkeypatch.setattr("tasks.draw.tallies", shifted)
    assert main(["audit", str(small_plan), "--draws", "500"]) == 4
    assert "prove nothing" in capsys.readouterr().err


@pytest.mark.slow
def test_the_flow_leaves_a_table_and_fails_when_a_bound_is_above_its_claim(
    small_plan, too_little_noise, monkeypatch
):
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter
    from prefect.utilities.importtools import import_object

    # What a deployment with this entry point loads.
    audit = import_object("flows.audit:audit")
    monkeypatch.setattr("flows.audit.deployed_run", lambda: None)
    monkeypatch.setenv("DPRELEASE_PLANS", str(small_plan.parent))
    state = audit(small_plan.stem, quick=True, return_state=True)
    assert state.is_failed()
    mine = ArtifactFilter(flow_run_id={"any_": [state.state_details.flow_run_id]})
    with get_client(sync_client=True) as client:
        found = {a.key: a for a in client.read_artifacts(artifact_filter=mine)}
    assert "FAILED" in found["audit"].data
