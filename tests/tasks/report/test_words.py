"""What the page says of the promise."""

import math
from fractions import Fraction

import pytest

from schemas.bundle.manifest import Guarantee
from schemas.plan import Plan
from schemas.survey.columns import IntegerColumn
from tasks.explain.explain import describe_dataset
from tasks.report.cells import called
from tasks.report.words import SYNTHETIC, best_guess, how_often, in_plain_words, in_symbols, limits


def guarantee(alpha: str, beta: str) -> Guarantee:
    amounts = {"alpha": alpha, "beta": beta, "gamma": "0", "epsilon": alpha, "delta": beta}
    words = {"privacy_unit": "row", "neighbours": "replace-one", "statement": "", "domain": ""}
    words["composition"] = "basic"
    return Guarantee.model_validate(amounts | words)


@pytest.mark.parametrize(("alpha", "beta"), [("0.1", "0"), ("2", "1e-6"), ("1", "0.2")])
def test_the_best_guess_is_that_of_the_mechanism_that_leaks_most(alpha, beta):
    # With probability beta it tells the record; else it answers at random, as alpha allows.
    odds = math.exp(float(alpha))
    told, answered = float(Fraction(beta)), odds / (1 + odds)
    assert best_guess(guarantee(alpha, beta)) == pytest.approx(told + (1 - told) * answered)


def counting_plan(document: dict, **changes: object) -> Plan:
    """A plan of one histogram, with a weighted one beside it where there are weights."""
    people = document["releases"][0]
    weighted = {"name": "weighed", "weighted": True}
    document["releases"] = [people] + [people | weighted] * ("weights" in changes)
    document["budget"]["requested"]["beta"] = "0"
    return Plan.model_validate(document | {"synthesis": []} | changes)


HOUSEHOLDS = {"column": "home", "max_rows": 4, "name": "household"}


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", ["row", HOUSEHOLDS])
def test_the_words_are_about_the_unit_and_relation_of_the_plan(unit, relation, plan_document):
    plan = counting_plan(plan_document, privacy_unit=unit, neighbours=relation)
    one = "record" if unit == "row" else "household"
    promise = guarantee("1", "0").model_copy(update={"neighbours": relation})
    words = " ".join(in_plain_words(plan, promise))
    assert f"the contribution of any one {one}" in words
    assert ("replaced by any other one" in words) == (relation == "replace-one")
    assert (f"had one {one} been left out" in words) == (relation == "add-remove")
    symbols = dict(in_symbols(plan, promise).rows)
    assert (symbols["n"] == "400 records, public") == plan.adjacency.public_rows
    assert relation in symbols["neighbouring tables D, D′"]
    assert ("at most 4 are used" in symbols["privacy unit"]) == (one == "household")
    assert ("about 400 records" in describe_dataset(plan)) == (not plan.adjacency.public_rows)


def test_the_limits_say_what_bounding_and_weighing_take_away(plan_document):
    weights = {"column": "factor", "largest": "50", "step": "1/2", "total": 9000}
    said = " ".join(limits(counting_plan(plan_document, privacy_unit=HOUSEHOLDS, weights=weights)))
    for words in ("more than 4 records", "multiples of 0.5 and cut at 50", "records is private"):
        assert words in said
    assert "Counts are of records" not in said


@pytest.mark.parametrize(
    ("alpha", "beta", "said"),
    [
        (
            "0.1",
            "0",
            "nearly as often: with a probability that differs by a factor of at most 1.11",
        ),
        (
            "2",
            "1e-6",
            "with a probability that differs by a factor of at most 7.4, except with a chance of"
            " one in 1,000,000",
        ),
        ("1000", "0", "but their probability could differ by a factor of more than 100,000"),
    ],
)
def test_it_says_by_which_factor_chances_may_differ(alpha, beta, said):
    assert how_often(guarantee(alpha, beta)).startswith(said)


def test_a_plan_without_synthetic_records_has_no_limits_of_theirs(plan_document):
    assert SYNTHETIC in limits(Plan.model_validate(plan_document))
    assert SYNTHETIC not in limits(counting_plan(plan_document))


def test_an_endless_alpha_protects_nobody():
    assert best_guess(guarantee("1000", "0")) == 1


def test_it_says_which_tables_the_promise_is_for(plan_document):
    promise = guarantee("1", "0")
    refusing = counting_plan(plan_document)
    said = " ".join(in_plain_words(refusing, promise))
    assert "for tables that fit the plan" in said
    assert "one invalid record would have stopped the release" in said
    assert "that fit the plan" in dict(in_symbols(refusing, promise).rows)["promise"]
    total = counting_plan(plan_document, invalid="own-cell")
    said = " ".join(in_plain_words(total, promise))
    assert "holds for any records that the survey may contain" in said
    assert "stopped" not in said
    assert "fit" not in dict(in_symbols(total, promise).rows)["promise"]


def test_columns_whose_descriptions_begin_alike_are_told_apart():
    """As parts of one date are, which ``init`` describes."""
    said = {"y": "Date of hire: year", "m": "Date of hire: month", "age": "Age, in years", "no": ""}
    said |= {"plan": "Participates in 401(k) (asked where e401k = 1)"}
    columns = {
        name: IntegerColumn(type="integer", bounds=(1, 9), description=text)
        for name, text in said.items()
    }
    shown = {name: called(name, columns) for name in columns}
    assert shown == {
        "y": said["y"],
        "m": said["m"],
        "age": "Age",
        "no": "no",
        "plan": "Participates in 401(k)",
    }
