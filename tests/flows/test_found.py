"""A release finds its categories once, and everything else follows them, whenever a run stops."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import flows.course
from dpcore.errors import BundleError
from schemas.bundle.manifest import Manifest
from schemas.plan import published_plan
from schemas.survey.found import NONE, OTHER
from tasks.budget.recover import recover
from tasks.bundle.reader import BundleReader
from tasks.bundle.verify import _verify_found, read_manifest, verify_budget
from tasks.ledger import Ledger, State
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, open_plan, release

pytestmark = pytest.mark.usefixtures("own_home", "short_fits")

SECRET = "SECRET_7391"


@pytest.fixture(autouse=True)
def without_audits(monkeypatch):
    leave_out_audits(monkeypatch.setattr)


def written(folder: Path, jobs: list[str | None], **keys: object) -> Path:
    """A plan, and the survey of these jobs, two to a home."""
    survey = pd.DataFrame(
        {"job": pd.Series(jobs, dtype=object), "sex": ["F", "M"] * (len(jobs) // 2)}
    )
    survey["home"] = np.arange(len(jobs)) // 2
    survey.to_parquet(folder / "survey.parquet")
    plan = folder / "plan.yaml"
    plan.write_text(yaml.safe_dump(open_plan() | keys))
    return plan


JOBS = (
    ["cook"] * 160
    + ["Bäcker"] * 120
    + ["smith"] * 60
    + [None] * 56
    + [SECRET] * 2
    + ["x" * 999] * 2
)


@pytest.mark.slow
def test_everything_follows_what_was_found_and_nobody_sees_the_rest(tmp_path, own_home):
    bundle = BundleReader.open(release(written(tmp_path, JOBS), "r", tmp_path / "out"))
    assert bundle.plan.columns["job"].categories == ["cook", "Bäcker", "smith", OTHER]
    counts = bundle.table("jobs")
    assert [None if x is np.ma.masked else x for x in counts["job"]] == [
        *("cook", "Bäcker", "smith", OTHER),
        None,
    ]
    assert set(bundle.table("microdata/everybody")["job"].compressed()) <= {
        *counts["job"].compressed()
    }
    assert verify_budget(bundle.manifest, Ledger(ledger_url())).alpha == 10
    events = {record.name: record.event["event"] for record in bundle.manifest.releases}
    assert events["jobs"] == "discrete-laplace"
    shown = [*(tmp_path / "out").rglob("*"), *own_home.rglob("*")]
    assert not any(SECRET.encode() in path.read_bytes() for path in shown if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["own-cell", "refuse"])
def test_a_survey_in_which_nothing_is_found_has_one_category(tmp_path, rule):
    columns = open_plan()["columns"]
    columns["job"]["nullable"] = True
    plan = written(tmp_path, [None] * 398 + ["a", "b"], columns=columns, invalid=rule)
    bundle = BundleReader.open(release(plan, "r", tmp_path / "out"))
    assert bundle.plan.columns["job"].categories == [NONE, OTHER]
    assert len(bundle.table("categories-job")["job"]) == 0


@pytest.mark.slow
def test_a_run_that_stopped_in_between_neither_searches_nor_pays_again(tmp_path, monkeypatch):
    plan, tally = written(tmp_path, JOBS), flows.course.tally_survey

    def once(job, names, *rest):
        if "jobs" in names:
            raise KeyboardInterrupt
        return tally(job, names, *rest)

    with monkeypatch.context() as stopped:
        stopped.setattr(flows.course, "tally_survey", once)
        with pytest.raises(KeyboardInterrupt):
            release(plan, "r", tmp_path / "out")
    ledger = Ledger(ledger_url())
    before = ledger.release("jobs", "r")
    assert {name: charge.state for name, charge in before.items()} == {
        "people": State.RESERVED,
        "jobs": State.RESERVED,
        "categories-job": State.COMMITTED,
    }
    spent = ledger.spent("jobs")
    bundle = BundleReader.open(release(plan, "r", tmp_path / "out"))
    assert ledger.spent("jobs") == spent
    searched = next(r for r in bundle.manifest.releases if r.name == "categories-job")
    assert searched.draw_sha256 == before["categories-job"].digest
    assert release(plan, "r", tmp_path / "out") == bundle.path


@pytest.mark.slow
def test_a_ledger_that_forgot_the_release_gets_it_back_from_the_bundle(tmp_path, monkeypatch):
    bundle = BundleReader.open(release(written(tmp_path, JOBS), "r", tmp_path / "out"))
    other = Ledger(f"sqlite:///{tmp_path}/other.db")
    other.grant("jobs", bundle.plan.budget.granted.budget, "A. Officer", "test")
    assert recover(other, tmp_path / "out" / "jobs", "A. Officer", "test") == ["r"]
    assert other.spent("jobs") == Ledger(ledger_url()).spent("jobs")


@pytest.mark.slow
def test_other_categories_than_were_found_are_noticed(tmp_path):
    path = release(written(tmp_path, JOBS), "r", tmp_path / "out")
    document = json.loads(read_manifest(path).model_dump_json())
    document["plan"]["columns"]["job"]["categories"][0] = "chef"
    manifest = Manifest.model_validate(document)
    with pytest.raises(BundleError, match="has categories that differ"):
        _verify_found(path, manifest, published_plan(manifest.plan))


PAY = [0.0] * 114 + [30.0] * 140 + [700.0] * 140 + [1e300, -1e300, np.inf, np.nan] + [2e4] * 2


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["own-cell", "drop", "refuse"])
def test_everything_follows_the_bounds_that_were_found(tmp_path, rule):
    pay = [value for value in PAY if rule != "refuse" or np.isfinite(value)]
    survey = pd.DataFrame({"pay": pay})
    survey["home"] = np.arange(len(pay)) // 2
    survey.to_parquet(tmp_path / "survey.parquet")
    document = open_plan() | {"invalid": rule, "synthesis": [], "analyses": []}
    bounds = [0, "open"] if rule == "drop" else "open"  # one is as good as found
    document["columns"] = {"pay": {"type": "continuous", "bounds": bounds, "nullable": True}}
    document["releases"] = [
        {"name": "pays", "kind": "histogram", "columns": ["pay"], "bins": {"pay": 2}, "weight": 2}
    ]
    # The home of the highest pay passes the threshold of 2 with a chance below 1e-6.
    document["budget"] = {"granted": {"alpha": "50"}, "requested": {"alpha": "40"}}
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump(document))
    bundle = BundleReader.open(release(plan, "r", tmp_path / "out"))
    column = bundle.plan.columns["pay"]
    assert column.bounds == (0.0, 1000.0)
    table = bundle.table("pays")
    counts = dict(zip(table["pay_from"].filled(-1), table["noisy_count"], strict=True))
    # Those above count in the last bin, the one below in the first; noise has a scale of 1/16.
    assert counts == {
        500.0: 140 + 3,
        0.0: 254 + 1,
        -1.0: {"refuse": 0, "drop": 1}.get(rule, 2),  # pandas writes NaN as null
    }
