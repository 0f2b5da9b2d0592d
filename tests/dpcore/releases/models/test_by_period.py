"""Estimates of a series: each run is of its period alone, and changes have honest errors."""

from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit.neighbours import neighbouring_pairs
from dpcore.audit.replay import replay
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.abilities import Replicable, RunOfSeries
from dpcore.releases.models.by_period import EstimatesRun
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.models.terms import ModelTerms
from dpcore.releases.numbers.moments import Moments
from dpcore.sampling.source import SeededSource
from schemas.releases.formulas import terms_of

WAVES = Categories("wave", ("w1", "w2", "w3"))
AGE, PAY = Grid("age", 18, 80, 62, integer=True), Grid("pay", 0, 100, 1000)
INSIDE = Domain((AGE, PAY))
SHARE = Budget.of("1", "1e-6")
ADD_REMOVE = Adjacency("add-remove")
ROWS = 2000
MOMENTS = Moments("m", INSIDE, ROWS, SHARE, adjacency=ADD_REMOVE)


def model() -> MeasuredModel:
    terms: ModelTerms = terms_of("pay ~ age", "gaussian", INSIDE.axes)
    own = {"formula": "pay ~ age", "family": "gaussian", "terms": terms}
    return MeasuredModel("m", INSIDE, ROWS, SHARE, adjacency=ADD_REMOVE, **own)


def run_of(inner, run: int, most: int = 1, domain: Domain | None = None) -> EstimatesRun:
    domain = domain or Domain((WAVES, *INSIDE.axes))
    return EstimatesRun("m", domain, ROWS, SHARE, inner, 3, run, most, year=2, adjacency=ADD_REMOVE)


def test_a_run_of_estimates_uses_earlier_runs_and_has_no_replicates():
    run = run_of(model(), 1)
    assert isinstance(run, RunOfSeries)
    assert not isinstance(run, Replicable)


def codes(generator: np.random.Generator, mean: float, rows: int = ROWS) -> np.ndarray:
    age = generator.integers(0, AGE.size, rows)
    pay = np.clip(generator.normal(mean * 10, 100, rows) + age, 0, PAY.size - 1)
    return np.column_stack([age, pay.astype(np.int64)])


def tally(domain: Domain, waves: list[np.ndarray]) -> Tally:
    rows = [np.column_stack([np.full(len(w), i), w]) for i, w in enumerate(waves)]
    found = np.concatenate(rows) if len(domain.axes) == 3 else waves[0]
    return Tally.of(domain, domain.pack(found), np.ones(len(found), dtype=np.int64))


def drawn(run: EstimatesRun, waves: list[np.ndarray], seed: int):
    exact = run.statistic(tally(run.domain, waves))
    return perturb(exact, run.mechanism, run.share, SeededSource(seed))


@pytest.mark.parametrize("inner", [MOMENTS, model()], ids=["moments", "model"])
def test_a_run_is_what_its_release_says_of_the_records_of_its_period(inner):
    waves = [codes(np.random.default_rng(i), 40.0) for i in range(3)]
    for run in (1, 2, 3):
        series = run_of(inner, run)
        of_period = inner.statistic(tally(INSIDE, [waves[run - 1]]))
        alone = inner.publish(perturb(of_period, inner.mechanism, SHARE, SeededSource(7)))
        table = series.publish(drawn(series, waves, seed=7)).tables[0]
        assert set(table.columns["quantity"]) == {"period"}
        assert np.array_equal(table.columns["estimate"], alone.tables[0].columns["estimate"])
        assert set(table.columns["wave"]) == {f"w{run}"}


def test_without_a_column_the_table_is_one_period():
    series = run_of(MOMENTS, 2, most=3, domain=INSIDE)
    wave = codes(np.random.default_rng(0), 40.0)
    exact = series.statistic(tally(INSIDE, [wave]))._statistic.values
    assert exact.tolist() == MOMENTS.statistic(tally(INSIDE, [wave]))._statistic.values.tolist()


def changes(inner, most: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """(times,) changes of the mean of pay between two periods, less the true one, and their errors."""
    generator, found = np.random.default_rng(3), []
    for seed in range(times):
        waves = [codes(generator, mean) for mean in (40.0, 42.0)]
        first, second = run_of(inner, 1, most), run_of(inner, 2, most)
        earlier = [(first, drawn(first, waves[:1], 2 * seed))]
        table = second.publish(drawn(second, waves, 2 * seed + 1), earlier).tables[0].columns
        (row,) = np.flatnonzero(
            (table["quantity"] == "change")
            & (table["statistic"] == "mean")
            & (table["column"] == "pay")
        )
        found.append((float(table["estimate"][row]), float(table["standard_error"][row])))
    estimates, errors = np.array(found).T
    return estimates - 2.0, errors


@pytest.mark.slow
def test_errors_of_changes_are_neither_too_small_nor_too_large():
    off, errors = changes(MOMENTS, 1, 150)
    spread = np.sqrt(np.mean((off / errors) ** 2))
    assert 0.8 < spread < 1.2  # those of 150 draws differ by 6%
    _, of_panel = changes(MOMENTS, 2, 3)
    assert of_panel[0] > errors[0] * 1.1  # units may be in both periods


def test_changes_need_the_earlier_runs_and_a_year_that_is_over():
    waves = [codes(np.random.default_rng(i), 40.0) for i in range(3)]
    runs = [run_of(MOMENTS, run) for run in (1, 2, 3)]
    draws = [drawn(run, waves, seed) for seed, run in enumerate(runs)]
    earlier = [*zip(runs, draws, strict=True)]

    def quantities(run: int, known) -> set[str]:
        return {*runs[run - 1].publish(draws[run - 1], known).tables[0].columns["quantity"]}

    assert quantities(3, earlier[:2]) == {"period", "change", "change-on-year"}
    assert quantities(2, earlier[:1]) == {"period", "change"}
    assert quantities(3, earlier[1:2]) == {"period"}


def test_a_change_of_a_hidden_number_has_a_reason():
    poor = replace(MOMENTS, share=Budget.of("0.001", "1e-6"))
    waves = [codes(np.random.default_rng(i), 40.0) for i in range(2)]
    first, second = run_of(MOMENTS, 1), run_of(poor, 2)
    earlier = [(first, drawn(first, waves[:1], 0))]
    noisy = perturb(
        second.statistic(tally(second.domain, waves)), poor.mechanism, poor.share, SeededSource(1)
    )
    table = second.publish(noisy, earlier).tables[0].columns
    hidden = np.ma.getmaskarray(table["lower_95"])
    assert hidden[table["quantity"] == "change"].any()
    assert np.array_equal(hidden, ~np.ma.getmaskarray(table["reason"]))


@pytest.mark.parametrize("run", [1, 2, 3])
@pytest.mark.parametrize("inner", [MOMENTS, model()], ids=["moments", "model"])
def test_no_neighbour_moves_a_run_by_more_than_is_declared(inner, run):
    series = run_of(replace(inner, rows=40), run)
    series = replace(series, rows=40)
    pairs = neighbouring_pairs(series.domain, 40, ADD_REMOVE, series.worst_tables())
    found = replay(series, pairs[:6])
    assert found.passed
    assert found.moved > 0


def test_replacement_is_refused_because_only_additions_are_proved():
    with pytest.raises(ValueError, match="need neighbours: add-remove"):
        replace(run_of(MOMENTS, 1), adjacency=Adjacency("replace-one", 2, unit="person"))
