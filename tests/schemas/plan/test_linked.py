"""Units as wide records in a plan: their columns, what is measured of them, and what is refused."""

import numpy as np
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.post.records.rules import breaks_rules
from schemas.bundle.manifest import privacy_statement
from schemas.plan import Plan, published_plan
from schemas.plan.selection import select
from tests.schemas.refusals import refused

UNIT = {"column": "home", "max_rows": 3, "name": "household"}
HOMES = {
    "name": "homes",
    "kind": "microdata-margins",
    "columns": ["region", "age", "sex", "children"],
    "bins": {"age": [18, 30, 60, 90]},
}


@pytest.fixture
def document(plan_document: dict) -> dict:
    plan_document["columns"]["children"]["nullable"] = True
    return plan_document | {
        "privacy_unit": UNIT,
        "linked": {"order": ["-age"], "shared": ["region"]},
        "releases": [HOMES],
        "synthesis": [{"name": "homes", "from": "homes", "rows": 100}],
    }


@pytest.mark.slow
def test_one_wide_record_is_paid_for_whatever_the_number_of_members(document):
    for most in (2, 6):
        plan = Plan.model_validate(document | {"privacy_unit": UNIT | {"max_rows": most}})
        assert plan.adjacency == Adjacency("replace-one", 1, unit="home")
        assert plan.built["homes"].adjacency == plan.adjacency
        assert not plan.adjacency.public_rows


def test_a_members_column_stands_for_all_places(document):
    release = Plan.model_validate(document).built["homes"]
    assert release.domain.names[:5] == ("region", "size", "age.1", "sex.1", "children.1")
    assert release.domain.names[5:] == tuple(
        f"{name}.{i}" for i in (2, 3) for name in ("age", "sex", "children")
    )
    nullable = [axis.name for axis in release.domain.axes if axis.nullable]
    assert nullable == ["region", "children.1", *release.domain.names[5:]]


def test_the_published_plan_and_a_part_of_it_build_the_same_release(document):
    plan = Plan.model_validate(document)
    for same in (published_plan(plan.public()), select(plan, ["homes"])):
        assert same.built["homes"] == plan.built["homes"]
    assert "household" in privacy_statement(plan)


@pytest.mark.parametrize("order", ["-age", "age"])
def test_rules_say_who_is_there_and_in_which_order(document, order):
    document["linked"]["order"] = [order]
    document["releases"] = [HOMES | {"columns": ["age", "children"]}]
    plan = Plan.model_validate(document)
    release = plan.built["homes"]
    sizes = release.domain.shape
    assert sizes == (3, 3, 8, 4, 8, 4, 8)  # size, then age and children of each member
    codes = release.domain.unpack(np.arange(release.domain.size))
    obeys = ~breaks_rules(codes, release.rules)
    size, ages, children = codes[:, 0] + 1, codes[:, 1::2], codes[:, 2::2]
    expected = np.ones(len(codes), dtype=bool)
    for i in (1, 2):
        there = size > i
        expected &= (ages[:, i] < 3) == there
        expected &= there | (children[:, i] == 7)
        ordered = ages[:, i] <= ages[:, i - 1] if order == "-age" else ages[:, i] >= ages[:, i - 1]
        expected &= ~there | ordered
    assert (obeys == expected).all()


def test_a_rule_about_members_holds_of_those_who_are_there(document):
    rule = {"if": {"age": {"below": 30}}, "then": {"sex": ["F"]}}
    document["releases"] = [HOMES | {"columns": ["age", "sex"], "rules": [rule]}]
    release = Plan.model_validate(document).built["homes"]
    alone, young = [0, 1, 1, 3, 2, 3, 2], [1, 1, 1, 0, 1, 3, 2]
    assert breaks_rules(np.array([alone, young]), release.rules).tolist() == [False, True]
    rule["if"] = {"region": ["north"]}
    release = Plan.model_validate(document | {"releases": [HOMES | {"rules": [rule]}]}).built[
        "homes"
    ]
    two_men = [0, 1, 1, 1, 0, 1, 1, 0, 3, 2, 7]
    assert breaks_rules(np.array([two_men, [1, *two_men[1:]]]), release.rules).tolist() == [
        True,
        False,
    ]
    rule["if"] = {"age": {"below": 30}, "size": {"from": 2}}
    assert (
        "rules[0]: in a rule with 'size', write a column with the number of its member, such as 'age.1'"
        in refused(document)
    )
    rules = ["age >= 3", {"if": {"relation": ["x"]}, "then": {"sex": ["F"]}}, "`age.1` >= `ag.2`"]
    for i in (1, 2):
        document["releases"] = [HOMES | {"columns": ["age", "sex"], "rules": [rules[0], rules[i]]}]
        assert "releases[0].rules[1]" in refused(document)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"privacy_unit": "row"}, "linked: needs a privacy_unit with a column"),
        (
            {"privacy_unit": UNIT | {"max_rows": 1}},
            "privacy_unit.max_rows: with linked, must be from 2",
        ),
        ({"linked": {"order": ["height"]}}, "linked.order: the plan declares no column 'height'"),
        (
            {"weights": {"column": "w", "largest": "4", "step": "1", "total": 900}},
            "no release is `weighted`",
        ),
        (
            {"releases": [{"name": "homes", "kind": "histogram", "columns": ["size", "sex.1"]}]},
            "synthesis[0].from: draw linked tables from microdata-margins",
        ),
    ],
)
def test_what_does_not_go_with_wide_records_is_refused(document, changes, told):
    assert told in refused(document | changes)


def inequalities(document: dict, *rules: object) -> list[str]:
    section = HOMES | {"columns": ["age", "children"], "rules": list(rules)}
    plan = Plan.model_validate(document | {"releases": [section]})
    assert plan.built["homes"].rules
    widened = plan.linked.widened(plan.releases[0], plan.columns, plan.unit)
    found = [rule.then for rule in widened.rules if isinstance(rule.then, str)]
    assert found[:2] == ["`age.1` >= `age.2`", "`age.2` >= `age.3`"]  # the order
    return found[2:]


def test_an_inequality_holds_for_each_member(document):
    expected = [f"`age.{i}` >= `children.{i}` + 12" for i in (1, 2, 3)]
    assert inequalities(document, "age >= children + 12") == expected
    assert inequalities(document, "`age` >= `children` + 12") == expected
    conditional = {"if": {"children": {"from": 1}}, "then": "age >= children + 12"}
    assert inequalities(document, conditional) == expected


def test_a_member_without_an_answer_is_not_an_absent_member(document):
    document["columns"]["rooms"] = {"type": "integer", "bounds": [0, 9]}
    document["linked"]["shared"].append("rooms")
    rule = {"if": {"children": [None]}, "then": "rooms <= 4"}
    section = HOMES | {"columns": ["rooms", "age", "children"], "rules": [rule]}
    plan = Plan.model_validate(document | {"releases": [section]})
    release = plan.built["homes"]
    codes = {"rooms": 9, "age.1": 2, "children.1": 0} | {f"children.{i}": 7 for i in (2, 3)}
    alone = [codes.get(axis.name, axis.size - 1) for axis in release.domain.axes]
    alone[release.domain.names.index("size")] = 0
    assert not breaks_rules(np.array([alone]), release.rules)
    alone[release.domain.names.index("children.1")] = 7
    assert breaks_rules(np.array([alone]), release.rules)


def test_groups_of_codes_do_not_go_with_wide_records(document):
    area = {"type": "categorical", "categories": ["up", "down"], "nullable": True}
    document["columns"]["area"] = area
    groups = {"north": "up", "south": "down", "east": "down", "west": "down"}
    document["columns"]["region"]["refines"] = {"area": groups}
    assert "columns.region.refines: not available with linked" in refused(document)


@pytest.mark.parametrize("name", ["size", "Number", "place", "sex.2"])
def test_columns_that_are_made_must_not_be_in_the_plan(document, name):
    document["columns"][name] = {"type": "categorical", "categories": ["a"]}
    assert f"linked adds a column {name!r}" in refused(document)


def test_weights_of_wide_records_are_refused(document):
    document["releases"] = [HOMES | {"weighted": True}]
    document["weights"] = {"column": "w", "largest": "4", "step": "1", "total": 900}
    assert "linked: not available with weights" in refused(document)
