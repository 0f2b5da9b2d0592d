"""Series in a plan: what they bound, what they promise a ledger, and what is refused."""

from fractions import Fraction

import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.releases.tables.series import SeriesRun
from schemas.plan import Plan, published_plan
from tests.schemas.refusals import refused
from tests.shortest import document as shortest

MONTHS = [f"2026-{month:02d}" for month in range(1, 5)]
UNIT = {"column": "person", "max_rows": 2}
SERIES = {"period": "month", "periods": 4, "in_periods": 1}

WEIGHTED = {"name": "h", "kind": "histogram", "columns": ["kind"], "weighted": True}


@pytest.fixture
def document() -> dict:
    columns = {
        "month": {"type": "categorical", "categories": MONTHS},
        "kind": {"type": "categorical", "categories": ["a", "b"]},
        "weeks": {"type": "integer", "bounds": [1, 4]},
        "size": {"type": "continuous", "bounds": [0, 1]},
    }
    events = {"name": "events", "kind": "histogram", "columns": ["kind"]}
    return shortest(columns, [events], neighbours="add-remove", series=dict(SERIES))


def with_series(document: dict, **changes: object) -> dict:
    return document | {"series": SERIES | changes}


def test_every_release_is_a_run_over_the_period_and_its_own_columns(document):
    plan = Plan.model_validate(with_series(document, run=3))
    run = plan.built["events"]
    assert isinstance(run, SeriesRun)
    assert (run.run, run.domain.names) == (3, ("month", "kind"))
    assert run.event.adjacency == plan.adjacency == Adjacency("add-remove")


def test_a_unit_has_its_records_in_every_period_that_it_can_be_in(document):
    for in_periods, most in ((1, 2), (3, 6), ("all", 8)):
        unit = with_series(document, in_periods=in_periods) | {"privacy_unit": UNIT}
        plan = Plan.model_validate(unit)
        assert plan.adjacency == Adjacency("add-remove", most, unit="person")
        assert plan.built["events"].mechanism.event.l1_sensitivity == most * 1024
        assert plan.series.bound(plan.columns).most == most // 2


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, ["1", "0", "0", "0"]),
        ({"measures": "to-date"}, ["1", "1/2", "3/8", "5/16"]),
        ({"in_periods": 2}, ["1/2", "1/2", "0", "0"]),
        ({"measures": "to-date", "in_periods": 2}, ["1/2", "3/4", "7/16", "11/32"]),
        ({"measures": "to-date", "in_periods": 4}, ["1/4", "3/8", "15/32", "35/64"]),
    ],
)
def test_each_run_is_charged_what_it_adds_to_the_series(document, changes, parts):
    unit = {"privacy_unit": UNIT}
    plans = [
        Plan.model_validate(with_series(document, **changes, run=run) | unit) for run in range(1, 5)
    ]
    assert [plan.series.part for plan in plans] == [Fraction(part) for part in parts]
    alphas = [plan.prices["events"].alpha for plan in plans]
    alone = max(Fraction(part) for part in parts)  # the dearest run costs what was requested
    assert alphas == [Fraction(p) / alone * plans[0].requested.alpha for p in parts]
    concentrated = {
        "composition": "concentrated",
        "granted": {"alpha": "4", "beta": "1e-6"},
        "requested": {"part": "1/4"},
    }
    for plan, part in zip(plans, parts, strict=True):
        other = Plan.model_validate(plan.model_dump(mode="json") | {"budget": concentrated})
        (price,) = other.prices.values()
        assert price.rho == (Fraction(part) / alone) ** 2 * other.requested.rho


def test_gaussian_noise_under_basic_composition_has_no_price_that_adds_up(document):
    budget = {
        "granted": {"alpha": "4", "beta": "1e-6"},
        "requested": {"alpha": "1", "beta": "1e-7"},
    }
    margins = {"kind": "margins", "name": "m", "columns": ["kind"], "ways": 1}
    release = margins | {"mechanism": "discrete-gaussian"}
    changes = {"budget": budget, "releases": [release]}
    plan = Plan.model_validate(with_series(document, run=3) | changes)
    assert plan.prices == {"m": plan.requested}


def test_tables_of_one_period_each_pay_in_full_as_nothing_is_enforced_across_them(document):
    changes = {"period": "schedule", "in_periods": "all"}
    for run in (1, 4):
        plan = Plan.model_validate(with_series(document, **changes, run=run))
        assert plan.series.part == 1
        assert plan.prices == {"events": plan.requested}
        assert plan.series.bound(plan.columns) is None
        assert plan.built["events"].domain.names == ("kind",)


def test_the_parts_add_up_to_what_all_runs_cost(document):
    plan = Plan.model_validate(with_series(document, in_periods=2) | {"privacy_unit": UNIT})
    parts = [plan.series.model_copy(update={"run": run}).part for run in range(1, 5)]
    alone = plan.built["events"].mechanism.event.l1_sensitivity
    one_period = Adjacency("add-remove", 2, unit="person")
    together = plan.series.factor.l1_sensitivity(4, 2, one_period)
    assert sum(parts) * alone == together
    squared = plan.series.factor.l2_sensitivity_squared(4, 2, one_period)
    assert sum(part**2 for part in parts) * alone**2 == squared


ESTIMATES = [
    {"name": "size", "kind": "model", "formula": "weeks ~ 1"},
    {"name": "sums", "kind": "moments", "columns": ["weeks", "kind"]},
]


def with_estimates(document: dict, **changes: object) -> dict:
    budget = {
        "composition": "concentrated",
        "granted": {"alpha": "10", "beta": "1e-6"},
        "requested": {"rho": "1/10"},
    }
    return with_series(document, **changes) | {"releases": ESTIMATES, "budget": budget}


def test_estimates_of_disjoint_periods_cost_nothing_after_the_first(document):
    for run, parts in ((1, 1), (2, 0), (4, 0)):
        plan = Plan.model_validate(with_estimates(document, run=run))
        shares = [release.share.rho for release in plan.built.values()]
        assert [price.rho for price in plan.prices.values()] == [parts * each for each in shares]
        assert sum(shares) == Fraction(1, 10)


def test_estimates_of_tables_of_one_period_each_cost_the_same_in_each_run(document):
    of = {"period": "schedule", "in_periods": "all"}
    for run in (1, 4):
        plan = Plan.model_validate(with_estimates(document, run=run, **of))
        assert sum(price.rho for price in plan.prices.values()) == Fraction(1, 10)
        assert {release.most for release in plan.built.values()} == {4}


def test_estimates_need_units_of_one_period_that_count_once(document):
    of_units = with_estimates(document, in_periods=2) | {"privacy_unit": UNIT}
    assert "need in_periods: 1, or tables of one period each" in refused(of_units)
    several = with_estimates(document) | {"privacy_unit": UNIT}
    assert "releases[0].kind: a model of a series counts each record once" in refused(several)
    named = with_estimates(document) | {"releases": [ESTIMATES[1] | {"columns": ["month"]}]}
    assert "'month' is the period of the series" in refused(named)
    replaced = with_estimates(document) | {
        "privacy_unit": UNIT,
        "neighbours": "replace-one",
        "releases": ESTIMATES[1:],
    }
    assert "need neighbours: add-remove" in refused(replaced)


PEOPLE = {"name": "people", "from": "pairs", "rows": 10}
PAIRS = {"name": "pairs", "kind": "microdata-margins", "columns": ["kind", "weeks"]}
PAIRS["mechanism"] = "discrete-gaussian"
FIT = {"name": "fit", "title": "Weeks by kind", "formula": "weeks ~ kind"}


def with_records(document: dict, release: dict | None = None, **changes: object) -> dict:
    drawn = {"releases": [PAIRS | (release or {})], "synthesis": [PEOPLE], "analyses": [FIT]}
    budget = {
        "granted": {"alpha": "4", "beta": "1e-6"},
        "requested": {"alpha": "1", "beta": "1e-7"},
    }
    return with_series(document, **changes) | drawn | {"budget": budget}


def test_records_cost_what_the_tables_of_their_runs_cost(document):
    unit = {"privacy_unit": UNIT}
    for run in range(1, 5):
        plan = Plan.model_validate(with_records(document, in_periods=2, run=run) | unit)
        tables = {
            "releases": [PAIRS | {"kind": "margins", "ways": 2}],
            "synthesis": [],
            "analyses": [],
        }
        counted = Plan.model_validate(with_records(document, in_periods=2, run=run) | unit | tables)
        assert plan.prices == counted.prices
        assert plan.built["pairs"].event == counted.built["pairs"].event
        assert plan.of_period["pairs"].domain.names == ("kind", "weeks")
        assert plan.most_together == UNIT["max_rows"]  # of the four that its runs protect


def test_records_may_be_added_to_a_series_that_has_begun(document):
    series = [
        Plan.model_validate(with_records(document, run=run) | changes).series_id
        for run, changes in ((1, {"synthesis": [], "analyses": []}), (2, {}))
    ]
    assert series[0] == series[1]
    other = Plan.model_validate(with_records(document, {"columns": ["kind"]}) | {"analyses": []})
    assert other.series_id != series[0]


def test_words_for_readers_may_change_and_the_period_of_a_run_has_a_name(document):
    first = Plan.model_validate(document)
    name = first.series.column
    told = document | {"columns": {**document["columns"]}}
    told["columns"][name] = told["columns"][name] | {"description": "The period"}
    again = Plan.model_validate(told)
    assert again.series_id == first.series_id
    told["columns"][name] = told["columns"][name] | {"categories": [*MONTHS[1:], MONTHS[0]]}
    assert Plan.model_validate(told).series_id != first.series_id
    assert first.series.at(2).named(first.columns) == "period 2 of 4: 2026-02"


@pytest.mark.parametrize(
    ("release", "changes", "told"),
    [
        (
            {},
            {"measures": "to-date"},
            "synthesis: need counts of single periods",
        ),
        ({"columns": ["month", "kind"]}, {}, "'month' is the period of the series; remove it"),
        ({"compress": {"keep": 2}}, {}, "compress: remove it, because each period would merge"),
        ({"optimise": "mean"}, {}, "optimise: remove it, because a series measures all tables"),
    ],
)
def test_records_that_one_run_cannot_make_are_refused(document, release, changes, told):
    assert told in refused(with_records(document, release, **changes))


def test_models_from_counts_to_date_are_refused(document):
    to_date = with_records(document, measures="to-date") | {"synthesis": []}
    assert "analyses: need counts of single periods" in refused(to_date)


def test_plans_without_a_series_have_the_digest_that_they_had(document):
    del document["series"]
    plan = Plan.model_validate(document)
    assert "series" not in plan.public()
    assert Plan.model_validate(document | {"series": None}).digest == plan.digest
    run = Plan.model_validate(with_series(document, run=2))
    assert published_plan(run.public()).digest == run.digest != plan.digest


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"in_periods": 5}, "in_periods: must be all, or between 1 and 4"),
        ({"run": 5}, "run: there is no run 5, because the series has 4 periods"),
        ({"in_periods": 2}, "one record is in only one period; write 1, or name a privacy_unit"),
        ({"period": "day"}, "series.period: the plan declares no column 'day'"),
        ({"period": "size"}, "'size' must be categorical or integer, and without nulls"),
        ({"periods": 5}, "'month' has 4 values, but needs one for each of 5 periods"),
        ({"period": "schedule"}, "in_periods: cannot be enforced if each table"),
        (
            {"period": "schedule", "in_periods": "all", "measures": "to-date"},
            "measures: a table with only one period cannot be weighted",
        ),
    ],
)
def test_a_series_that_contradicts_itself_or_the_columns_is_refused(document, changes, told):
    assert told in refused(with_series(document, **changes))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"neighbours": "replace-one"},
            "would reveal when a unit entered; write neighbours: add-rem",
        ),
        (
            {
                "weights": {"column": "w", "largest": 2, "step": 1, "total": 1000},
                "releases": [WEIGHTED],
            },
            "weights: a series has no weights, strata or clusters. For the population, leave out",
        ),
        ({"strata": "kind"}, "strata: a series has no weights, strata or clusters"),
        ({"cluster": "kind"}, "cluster: a series has no weights, strata or clusters"),
        (
            {"releases": [{"name": "h", "kind": "histogram", "columns": ["month", "kind"]}]},
            "releases[0].columns: 'month' is the period of the series; remove it",
        ),
        (
            {
                "releases": [
                    {
                        "name": "h",
                        "kind": "histogram",
                        "columns": ["kind"],
                        "mechanism": "thresholded-laplace",
                    }
                ]
            },
            "mechanism: a series needs noise on every cell",
        ),
        (
            {"releases": [{"name": "q", "kind": "mean", "column": "size"}]},
            "kind: a series releases counts (histogram, margins, microdata-margins) or est",
        ),
    ],
)
def test_what_a_series_cannot_count_is_refused(document, changes, told):
    assert told in refused(document | changes)
