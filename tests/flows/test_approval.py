"""Approval without a server: the ledger's word decides, however it got there."""

import os
from pathlib import Path

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import ApprovalError, BundleError
from flows.cli import main
from schemas.plan import load_plan
from tasks.announce.markdown import preview
from tasks.bundle.reader import BundleReader
from tasks.bundle.verify import read_manifest, verify_budget
from tasks.ledger import Ledger
from tasks.report.release import headed
from tasks.workplace.home import ledger_url
from tests.conftest import write_plan

pytestmark = pytest.mark.usefixtures("prefect")


@pytest.fixture
def guarded_plan(plan_path, plan_document):
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["synthesis"] = []
    plan_document["budget"]["requested"] = {"alpha": "4"}
    plan_document["publication"]["approval"] = True
    return write_plan(plan_path.parent, plan_document)


def dprelease(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def run(plan: Path) -> int:
    return dprelease("run", plan, "--release-id", "r1", "--out", plan.parent / "out")


def decide(verb: str) -> int:
    return dprelease(verb, "survey", "r1", "--who", "C. Officer", "--why", "cells are large")


@pytest.mark.slow
def test_a_release_waits_until_it_is_approved(guarded_plan, capsys):
    bundle = guarded_plan.parent / "out" / "survey" / "r1"
    assert run(guarded_plan) == 5
    assert "dprelease approve survey r1 --who NAME --why REASON" in capsys.readouterr().err
    assert not bundle.exists()
    draw = Ledger(ledger_url()).committed("survey", "r1", "people").digest()
    assert decide("approve") == 0
    assert "to publish, run the plan again" in capsys.readouterr().out  # not: it needs no approval
    os.remove(guarded_plan.parent / "survey.parquet")  # the survey is not needed again
    assert run(guarded_plan) == 0
    manifest = read_manifest(bundle)
    assert (manifest.approval.who, manifest.approval.why) == ("C. Officer", "cells are large")
    assert manifest.releases[0].draw_sha256 == draw
    assert verify_budget(manifest, Ledger(ledger_url())) == Budget.of(4)


@pytest.mark.slow
def test_a_rejection_publishes_nothing_and_gives_nothing_back(guarded_plan, capsys):
    assert run(guarded_plan) == 5
    assert decide("reject") == 0
    for _ in range(2):
        assert run(guarded_plan) == 5
        said = capsys.readouterr().err
        assert "rejected by C. Officer (cells are large)" in said
        assert "its budget stays spent" in said
    assert not (guarded_plan.parent / "out" / "survey" / "r1").exists()
    assert Ledger(ledger_url()).spent("survey") == Budget.of(4)
    assert decide("approve") == 1
    assert "a decision is final" in capsys.readouterr().err


@pytest.mark.slow
def test_publication_itself_refuses_what_is_not_approved(guarded_plan, monkeypatch):
    from flows.release import release

    monkeypatch.setattr("flows.course.await_approval", lambda *_: None)  # a flow that forgets
    with pytest.raises(ApprovalError, match="waits for a disclosure officer"):
        release(str(guarded_plan), "r1", str(guarded_plan.parent / "out"))
    assert not (guarded_plan.parent / "out" / "survey" / "r1").exists()


@pytest.mark.slow
def test_a_bundle_whose_approval_the_ledger_does_not_know_is_found_out(guarded_plan):
    run(guarded_plan)
    decide("approve")
    run(guarded_plan)
    manifest = read_manifest(guarded_plan.parent / "out" / "survey" / "r1")
    forged = manifest.approval.model_copy(update={"who": "Somebody Else"})
    for approval in (forged, None):
        with pytest.raises(BundleError, match="approval"):
            verify_budget(manifest.model_copy(update={"approval": approval}), Ledger(ledger_url()))


def test_deciding_needs_a_ledger_and_a_draw(own_home, capsys):
    assert decide("approve") == 1
    assert "there is no ledger" in capsys.readouterr().err
    Ledger(ledger_url()).grant("survey", Budget.of(1), who="the board", why="a test")
    for verb in ("approve", "reject"):
        assert decide(verb) == 2
        assert "the ledger has no release 'r1' of survey" in capsys.readouterr().err


@pytest.mark.slow
def test_an_officer_sees_the_beginning_of_every_table(plan_path, plan_document, monkeypatch):
    seen: list[str] = []
    monkeypatch.setattr(
        "flows.course.await_approval",
        lambda job, made: seen.append(preview(job, made)),
    )
    plan_document["columns"]["sex"]["description"] = "Sex <img src=x> of a person"
    plan = write_plan(plan_path.parent, plan_document)
    assert run(plan) == 0
    (text,) = seen
    bundle = BundleReader.open(plan.parent / "out" / "survey" / "r1")
    for section in load_plan(plan).releases:
        assert f"### {headed(section)}" in text
    assert "| F | north |" in text
    (synthetic,) = bundle.manifest.synthesis
    assert f"the first of {synthetic.file.rows:,}" in text
    assert "<img" not in text.replace("\\<img", "")


@pytest.mark.slow
def test_a_rejection_counts_even_where_the_plan_asks_for_no_approval(plan_path, monkeypatch):
    from flows.release import release

    arguments = (str(plan_path), "r1", str(plan_path.parent / "out"))
    with monkeypatch.context() as patched:
        patched.setattr("flows.course.publish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            release(*arguments)
    assert decide("reject") == 0
    with pytest.raises(ApprovalError, match="rejected"):
        release(*arguments)
