"""What a ledger may know as private is not compared unless the user says that nothing leaves."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError, LedgerError, PlanError
from schemas.plan import load_plan
from schemas.survey.source import TableSource
from tasks.evaluate.public import require_public
from tasks.ledger import Ledger


@pytest.fixture
def real(tmp_path, survey) -> Path:
    path = tmp_path / "real.parquet"
    survey.iloc[::-1].to_parquet(path)
    return path


@pytest.fixture
def synthetic(tmp_path, survey) -> Path:
    path = tmp_path / "synthetic.csv"
    survey.to_csv(path)
    return path


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    ledger.grant("wages", Budget.of("1"), who="A. Officer", why="a test")
    return ledger


def test_without_a_ledger_and_plans_any_table_is_public(real, synthetic):
    require_public(real, synthetic, None)


def test_a_dataset_that_the_ledger_knows_is_refused(real, synthetic, ledger):
    with pytest.raises(InputError, match="knows the dataset wages as private; compare anyway with"):
        require_public(real, synthetic, ledger, "wages")


def test_a_table_without_a_name_is_refused_while_the_ledger_knows_any(real, synthetic, ledger):
    with pytest.raises(InputError, match=r"one of the \d datasets .*name its dataset with"):
        require_public(real, synthetic, ledger)
    require_public(real, synthetic, ledger, "fair-1978")


def test_a_plan_names_its_dataset(real, synthetic, ledger, plan_path):
    plan = load_plan(plan_path)
    require_public(real, synthetic, ledger, plan=plan)
    ledger.grant("survey", Budget.of("1"), who="A. Officer", why="a test")
    with pytest.raises(InputError, match="the dataset survey as private"):
        require_public(real, synthetic, ledger, "another-name", plan)


def test_synthetic_records_out_of_a_bundle_name_the_dataset_they_were_made_of(
    real, tmp_path, ledger, survey
):
    path = tmp_path / "records.parquet"
    table = pa.Table.from_pandas(survey).replace_schema_metadata({"dprelease.dataset": "wages"})
    pq.write_table(table, path)
    with pytest.raises(InputError, match="the dataset wages as private"):
        require_public(real, path, ledger, "another-name")


@pytest.mark.parametrize("copied", [False, True])
def test_the_survey_of_a_plan_is_refused_by_any_name_and_without_a_ledger(
    plan_path, tmp_path, synthetic, copied
):
    survey = tmp_path / "survey.parquet"
    if copied:
        survey = Path(shutil.copy(survey, tmp_path / "innocent.parquet"))
    with pytest.raises(InputError, match="is private: it is the survey table of the plan"):
        require_public(survey, synthetic, None, "another-name", load_plan(plan_path))


def test_the_survey_of_a_plan_in_the_agency_s_folder_is_refused(
    plan_path, synthetic, real, monkeypatch
):
    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    with pytest.raises(InputError, match=r"is the survey table of plan\.yaml"):
        require_public(plan_path.parent / "survey.parquet", synthetic, None)
    require_public(real, synthetic, None)


def test_a_plan_or_a_ledger_that_cannot_be_read_refuses_too(
    plan_path, real, synthetic, monkeypatch, tmp_path
):
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database" * 1000)
    with pytest.raises(LedgerError):
        require_public(real, synthetic, Ledger(f"sqlite:///{damaged}", create=False))
    (plan_path.parent / "draft.yaml").write_text("dataset: FILL-IN")
    monkeypatch.setenv("DPRELEASE_PLANS", str(plan_path.parent))
    with pytest.raises(PlanError):
        require_public(real, synthetic, None)


def test_a_source_inside_a_package_or_a_database_is_looked_at(plan_path, tmp_path, synthetic):
    plan = load_plan(plan_path)
    inside = plan.model_copy(update={"source": "package://dpcore/__init__.py"})
    packaged = Path(__import__("dpcore").__file__)
    with pytest.raises(InputError, match="is the survey table"):
        require_public(packaged, synthetic, None, plan=inside)
    database = TableSource(database=str(tmp_path / "survey.parquet"), table="persons")
    attached = plan.model_copy(update={"source": database})
    with pytest.raises(InputError, match="is the survey table"):
        require_public(tmp_path / "survey.parquet", synthetic, None, plan=attached)
    missing = plan.model_copy(update={"source": str(tmp_path / "gone.parquet")})
    require_public(tmp_path / "survey.parquet", synthetic, None, plan=missing)


def test_reading_a_table_of_the_pair_is_not_what_decides(tmp_path, ledger, survey):
    """The real file's own words cannot make it public."""
    path = tmp_path / "real.parquet"
    table = pa.Table.from_pandas(survey).replace_schema_metadata({"dprelease.dataset": "fair"})
    pq.write_table(table, path)
    other = tmp_path / "synthetic.parquet"
    pd.DataFrame(survey).to_parquet(other)
    with pytest.raises(InputError, match="may be the table of one of"):
        require_public(path, other, ledger)
