"""Who was asked becomes rules of records: they hold exactly where the questionnaire's conditions do."""

from itertools import product

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import dprelease
from dpcore.errors import InputError
from schemas.first_plan.described import ColumnType
from schemas.first_plan.planner import first_plan
from schemas.first_plan.universe import universe_rules
from schemas.first_plan.wishes import Said
from tests.schemas.first_plan.filled import filled, questions

TEXT = """\
column,values,lower,upper,missing,universe
sex,1=female; 2=male,,,,
age,,0,99,,
works,yes; no,,,,age >= 15
hours,,1,99,0=not asked,works = yes and age < 75
pay,,0,500000,-9,hours > 10 and works = yes
bonus,,0.0,5000.5,,pay > 20000
"""


def fulfils(record: dict, stated: dict) -> bool:
    """Whether a record has the values that a rule states."""

    def has(value: object, given: list | dict) -> bool:
        if isinstance(given, list):
            return value in given
        return value is not None and given.get("from", -1e9) <= value < given.get("below", 1e9)

    return all(has(record[name], given) for name, given in stated.items())


def broken(record: dict, rules: list[dict]) -> bool:
    return any(fulfils(record, r["if"]) and not fulfils(record, r["then"]) for r in rules)


def test_rules_hold_of_the_records_that_the_questionnaire_allows_and_of_no_others(tmp_path):
    rules = universe_rules(
        questions(tmp_path, TEXT), ["sex", "age", "works", "hours", "pay", "bonus"]
    )
    for age, works, hours, pay, bonus in product(
        (14, 15, 74, 75), (None, "yes", "no"), (None, 10, 11), (None, 20000, 20001), (None, 7.5)
    ):
        record = {"sex": 1, "age": age, "works": works, "hours": hours, "pay": pay, "bonus": bonus}
        may = works == "yes" and (hours or 0) > 10  # who was asked for pay may have given no answer
        right = (
            (works is not None) == (age >= 15)
            and (hours is not None) == (works == "yes" and age < 75)
            and (pay is None or may)
            and (bonus is not None) == ((pay or 0) > 20000)
        )
        assert broken(record, rules) != right, record


SIGNS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.slow
@given(
    stated=st.lists(
        st.tuples(st.sampled_from(sorted(SIGNS)), st.integers(-3, 6)), min_size=1, max_size=3
    ),
    listed=st.booleans(),
)
def test_any_conditions_on_a_number(tmp_path_factory, stated, listed):
    text = " and ".join(f"a {sign} {value}" for sign, value in stated)
    inside = [a for a in range(-3, 7) if all(SIGNS[sign](a, value) for sign, value in stated)]
    levels = "; ".join(map(str, range(-3, 7)))
    number = f"a,,,,{levels}," if listed else "a,,-3,6,,"
    header = "column,values,lower,upper,levels,universe\n"
    path = tmp_path_factory.mktemp("universe")
    asked = f"{header}{number}\nb,x; y,,,,{text}\n"
    if not inside:
        with pytest.raises(InputError, match="b, universe: a: no value is left"):
            questions(path, asked)
        return
    rules = universe_rules(questions(path, asked), ["a", "b"])
    for a, b in product(range(-3, 7), ("x", None)):
        assert broken({"a": a, "b": b}, rules) == ((b is not None) != (a in inside))


@pytest.mark.slow
def test_the_plan_has_the_rules_and_is_accepted(tmp_path):
    asked = questions(tmp_path, TEXT)
    text = first_plan("d", "t.csv", dict.fromkeys(asked, ColumnType.OPEN), Said("records"), asked)
    document = filled(text, 5000)
    plan = dprelease.load_plan(document)
    assert plan.columns["hours"].nullable
    assert "- {if: {age: {below: 15}}, then: {works: [null]}}" in text
    assert "- {if: {works: ['yes'], age: {below: 75}}, then: {hours: {from: 1}}}" in text
    assert len(plan.built["all-pairs"].rules) >= len(document["releases"][0]["rules"])


@pytest.mark.parametrize(
    ("universe", "message"),
    [
        ("adults", "'adults' is not a condition such as AGE >= 16, or WORKS = 1 or 2"),
        ("ages > 15", "'ages' is not another column; did you mean 'age'"),
        ("bonus > 3", "bonus depends on its own answer (bonus -> bonus)"),
        ("age < 10 and works = yes", "no value is left"),
        ("age > 15.5", "'15.5' is not a multiple of 1 from 0 to 99"),
        ("age > 15 or 16", "has several values; only = and != may"),
        ("works = maybe", "'maybe' is not one of its values"),
        ("works > no", "its values are not numbers; use = or !="),
        ("age > 99", "no value is left"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, universe, message):
    with pytest.raises(InputError) as told:
        questions(tmp_path, TEXT.replace("pay > 20000", universe))
    assert message in str(told.value)


def test_nobody_is_asked_in_a_circle(tmp_path):
    with pytest.raises(InputError, match="works depends on its own answer"):
        questions(tmp_path, TEXT.replace("age >= 15", "hours > 2"))


def test_a_long_chain_in_which_each_depends_on_two_is_read_at_once(tmp_path):
    """Every way through the chain apart would be ten million million."""
    lines = ["q0,x; y,", "q1,x; y,q0 = x"]
    lines += [f"q{i},x; y,q{i - 1} = x and q{i - 2} = x" for i in range(2, 60)]
    asked = questions(tmp_path, "column,values,universe\n" + "\n".join(lines) + "\n")
    assert {"if": {"q0": ["y"]}, "then": {"q1": [None], "q2": [None]}} in universe_rules(
        asked, asked
    )


def test_words_in_quotes_and_capitals_are_read(tmp_path):
    text = 'column,values,universe\nkind,"rescue and care; ""1"" or 2; x",\nb,y; n,{}\n'
    asked = '"kind = ""rescue and care"" OR x AND kind != x"'
    rules = universe_rules(questions(tmp_path, text.format(asked)), ["kind", "b"])
    assert {"if": {"kind": ["rescue and care"]}, "then": {"b": ["y", "n"]}} in rules


@pytest.mark.slow
def test_edges_where_a_universe_cuts_are_no_point_masses(tmp_path):
    asked = questions(tmp_path, TEXT)
    text = first_plan("d", "t.csv", dict.fromkeys(asked, ColumnType.OPEN), Said("records"), asked)
    plan = yaml.safe_load(text)
    assert "point_masses" not in plan["columns"]["pay"]
    assert 20001 in plan["releases"][0]["bins"]["pay"]


def test_a_condition_on_a_column_that_is_not_published_is_refused(tmp_path):
    asked = questions(tmp_path, TEXT.replace("age >= 15", "sex = 1"))
    columns = dict.fromkeys([name for name in asked if name != "sex"], ColumnType.OPEN)
    with pytest.raises(InputError, match="works, universe: the plan has no column 'sex'"):
        first_plan("d", "t.csv", columns, Said("records"), asked)
    weighted = "column,type,upper,universe\nw,weight,100,age > 3\n"
    with pytest.raises(InputError, match="because the column is not published"):
        questions(tmp_path, weighted)


def test_a_condition_is_not_about_real_numbers_and_a_date_has_none(tmp_path):
    with pytest.raises(
        InputError, match="pay, universe: bonus has no listed categories, levels, or"
    ):
        questions(
            tmp_path,
            TEXT.replace("pay > 20000", "").replace("hours > 10 and works = yes", "bonus > 3"),
        )
    dated = "column,type,lower,upper,universe\nage,,0,99,\nwhen,date,2020,2021,age > 4\n"
    with pytest.raises(InputError, match="the parts of a date cannot be missing"):
        questions(tmp_path, dated)
