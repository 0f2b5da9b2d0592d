"""A plan with open columns is known in all but its categories, and holds whatever is found."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.domain.tally import Tally
from dpcore.domain.texts import cells_of, texts
from dpcore.errors import PlanError
from dpcore.line.mechanism import affordable, event_from_dict
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import WithinShare
from schemas.plan import load_plan, published_plan
from schemas.plan.digest import digest_of
from schemas.plan.searches import search_words
from schemas.plan.selection import select
from schemas.survey.found import NONE, OTHER, publishable
from tasks.ledger import charges_of
from tests.bare import open_plan
from tests.tasks.survey.tables import AWKWARD

PLAN = load_plan(open_plan())
SEARCH = "categories-job"


def drawn(**counts: int) -> dict[str, Noisy]:
    """A draw of the search that found these texts."""
    tally = Tally.of(texts("job"), cells_of([*counts]), np.array([*counts.values()]))
    return {SEARCH: Noisy(tally.counts, tally.cells)}


def categories(**counts: int) -> list[str]:
    return list(PLAN.as_found(drawn(**counts)).columns["job"].categories)


def test_the_search_is_added_with_a_fifth_of_the_budget():
    assert [section.name for section in PLAN.releases] == ["people", "jobs", SEARCH]
    share = PLAN.built[SEARCH].share
    assert (share.alpha, share.beta) == (
        2,
        Fraction("1e-5") / 3,
    )  # beta: with records, of twice its weight
    assert PLAN.built[SEARCH].adjacency.most == 1
    assert PLAN.adjacency.most == 2
    (line,) = search_words(PLAN)
    assert f"a category of {PLAN.built[SEARCH].needed} units is found with probability 95%" in line


def test_a_search_that_is_stated_keeps_its_share_and_is_not_added_again():
    document = open_plan()
    document["releases"].append(
        {"name": "s", "kind": "found-categories", "column": "job", "weight": 2}
    )
    assert load_plan(document).built["s"].share.alpha == 5
    document["releases"].append({"name": "t", "kind": "found-categories", "column": "job"})
    with pytest.raises(PlanError, match="two of them search for 'job'"):
        load_plan(document)


def test_the_digest_does_not_depend_on_what_is_found_and_is_that_of_what_is_published():
    found = PLAN.as_found(drawn(cook=50, baker=40))
    assert found.digest == PLAN.digest == digest_of(found.public())
    assert published_plan(found.public()).columns == found.columns
    assert found.shares == PLAN.shares
    assert load_plan(open_plan() | {"rows": 401}).digest != PLAN.digest


def test_the_most_frequent_are_categories_and_the_last_is_of_all_others():
    assert categories(cook=50, baker=40, smith=30, clerk=60) == ["clerk", "cook", "baker", OTHER]
    assert categories() == [NONE, OTHER]


def test_what_a_plan_cannot_list_is_left_out():
    given = {
        "cook": 9,
        "cook ": 8,
        "Κook": 7,
        "Kook": 6,
        "=1+1": 5,
        " ": 4,
        "a\u202eb": 3,
        "a\nb": 2,
        "": 1,
        "(оther)": 1,
    }
    assert publishable(given, [OTHER]) == ["cook", "Κook"]
    for text in AWKWARD:
        assert published_plan(PLAN.as_found(drawn(**{text: 9})).public())


def test_whatever_contradicts_the_plan_counts_as_not_found(monkeypatch):
    document = open_plan()
    document["columns"]["job"]["missing"] = ["none"]
    plan = load_plan(document)
    assert plan.as_found(drawn(none=50, cook=40)).columns["job"].categories == ["cook", OTHER]
    monkeypatch.setattr(
        "schemas.survey.columns.publishable", lambda found, taken: ["=1"] * len(found)
    )
    assert categories(cook=40) == [NONE, OTHER]


def test_all_is_charged_before_anything_is_known():
    found = PLAN.as_found(drawn(cook=50, baker=40))
    charges = charges_of(PLAN)
    assert charges == charges_of(found)
    assert charges[SEARCH].event["event"] == "stability-laplace"
    event = event_from_dict(charges["people"].event)
    assert isinstance(event, WithinShare)
    share = PLAN.built["people"].share
    assert affordable(event, share)
    assert not affordable(event, share * Fraction(999, 1000))
    assert affordable(found.built["people"].event, share)


def test_the_price_of_a_share_is_refused_where_it_is_no_price():
    one, none = Fraction(1), Fraction(0)
    for wrong in (WithinShare(one, none, one), WithinShare(none, none, none)):
        assert wrong.concentrated is None
        assert not wrong.covered_by(PLAN.built["people"].share)
    assert WithinShare(one, Fraction(1, 9), none).concentrated == (Fraction(1, 2), Fraction(1, 9))
    assert WithinShare(none, none, one).concentrated == (1, 0)


def changed(**keys: object) -> dict:
    return open_plan() | keys


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (
            changed(budget={"granted": {"alpha": "1"}, "requested": {"alpha": "1"}}),
            "columns.job.categories: open costs beta",
        ),
        (
            changed(
                series={"period": "sex", "periods": 2, "in_periods": 1}, synthesis=[], analyses=[]
            ),
            "`open` cannot be combined with series",
        ),
        (
            changed(
                releases=[{"name": "s", "kind": "found-categories", "column": "sex"}],
                synthesis=[],
                analyses=[],
            ),
            "'sex' has no `categories: open`",
        ),
    ],
)
def test_what_does_not_go_with_an_open_column_is_refused(document, says):
    with pytest.raises(PlanError) as refused:
        load_plan(document)
    assert says in str(refused.value)


def test_a_selection_keeps_the_search():
    chosen = select(PLAN, ["jobs"], PLAN.requested * Fraction(1, 2))
    assert [section.name for section in chosen.releases] == ["jobs", SEARCH]
    assert chosen.requested.beta == PLAN.requested.beta / 2


def with_pay(**keys: object) -> dict:
    document = open_plan()
    document["columns"]["pay"] = {"type": "continuous", "bounds": "open", **keys}
    document["releases"].append({"name": "pay", "kind": "mean", "column": "pay"})
    return document


def test_bounds_are_found_too_and_the_search_shares_the_fifth():
    plan = load_plan(with_pay(point_masses=[-3]))
    assert [section.name for section in plan.releases[-2:]] == ["categories-job", "bounds-pay"]
    shares = [plan.built[name].share.alpha for name in plan.finding]
    assert shares == [1, 1]
    assert plan.columns["pay"].bounds == (-3, 1)
    found = plan.with_found({"pay": (1.0, 500.0)})
    assert found.columns["pay"].bounds == (-3, 500)
    *_, assumed = published_plan(found.public()).assumed
    assert assumed.startswith(
        "Numbers of pay beyond the bounds that were found count as the nearest"
    )
    assert found.digest == plan.digest == digest_of(found.public())
    assert published_plan(found.public()).columns == found.columns
    assert select(plan, ["pay"], plan.requested * Fraction(1, 2)).columns == plan.columns


@pytest.mark.parametrize(
    ("bounds", "before", "after"),
    [
        ([0, "open"], (0, 1), (0, 500)),
        ([-5, "open"], (-5, 1), (-5, 500)),
        ([2000, "open"], (2000, 2001), (2000, 2001)),  # nothing is found above
        (["open", 90], (0, 90), (1, 90)),
        (["open", 0.5], (0, 0.5), (-0.5, 0.5)),
    ],
)
def test_a_bound_that_is_stated_stays_where_the_other_is_found(bounds, before, after):
    plan = load_plan(with_pay(bounds=bounds))
    assert plan.columns["pay"].bounds == before
    assert published_plan(plan.public()).columns == plan.columns
    found = plan.with_found({"pay": (1.0, 500.0)})
    assert found.columns["pay"].bounds == after
    again = published_plan(found.public())
    assert again.columns == found.columns
    assert again.digest == found.digest == plan.digest != load_plan(with_pay()).digest


@pytest.mark.parametrize("bounds", [["open"], ["open", True], ["open", ".5"], ["open", [1]]])
def test_a_half_open_bound_is_a_number(bounds):
    with pytest.raises(PlanError, match=r"bounds: (each must be a number|needs two numbers)"):
        load_plan(with_pay(bounds=bounds))


@pytest.mark.parametrize("edges", [[0, 0.5, 1], [0, 1]])
def test_edges_do_not_go_with_open_bounds(edges):
    document = with_pay()
    document["releases"][-1] = {
        "name": "pay",
        "kind": "histogram",
        "columns": ["pay"],
        "bins": {"pay": edges},
    }
    with pytest.raises(PlanError, match="if nothing is found for open columns, "):
        load_plan(document)


@pytest.mark.parametrize("bounds", ["open", [0, "open"]])
def test_open_bounds_are_of_real_numbers(bounds):
    document = with_pay(type="integer", bounds=bounds)
    with pytest.raises(PlanError, match="with `step: 1` for whole numbers"):
        load_plan(document)
