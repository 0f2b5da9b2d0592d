"""Bundles of a series: each is computed from the earlier ones, which must be there and be whole."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import BudgetError, BundleError, InputError
from dpcore.post.series import QUANTITIES
from tasks.bundle.reader import BundleReader
from tasks.bundle.series import earlier_runs
from tasks.catalogue.bundles import find_bundles
from tasks.catalogue.series import series_figures
from tasks.ledger import Ledger
from tasks.report.page import REPORT
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tests.tasks.made_up import publish_made_up
from tests.tasks.made_up_series import WEEKS, plan_of, published
from tests.tasks.report.pages import part_of, require_sound


@pytest.fixture
def out(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DPRELEASE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPRELEASE_LEDGER", raising=False)
    return tmp_path / "published"


@pytest.mark.slow
def test_a_bundle_holds_what_all_runs_say_and_names_those_it_used(out):
    *_, third = [BundleReader.open(path) for path in published(out, 1, 2, 3)]
    drawn = earlier_runs(ReleaseJob(plan_of(3), "week-3", out)).draws("events")
    run = third.plan.built["events"]
    (expected,) = run.publish(third.draw("events"), drawn).tables
    found = third.table("events")
    assert set(found["quantity"]) == set(QUANTITIES)
    assert found["estimate"].tolist() == expected.columns["estimate"].tolist()
    assert set(found["week"]) == {"w3"}
    facts = third.manifest.releases[0].facts
    assert facts["earlier_runs"] == ["week-1", "week-2"]
    assert facts["counted_as"] == [0.375, 0.5, 1.0]
    assert facts["revises"].startswith("Later runs do not change earlier numbers")


@pytest.mark.slow
def test_numbers_of_successive_bundles_agree(out):
    bundles = [BundleReader.open(path) for path in published(out, 1, 2, 3)]

    def of(bundle, quantity, table="tables.kind.sex"):
        columns = bundle.table(table)
        return columns["estimate"][columns["quantity"] == quantity]

    for before, after in zip(bundles, bundles[1:], strict=False):
        gained = of(after, "to-date") - of(before, "to-date")
        assert gained == pytest.approx(of(after, "period"))
        assert of(after, "change") == pytest.approx(of(after, "period") - of(before, "period"))
    first, _, third = bundles
    change = of(third, "period") - of(first, "period")
    assert of(third, "change-on-year") == pytest.approx(change)


@pytest.mark.slow
def test_estimates_and_their_changes_are_published_drawn_and_answer_their_model(out):
    changes = {
        "releases": [
            {"name": "share", "kind": "model", "formula": "{sex == 'M'} ~ 1"},
            {"name": "sums", "kind": "moments", "columns": ["kind", "sex"]},
        ],
        "budget": {
            "composition": "concentrated",
            "granted": {"alpha": "20", "beta": "1e-6"},
            "requested": {"alpha": "20", "beta": "1e-6"},
        },
    }
    made = [publish_made_up(plan_of(run, **changes), f"week-{run}", out) for run in (1, 2)]
    first, second = map(BundleReader.open, made)
    now, before = second.table("share"), first.table("share")
    assert now["quantity"].tolist() == ["period", "change"]
    period, change = now["estimate"]
    assert change == pytest.approx(period - before["estimate"][0])
    both = now["privacy_error"][0], before["privacy_error"][0]
    assert now["privacy_error"][1] == pytest.approx(np.hypot(*both))
    (found,) = second.fit("{sex == 'M'} ~ 1").coefficients
    assert found.estimate == period
    page = require_sound((second.path / REPORT).read_text(), second.path)
    assert "Intercept: change from the period before" in page.words
    assert "share of sex = M: change from the period before" in page.words
    ((dataset,), _) = find_bundles(out)
    titles = [figure.title for figure in series_figures(dataset)]
    assert titles[0] == "share, term Intercept: estimate of the period"


@pytest.mark.slow
def test_the_page_shows_changes_of_the_largest_cells_not_the_largest_changes(out):
    """Of forty changes without any change, the largest would seem to be beyond noise."""
    columns = {
        "week": {"type": "categorical", "categories": WEEKS},
        "hour": {"type": "integer", "bounds": [0, 39]},
    }
    changes = {
        "columns": columns,
        "releases": [{"name": "hours", "kind": "histogram", "columns": ["hour"]}],
    }
    for run in (1, 2):
        made = publish_made_up(plan_of(run, **changes), f"week-{run}", out)
    page = require_sound((made / REPORT).read_text(), made)
    hours = {}
    for figure in page.all("figure"):
        title = next(figure.all("strong")).words.partition(",")[0]
        rows = next(figure.all("tbody")).all("tr")
        hours[title] = [next(row.all("th")).words for row in rows]
    assert len(hours["Count of the period"]) == 15
    assert hours["Change from the period before"] == hours["Count of the period"]


@pytest.mark.slow
def test_counts_that_only_place_records_inside_bins_are_not_drawn(out):
    columns = {
        "week": {"type": "categorical", "categories": WEEKS},
        "hour": {"type": "integer", "bounds": [0, 39]},
    }
    pairs = {
        "name": "p",
        "kind": "microdata-margins",
        "columns": ["hour"],
        "bins": {"hour": [0, 9, 40]},
    }
    alone = {"name": "alone", "kind": "margins", "columns": ["hour"], "ways": 1}

    def drawn(run: int, within: dict) -> list:
        made = {"name": "r", "from": "p", "rows": 100, "within_bins": within}
        of = {"releases": [pairs | {"mechanism": "discrete-laplace"}, alone], "synthesis": [made]}
        series = {"period": "week", "periods": 4, "in_periods": 1, "run": run}
        plan = plan_of(run, columns=columns, series=series, **of)
        bundle = publish_made_up(plan, f"week-{run}", out)
        page = require_sound((bundle / REPORT).read_text(), bundle)
        part = part_of(page, "release-alone")
        assert ("follow these counts inside their bins" in part.words) == bool(within)
        return [*part.all("figure")]

    assert drawn(1, {})
    assert not drawn(2, {"hour": "alone"})


RECORDS = {
    "series": {"period": "week", "periods": 4, "in_periods": 1, "year": 2},
    "releases": [
        {
            "name": "pairs",
            "kind": "microdata-margins",
            "columns": ["kind", "sex"],
            "mechanism": "discrete-laplace",
        },
    ],
    "synthesis": [{"name": "people", "from": "pairs", "rows": 500, "implicates": 5}],
    "analyses": [{"name": "share", "title": "Kind b by sex", "formula": "{kind == 'b'} ~ sex"}],
    "budget": {"granted": {"alpha": "200"}, "requested": {"alpha": "20"}},
}


def of_run(run: int) -> dict:
    return RECORDS | {"series": RECORDS["series"] | {"run": run}}


@pytest.mark.slow
def test_records_and_models_of_a_run_are_those_of_its_period(out):
    plans = [plan_of(run, **of_run(run)) for run in (1, 2)]
    made = [publish_made_up(plan, f"week-{plan.series.run}", out) for plan in plans]
    for week, path in enumerate(made, 1):
        bundle = BundleReader.open(path)
        people = bundle.table("microdata/people")
        assert [*people] == ["week", "kind", "sex"]
        assert set(people["week"]) == {f"w{week}"}
        table = bundle.table("pairs.kind.sex")
        now = table["quantity"] == "period"
        counts = np.maximum(table["estimate"][now], 0)
        cells = zip(table["kind"][now], table["sex"][now], strict=True)
        drawn = [np.sum((people["kind"] == kind) & (people["sex"] == sex)) for kind, sex in cells]
        assert np.array(drawn) / 500 == pytest.approx(counts / counts.sum(), abs=0.02)
        support = bundle.table("microdata/people.support")
        assert support["grade"].tolist() == ["accurate"] * 3
        fitted = bundle.fit("{kind == 'b'} ~ sex").coefficients
        known = [c.estimate if np.isfinite(c.standard_error) else None for c in fitted]
        assert bundle.table("analyses/share")["estimate"].tolist() == pytest.approx(known)
        assert [*bundle.sample("people", 7)["week"]] == [f"w{week}"] * 7
        weeks = bundle.implicates("people")[0]["week"]
        assert {*weeks} == {f"w{week}"}
        assert len(weeks) == pytest.approx(counts.sum(), rel=0.1)  # in records, not in steps
        assert bundle.evidence.rows == pytest.approx(counts.sum(), rel=0.1)
        require_sound((path / REPORT).read_text(), path)
    first, second = (BundleReader.open(path).table("microdata/people") for path in made)
    assert np.sum(first["kind"] == "a") != np.sum(second["kind"] == "a")
    spent = Ledger(ledger_url()).spent("events")
    assert spent == plans[0].requested  # nobody is in two periods, and records cost nothing


@pytest.mark.slow
def test_a_period_without_records_has_synthetic_ones_that_are_not_accurate(out, monkeypatch):
    monkeypatch.setattr("tests.tasks.made_up.made_up_tally", lambda domain, rows: nobody(domain))
    bundle = BundleReader.open(publish_made_up(plan_of(1, **of_run(1)), "week-1", out))
    assert bundle.tables["microdata/people"].rows == 500
    assert "accurate" not in bundle.table("microdata/people.support")["grade"]


def nobody(domain: Domain) -> Tally:
    return Tally(domain, np.zeros(0, np.int64), np.zeros(0, np.int64))


@pytest.mark.slow
def test_sums_over_a_table_of_several_quantities_are_refused(out):
    (first,) = published(out, 1)
    with pytest.raises(InputError, match="cannot be added up"):
        BundleReader.open(first).total("events")


@pytest.mark.slow
def test_a_run_without_its_earlier_ones_is_refused(out):
    published(out, 1)
    with pytest.raises(InputError, match=r"run 4 .* lacks the bundles of runs 2, 3"):
        earlier_runs(ReleaseJob(plan_of(4), "week-4", out))


@pytest.mark.slow
def test_a_period_twice_is_refused_and_a_retry_is_not(out):
    published(out, 1, 2)
    for run in (1, 2):
        told = f"run {run} was published as release week-{run}"
        with pytest.raises(InputError, match=told):
            earlier_runs(ReleaseJob(plan_of(run), "again", out))
    assert earlier_runs(ReleaseJob(plan_of(2), "week-2", out)).release_ids == ["week-1"]


@pytest.mark.slow
def test_a_changed_bundle_is_refused(out):
    (first,) = published(out, 1)
    path = first / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"title": "Other"}))
    with pytest.raises(BundleError):
        earlier_runs(ReleaseJob(plan_of(2), "week-2", out))


@pytest.mark.slow
def test_a_bundle_that_nobody_can_read_is_left_aside_but_missed(out):
    published(out, 1)
    (out / "events" / "another").mkdir()
    (out / "events" / "another" / "manifest.json").write_text("{")
    assert earlier_runs(ReleaseJob(plan_of(2), "week-2", out)).release_ids == ["week-1"]
    (out / "events" / "week-1" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="lacks the bundle of run 1"):
        earlier_runs(ReleaseJob(plan_of(2), "week-2", out))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"neighbours": "replace-one", "privacy_unit": {"column": "person", "max_rows": 1}},
        {"releases": [{"name": "events", "kind": "histogram", "columns": ["sex"]}]},
        {"series": {"period": "week", "periods": 4, "in_periods": 1}},
    ],
)
def test_bundles_of_another_series_are_not_its_runs(changes, out):
    published(out, 1)
    assert earlier_runs(ReleaseJob(plan_of(1, **changes), "other", out)).release_ids == []


@pytest.mark.slow
def test_the_runs_of_a_series_may_differ_in_budget(out):
    published(out, 1)
    dearer = plan_of(2, budget={"granted": {"alpha": "100"}, "requested": {"alpha": "8"}})
    with pytest.raises(BudgetError, match="narrower noise than run 1"):
        publish_made_up(dearer, "week-2", out)
    cheaper = plan_of(2, budget={"granted": {"alpha": "100"}, "requested": {"alpha": "1/2"}})
    second = BundleReader.open(publish_made_up(cheaper, "week-2", out))
    table = second.table("events")
    errors = dict(zip(table["quantity"], table["standard_error"], strict=True))
    first, own = plan_of(1).built["events"].mechanism, cheaper.built["events"].mechanism
    assert errors["to-date"] == pytest.approx(np.hypot(own.stddev, first.stddev / 2) / 1024)
