"""The report of a bundle: sound, self-contained, and the same every time."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.accounting.budget import Budget
from schemas.bundle.grades import grade
from schemas.plan import Plan, load_plan
from tasks.bundle.verify import read_manifest
from tasks.ledger import Ledger
from tasks.report import REPORT, findings, report_page
from tasks.report.analyses import estimate_row
from tasks.report.support import how_supported, support_table
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan
from tests.conftest import ROOT
from tests.tasks.made_up import opened_once, publish_made_up
from tests.tasks.report.pages import page_of, part_of

PLANS = {path.stem: path for path in sorted((ROOT / "deployments" / "plans").glob("*.yaml"))}

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"' onload='alert(1)' x=\"",
    "{{ 7 * 7 }} {% raw %}",
    "abc \u05e9\u05dc\u05d5\u05dd",
    "&lt;b&gt; ]]> <!-- -->",
    "very long " * 40,
    "表" * 60,
]


@pytest.fixture
def plan(plan_path: Path) -> Plan:
    return load_plan(plan_path)


@pytest.fixture
def bundle(every_kind: Path, tmp_path: Path, own_home: Path) -> Path:
    shutil.copytree(every_kind / "home", own_home)
    shutil.copytree(every_kind / "out", tmp_path / "out")
    return next((tmp_path / "out").glob("*/r1"))


def fewer(document: dict, *more: str) -> dict:
    """The plan with two releases and one table of records, and with others by their names."""
    kept = ("people", "pairs", *more)
    releases = [section for section in document["releases"] if section["name"] in kept]
    return document | {"releases": releases, "synthesis": document["synthesis"][:1]}


def words_of(bundle: Path) -> str:
    return " ".join(page_of(bundle).words.split())


def made_again(plan: Plan, bundle: Path) -> str:
    history = Ledger(ledger_url()).history(plan.dataset)
    manifest = read_manifest(bundle)
    return report_page(plan, manifest, bundle, history, findings(plan, manifest, bundle))


@pytest.mark.slow
def test_a_worked_plan_has_a_sound_report(tmp_path, short_fits):
    plan = load_plan(PLANS["fair"], {"source": "nowhere.parquet"})
    bundle = publish_made_up(plan, "r1", tmp_path)
    words = words_of(bundle)
    assert plan.publication.title in words
    for name in [*plan.built, *(table.name for table in plan.synthesis)]:
        assert name in words
    assert (bundle / REPORT).stat().st_size < 1_000_000
    assert made_again(plan, bundle) == (bundle / REPORT).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_page_without_script_that_may_load_nothing(bundle):
    page = page_of(bundle)
    assert not list(page.all("script", "iframe", "object", "img"))
    policies = [
        node.attributes["content"]
        for node in page.all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_it_says_what_is_promised_in_words_and_in_symbols(bundle):
    words = words_of(bundle)
    assert "a guess is right at most 98.3% of the time" in words  # e^4 / (1 + e^4), rounded up
    assert read_manifest(bundle).guarantee.statement in words
    assert "for all D, D′ that fit the plan and sets S of results" in words
    for symbol in ("alpha", "beta", "gamma", "epsilon", "delta", "replace-one"):
        assert symbol in words
    assert "random differential privacy" not in words


def test_every_kind_of_release_is_drawn_with_its_uncertainty(bundle):
    parts = {
        node.attributes["aria-labelledby"]: node
        for node in page_of(bundle).all("section")
        if node.attributes.get("aria-labelledby", "").startswith(("release-", "synthetic-"))
    }
    drawn = {
        name.partition("-")[2]: {n.attributes.get("class", "") for n in part.all()}
        for name, part in parts.items()
    }
    assert "whisker" in drawn["people"]
    assert {"whisker", "broad"} <= drawn["rare"]
    assert "hatched" in drawn["pairs"]
    assert "band" in drawn["wealth"]
    assert "shade7" in drawn["ages"]
    assert "band" in drawn["rich"]
    assert "band" in drawn["pay"]
    assert "band" in drawn["path"]
    assert {"other", "dot", "whisker"} <= {
        c for d in ("everybody",) for k in drawn[d] for c in k.split()
    }
    assert "whisker" in drawn["age-quartiles"]
    assert "whisker" in drawn["grown-up"]
    assert "standard error" in parts["release-ages"].words


def test_the_numbers_of_a_chart_are_those_of_the_published_table(bundle):
    captions = {next(t.all("caption")).words: t for t in page_of(bundle).all("table")}
    shown = next(
        t for caption, t in captions.items() if caption.split(";")[0] == "Records by sex, region"
    )
    rows = [[cell.words for cell in row.all("th", "td")] for row in shown.all("tr")][1:]
    table = pd.read_parquet(bundle / "tables" / "pairs.sex.region.parquet")
    assert [row[0] for row in rows] == table["sex"].tolist()
    assert [row[1] for row in rows] == table["region"].fillna("null").tolist()
    published = table["best_estimate"].to_numpy()
    assert np.allclose([float(row[2].replace(",", "")) for row in rows], published, atol=0.5)


def test_a_count_stands_inside_its_interval(bundle):
    """The best answer under a prior that is far off does not; it is told beside."""
    part = part_of(page_of(bundle), "release-grown-up")
    value, lower, upper = (
        float(x.replace(",", "").rstrip("."))
        for x in re.search(r"It is ([\d,.]+), .* of ([\d,.]+) to ([\d,.]+)", part.words).groups()
    )
    assert lower <= value <= upper
    assert "Count: records with age of 40 or more" in part.words
    assert "smallest expected absolute error; prior: each of 400 records" in part.words


@pytest.mark.slow
def test_a_later_charge_does_not_change_an_earlier_report_and_nobody_is_named(
    bundle, plan, plan_document
):
    before = (bundle / REPORT).read_text(encoding="utf-8")
    Ledger(ledger_url()).grant("survey", Budget.of("5"), who="Jane Doe", why="a whim")
    few = load_plan(fewer(plan_document))
    other = words_of(publish_made_up(few, "r2", bundle.parent.parent))
    assert made_again(plan, bundle) == before
    assert "8 of 15 alpha is spent" in other
    assert "4 of 10 alpha is spent" in words_of(bundle)
    assert "Jane" not in other
    assert "whim" not in other


@pytest.mark.slow
def test_means_and_sampled_tables_are_drawn(plan_document, tmp_path):
    plan_document["releases"] += [
        {"name": "mean-age", "kind": "mean", "column": "age"},
        {"name": "mean-by-sex", "kind": "mean", "column": "age", "by": "sex"},
        {"name": "exact-if-rare", "kind": "histogram", "columns": ["sex", "region"],
         "mechanism": "random-zero-cells"},
        {"name": "urn", "kind": "sampled-histogram", "columns": ["sex"], "draws": 50, "bins": {}},
        {"name": "near", "kind": "near-records", "column": "age", "bins": {"age": 9}, "draws": 9},
    ]  # fmt: skip
    for amount in plan_document["budget"].values():
        amount["gamma"] = "0.1"
    names = [section["name"] for section in plan_document["releases"][-5:]]
    page = page_of(opened_once(tmp_path, fewer(plan_document, *names)).path)
    sections = {name: part_of(page, f"release-{name}") for name in names}
    for name in names:
        assert list(sections[name].all("svg")), name
    assert "Each bar is a group of sex" in sections["mean-by-sex"].words
    (numbers,) = [t for t in sections["mean-by-sex"].all("table") if "in numbers" in t.words]
    assert [row.children[0].words for row in numbers.all("tr")] == ["sex", "F", "M"]
    assert "Kolmogorov-Smirnov" in sections["near"].words
    assert "published without noise" in sections["exact-if-rare"].words
    assert "may have no protection at all" in page.words


@pytest.mark.slow
def test_headings_and_names_are_those_that_the_plan_gives(plan_document, tmp_path):
    plan_document["columns"]["region"] |= {
        "label": "Where they live",
        "description": "At the census",
    }
    plan_document["releases"][0]["title"] = "People, by where they live"
    plan_document["synthesis"][0]["title"] = "Made-up people"
    plan = load_plan(fewer(plan_document))
    bundle = publish_made_up(plan, "r1", tmp_path / "out")
    page = page_of(bundle)
    headings = [node.words for node in page.all("h3")]
    assert {"People, by where they live", "Made-up people"} <= {*headings}
    assert "by “Where they live”" in page.words
    assert ",Where they live: At the census," in (bundle / "codebook.csv").read_text()
    resources = json.loads((bundle / "datapackage.json").read_text())["resources"]
    titles = {f.get("title") for r in resources for f in r.get("schema", {}).get("fields", [])}
    assert "Where they live" in titles
    described = (bundle / "ddi.xml").read_text()
    assert "<labl>Where they live</labl>" in described
    assert "<txt>At the census</txt>" in described


@pytest.mark.slow
def test_gamma_is_explained_where_it_is_spent(bundle, plan):
    manifest = read_manifest(bundle)
    guarantee = manifest.guarantee.model_copy(update={"gamma": Budget.of(gamma="0.05").gamma})
    changed = manifest.model_copy(update={"guarantee": guarantee})
    page = report_page(plan, changed, bundle, [], findings(plan, manifest, bundle))
    assert "gamma = 0.05" in page
    assert "Up to about 20 of the 400 people" in page
    assert "this plan was fixed before the first release of the dataset" in page


@pytest.mark.slow
def test_hostile_texts_are_shown_and_not_obeyed(plan_document, tmp_path):
    plan_document["columns"]["sex"]["categories"] = HOSTILE
    plan_document["columns"]["region"]["labels"] = {"north": HOSTILE[0], "south": HOSTILE[1]}
    plan_document["columns"]["region"]["label"] = HOSTILE[1]
    plan_document["releases"][0]["title"] = HOSTILE[0]
    texts = ("title", "description", "publisher", "contact", "licence", "citation")
    plan_document["publication"] = dict.fromkeys(texts, HOSTILE[0])
    plan = load_plan(fewer(plan_document))
    bundle = publish_made_up(plan, "r1", tmp_path / "out")
    page = page_of(bundle)
    assert not list(page.all("script", "img", "b", "raw"))
    assert not [n for n in page.all() for key in n.attributes if key.startswith("on")]
    assert not [n for n in page.all() for value in n.attributes.values() if "&#" in value]
    for text in HOSTILE[:6]:
        assert text in page.words
    html = (bundle / REPORT).read_text(encoding="utf-8")
    assert "49 " not in re.sub(r"\s", " ", next(page.all("title")).words)
    assert not re.search(r"<(script|img)", html)
    for element in page.all("text"):
        assert len(next(iter(element.text.splitlines()), "")) < 80


@pytest.mark.slow
def test_the_audit_is_shown_and_explained(bundle):
    page, audit = page_of(bundle), read_manifest(bundle).audit
    words = words_of(bundle)
    assert audit["pair"] in words
    assert audit["score"] in words
    assert "(99.9% confidence). The claimed loss is at most" in words
    (alone,) = [t for t in page.all("table") if "Each release alone" in t.words]
    assert len(list(alone.all("tr"))) == 1 + len(read_manifest(bundle).releases)


@pytest.mark.slow
def test_a_column_of_which_nothing_is_published_is_described_nowhere(tmp_path, monkeypatch):
    leave_out_audits(monkeypatch.setattr)
    plan = small_plan(tmp_path)
    survey = pd.read_parquet(tmp_path / "survey.parquet").assign(unasked=1)
    survey.to_parquet(tmp_path / "survey.parquet")
    plan.write_text(
        plan.read_text().replace(
            "releases:", "  unasked: {type: integer, bounds: [0, 9]}\nreleases:"
        )
    )
    bundle = release(plan, "r1", tmp_path / "out")
    assert load_plan(plan).unused == ["unasked"]
    for name in ("report.html", "codebook.csv", "ddi.xml", "datapackage.json", "README.md"):
        text = (bundle / name).read_text()
        assert "unasked" not in text
        assert name in ("README.md", "report.html") or "age" in text


def test_records_that_miss_a_table_are_counted():
    supported = {
        "columns": np.array(["a", "b", "a x b", "a x b x c", "a x c"]),
        "ways": np.array([1, 1, 2, 3, 2]),
        "grade": np.array(["noise", "unknown", "accurate", "accurate", "not measured"]),
        "standard_error": np.array([3.0, np.nan, 1.0, 1.0, np.nan]),
        "distance": np.array([0.2, 0.1, 0.01, 0.01, np.nan]),
        "expected_distance": np.array([0.1, np.nan, 0.01, 0.01, np.nan]),
    }
    words = how_supported(supported, ["a", "b", "c", "d"], {})
    assert "Of 6 pairs of columns, 1 is accurate and 5 are not measured." in words
    assert "Of 4 sets of three columns, 1 is accurate and 3 are not measured." in words
    assert "The records miss 1 of 3 tables (a): the distance exceeds" in words
    assert "The largest distance to an accurate table is 0.010" in words
    assert "sets of three" not in how_supported(supported, ["a", "b"], {})
    table = support_table(supported, "x.parquet")
    assert [row[:2] for row in table.rows][:3] == [
        ("a x c", "not measured: assumed"),
        ("a", "noise"),
        ("b", "unknown"),
    ]
    assert table.rows[0][2:] == ("not known",) * 3


def test_an_estimate_without_an_interval_is_not_shown():
    found = {"estimate": np.array([-4.7e31])}
    for name in ("sampling_error", "privacy_error", "lower_95", "upper_95"):
        found[name] = np.array([np.nan])
    found["reason"] = np.array(["too much noise"])
    assert estimate_row(found, 0) == (*["no value"] * 3, "none: too much noise")


def test_an_estimate_is_shown_inside_its_interval():
    numbers = {"estimate": -0.01, "lower_95": 0.0, "upper_95": 0.09}
    numbers |= {"sampling_error": 0.03, "privacy_error": 0.04}
    row = estimate_row({name: np.array([number]) for name, number in numbers.items()}, 0)
    assert row == ("0.000", "0.030", "0.040", "0.000 to 0.090")


@pytest.mark.parametrize(
    ("measured", "distance", "outside", "expected"),
    [
        (False, 0.0, 1.0, "not measured"),
        (False, math.nan, 1.0, "not measured"),
        (True, math.nan, 1.0, "unknown"),
        (True, 0.1, 1.0, "accurate"),
        (True, 0.1001, 1.0, "rough"),
        (True, 0.3001, 1.0, "noise"),
        (True, math.inf, 1.0, "noise"),
        (True, 0.0199, 0.2, "accurate"),
        (True, 0.0201, 0.2, "rough"),
        (True, 0.0601, 0.2, "noise"),
        (True, 0.0049, 0.0, "accurate"),
        (True, 0.0051, 0.0, "rough"),
    ],
)
def test_a_grade_says_how_many_records_may_be_in_a_wrong_cell(
    measured, distance, outside, expected
):
    assert grade(measured, distance, outside) == expected
