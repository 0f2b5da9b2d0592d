"""The release flow, run for real: through Prefect, DuckDB, the ledger and the file system."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import BudgetError, BundleError, DataError, InputError, LedgerError
from dpcore.sampling.source import SeededSource
from schemas.plan import load_plan
from tasks.bundle.verify import read_manifest, verify_budget, verify_files
from tasks.ledger import Ledger
from tasks.workplace.home import claim_outside, ledger_url, private_workspace, remove_abandoned
from tests.conftest import ROWS, audited, made_up_survey, plan_of_every_kind, write_plan
from tests.flows.conftest import small_plan_of_every_kind

pytestmark = pytest.mark.usefixtures("prefect")


def run(plan_path: Path, release_id: str = "r1") -> Path:
    from flows.release import release

    return Path(release(str(plan_path), release_id, str(plan_path.parent / "out")))


@dataclass(frozen=True)
class Published:
    """A bundle of every kind of release, to be read only."""

    plan_path: Path
    bundle: Path
    ledger: Ledger


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("published")
    made_up_survey().to_parquet(folder / "survey.parquet")
    plan_path = write_plan(folder, plan_of_every_kind())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(folder / "home"))
        patch.delenv("DPRELEASE_LEDGER", raising=False)
        with audited():
            return Published(plan_path, run(plan_path), Ledger(ledger_url()))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small plan's first release, its ledger and its home."""
    folder = tmp_path_factory.mktemp("template")
    made_up_survey().to_parquet(folder / "survey.parquet")
    plan_path = write_plan(folder, small_plan_of_every_kind())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(folder / "home"))
        patch.delenv("DPRELEASE_LEDGER", raising=False)
        run(plan_path)
    return folder


@pytest.fixture
def bundle(template, tmp_path, plan_path):
    """The same in the test's own folder."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True, symlinks=True)
    return tmp_path / "out" / "survey" / "r1"


@pytest.mark.slow
def test_a_bundle_is_whole_and_paid_for(published):
    bundle, ledger = published.bundle, published.ledger
    manifest = read_manifest(bundle)
    assert verify_files(bundle, manifest) > 10
    assert verify_budget(manifest, ledger) == Budget.of("4", "1e-6")
    assert ledger.remaining("survey") == Budget.of("6", "9e-6")
    assert bundle == published.plan_path.parent / "out" / "survey" / "r1"
    assert sorted(os.listdir(bundle.parent)) == ["r1"]
    plan = load_plan(published.plan_path)
    assert [record.name for record in manifest.releases] == list(plan.built)
    assert [record.name for record in manifest.synthesis] == [s.name for s in plan.synthesis]
    assert manifest.audit["passed"] is True
    assert manifest.audit["claim"]["alpha"] == "4"
    assert [each["name"] for each in manifest.audit_of_each] == list(plan.built)
    assert all(each["passed"] for each in manifest.audit_of_each)


def test_published_counts_are_whole_consistent_and_near_the_truth(published, survey):
    bundle = published.bundle
    people = pd.read_parquet(bundle / "tables" / "people.parquet")
    assert people["count"].sum() == ROWS
    assert (people["count"] >= 0).all()
    assert people["region"].isna().sum() == len(people) / 5
    pair = pd.read_parquet(bundle / "tables" / "pairs.sex.children.parquet")
    other = pd.read_parquet(bundle / "tables" / "pairs.sex.region.parquet")
    assert pair.groupby("sex")["count"].sum().equals(other.groupby("sex")["count"].sum())
    assert np.allclose(
        pair.groupby("sex")["estimate"].sum(), other.groupby("sex")["estimate"].sum()
    )
    truth = survey.groupby("sex").size()
    error = pair.groupby("sex")["estimate"].sum() - truth
    # Seven cells a group, after agreement; ten standard errors are beyond any chance.
    assert (error.abs() < 10 * pair["standard_error"].iloc[0] * 7**0.5).all()


@pytest.mark.slow
def test_a_private_number_of_records_is_published_as_a_noisy_one(plan_path):
    plan_document = plan_of_every_kind()
    plan_document |= {"neighbours": "add-remove", "rows": 150, "synthesis": []}
    plan_document["releases"] = [plan_document["releases"][i] for i in (0, 2, 6)]
    bundle = run(write_plan(plan_path.parent, plan_document))
    manifest = read_manifest(bundle)
    assert verify_files(bundle, manifest) > 5
    assert all(record.event["neighbours"] == "add-remove" for record in manifest.releases)
    people = pd.read_parquet(bundle / "tables" / "people.parquet")
    assert people["count"].sum() == people["noisy_count"].sum() != 150
    pair = pd.read_parquet(bundle / "tables" / "pairs.sex.children.parquet")
    assert abs(pair["count"].sum() - ROWS) < 60
    assert "rank_error_records_90" in pd.read_parquet(bundle / "tables" / "age-quartiles.parquet")


@pytest.mark.slow
def test_a_concentrated_grant_is_spent_in_rho_and_the_manifest_promises_alpha(plan_path):
    plan_document = plan_of_every_kind() | {"synthesis": []}
    granted = {"alpha": "4", "beta": "1e-6"}
    plan_document["budget"] = {"composition": "concentrated", "granted": granted}
    plan_document["budget"]["requested"] = {"part": "1/2"}
    plan_document["releases"] = [plan_document["releases"][i] for i in (0, 2, 8)]
    path = write_plan(plan_path.parent, plan_document)
    bundles = [run(path, release_id) for release_id in ("r1", "r2")]
    with pytest.raises(BudgetError, match="rho: asked"):
        run(path, "r3")
    plan_document["budget"]["granted"] = {"alpha": "3", "beta": "1e-6"}
    with pytest.raises(BudgetError, match="says that survey was granted alpha = 3"):
        run(write_plan(plan_path.parent, plan_document), "r4")
    plan_document["budget"]["granted"] = granted
    write_plan(plan_path.parent, plan_document)
    plan, ledger = load_plan(path), Ledger(ledger_url())
    assert ledger.remaining("survey") == Budget()
    for bundle in bundles:
        manifest = read_manifest(bundle)
        verify_files(bundle, manifest)
        assert verify_budget(manifest, ledger) == plan.requested
        assert manifest.guarantee.composition == "concentrated"
        assert manifest.guarantee.budget == plan.promise
        assert 2 < manifest.guarantee.alpha < 4  # two of them keep 4
        assert "zero-concentrated differential privacy" in manifest.guarantee.statement
        assert "zero-concentrated" in (bundle / "registry.yaml").read_text()
        assert "rho spent, of all that was granted" in (bundle / "report.html").read_text()


@pytest.mark.slow
def test_a_release_that_is_paid_for_outlives_a_new_kind_of_grant(plan_path):
    bundle = run(plan_path)
    ledger = Ledger(ledger_url())
    ledger.grant("survey", Budget.of(2, "1e-6"), "A. Officer", "test", "concentrated")
    assert run(plan_path) == bundle
    shutil.rmtree(bundle)
    assert run(plan_path) == bundle  # published again from the same draws
    with pytest.raises(BudgetError, match="the ledger records a concentrated grant"):
        run(plan_path, "r2")


def test_synthetic_records_are_in_the_survey_s_own_columns_and_types(published, survey):
    bundle = published.bundle
    table = pq.read_table(bundle / "microdata" / "everybody.parquet")
    assert table.column_names == ["sex", "region", "children", "income"]
    assert [str(field.type) for field in table.schema] == ["string", "string", "int64", "double"]
    records = table.to_pandas()
    assert len(records) == ROWS
    assert set(records["region"].dropna()) <= {"north", "south", "east", "west"}
    assert records["region"].isna().any()
    assert records["income"].between(0, 9000).all()
    assert records["income"].nunique() > 0.9 * ROWS  # from the density, not bin midpoints
    whole = pd.read_parquet(bundle / "tables" / "pairs.sex.children.parquet")
    counted = records.groupby(["sex", "children"]).size()
    published = whole.set_index(["sex", "children"])["count"]
    assert counted.reindex(published.index, fill_value=0).equals(published)
    ages = pd.read_parquet(bundle / "microdata" / "from-density.parquet")
    assert ages["age"].between(18, 89).all()
    assert ages["age"].dtype == "int64"


def test_the_manifest_says_what_was_promised_and_hides_where_the_survey_lies(published):
    text = (published.bundle / "manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["guarantee"]["epsilon"] == "4"
    assert manifest["guarantee"]["delta"] == "1/1000000"
    assert manifest["plan"]["rows"] == ROWS
    assert str(published.plan_path.parent) not in text
    assert {record["refined_by"].get("income") for record in manifest["synthesis"]} == {
        "wealth",
        None,
    }


@pytest.mark.slow
def test_running_again_charges_and_draws_nothing(bundle, plan_path):
    before = {path: path.read_bytes() for path in bundle.rglob("*.*")}
    os.remove(plan_path.parent / "survey.parquet")  # not even the survey is needed
    assert run(plan_path) == bundle
    assert {path: path.read_bytes() for path in bundle.rglob("*.*")} == before
    assert Ledger(ledger_url()).spent("survey") == Budget.of("4", "1e-6")


@pytest.mark.slow
def test_retry_after_crash_publishes_the_same_noise(bundle, plan_path):
    tables = {path.name: path.read_bytes() for path in bundle.rglob("*.parquet")}
    bundle.rename(bundle.parent / "gone")  # as if it had died before publication
    os.remove(plan_path.parent / "survey.parquet")
    again = run(plan_path)
    assert {path.name: path.read_bytes() for path in again.rglob("*.parquet")} == tables
    assert Ledger(ledger_url()).spent("survey") == Budget.of("4", "1e-6")


@pytest.mark.slow
def test_another_release_pays_and_draws_again_while_the_budget_lasts(bundle, plan_path):
    other = run(plan_path, "r2")
    name = "tables/people.parquet"
    assert (bundle / name).read_bytes() != (other / name).read_bytes()
    assert Ledger(ledger_url()).spent("survey") == Budget.of("8", "2e-6")
    os.remove(plan_path.parent / "survey.parquet")  # reading it would be another error
    with pytest.raises(BudgetError, match="alpha"):
        run(plan_path, "r3")
    assert not (bundle.parent / "r3").exists()


@pytest.mark.slow
def test_a_plan_that_claims_more_than_the_ledger_granted_is_refused(
    bundle, plan_path, plan_document
):
    plan_document["budget"]["granted"]["alpha"] = "1000"
    write_plan(plan_path.parent, plan_document)
    with pytest.raises(BudgetError, match=r"budget\.granted"):
        run(plan_path, "r9")
    Ledger(ledger_url()).grant("survey", Budget.of("990"), who="board", why="extended")
    run(plan_path, "r9")


@pytest.mark.slow
def test_a_lost_ledger_and_an_old_copy_of_one_stop_the_release(bundle, plan_path, own_home):
    ledger = own_home / "ledger.sqlite"
    old = ledger.read_bytes()
    ledger.unlink()
    with pytest.raises(LedgerError, match="this ledger has no charge for it"):
        run(plan_path, "r2")
    assert not (bundle.parent / "r2").exists()
    ledger.write_bytes(old)
    run(plan_path, "r2")
    ledger.write_bytes(old)
    with pytest.raises(LedgerError, match="this ledger has no charge for it"):
        run(plan_path, "r3")


@pytest.mark.slow
def test_a_table_that_breaks_its_plan_spends_nothing_and_waits_for_no_audit(
    plan_path, survey, monkeypatch
):
    monkeypatch.setattr("flows.course.audit_shortly", lambda _: pytest.fail("audited"))
    survey.loc[3, "age"] = 17
    survey.loc[4, "sex"] = "SECRET_7391"
    survey.to_parquet(plan_path.parent / "survey.parquet")
    with pytest.raises(DataError) as caught:
        run(plan_path)
    message = str(caught.value)
    assert "age" in message
    assert "sex" in message
    assert "SECRET" not in message
    assert "17" not in message
    assert caught.value.__context__ is None
    assert Ledger(ledger_url()).spent("survey") == Budget()


@pytest.mark.slow
def test_what_holds_private_values_is_gone_after_the_run_also_after_a_killed_one(
    bundle, plan_path, own_home
):
    assert [path.name for path in (own_home / "private").iterdir()] == [".lock"]
    assert not (own_home / "failures").exists()
    abandoned = own_home / "private" / "survey.r0.abc"
    abandoned.mkdir()
    (abandoned / "in-use").touch()
    (abandoned / "survey.duckdb").write_text("secret")
    staging = bundle.parent / ".r2.0.staging"
    staging.mkdir()
    claim_outside(abandoned, staging)
    run(plan_path)
    assert not abandoned.exists()
    run(plan_path, "r2")
    assert sorted(os.listdir(bundle.parent)) == ["r1", "r2"]


@pytest.mark.slow
def test_a_failed_run_leaves_no_file_with_its_error(plan_path):
    from prefect.settings import get_current_settings

    stored = get_current_settings().results.local_storage_path
    before = {*stored.glob("*")}
    (plan_path.parent / "survey.parquet").unlink()
    with pytest.raises(InputError, match=r"survey\.parquet"):
        run(plan_path)
    assert {*stored.glob("*")} == before


def test_a_workspace_in_use_is_left_alone(own_home):
    with private_workspace("survey", "r1") as workspace:
        remove_abandoned()
        assert workspace.is_dir()
    assert not workspace.exists()


@pytest.mark.slow
def test_a_seeded_draw_is_never_published(plan_path, monkeypatch):
    monkeypatch.setattr("tasks.draw.SystemSource", lambda: SeededSource(1))
    with pytest.raises(BundleError, match="seeded source"):
        run(plan_path)
    assert not (plan_path.parent / "out" / "survey" / "r1").exists()


def test_an_operator_finds_a_run_by_its_dataset_and_sees_its_artifacts(published):
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        keys = {artifact.key for artifact in client.read_artifacts(limit=200)}
        assert {"release-summary", "budget", "bundle"} <= keys
        assert any("survey" in run.tags for run in client.read_flow_runs())
