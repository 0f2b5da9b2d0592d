"""Derived columns in a plan: what is refused, files beside the plan, and order."""

import pytest

from dpcore.errors import PlanError
from dpcore.post.records.nested import Nested
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from schemas.plan import Plan, load_plan
from tests.conftest import write_plan

TRADES = {"baker": "food", "brewer": "food", "smith": "metal", "founder": "metal", "poet": "art"}


@pytest.fixture
def document(plan_document) -> dict:
    plan_document["columns"] |= {
        "trade": {
            "type": "categorical",
            "categories": list(TRADES),
            "refines": {"sector": dict(TRADES)},
        },
        "sector": {"type": "categorical", "categories": ["art", "food", "metal"]},
    }
    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "trade", "age", "children"],
            "bins": {"age": 6},
        }
    ]
    plan_document["synthesis"] = [
        {
            "name": "records",
            "from": "everyone",
            "rows": 400,
            "derived": {
                "per child": "age / children",
                "old": "age > 60",
                "twice": "`per child` * 2",
            },
        }
    ]
    return plan_document


def test_formulas_may_use_those_above_them_and_groups(document):
    document["synthesis"][0]["derived"]["cook"] = "sector == 'food'"
    plan = Plan.model_validate(document)
    (table,) = plan.synthesis
    release = plan.built["everyone"]
    found = table.deriving(release, plan.columns)
    assert release.follows == {"sector": "trade"}
    assert [(d.name, d.sources) for d in found] == [
        ("per child", ("age", "children")),
        ("old", ("age",)),
        ("twice", ("per child",)),
        ("cook", ("sector",)),
    ]
    assert found[0].words == "Derived: per child = age / children"


@pytest.mark.parametrize(
    ("derived", "said"),
    [
        ({"x": "age / income"}, r"derived.x: at character 7: there is no column 'income'"),
        ({"x": "later", "later": "age"}, r"derived.x: at character 1: there is no column 'later'"),
        ({"Age": "children"}, "derived.Age: is already a column of the records"),
        ({"sector": "children"}, "derived.sector: is already a column of the records"),
        ({"income": "children"}, "derived.income: is already a column of the plan"),
    ],
)
def test_formulas_that_cannot_be_computed_are_refused(document, derived, said):
    document["synthesis"][0] |= {"derived": derived}
    with pytest.raises(ValueError, match=rf"synthesis\[0\].{said}"):
        Plan.model_validate(document)


def sets_of(document) -> set[tuple[str, ...]]:
    release = Plan.model_validate(document).built["everyone"]
    return {domain.names for domain in release.domains}


def test_wherever_a_detail_is_measured_so_is_its_group(document):
    release = document["releases"][0]
    usual = sets_of(document)
    assert {(*sorted(pair),) for pair in usual if "sector" in pair} == {
        ("age", "sector"), ("children", "sector"), ("sector", "sex"),
    }  # fmt: skip
    assert len(usual) == 6 + 3
    release["columns"].append("sector")
    assert {frozenset(pair) for pair in sets_of(document)} == set(map(frozenset, usual))
    release["pairs"] = [["sex", "trade"], ["age", "sector"], ["age", "children"]]
    assert len(sets_of(document)) == 4
    release["also"] = [["sex", "age", "trade"]]
    assert len(sets_of(document)) == 6
    release["also"] = [["trade", "age", "sector"]]
    with pytest.raises(ValueError, match=r"also\[0\]: one of .* follows from another"):
        Plan.model_validate(document)


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ({**TRADES, "poet": "arts"}, "'arts' is not a category of sector"),
        ({k: v for k, v in TRADES.items() if k != "poet"}, "'poet' has no group"),
        ({**TRADES, "diver": "art"}, "'diver' is not a category of trade"),
    ],
)
def test_a_mapping_must_be_whole(document, codes, said):
    document["columns"]["trade"]["refines"] = {"sector": codes}
    with pytest.raises(ValueError, match=rf"columns.trade.refines.sector: {said}"):
        Plan.model_validate(document)


def test_groups_are_other_columns_nullable_too_and_never_in_a_circle(document):
    trade, sector = (document["columns"][name] for name in ("trade", "sector"))
    trade["nullable"] = True
    with pytest.raises(ValueError, match="trade may be null, so sector must be nullable"):
        Plan.model_validate(document)
    trade["nullable"] = False
    sector["refines"] = {"trade": {"art": "poet", "food": "baker", "metal": "smith"}}
    with pytest.raises(ValueError, match="sector refines trade in turn"):
        Plan.model_validate(document)
    del sector["refines"]
    trade["refines"]["age"] = trade["refines"].pop("sector")
    with pytest.raises(ValueError, match="'age' is not another categorical column"):
        Plan.model_validate(document)


def test_the_mapping_may_be_a_file_beside_the_plan(document, tmp_path):
    trade = document["columns"]["trade"]
    trade |= {"categories": "trades.csv", "refines": {"sector": "trades.csv"}}
    lines = ["code,trade,sector", *(f"1,{trade},{sector}" for trade, sector in TRADES.items())]
    (tmp_path / "trades.csv").write_text("\n".join(lines) + "\n")
    plan = load_plan(write_plan(tmp_path, document))
    assert plan.columns["trade"].refines == {"sector": TRADES}
    (tmp_path / "trades.csv").write_text("\n".join([*lines, "2,poet,food"]) + "\n")
    with pytest.raises(PlanError, match="has two groups for one value of trade"):
        load_plan(write_plan(tmp_path, document))


@pytest.mark.parametrize("name", ["survey.csv", "link.csv"])
@pytest.mark.parametrize("files", [{"categories": ""}, {"refines": {"sector": ""}}])
def test_the_survey_is_no_public_file_under_any_name(document, tmp_path, monkeypatch, name, files):
    (tmp_path / "survey.csv").write_text("trade,sector\nSECRET_7391,food\n")
    (tmp_path / "link.csv").symlink_to("survey.csv")
    named = {key: {"sector": name} if inner else name for key, inner in files.items()}
    document["columns"]["trade"] |= named
    monkeypatch.chdir(tmp_path)
    for source, changes in (("survey.csv", {}), ("elsewhere.csv", {"source": "survey.csv"})):
        path = write_plan(tmp_path, document | {"source": source})
        with pytest.raises(PlanError, match="is the survey, and its values are private") as caught:
            load_plan(path, changes)
        assert "SECRET" not in str(caught.value)


def test_codes_that_yaml_reads_as_numbers_are_the_categories(document):
    document["columns"]["trade"] |= {
        "categories": [1, 2],
        "refines": {"sector": {1: "art", 2: "food"}},
    }
    plan = Plan.model_validate(document)
    assert plan.built["everyone"].nested == (Nested(4, 1, (0, 1)),)
    assert Plan.model_validate({**plan.public(), "source": "withheld"}).digest == plan.digest


def test_compression_merges_no_categories_of_two_groups(document):
    document["releases"][0]["compress"] = {"keep": 3}
    release = Plan.model_validate(document).built["everyone"]
    assert isinstance(release, CompressedMicrodata)
    kinds = next(merged.kinds for merged in release.merged if merged.position == 1)
    assert [kinds[i] == kinds[0] for i in range(5)] == [True, True, False, False, False]
    assert kinds[2] == kinds[3] != kinds[4]
    document["releases"][0]["compress"] = {"keep": 2}
    with pytest.raises(ValueError, match="keep must be at least 3 for trade, not 2"):
        Plan.model_validate(document)


def test_rules_may_name_a_group_of_which_the_detail_is_measured(document):
    document["columns"]["sector"]["refines"] = {"branch": {"art": "no", "food": "b", "metal": "b"}}
    document["columns"]["branch"] = {"type": "categorical", "categories": ["no", "b"]}

    def rules(*given):
        document["releases"][0]["rules"] = [*given]
        return Plan.model_validate(document).built["everyone"].rules

    old = {"age": {"from": 60}}
    document["releases"][0]["bins"]["age"] = [18, 60, 90]
    for group, trades in (
        ({"sector": ["food", "art"]}, ["baker", "brewer", "poet"]),
        ({"branch": ["b"]}, ["baker", "brewer", "smith", "founder"]),
        ({"sector": ["food"], "branch": ["b"]}, ["baker", "brewer"]),
        ({"sector": ["food"], "trade": ["baker", "smith"]}, ["baker"]),
    ):
        for name, (one, other) in {"then": (old, group), "if": (group, old)}.items():
            own = {"if": one, "then": other} | ({name: {"trade": trades}})
            assert rules({"if": one, "then": other}) == rules(own)
