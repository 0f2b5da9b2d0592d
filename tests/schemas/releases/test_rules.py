"""Rules in a plan: how they are said in cells, what is refused, and that they hold in every row."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PlanError
from dpcore.line.privacy_line import perturb
from dpcore.post.records.rules import Rule
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from dpcore.synthesis.decode import decode_records
from schemas.plan import load_plan
from schemas.releases.rules import RuleSection

YOUNG = {"if": {"age": {"below": 30}}, "then": {"income": {"below": 3000}}}
MARRIED = {"if": {"sex": ["M"], "region": ["north"]}, "then": {"children": [0, 1]}}


@pytest.fixture
def document(plan_document) -> dict:
    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "region", "age", "children", "income"],
            "bins": {"income": [0, 1000, 3000, 9000], "age": [18, 30, 60, 90]},
            "rules": [YOUNG, MARRIED],
        }
    ]
    plan_document["synthesis"] = [{"name": "records", "from": "everyone", "rows": 400}]
    return plan_document


def built(document) -> Microdata:
    release = load_plan(document).built["everyone"]
    assert isinstance(release, Microdata)
    return release


def test_ranges_and_lists_become_cells(document):
    release = built(document)
    north = release.domain.axes[1].categories.index("north")
    assert release.rules == (
        Rule(when=((2, (0,)),), then=((4, (0, 1)),)),
        Rule(
            when=((0, (release.domain.axes[0].categories.index("M"),)), (1, (north,))),
            then=((3, (0, 1)),),
        ),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_rules_hold_in_every_synthetic_row_where_the_survey_breaks_them(document):
    release = replace(built(document), rows=2000)
    codes = np.random.default_rng(1).integers(0, release.domain.shape, (2000, 5))
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    exact = release.statistic(Tally(release.domain, cells, counts.astype(np.int64)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    domain, synthetic = release.sample(noisy, 1500)
    rows = decode_records(domain, synthetic, {}, np.random.default_rng(2))
    young = rows["age"] < 30
    assert 50 < young.sum() < 1450
    assert np.all(np.ma.filled(rows["income"], 0)[young] < 3000)
    northern_men = (rows["sex"] == "M") & (rows["region"] == "north")
    assert northern_men.sum() > 50
    assert set(np.asarray(rows["children"])[northern_men].tolist()) == {0, 1}
    published = {t.name: t.columns for t in release.publish(noisy).tables}
    if "everyone.age.income" in published:
        table = published["everyone.age.income"]["count"].reshape(release.domain.shape[2], -1)
        assert table[0, 2] == 0


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"if": {"wealth": [1]}, "then": {"sex": ["M"]}}, "'wealth' is not among the columns"),
        ({"if": {"age": {"below": 31}}, "then": {"sex": ["M"]}}, "31 is not an edge of the bins"),
        ({"if": {"age": [20]}, "then": {"sex": ["M"]}}, r"not an edge|shares its bin"),
        ({"if": {"age": {}}, "then": {"sex": ["M"]}}, "state from, or below"),
        ({"if": {"sex": ["X"]}, "then": {"children": [0]}}, "'X' is not among the categories"),
        ({"if": {"sex": [1]}, "then": {"children": [0]}}, "the values of sex are text$"),
        ({"if": {"sex": [None]}, "then": {"children": [0]}}, "sex is not nullable"),
        ({"if": {"sex": ["M"]}, "then": {"sex": ["F"]}}, "both under if and under then"),
        ({"if": {"sex": []}, "then": {"children": [0]}}, "no value is left"),
        ({"if": {"income": [5]}, "then": {"sex": ["M"]}}, "only categories and whole numbers"),
        ({"if": {"sex": ["M"]}}, "missing"),
    ],
)
def test_what_cannot_be_said_in_cells_is_refused_with_its_place(document, rule, says):
    document["releases"][0]["rules"] = [rule]
    with pytest.raises(PlanError, match=says) as refused:
        built(document)
    assert "rules[0]" in str(refused.value)


@pytest.mark.parametrize(
    ("categories", "given", "says"),
    [
        (
            [0, 1],
            "1",
            "'1' is not among the categories: the values of x are whole numbers; write 1,",
        ),
        (["0", "1"], 1, "1 is not .*: the values of x are text; write '1', not 1"),
        ([True, False], "True", "'True' is not .* truth values; write True, not 'True'"),
        (["yes", "no"], True, "True is not among the categories: the values of x are text$"),
        ([0.5, 1.0], "1.0", "the values of x are numbers; write 1.0, not '1.0'"),
        ([0, 1], 2, "2 is not among the categories$"),
    ],
)
def test_a_category_of_the_wrong_type_is_refused_with_the_right_one(categories, given, says):
    domain = Domain((Categories("x", tuple(categories)), Categories("y", ("a", "b"))))
    rule = RuleSection.model_validate({"if": {"x": [given]}, "then": {"y": ["a"]}})
    with pytest.raises(ValueError, match=says):
        rule.build(domain, "rules[0]")


def test_rules_that_leave_no_record_are_refused_before_anything_is_drawn(document):
    document["releases"][0]["rules"] = [
        {"if": {"age": {"from": 18}}, "then": {"sex": ["M"]}},
        {"if": {"income": {"from": 0}}, "then": {"sex": ["F"]}},
    ]
    with pytest.raises(PlanError, match="contradict each other"):
        built(document)
