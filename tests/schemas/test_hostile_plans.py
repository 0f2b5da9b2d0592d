"""Plans that are wrong in unlikely ways end in one clear error: no traceback, hang or full memory."""

import os
import time
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from dpcore.errors import PlanError
from flows.cli import main
from schemas.document import LARGEST_BYTES, read_value
from schemas.numbers import read_rational
from schemas.plan import load_plan
from tests.conftest import write_plan
from tests.schemas.refusals import refused

NINE_LEVELS = "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("title: 2024-13-45", "line 2: not a valid timestamp"),
        ('rows: !!int "x"', "line 2: not a valid int"),
        ('rows: !!int ""', "line 2: not a valid int"),
        ('rows: !!timestamp "x"', "line 2: not a valid timestamp"),
        (f"rows: {2**1023}", "line 2: this whole number is too long"),
        ("rows: " + "9" * 2000, "line 2: this whole number is too long"),
        ("rows: " + "9" * 5000, "line 2: this whole number is too long"),
        ("rows: " + "[" * 3000 + "]" * 3000, "nested too deep"),
        ("a0: &a0 [x]\n" + NINE_LEVELS, "aliases repeat more than 100,000 values"),
        ("rows: &all [*all]", "aliases repeat more than 100,000 values"),
    ],
)
def test_scalars_that_yaml_cannot_make_are_told_with_their_line(tmp_path, line, says):
    path = tmp_path / "plan.yaml"
    path.write_text(f"dprelease: 1\n{line}\n")
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert says in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("endless", [True, False])
def test_a_document_that_is_too_large_is_refused_before_it_is_parsed(
    tmp_path, monkeypatch, endless
):
    monkeypatch.setattr("schemas.document.yaml.load", lambda *_, **__: 1 / 0)
    path = Path("/dev/zero") if endless else tmp_path / "plan.yaml"
    if not endless:
        path.write_text("title: [" + "x, " * LARGEST_BYTES + "]")
    with pytest.raises(PlanError, match="is larger than 2 MB; put a long list"):
        load_plan(path)


@pytest.mark.slow
def test_a_number_in_hours_minutes_and_seconds_of_a_million_digits_takes_no_time(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("rows: 1" + ":0" * (LARGEST_BYTES // 2 - 100))
    begun = time.process_time()
    with pytest.raises(PlanError, match="line 1: this whole number is too long"):
        load_plan(path)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("place", ["releases.².weight", f"releases.{'9' * 5000}.weight"])
def test_an_override_at_no_position_is_refused(plan_path, place):
    with pytest.raises(PlanError, match="no such key"):
        load_plan(plan_path, {place: 1})


def test_a_long_value_is_cut_short_in_the_message(plan_document):
    message = refused(plan_document, {"rows": read_value("9" * 5000)})
    assert "rows: " in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("budget.requested.alpha", "1e999999999", "requested.alpha: the exponent"),
        ("budget.requested.alpha", "0.01e-49", "budget.requested: alpha, beta and"),
        ("budget.requested.alpha", 10**200, "requested.alpha: a number may have at most 60"),
        ("budget.granted.alpha", "1000000", "budget.granted: alpha must be at most 1000"),
        ("releases.0.weight", "1e400", "releases[0].weight: the exponent"),
        ("releases.0.weight", "1e7", "releases[0]: weight: must lie between"),
        (
            "releases.0.bins",
            {"age": 10**9},
            "releases[0].bins.age: must be a number of bins from 1 to",
        ),
        ("releases.2.bins", {"income": 10**9}, "releases[2].bins.income: must be a number of bins"),
        ("releases.2.bins", {"income": -3}, "releases[2].bins.income: must be a number of bins"),
        ("columns.age.bounds", [220], "columns.age.bounds: needs two numbers"),
        ("columns.sex.categories", ["a", 1], "columns.sex.categories: must all be of one"),
        (
            "releases.5.label",
            {"column": "children", "at_least": 1.5},
            "releases[5].label.at_least: must be a whole number",
        ),
        ("columns.Sex", {"type": "integer", "bounds": [0, 1]}, "columns.Sex: differs from"),
        ("publication.title", "", "publication.title: must be one line"),
        ("publication.title", "a\nb", "publication.title: must be one line"),
    ],
)
def test_a_hostile_value_is_refused_at_its_place(plan_document, place, value, says):
    plan_document["releases"][5]["features"] = ["age", "income", "sex"]
    plan_document["releases"][5]["label"] = {"column": "children", "at_least": 1}
    assert says in refused(plan_document, {place: value})


@pytest.mark.parametrize(
    ("categories", "says"),
    [
        (
            "[yes, no]",
            'YAML reads yes as a truth value; write "yes", in quotes if it is text, or true',
        ),
        ("[01, 02]", 'YAML reads 01 as a whole number; write "01", in quotes if it is text, or 1'),
        (
            "[1:30]",
            'YAML reads 1:30 as a whole number; write "1:30", in quotes if it is text, or 90',
        ),
        ("[2020-01-01]", 'YAML reads 2020-01-01 as a date; write "2020-01-01", in quotes'),
        ("[a, ~]", "YAML reads ~ as a missing value"),
        ("\n    - a\n    -", "YAML reads an empty item as a missing value"),
        ("[7, a]", 'quote "7" if it is text'),
    ],
)
def test_categories_that_yaml_reads_as_something_else_are_refused(
    tmp_path, plan_document, categories, says
):
    path = write_plan(tmp_path, plan_document)
    before = path.read_text()
    path.write_text(before.replace("categories:\n    - F\n    - M", f"categories: {categories}", 1))
    assert path.read_text() != before
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("categories", "read"),
    [
        ("[true, FALSE]", [True, False]),
        ("[\"yes\", 'no']", ["yes", "no"]),
        ("[-1, 0, 10]", [-1, 0, 10]),
        ("[1.0, 2.50]", [1.0, 2.5]),
        ("[y, n, 2020-01, 1e3]", ["y", "n", "2020-01", "1e3"]),
    ],
)
def test_categories_that_are_read_as_they_are_written(tmp_path, plan_document, categories, read):
    plan_document["columns"]["x"] = {"type": "categorical", "categories": ["F"]}
    path = write_plan(tmp_path, plan_document)
    before = path.read_text()
    path.write_text(
        before.replace("categories:\n    - F\nreleases", f"categories: {categories}\nreleases")
    )
    assert path.read_text() != before
    assert load_plan(path).columns["x"].categories == read


def test_too_many_ways_are_refused_before_they_are_listed(plan_document):
    names = [f"c{i}" for i in range(40)]
    for name in names:
        plan_document["columns"][name] = {"type": "categorical", "categories": [0, 1]}
    plan_document["releases"][2] |= {"columns": names, "ways": 20, "bins": {}}
    assert "releases[2].ways: make more than 65536" in refused(plan_document)


@pytest.mark.parametrize("alpha", ["1000", "1e-12", "1e-50"])
@pytest.mark.parametrize("beta", ["0.999", "1e-50"])
def test_the_extremes_of_the_budget_are_explained_or_refused(tmp_path, plan_document, alpha, beta):
    amount = {"alpha": alpha, "beta": beta, "gamma": "0"}
    plan_document["budget"] = {"granted": amount, "requested": amount}
    path = write_plan(tmp_path, plan_document)
    assert main(["explain", str(path)]) in (0, 2)


@pytest.mark.parametrize(
    ("release", "column", "says"),
    [
        (0, "count", "'count' and a statistic would both be published as 'count'"),
        (2, "estimate", "'estimate' and a statistic"),
        (0, "best_estimate", "'best_estimate' and a statistic"),
        (0, "Replicate_07", "'Replicate_07' and a replicate"),
        (0, "age_from", "'age_from' and 'age' would both be published as 'age_from'"),
        (2, "income_to", "'income' would both be published as 'income_to'"),
    ],
)
def test_columns_that_would_be_published_under_one_name(plan_document, release, column, says):
    plan_document["columns"][column] = {"type": "categorical", "categories": ["a", "b"]}
    plan_document["releases"][release]["columns"].append(column)
    message = refused(plan_document)
    assert f"releases[{release}].columns: " in message
    assert says.split(" and ")[-1] in message


@pytest.mark.parametrize("names", [["a.b", "a-b"], ["a b", "A.b"]])
def test_margins_whose_tables_would_be_one_file(plan_document, names):
    for name in names:
        plan_document["columns"][name] = {"type": "categorical", "categories": ["a", "b"]}
    plan_document["releases"][2]["columns"] += names
    message = refused(plan_document)
    assert "releases[2].columns: the tables of" in message
    assert "would both be the file" in message


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("budget.requested.alpha", "0.5"),
        ("releases.3.bandwidth", "0.25"),
        ("releases.5.regularisation", "0.25"),
        ("columns.income.bounds", "[0.5, 9000.5]"),
    ],
)
def test_decimals_from_the_command_line_are_read_where_they_belong(plan_path, place, text):
    plan = load_plan(plan_path, {place: read_value(text)})
    node = plan.model_dump(mode="json")
    for part in place.split("."):
        node = node[int(part) if part.isdecimal() else part]
    expected = yaml.safe_load(text)
    if isinstance(node, str):
        assert Fraction(node) == Fraction(text)
    else:
        assert node == expected


def test_computed_shares_may_be_long_but_written_numbers_may_not():
    long = "1/" + "3" * 200
    with pytest.raises(ValueError, match="60 characters"):
        read_rational(long)
    assert read_rational(long, longest=4000) == Fraction(long)


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (
            "publication.title",
            "Wages \u202e2024",
            "title: contains the invisible character U+202E (RIGHT",
        ),
        (
            "publication.description",
            "a\x07b",
            "description: contains the invisible character U+0007",
        ),
        (
            "columns.new.description",
            "zero\u200dwidth",
            "invisible character U+200D (ZERO WIDTH JOINER)",
        ),
        ("columns.new.categories", ["a", "\u0430"], "'a' and '\\u0430' look alike"),
        ("columns.new.categories", ["no job", "no\xa0job"], "look alike"),
        ("columns.new.categories", ["a", "a "], "'a' and 'a ' look alike"),
        ("columns.new.categories", ["=1+1", "b"], "starts like a formula, which a spreadsheet"),
        ("columns.new.categories", ["+cmd|' /C calc'!A0", "b"], "starts like a formula"),
        ("columns.new.labels", {"a": '@SUM("x")'}, "columns.new.labels.a: '@SUM"),
        ("columns.\u0455ex", {"type": "integer", "bounds": [0, 1]}, "'sex' and '\\u0455ex' look"),
    ],
)
def test_text_that_is_not_what_it_looks_like_is_refused(plan_document, place, value, says):
    plan_document["columns"]["new"] = {"type": "categorical", "categories": ["a", "b"]}
    assert says in refused(plan_document, {place: value})


def test_text_of_any_script_and_with_any_sign_is_accepted(plan_document):
    words = [
        "\u22121",
        "+5 and more",
        "- none -",
        "a\tb",
        "na\xefve",
        "\u0420\u043e\u0441\u0441\u0438\u044f",
    ]
    words += [
        "\u062e\u0627\u0646\u0647\u200c\u0647\u0627",
        "\u0915\u094d\u200d\u0937",
        "\u6771\u4eac",
    ]
    plan_document["columns"]["new"] = {"type": "categorical", "categories": words}
    plan_document["publication"]["description"] = "two\nlines"
    assert load_plan(plan_document).columns["new"].categories == words


@pytest.mark.slow
def test_of_many_faults_the_first_are_listed_and_the_others_counted(plan_document):
    plan_document |= {f"unknown_{i}": i for i in range(80_000)}
    lines = refused(plan_document).splitlines()
    assert len(lines) < 60
    assert lines[-1] == "  and 79,950 more"


def test_a_pipe_is_not_waited_for(plan_document, tmp_path):
    os.mkfifo(tmp_path / "regions.csv")
    column = next(iter(plan_document["columns"]))
    plan_document["columns"][column] = {"type": "categorical", "categories": "regions.csv"}
    with pytest.raises(PlanError, match=r"regions\.csv is not a file"):
        load_plan(write_plan(tmp_path, plan_document))
