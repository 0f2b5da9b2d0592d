"""Implicates: their files, what R, Python and SQL make of them, and how often intervals hold."""

import contextlib
import io
import re
import shutil
import subprocess

import duckdb
import numpy as np
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from dpcore.estimates.combine import combine
from schemas.bundle.manifest import IMPLICATES
from schemas.plan import Plan, load_plan
from tasks.bundle.reader import BundleReader
from tasks.explain.explain import implicates_text
from tests.conftest import ROOT, plan_of_every_kind
from tests.tasks import made_up
from tests.tasks.made_up import opened_once, publish_made_up

PAGE = ROOT / "docs" / "pages" / "how-to" / "use-a-bundle.md"
PACKAGES = "library(survey); library(mitools)"
RUBIN = """
WITH each AS (
  SELECT religious, implicate, avg(rate_marriage) AS q, var_samp(rate_marriage) / count(*) AS u
  FROM 'published/fair-1978/demo/microdata/respondents.implicates.parquet' GROUP BY ALL),
parts AS (
  SELECT religious, avg(q) AS estimate, avg(u) AS u, (1 + 1.0 / count(*)) * var_samp(q) AS b,
    count(*) AS m FROM each GROUP BY religious)
SELECT religious, estimate, sqrt(u) AS sampling, sqrt(b) AS privacy, (m - 1) * (1 + u / b) ^ 2 AS degrees
FROM parts ORDER BY religious;
"""


def with_implicates(plan_document):
    plan_document["releases"] = [r for r in plan_document["releases"] if r["name"] == "pairs"]
    plan_document["synthesis"] = [
        {"name": "everybody", "from": "pairs", "rows": 100, "implicates": 5}
    ]
    plan_document["budget"]["granted"] = plan_document["budget"]["requested"] | {"alpha": "4"}
    return plan_document


@pytest.fixture
def document(plan_document):
    return with_implicates(plan_document)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    document = with_implicates(plan_of_every_kind())
    return opened_once(tmp_path_factory.mktemp("implicates"), document)


@pytest.mark.slow
def test_implicates_are_one_file_beside_the_records_which_says_how_to_use_it(bundle):
    (record,) = bundle.manifest.synthesis
    path = bundle.path / record.implicates.path
    assert record.implicates.path == "microdata/everybody.implicates.parquet"
    found = pq.read_table(path).to_pandas()
    assert found.groupby("implicate").size().to_dict() == dict.fromkeys(range(1, 6), 400)
    assert set(found) - {"implicate"} == {"sex", "region", "children", "income"}
    assert pq.read_schema(path).metadata[b"dprelease.warning"].decode() == IMPLICATES
    assert IMPLICATES in (bundle.path / "README.md").read_text()
    assert record.spread.path in (bundle.path / "report.html").read_text()
    several = bundle.implicates("everybody")
    assert [len(each["sex"]) for each in several] == [400] * 5
    assert len(bundle.table("microdata/everybody")["sex"]) == 100
    assert any(np.any(each["children"] != several[0]["children"]) for each in several[1:])


def test_the_spread_of_slopes_is_graded_by_pairs(bundle):
    spread = bundle.table("microdata/everybody.implicates.spread")
    assert 0 < len(spread["columns"]) <= 6
    assert set(spread["grade"]) <= {"enough", "too little"}
    fine = (spread["spread"] >= 0.6) & (np.abs(spread["distance"]) <= 0.5)
    assert np.all(fine == (spread["grade"] == "enough"))


def test_they_cost_no_budget_and_explain_says_how_large_they_are(document):
    plan = Plan.model_validate(document)
    document["synthesis"][0].pop("implicates")
    assert plan.prices == Plan.model_validate(document).prices
    assert "5 implicates, a file of at most 0.064 MB" in "\n".join(implicates_text(plan))
    assert implicates_text(Plan.model_validate(document)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"implicates": 4}, "greater than or equal to 5"),
        ({"derived": {"Implicate": "children * 2"}}, "rename the plan's 'Implicate'"),
    ],
)
def test_a_plan_that_cannot_have_them_is_refused(document, change, said):
    document["synthesis"][0] |= change
    with pytest.raises(ValueError, match=said):
        Plan.model_validate(document)


def block(language: str, title: str) -> str:
    found = re.search(rf'```{language} title="{title}"\n(.*?)\n```', PAGE.read_text(), re.S)
    return found[1]


def has_r() -> bool:
    return (
        bool(shutil.which("Rscript"))
        and not subprocess.run(
            ["Rscript", "-e", PACKAGES], capture_output=True, check=False
        ).returncode
    )


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The demo's survey released with implicates, as the page has it."""
    plan = load_plan(ROOT / "deployments" / "plans" / "fair.yaml")
    document = plan.model_dump(mode="json", by_alias=True, exclude_unset=True)
    document["synthesis"][0]["implicates"] = 10
    document.pop("analyses", None)
    # Little noise: where it is large, some implicate of a made-up survey separates the answers.
    for amount in ("granted", "requested"):
        document["budget"][amount] |= {"alpha": "40"}
    names = ("marriage-and-affairs", "all-pairs")
    document["releases"] = [r for r in document["releases"] if r["name"] in names]
    monkeypatch.setattr(made_up, "OCCUPIED", 3000)
    path = publish_made_up(Plan.model_validate(document), "demo", tmp_path / "published")
    monkeypatch.chdir(tmp_path)
    return path


@pytest.mark.slow
def test_the_python_and_r_of_the_page_and_sql_give_the_same_answers(demo):
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(block("python", "implicates.py"), names)
    found = names["found"]
    sql = duckdb.sql(RUBIN).fetchall()
    frames = BundleReader.open(demo).implicates("respondents")
    means = [each["rate_marriage"][each["religious"] == 4].astype(float) for each in frames]
    own = combine([[m.mean()] for m in means], [[m.var(ddof=1) / len(m)] for m in means])
    assert sql[3][1:] == pytest.approx(
        (own.estimate[0], own.sampling_error[0], own.privacy_error[0], own.degrees[0])
    )
    if not has_r():
        pytest.skip("R's packages survey and mitools are not installed")
    path = "microdata/respondents.implicates.parquet"
    csv.write_csv(pq.read_table(demo / path), demo / "implicates.csv")
    code = block("r", "implicates.R").replace(
        f'arrow::read_parquet("{path}")', 'read.csv("implicates.csv")'
    )
    code += "\ncat(sprintf('%.12g %.12g %.12g\\n', coef(found), sqrt(diag(vcov(found))), found$df))"
    done = subprocess.run(
        ["Rscript", "-e", code], cwd=demo, check=True, capture_output=True, text=True
    )
    numbers = [[float(n) for n in line.split()] for line in done.stdout.splitlines()[-3:]]
    by_r = np.array(numbers).T
    assert by_r[0] == pytest.approx(found.estimate, rel=1e-5)
    assert by_r[1] == pytest.approx(found.standard_error, rel=1e-3)
    assert by_r[2] == pytest.approx(found.degrees, rel=1e-2)
