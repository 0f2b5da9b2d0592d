"""The README of a bundle runs as it is written, and its errors are those that are exact."""

import contextlib
import hashlib
import html
import io
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from dpcore.errors import BundleError
from schemas.plan import Plan
from tasks.bundle.reader import BundleReader
from tests.shortest import document
from tests.tasks.made_up import publish_made_up
from tests.tasks.made_up_series import published

COLUMNS = {
    "sex": {"type": "categorical", "categories": ['"F"', "it's M"], "nullable": True},
    "old": {"type": "categorical", "categories": [False, True]},
    "kids": {"type": "integer", "bounds": [0, 3]},
}
MARGINS = {"name": "tables", "kind": "margins", "columns": ["sex", "old", "kids"], "ways": [2]}
CONDITION = {"column": "old", "categories": [True]}
SMALL = {f"c{i}": {"type": "integer", "bounds": [0, 1]} for i in range(13)}
OTHERS = {
    "many": MARGINS | {"name": "many", "columns": [*MARGINS["columns"], *SMALL]},
    "histogram": {"name": "all", "kind": "histogram", "columns": ["old", "kids"]},
    "bins": {"name": "all", "kind": "histogram", "columns": ["kids"]},
    "count": {"name": "adults", "kind": "count", "condition": CONDITION},
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DPRELEASE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPRELEASE_LEDGER", raising=False)
    return tmp_path


def made(folder: Path, *releases: dict, columns: dict | None = None, **publication: object) -> Path:
    more = {"rows": 2000, "publication": {"title": "People", "csv": True} | publication}
    plan = document(columns or COLUMNS, releases, alpha="6", **more)
    return publish_made_up(Plan.model_validate(plan), "r", folder)


@pytest.fixture(scope="module")
def margins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("margins")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(work / "home"))
        return made(work, MARGINS)


@pytest.fixture
def bundle(margins: Path, tmp_path: Path) -> Path:
    """Its own copy for a test that changes it."""
    return shutil.copytree(margins, tmp_path / "bundle")


def block(bundle: Path, language: str, page: str = "replicates/README.md") -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)\n```", (bundle / page).read_text(), re.S)
    return found


def by_pandas(bundle: Path) -> list[float]:
    said = io.StringIO()
    with contextlib.chdir(bundle), contextlib.redirect_stdout(said):
        exec(block(bundle, "python"), {})
    return [float(number) for number in said.getvalue().split()]


def by_sql(bundle: Path) -> list[float]:
    with contextlib.chdir(bundle):
        (row,) = duckdb.connect().sql(block(bundle, "sql")).fetchall()
    return list(row)


def by_r(bundle: Path) -> list[float]:
    done = subprocess.run(
        ["Rscript", "-e", block(bundle, "r")],
        cwd=bundle,
        check=True,
        capture_output=True,
        text=True,
    )
    return [float(n) for line in done.stdout.splitlines() for n in line.split()[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["margins", *OTHERS])
def test_pandas_and_sql_give_the_same_errors(home, margins, kind):
    columns = COLUMNS | (SMALL if kind == "many" else {})
    bundle = margins if kind == "margins" else made(home, OTHERS[kind], columns=columns)
    assert by_sql(bundle) == pytest.approx(by_pandas(bundle), rel=1e-4, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["body mass", "उम्र", "𠀀"])
def test_the_lines_run_for_names_in_any_script_and_with_blanks(home, name):
    columns = {name: {"type": "categorical", "categories": ["ж 'ж'", "𠀀"]}}
    bundle = made(home, OTHERS["histogram"] | {"columns": [name]}, columns=columns)
    assert by_sql(bundle) == pytest.approx(by_pandas(bundle), rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_a_series_is_read_one_quantity_at_a_time(home):
    bundle = published(home, 1, 2)[1]
    assert "quantity" in block(bundle, "sql")
    assert by_sql(bundle) == pytest.approx(by_pandas(bundle), rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_the_error_of_the_page_is_the_exact_one_but_for_chance(home):
    bundle = made(home, MARGINS, replicates=200)
    opened = BundleReader.open(bundle)
    name = re.search(r"tables/(.*?)\.parquet", block(bundle, "python"))[1]
    exact = opened.total(name, lambda t: t["sex"] == '"F"')
    value, error = by_pandas(bundle)[:2]
    assert value == pytest.approx(exact.value)
    assert error == pytest.approx(exact.standard_error, rel=0.25)


CODES = [
    *(["01", "02"], ["F", "T"], ["NA", "N/A"], ["", "x"], ["1e1", "10"], ["#1", "a,b"]),
    *(["<=50K", ">50K"], ["*", "a"], ["?", "b"], ["~*a", "~a"], [">1", "2"], [" a", "b"]),
    *([1, 2], [0.1, 0.25], [True, False]),
]
"""Categories that a program may take for something else."""


def coded(folder: Path, categories: list, nullable: bool = True) -> Path:
    columns = {"code": {"type": "categorical", "categories": categories, "nullable": nullable}}
    release = {"name": "codes", "kind": "histogram", "columns": ["code", "kids"]}
    return made(folder, release, columns=columns | {"kids": COLUMNS["kids"]})


@pytest.mark.slow
@pytest.mark.parametrize("categories", [None, *CODES], ids=str)
def test_sql_and_r_take_a_category_for_itself(home, margins, categories):
    bundle = margins if categories is None else coded(home, categories)
    pandas = by_pandas(bundle)
    assert by_sql(bundle) == pytest.approx(pandas, rel=1e-4, abs=1e-4)
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    assert by_r(bundle) == pytest.approx(pandas, rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_a_bundle_without_replicates_says_what_to_use_instead(home):
    thresholded = OTHERS["histogram"] | {"mechanism": "thresholded-laplace"}
    bundle = made(home, thresholded, MARGINS, replicates=0, csv=False)
    text = (bundle / "README.md").read_text()
    assert "replicate_" not in text
    assert "do not add them up" in text
    assert "the Python reader for sums" in text
    assert not list(bundle.glob("tables/*.csv"))


def test_a_csv_file_that_is_missing_or_changed_is_noticed(bundle):
    path = next(bundle.glob("tables/*.csv"))
    listed = (bundle / "SHA256SUMS").read_text().splitlines(keepends=True)
    path.unlink()
    (bundle / "SHA256SUMS").write_text(
        "".join(line for line in listed if f"tables/{path.name}" not in line)
    )
    with pytest.raises(BundleError, match="CSV files"):
        BundleReader.open(bundle)


def test_a_csv_file_with_other_numbers_is_noticed_though_its_digest_was_changed_too(bundle):
    path, sums = next(bundle.glob("tables/*.csv")), bundle / "SHA256SUMS"
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(path.read_text().replace("1", "2"))
    after = hashlib.sha256(path.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(before, after))
    with pytest.raises(BundleError, match="CSV files"):
        BundleReader.open(bundle)


def test_an_empty_folder_that_was_added_is_noticed(bundle):
    (bundle / "tables" / "more").mkdir()
    with pytest.raises(BundleError, match="tables/more is a folder without its files"):
        BundleReader.open(bundle)


def test_csv_files_hold_what_parquet_files_hold(bundle):
    for path in bundle.glob("tables/*.parquet"):
        beside = bundle / "replicates" / path.name
        for each, column in ((path, "estimate"), (beside, "replicate_40")):
            frame, again = pd.read_parquet(each), pd.read_csv(each.with_suffix(".csv"))
            assert list(frame) == list(again)
            assert np.allclose(frame[column], again[column])
        assert len(frame) == len(pd.read_parquet(path))
        assert frame["replicate_40"].dtype == np.float32


def test_the_first_page_opens_a_table_in_each_language(margins):
    bundle = margins
    said = io.StringIO()
    with contextlib.chdir(bundle), contextlib.redirect_stdout(said):
        exec(block(bundle, "python", "README.md"), {})
        (*_, number, lower, upper) = (
            duckdb.connect().sql(block(bundle, "sql", "README.md")).fetchall()[0]
        )
    assert lower < number < upper
    assert f"{number:.3f}"[:4] in said.getvalue()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_first_page_opens_a_table_in_r(margins):
    shown = subprocess.run(
        ["Rscript", "-e", block(margins, "r", "README.md")],
        cwd=margins,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "lower_90" in shown


@pytest.mark.slow
def test_a_title_is_text_and_not_markup(home):
    title = "A & B *all* ![x](https://example.org/x.png)"
    page = (made(home, MARGINS, title=title) / "README.md").read_text()
    heading = MarkdownIt().render(page).split("</h1>")[0].removeprefix("<h1>")
    assert html.unescape(heading) == title
    assert "<" not in heading
