"""A questionnaire becomes columns of a plan that loads, and what is wrong in it is named."""

import csv
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import dprelease
from dpcore.errors import InputError, PlanError
from flows.cli import main
from schemas.first_plan.codes import read_number
from schemas.first_plan.described import ColumnType
from schemas.first_plan.planner import first_plan
from schemas.first_plan.questionnaire import DESIGN, PERIOD, read_questionnaire
from schemas.first_plan.wishes import Said
from schemas.plan import Plan
from tests.schemas.first_plan.filled import filled, questions

TEXT = """\
column,description,type,values,lower,upper,step,unit,missing
when,Day of the interview,date,,2024,2025,,,
sex,Sex,,1=female; 2=male,,,,,9
code,,,01; 02; 10,,,,,
age,Age,,,16,99,,years,
pay,Weekly pay,,,0,5000,0.01,pounds,-9; NA; empty
rooms,,,1=one; 8=eight or more,1,8,,,
elsewhere,,,yes; no,,,,,
"""


def survey(folder: Path) -> Path:
    rows = 60
    frame = pd.DataFrame(
        {
            "when": ["2024-03-09", "2025-01-31"] * (rows // 2),
            "sex": [1, 2, 9] * (rows // 3),
            "code": ["01", "02", "10"] * (rows // 3),
            "age": [16 + i for i in range(rows)],
            "pay": ["-9", "NA", "", "123.45"] * (rows // 4),
            "rooms": [1 + i % 8 for i in range(rows)],
            "name": ["secret"] * rows,
        }
    )
    frame.to_csv(folder / "survey.csv", index=False)
    return folder / "survey.csv"


APART = """\
column;type;values;upper;step
home;unit;;4;
weight;weight;;250;0.5
name;ignored;;;
sex;;1=female; 2=male;;
"""


def test_columns_that_are_not_published_have_their_place_in_the_plan(tmp_path):
    text = APART.replace("1=female; 2=male", '"1=female; 2=male"')
    asked = questions(tmp_path, text)
    columns = dict.fromkeys(["home", "name", "weight", "sex", "more"], ColumnType.OPEN)
    plan = first_plan("d", "t.csv", columns, Said("tables"), asked)
    left_out = plan.partition("# Left out")[2]
    assert "'more'" in left_out
    assert "name'" not in left_out
    document = yaml.safe_load(plan)
    assert document["privacy_unit"] == {"column": "home", "max_rows": 4}
    weights = {"column": "weight", "largest": "250", "step": "0.5", "total": "FILL-IN"}
    assert document["weights"] == weights
    loaded = dprelease.load_plan(filled(plan, 900))
    assert loaded.releases[0].weighted
    assert list(loaded.columns) == ["sex"]
    assert "weights" not in yaml.safe_load(first_plan("d", "t", columns, Said("tables")))
    with pytest.raises(InputError, match="'home' and 'name' are each a unit; a plan has one"):
        questions(tmp_path, text.replace("name;ignored", "name;unit"))
    strata = text.replace("name;ignored;", 'name;stratum;"1; 2"').replace("sex;;", "sex;stratum;")
    with pytest.raises(InputError, match="'name' and 'sex' are each a stratum; a plan has one"):
        questions(tmp_path, strata)
    with pytest.raises(InputError, match="did you mean 'ignored'"):
        questions(tmp_path, text.replace("name;ignored", "name;ignore"))


@pytest.mark.parametrize(
    ("roles", "said"),
    [((*DESIGN, "weight"), Said(means=["y"])), ((PERIOD, "weight"), Said("records"))],
)
def test_every_column_that_is_read_as_a_number_keeps_its_format(roles, said, tmp_path):
    text = "column;type;lower;upper;format\ny;;0;9;\n"
    most = {"cluster": 60}
    text += "".join(f"{role};{role};1;{most.get(role, 3)};1234,5\n" for role in roles)
    columns = dict.fromkeys(("y", *roles), ColumnType.OPEN)
    plan = yaml.safe_load(first_plan("d", "t", columns, said, questions(tmp_path, text)))
    read = plan["columns"] | {"weight": plan.get("weights") or plan["columns"]["weight"]}
    formats = {name: keys.get("format") for name, keys in read.items()}
    assert formats == {"y": None} | dict.fromkeys(roles, "1234,5")


PANEL = """column;type;values;lower;upper;step
name;unit;;;2;
wave;period;;1;3;
sex;;1; 2;;;
pay;continuous;;0;5000;0.01
""".replace("1; 2", '"1; 2"')


@pytest.mark.slow
def test_a_period_in_the_questionnaire_makes_records_of_each_period(tmp_path):
    columns = dict.fromkeys(("name", "wave", "sex", "pay"), ColumnType.OPEN)

    def planned(said: Said, text: str = PANEL) -> Plan:
        made = first_plan("d", "t.csv", columns, said, questions(tmp_path, text))
        return dprelease.load_plan(filled(made, 60))

    plan = planned(Said("records"))
    assert plan.series.model_dump()["periods"] == 3
    assert (plan.series.period, plan.series.in_periods, plan.neighbours) == (
        "wave",
        "all",
        "add-remove",
    )
    release, alone = plan.releases  # neither merges cells nor looks for heaps
    assert (release.kind, release.columns) == ("microdata-margins", ["sex", "pay"])
    assert (alone.kind, alone.columns, alone.ways) == ("margins", ["pay"], 1)
    refining = plan.synthesis[0].refining(plan.of_period)
    assert {name: finer.name for name, finer in refining.items()} == {"pay": alone.name}
    assert refining["pay"].domain.shape > (len(release.bins["pay"]),)
    assert plan.of_period[plan.synthesis[0].from_].domain.names == ("sex", "pay")
    assert {0.0, 10.0, 1000.0, 1500.0, 4500.0} <= {*release.bins["pay"]}
    once = planned(Said(means=["pay"]), PANEL.replace("name;unit;;;2;", "name;ignored;;;;"))
    assert (once.series.in_periods, once.releases[0].kind) == (1, "model")
    means = planned(Said("records", means=["pay by sex"]))
    assert [(each.formula, each.title) for each in means.analyses] == [
        ("pay ~ 0 + C(sex)", "Mean: pay by sex")
    ]
    with pytest.raises(InputError, match="wave is the period of the series; leave it out"):
        planned(Said(tables=["wave x sex"]))
    with pytest.raises(InputError, match="are each a period; a plan has one"):
        planned(Said("records"), PANEL.replace("sex;;", "sex;period;"))
    with pytest.raises(InputError, match=r"\(wave\), step: list the periods under `levels`"):
        planned(Said("records"), PANEL.replace("1;3;", "1;3;2"))


@pytest.mark.slow
def test_a_questionnaire_leaves_decisions_open_and_nothing_else(tmp_path, capsys):
    asked, plan = tmp_path / "questions.csv", tmp_path / "plan.yaml"
    asked.write_text(TEXT, encoding="utf-8")
    command = ["init", str(survey(tmp_path)), "--questionnaire", str(asked), "--out", str(plan)]
    assert main(command) == 0
    assert "'elsewhere' is left out, because it is not a column" in capsys.readouterr().err
    text = plan.read_text(encoding="utf-8")
    assert "#   'name'" in text
    assert "but not in the table:\n  #   'elsewhere'" in text
    assert "secret" not in text
    with pytest.raises(PlanError) as refused:
        dprelease.load_plan(plan)
    blanks = {line.split(":")[0].strip() for line in str(refused.value).splitlines()[1:]}
    asked = {f"budget.{of}.{name}" for of in ("granted", "requested") for name in ("alpha", "beta")}
    assert blanks == {"rows", *asked, "publication.title"}

    loaded = dprelease.load_plan(filled(text, 60))
    assert loaded.columns["sex"].missing == [9]
    assert loaded.columns["code"].categories == ["01", "02", "10"]
    assert loaded.columns["pay"].nullable
    assert loaded.columns["rooms"].labels == {"1": "one", "8": "eight or more"}
    assert set(loaded.columns) == {
        *("when_year", "when_month", "when_weekday"),
        *("sex", "code", "age", "pay", "rooms"),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colum,values\nx,1\n", "line 1: 'colum' is not one of .*did you mean 'column'"),
        ("values\n1\n", "has no `column`"),
        ("column,lower,upper\nx,1,2\nx,1,2\n", "line 3: 'x' is described twice"),
        ("column,lower,upper\n,1,2\n", "line 2: names no column"),
        ("column,lower,upper\nx,nan,1\n", r"line 2 \(x\), lower: 'nan' is not a number"),
        ("column,lower,upper\nx,a,1\n", r"line 2 \(x\), lower: 'a' is not a number"),
        ("column,lower,upper\nx,1,2,3\n", "has more cells than the first line"),
        ("column,type\nx,categorical\n", r"line 2 \(x\), values: list them"),
        ("column,values\nx,F=a; F=b\n", "the code 'F' is listed twice"),
        ("column,values\nx,1 2 9\n", "'1 2 9' is read as a single value"),
        (
            "column,values,lower,upper\nx,1=one; -9=refused,1,8\n",
            "'-9' is outside 1 to 8; .*missing",
        ),
        (
            "column,lower,upper,special\nx,0,99,7.5\n",
            "special: '7.5' is not a multiple of the step, 1",
        ),
        (
            'column,values\nx,"""a; b; c"\n',
            r"line 2 \(x\), values: the quotation mark .* is not closed",
        ),
        ('column,values\nx,"a; b"; c\n', "line 2: .*double quotation marks inside"),
        ("column,levels\nx,1; a\n", r"line 2 \(x\), levels: 'a' is not a whole number"),
        (
            "column,levels,values\nx,1; 2,3=no\n",
            r"line 2 \(x\), values: '3' is not one of the levels",
        ),
        (
            "column,type,lower,upper,format\nx,date,1,2,DD.MM\n",
            "format: 'DD.MM' is not an order of",
        ),
        ("column,lower,upper\nx,,open\n", r"line 2 \(x\), lower: write a number, or open here too"),
        ("column,lower,upper\nx,Open,open\n", r"lower: 'Open' .* did you mean 'open'"),
        ("column,type,lower,upper\nx,date,open,open\n", "only numbers can have open bounds"),
        (
            "column,type,lower,upper\nx,date,2025-03,2026\n",
            "lower: '2025-03' is not a year; dates lie",
        ),
        (
            "column,type,lower,upper\nx,time,2025,1.3.26\n",
            "upper: '1.3.26' is not a year; dates lie",
        ),
        ("column,values,lower,upper\nx,1=one,open,open\n", "values: leave it empty"),
        ("column,type,upper,step,missing\nx,weight,9,1,99=no answer\n", "every number is a weight"),
        ("column,type,upper,step,special\nx,weight,9,1,0\n", "special: leave it empty"),
        ("column,lower,upper,special\nx,open,open,a\n", "special: 'a' is not a number"),
        ("column;lower;upper\nx;0;1.500,5\n", r"upper: '1.500,5' is not .*; write 1500.5"),
        ("column,lower,upper\nx,0%,100%\n", "lower: '0%' is not .*; 12% is written 0.12"),
        (
            'column,lower,upper,format\nx,0,50.000,"1.234,5"\n',
            "upper: '50.000' is ambiguous; write 50000, or 50.0000 if the point",
        ),
        (
            'column,lower,upper,format\nx,0,1.234.567,"1.234,5"\n',
            "upper: '1.234.567' is not .*; write 1234567",
        ),
        (
            "column,description,type,values\nx,the county, case and vehicle\n",
            "'case and vehicle' is not one of .*put quotation marks around that cell",
        ),
        ("column,type\nx,text\n", "'text' is not one of .*free text.* has the type `ignored`"),
        ("column,lower,upper\nx,2,1\ny,a,1\n", r"line 2 \(x\): state(.|\n)*line 3 \(y\), lower"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text, says, tmp_path):
    with pytest.raises(InputError, match=says):
        questions(tmp_path, text)


@pytest.mark.parametrize("text", ["1.234", "-50.000", "1,234", "1.234.567", "1.234.567,8"])
def test_what_a_refusal_of_a_number_says_to_write_is_accepted(text):
    with pytest.raises(InputError) as refused:
        read_number("upper", text, "1.234,5")
    advice = str(refused.value).partition("write ")[2]
    digits = text.replace(".", "").replace(",", "")
    found = re.findall(r"-?\d[\d.]*", advice)
    assert found
    for number in found:
        read = read_number("upper", number, "1.234,5")
        assert str(read).replace(".", "").rstrip("0") == digits.rstrip("0")


def test_a_questionnaire_of_another_table_is_refused(tmp_path):
    asked = questions(tmp_path, "column,values\nSEX,f; m\n")
    with pytest.raises(InputError, match="no name in the questionnaire is a column"):
        first_plan("x", "x.csv", {"sex": ColumnType.OPEN}, questions=asked)


MORE = [
    {"column": "when", "type": "date", "lower": "2024", "upper": "2025", "format": "DD.MM.YYYY"},
    {"column": "pay", "lower": "0", "upper": "5000.0", "format": "1.234,5"},
    {"column": "share", "levels": "1.0=all; 0.5; 0=none", "format": "12%"},
    {"column": "rooms", "levels": "4; 1; 2"},
    {"column": "ward", "values": '"A; B"; "say ""C"""="one; small"; D=5" or = 6"; E'},
]


@pytest.fixture
def more(tmp_path) -> Path:
    with (tmp_path / "more.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, [*dict.fromkeys(key for row in MORE for key in row)])
        rows.writeheader()
        rows.writerows(MORE)
    return tmp_path / "more.csv"


def test_formats_levels_and_values_with_a_semicolon_are_those_of_the_plan(more):
    found = read_questionnaire(more)
    assert found["ward"].keys == {
        "categories": ["A; B", 'say "C"', "D", "E"],
        "labels": {'say "C"': "one; small", "D": '5" or = 6"'},
    }
    columns = dict.fromkeys(found, ColumnType.OPEN)
    plan = first_plan("x", "x.csv", columns, Said("records"), found)
    loaded = dprelease.load_plan(filled(plan, 60))
    assert loaded.columns["when_month"].format == "DD.MM.YYYY"
    assert loaded.columns["pay"].format == "1.234,5"
    assert loaded.columns["rooms"].levels == [1, 2, 4]
    share = loaded.columns["share"]
    assert (share.levels, share.labels) == ([0.0, 0.5, 1.0], {"1.0": "all", "0.0": "none"})


@pytest.mark.slow
def test_bounds_that_nobody_can_state_are_found_by_the_release(tmp_path):
    text = "column,type,lower,upper,step,special,values\n"
    text += "pay,,0,open,0.01,0,\nvisits,integer,open,open,,,\nsize,,open,open,,,\nsex,,,,,,f; m\n"
    found = questions(tmp_path, text)
    pay = {"bounds": [0.0, "open"], "step": 0.01, "point_masses": [0.0]}
    assert found["pay"].keys == pay
    assert found["visits"].keys == {"bounds": "open", "step": 1.0}
    assert found["size"].keys == {"bounds": "open"}
    columns = dict.fromkeys(found, ColumnType.OPEN)
    said = Said(records=True, tables=["pay x sex"], densities=["pay"])
    plan = first_plan("x", "x.csv", columns, said, found)
    loaded = dprelease.load_plan(filled(plan, 6000))
    assert all(loaded.columns[name].open for name in ("pay", "visits", "size"))
    assert {loaded.section(name).finds for name in loaded.finding} == {"pay", "visits", "size"}


@pytest.mark.parametrize("word", ["yes", "No"])
def test_missing_asks_for_codes_and_not_whether_answers_are_missing(tmp_path, word):
    header = "column,lower,upper,missing\n"
    with pytest.raises(
        InputError, match=r"line 2 \(age\), missing: write the codes .* or empty for"
    ):
        questions(tmp_path, f"{header}age,18,80,{word}\n")
    assert questions(tmp_path, f"{header}age,18,80,{word}; NA\n")["age"].keys["missing"]


def test_a_date_whose_name_a_plan_cannot_have_is_left_out(tmp_path):
    header = "column,type,values,lower,upper\n"
    asked = questions(tmp_path, f"{header}2nd job,date,,2020,2024\nsex,,f; m,,\n")
    columns = dict.fromkeys(("2nd job", "sex", "ward"), ColumnType.OPEN)
    text = first_plan("x", "x.csv", columns, questions=asked)
    before, _, after = text.partition("a name must begin with a letter")
    assert "'ward'" in before.partition("does not name them")[2]
    assert "'2nd job'" in after
