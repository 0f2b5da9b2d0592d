"""Correlations, tests of independence and quantiles: errors over many surveys and draws."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from dpcore.domain.axes import Bins
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.questions import correlation, independence, quantile
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from tests.chance import FALSE_ALARM, mean_squares, most_failures, reach, shares
from tests.tasks.inference.test_fit import DOMAIN, columns, evidence, exact_tables, surveyed

pytestmark = pytest.mark.usefixtures("short_fits")

SURVEYS, FEW = 60, 24


@lru_cache
def surveys(number: int) -> list[Evidence]:
    """What many surveys of one population give."""
    generator = np.random.default_rng(7)
    return [evidence(surveyed(generator), seed) for seed in range(number)]


def all_of(ask, number=SURVEYS):
    return [ask(each) for each in surveys(number)]


@pytest.mark.slow
def test_correlations_have_their_stated_error():
    found = all_of(lambda e: correlation(e, "age", "works"))
    population = surveyed(np.random.default_rng(0), 400_000)
    values = columns(population[population[:, 2] < 4])
    truth = np.corrcoef(np.asarray(values["age"], float), np.asarray(values["works"], float))[0, 1]
    errors = np.array([(c.estimate - truth) / c.standard_error for c in found])
    assert abs(errors.mean()) < reach(errors)
    least, most = mean_squares(len(errors))
    assert least <= np.mean(errors**2) <= most


@pytest.mark.slow
def test_independent_columns_give_p_values_that_are_uniform():
    found = all_of(lambda e: independence(e, "place", "age"))
    assert {each.degrees for each in found} == {6}
    p_values = [each.p_value for each in found]
    assert stats.kstest(p_values, "uniform").pvalue > FALSE_ALARM
    assert np.mean([each.statistic for each in found]) == pytest.approx(
        6, abs=2.5
    )  # 5.6 deviations


@pytest.mark.slow
def test_dependent_columns_are_found():
    found = all_of(lambda e: independence(e, "sex", "works"))
    assert np.mean([each.p_value < 0.05 for each in found]) > 0.9


def evenly(evidence: Evidence, shape=lambda place: place) -> Evidence:
    """The same, whose records lie anywhere in their bins of ten years."""
    ages = np.array(evidence.codes[:, 2] * 10 + 20, dtype=float)
    ages += 10 * shape(np.random.default_rng(1).random(len(ages)))
    return replace(evidence, columns=evidence.columns | {"age": ages})


@pytest.mark.slow
def test_a_quantile_lies_in_its_bin_as_records_do():
    one = surveys(FEW)[0]
    even, early = (quantile(evenly(one, shape), "age", 0.4) for shape in (np.copy, np.square))
    assert even.interval == early.interval
    assert even.value - 20 > 10  # in the second bin
    assert (even.value % 10) ** 2 == pytest.approx(10 * (early.value % 10), abs=2)
    none = replace(one, codes=one.codes[:0], columns={"age": np.empty(0)})
    assert quantile(none, "age", 0.4).value == pytest.approx(even.value, abs=0.5)


def test_an_interval_of_whole_numbers_ends_at_one_of_them():
    one = evidence(surveyed(np.random.default_rng(1), 400), 3)
    axes = one.domain.axes
    for integer, end in ((True, 59), (False, 60)):
        age = replace(axes[2], integer=integer)
        found = replace(evenly(one, np.zeros_like), domain=Domain((*axes[:2], age, *axes[3:])))
        assert quantile(found, "age", 0.999).interval[1] == end


def test_quantiles_are_held_by_their_intervals():
    population = surveyed(np.random.default_rng(0), 400_000)
    ages = np.array([20, 30, 40, 50, 60])
    counts = np.bincount(population[:, 2])[:4]
    for level in (0.25, 0.5, 0.9):
        below = np.r_[0, np.cumsum(counts)] / counts.sum()
        truth = np.interp(level, below, ages)
        found = all_of(lambda e, level=level: quantile(evenly(e), "age", level), number=FEW)
        held = [q.interval[0] <= truth <= q.interval[1] for q in found]
        assert np.mean(held) >= shares(FEW, 0.95)[0]
        assert np.median([q.value for q in found]) == pytest.approx(truth, abs=0.5)


def alone(counts, step, error):
    """The noisy counts of bins of one column, whose records lie in the middle of their bins."""
    axis = Bins("pay", tuple(float(step * i) for i in range(len(counts) + 1)))
    agreement = Agreement((axis.size,), [Margin((0,), counts, error**2)], None)
    codes = np.repeat(np.arange(axis.size), np.maximum(counts, 0).astype(int))[:, None]
    pay = {"pay": step * (codes[:, 0] + 0.5)}
    return Evidence(Domain((axis,)), agreement, float(counts.sum()), codes, pay)


def test_a_quantile_is_of_the_cells_that_give_the_narrower_interval():
    """Two wide bins, and a hundred, with little noise and with much."""
    counts = np.full(100, 1000.0)
    wide = alone(counts.reshape(2, 50).sum(axis=1), 50, 10.0)
    fine, noisy = (alone(counts, 1, error) for error in (10.0, 10_000.0))
    assert quantile(wide, "pay", 0.4).interval == (0, 50)
    low, high = quantile(replace(wide, alone={"pay": fine}), "pay", 0.4).interval
    assert 35 < low < 40 < high < 45
    assert quantile(replace(wide, alone={"pay": noisy}), "pay", 0.4).interval == (0, 50)


def test_intervals_cover_quantiles_of_many_cells_of_which_most_are_empty():
    """Noise in empty cells takes their sums up and down again."""
    exact, random, draws = np.zeros(400), np.random.default_rng(5), 2000
    exact[[0, 399]] = 8300.0, 1700.0
    exact[150:250] = 0.1
    exact /= exact.sum()
    missed = 0
    for _ in range(draws):
        drawn = random.multinomial(10_000, exact) + random.normal(0, 8.0, 400)
        low, high = quantile(alone(drawn, 1, 8.0), "pay", exact[:200].sum()).interval
        missed += not low <= 200 <= high
    assert missed <= most_failures(draws, 0.05)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (
            lambda e: correlation(e, "sex", "age"),
            "needs two columns of numbers|of categories choose one",
        ),
        (lambda e: independence(e, "sex", "height"), "height: is not one of"),
        (lambda e: independence(e, "sex", "sex"), "name two columns"),
        (lambda e: quantile(e, "sex", 0.5), "has no bins"),
        (lambda e: quantile(e, "age", 2), "level: must lie between 0 and 1"),
    ],
)
def test_what_cannot_be_answered_is_explained(ask, said):
    with pytest.raises(InputError, match=said):
        ask(evidence(surveyed(np.random.default_rng(3)), 1))


def test_what_goes_together_inside_wide_bins_is_that_of_the_records():
    """Two numbers that are nearly the same, in two bins each."""
    domain = Domain((Bins("x", (0.0, 50, 100)), Bins("y", (0.0, 50, 100))))
    generator = np.random.default_rng(2)
    x = generator.uniform(0, 100, 4000)
    y = np.clip(x + generator.normal(0, 2, 4000), 0, 99)
    codes = np.stack([x >= 50, y >= 50], axis=1).astype(np.int64)
    agreement = Agreement(domain.shape, [Margin((0, 1), counted(codes), 1.0)], 4000.0)
    found = Evidence(domain, agreement, 4000.0, codes, {"x": x, "y": y})
    stated = correlation(found, "x", "y")
    assert stated.estimate == pytest.approx(np.corrcoef(x, y)[0, 1], abs=0.01)
    assert stated.spanned == pytest.approx(0.75, abs=0.02)  # of a uniform law, between two halves


def counted(codes):
    return np.bincount(codes @ [2, 1], minlength=4).reshape(2, 2).astype(float)


@pytest.fixture(scope="module")
def unit_and_panel():
    """A survey of units, and of five equal records of each, both without noise."""
    codes = surveyed(np.random.default_rng(11), 800)
    return [
        Evidence(DOMAIN, exact_tables(each, "100"), float(len(each)), each, columns(each), most)
        for each, most in ((codes, 1), (np.repeat(codes, 5, axis=0), 5))
    ]


def test_equal_records_of_a_unit_count_as_one(unit_and_panel):
    units, panel = unit_and_panel
    one, other = (correlation(each, "age", "works") for each in (units, panel))
    assert other.sampling_error == pytest.approx(one.sampling_error, rel=5e-3)
    first, second = (independence(each, "place", "age").p_value for each in (units, panel))
    assert second == pytest.approx(first, rel=5e-2)
    first, second = (quantile(each, "age", 0.4).interval for each in (units, panel))
    assert first == second


def test_answers_print_as_estimates_with_their_intervals_and_notes():
    found = replace(surveys(1)[0], assumes=("assumed",))
    r, test, median = (
        correlation(found, "age", "works"),
        independence(found, "place", "age"),
        quantile(found, "age", 0.5),
    )
    says, *notes = str(r).splitlines()
    low, high = r.interval
    assert says.startswith(
        f"correlation of age and works: {r.estimate:.4g} (95% interval {low:.4g}"
    )
    assert f" to {high:.4g}; standard errors: sampling {r.sampling_error:.3g}, privacy" in says
    assert notes == ["Note: assumed"]
    assert str(test).startswith(
        f"independence of place and age: p = {test.p_value:.3g} (chi-square"
    )
    assert str(test).endswith("degrees of freedom 6)\nNote: assumed")
    low, high = median.interval
    assert str(median).splitlines() == [
        f"quantile 0.5 of age: {median.value:.6g} (95% interval {low:.6g} to {high:.6g})",
        "Note: assumed",
    ]
