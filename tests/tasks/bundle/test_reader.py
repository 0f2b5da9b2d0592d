"""The reader, and the page that shows how a bundle is used, on the bundle of the demo."""

import re
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import pytest

from dpcore.errors import InputError
from dpcore.estimates.estimate import Estimate
from tasks.bundle.reader import BundleReader
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "pages" / "how-to" / "use-a-bundle.md"
TABLE = "all-pairs.rate_marriage.affairs"

BROUGHT = {
    "markupsafe",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
}
"""What pydantic and jinja2 bring."""

ALONE = """
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

path, *allowed = sys.argv[1:]
hidden = set(packages_distributions()) - {*allowed, "dpcore", "papers", "schemas", "tasks"}
assert {"prefect", "duckdb", "pandas", "sqlalchemy"} <= hidden


class Hide:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Hide())
from tasks.bundle.reader import BundleReader

bundle = BundleReader.open(Path(path))
print(round(bundle.total("all-pairs.rate_marriage.affairs").value))
print(len(bundle.evaluate("affairs-density", {"affairs": [1.0]})["estimate"]))
print(len(bundle.sample("respondents", 50)["age"]))
"""


@pytest.fixture(scope="module")
def folder(demo):
    """The folder in which ``published/fair-1978/demo`` lies."""
    return demo.parents[2]


@pytest.fixture(scope="module")
def bundle(demo) -> BundleReader:
    return BundleReader.open(demo)


MODELS = PAGE.with_name("models.md")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def test_the_page_s_python_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    names: dict = {}
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    assert "children x affairs" in capsys.readouterr().out
    assert names["unhappy"].standard_error > 0


def test_the_python_of_the_page_on_models_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", MODELS.read_text(), re.S):
        exec(compile(block, str(MODELS), "exec"), names)
    assert "rate_marriage" in capsys.readouterr().out
    assert names["found"]["rate_marriage"].privacy_error > 0


def test_the_page_s_sql_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (sql,) = blocks("sql")
    answers = [duckdb.sql(query).fetchall() for query in sql.split(";") if query.strip()]
    assert [len(answer) for answer in answers] == [6]


def test_a_sum_has_the_error_of_agreeing_tables(bundle):
    """Summed to one column, it is the same number with the same error from any table."""
    sums = [
        bundle.total(table, lambda t: t["rate_marriage"] == 2)
        for table in (TABLE, "all-pairs.rate_marriage.age", "all-pairs.rate_marriage.educ")
    ]
    for other in sums[1:]:
        assert other.value == pytest.approx(sums[0].value)
        assert other.standard_error == pytest.approx(sums[0].standard_error)
    columns = bundle.table(TABLE)
    naive = np.sqrt((columns["standard_error"][columns["rate_marriage"] == 2] ** 2).sum())
    assert sums[0].standard_error < 0.8 * naive
    everybody = bundle.total(TABLE)
    assert everybody.value == pytest.approx(6366)
    assert everybody.standard_error == pytest.approx(0, abs=1e-5)


def test_two_tables_of_two_releases_give_one_answer_better_than_either(bundle):
    columns = bundle.table("marriage-and-affairs")
    chosen = columns["age"] == 22.0
    found = bundle.total("marriage-and-affairs", chosen)
    assert bundle.sources("marriage-and-affairs") == ["marriage-and-affairs", "all-pairs"]
    alone = columns["standard_error"][0] * chosen.sum() ** 0.5
    assert found.standard_error < 0.7 * alone
    assert abs(found.value - columns["noisy_count"][chosen].sum()) < 5 * alone
    pairs = bundle.total("all-pairs.age.affairs", lambda t: t["age"] == 22.0)
    assert pairs.value == pytest.approx(found.value)
    assert pairs.standard_error == pytest.approx(found.standard_error)
    best = bundle.best("marriage-and-affairs")
    assert list(best)[-4:] == ["estimate", "standard_error", "lower_90", "upper_90"]
    assert best["estimate"][chosen].sum() == pytest.approx(found.value)
    assert best["standard_error"].max() < columns["standard_error"].min()
    difference = found - Estimate(100.0, found.standard_error)
    assert difference.standard_error == pytest.approx(2**0.5 * found.standard_error)
    share = found / 6366
    assert share.value * 6366 == pytest.approx(found.value)
    assert share.interval[0] * 6366 == pytest.approx(found.interval[0])
    assert difference.interval[1] - difference.value == pytest.approx(
        1.6448536 * difference.standard_error
    )


def test_a_density_evaluated_at_the_grid_is_the_published_one(bundle):
    published = bundle.table("affairs-density")
    found = bundle.evaluate("affairs-density", {"affairs": published["affairs"]})
    for name in ("estimate", "standard_error", "lower_90", "upper_simultaneous_90"):
        np.testing.assert_allclose(found[name], published[name], rtol=1e-6, atol=1e-12)
    with pytest.raises(InputError, match="affairs must lie in"):
        bundle.evaluate("affairs-density", {"affairs": [61.0]})


def test_a_classifier_evaluated_by_hand_from_its_published_coefficients(bundle):
    point = {"rate_marriage": [2], "age": [32.0], "yrs_married": [9.0], "religious": [1]}
    found = bundle.evaluate("affairs-classifier", point)
    facts = next(r.facts for r in bundle.manifest.releases if r.name == "affairs-classifier")
    table, phase = bundle.table("affairs-classifier"), 0.0
    for name, (value,) in point.items():
        scaling = facts["coordinates"][name]
        phase = phase + table[f"w_{name}"] * (value - scaling["lower"]) / scaling["width"]
    by_hand = table["cos"] @ np.cos(phase) + table["sin"] @ np.sin(phase)
    assert found["decision"][0] == pytest.approx(by_hand)
    assert found["standard_error"][0] == pytest.approx(facts["decision_standard_error"])
    assert 0 < found["sign_error"][0] <= 0.5


def test_sampling_as_many_records_gives_the_published_ones_and_more_are_more(bundle):
    again = bundle.sample("respondents", 6366)
    published = bundle.table("microdata/respondents")
    assert all(np.array_equal(again[name], published[name]) for name in published)
    more = bundle.sample("respondents", 10_000)
    assert len(more["age"]) == 10_000
    shares = [pd.Series(r["children"]).value_counts(normalize=True) for r in (more, published)]
    assert (
        shares[0] - shares[1]
    ).abs().max() < 0.05  # six times what two independent draws differ by


def test_what_is_not_there_is_told_with_what_is(bundle):
    with pytest.raises(InputError, match=r"has no table 'nothing'; did you mean .*, .* or [^,]*"):
        bundle.table("nothing")
    with pytest.raises(InputError, match="has no release 'nothing'"):
        bundle.draw("nothing")
    with pytest.raises(InputError, match="has no synthetic table"):
        bundle.sample("nothing", 3)
    with pytest.raises(InputError, match="not a function"):
        bundle.evaluate("all-pairs", {})
    with pytest.raises(InputError, match="cannot be added up"):
        bundle.total("affairs-density")
    with pytest.raises(InputError, match="one weight for each"):
        bundle.total(TABLE, [1.0])


def test_questions_of_the_wrong_type_are_refused_in_words(bundle):
    with pytest.raises(InputError, match=r"no row is chosen; .*rate_marriage \(int\): 1, 2, 3"):
        bundle.total(TABLE, lambda t: t["rate_marriage"] == 17)
    with pytest.raises(
        InputError, match=r"no column 'affairs'; did you mean 'affairs_to', .*NAME_from and NAME_to"
    ):
        bundle.total(TABLE, lambda t: t["affairs"] > 0)
    count = len(bundle.table(TABLE)["rate_marriage"])
    for wrong in (np.nan, np.inf):
        with pytest.raises(InputError, match="must be finite"):
            bundle.total(TABLE, np.full(count, wrong))
    with pytest.raises(InputError, match="must be numbers"):
        bundle.total(TABLE, ["yes"] * count)
    for points in ({"affairs": ["text"]}, {"affairs": None}, None):
        with pytest.raises(InputError, match="affairs-density: map each of"):
            bundle.evaluate("affairs-density", points)
    for rows in (2.5, -1, 0, True):
        with pytest.raises(InputError, match="positive whole number"):
            bundle.sample("respondents", rows)


def test_the_reader_works_where_nothing_but_what_the_page_names_is_installed(folder):
    """Every other package is hidden from it; pandas and formulaic are for frames and models alone."""
    (line,) = re.findall(r"^pip install (numpy scipy .*)$", PAGE.read_text(), re.M)
    named = {"pyyaml": "yaml"}
    needed = set(line.split()) - {"pandas", "formulaic"}
    allowed = {named.get(name, name) for name in needed} | BROUGHT
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(folder / "published/fair-1978/demo"), *allowed],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["6366", "1", "50"]
