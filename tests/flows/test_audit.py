"""`dprelease audit`, and the short audit before every release."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dpcore.budget import Budget
from dpcore.errors import AuditError
from flows.cli import main
from schemas.plan import load_plan
from tasks.audit import bounds_picture
from tasks.home import ledger_url
from tasks.ledger import Ledger
from tasks.verify import read_manifest

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def small_plan(plan_path, plan_document):
    """Histogram and margins alone: machines take long to train on many made-up tables."""
    from tests.conftest import write_plan

    plan_document["releases"] = plan_document["releases"][:3]
    plan_document["synthesis"] = []
    return write_plan(plan_path.parent, plan_document)


@pytest.fixture
def too_little_noise(monkeypatch):
    """Releases that count a sixteenth of their sensitivity, and so draw a sixteenth of the noise."""
    monkeypatch.setattr("dpcore.releases.histogram.L1_SENSITIVITY", Fraction(1, 8))


def test_right_releases_pass_and_nothing_is_charged(small_plan, own_home, capsys):
    assert main(["audit", str(small_plan), "--quick", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in results[:3]] == ["people", "rare", "pairs"]
    assert len(results) == 4
    assert all(result["passed"] for result in results)
    assert all(result["lower_bound"] >= 0 for result in results)
    assert not (own_home / "ledger.sqlite").exists()


def test_too_little_noise_is_found_with_exit_code_4(small_plan, too_little_noise, capsys):
    assert main(["audit", str(small_plan), "--quick"]) == 4
    printed = capsys.readouterr()
    assert "FAILED" in printed.out
    assert "passed  0" not in printed.out.splitlines()[1]
    assert "people" in printed.err


def test_a_release_with_too_little_noise_is_stopped_before_it_is_charged(
    small_plan, too_little_noise
):
    from flows.release import release

    with pytest.raises(AuditError, match="more privacy loss than is claimed"):
        release(str(small_plan), "r1", str(small_plan.parent / "out"))
    assert Ledger(ledger_url()).spent("survey") == Budget()


def test_the_manifest_tells_the_audit(small_plan):
    from flows.release import release

    bundle = release(str(small_plan), "r1", str(small_plan.parent / "out"))
    audit = read_manifest(Path(bundle)).audit
    assert audit["passed"] is True
    assert audit["claim"]["alpha"] == "4"


def test_the_full_audit_rehearses_the_path_of_the_survey(small_plan, monkeypatch, capsys):
    assert main(["audit", str(small_plan), "--draws", "500"]) == 0
    assert "rehearse the survey's path" in capsys.readouterr().err
    # A path that codes a column wrongly makes the audit worthless, and stops it.
    from tasks.tally import tally

    def shifted(database, domain, rows):
        found = tally(database, domain, rows)
        return type(found)(domain, (found.cells + 1) % domain.size, found.counts)

    monkeypatch.setattr("tasks.rehearsal.tally", shifted)
    assert main(["audit", str(small_plan), "--draws", "500"]) == 4
    assert "prove nothing" in capsys.readouterr().err


def test_the_picture_shows_every_claim(small_plan):
    from tasks.audit import audit_together

    plan = load_plan(small_plan)
    picture = bounds_picture(plan, [audit_together.fn(plan, 200)])
    assert picture.startswith("<svg")
    assert "all together" in picture
