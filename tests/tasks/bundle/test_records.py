"""Synthetic records of mixed columns, from made-up draws."""

import re

import numpy as np
import pytest
import yaml
from scipy import stats

from dpcore.domain.axes import Bins
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.density import Density
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.bundle.records import SyntheticRecords, synthetic_records
from tests.chance import FALSE_ALARM

ROWS = 20_000
PLAN = """
dprelease: 1
dataset: mixed
source: nowhere.parquet
rows: 20000
privacy_unit: row
neighbours: replace-one
budget:
  granted: {alpha: "60", beta: "0", gamma: "0"}
  requested: {alpha: "60", beta: "0", gamma: "0"}
columns:
  place: {type: categorical, categories: [north, south], nullable: true}
  owner: {type: categorical, categories: [true, false]}
  code: {type: categorical, categories: [7, 9]}
  age: {type: integer, bounds: [0, 99]}
  children: {type: integer, bounds: [0, 4]}
  pay: {type: continuous, bounds: [-50, 1000]}
  rent: {type: integer, bounds: [0, 1999], nullable: true}
releases:
  - name: everybody
    kind: histogram
    columns: [place, owner, code, age, children, pay, rent]
    bins: {age: [0, 20, 40, 100], pay: [-50, 150, 350, 1000], rent: [0, 1000, 2000]}
  - {name: ages, kind: density, columns: [age], bandwidth: 0.05, mechanism: binned-laplace}
  - {name: both, kind: density, columns: [age, pay], bandwidth: 0.1, mechanism: binned-laplace}
  - {name: rents, kind: histogram, columns: [rent, place], bins: {rent: 40}}
synthesis:
  - {name: people, from: everybody, rows: 20000}
publication: {title: Mixed columns}
"""
Draws = dict[str, Noisy]


def planned(**within_bins: str) -> Plan:
    document = yaml.safe_load(PLAN)
    document["synthesis"][0]["within_bins"] = within_bins
    return Plan.model_validate(document)


@pytest.fixture(scope="module")
def draws() -> Draws:
    """Over made-up records, many at the lower end of every numeric column."""
    found = {}
    for seed, (name, release) in enumerate(planned().built.items()):
        random = np.random.default_rng(3)
        shapes = [(1, 6) if axis.size > 10 else (1, 1) for axis in release.domain.axes]
        shares = np.stack([random.beta(*shape, ROWS) for shape in shapes], axis=1)
        if name == "rents":
            shares[::3, 0] = 1 - 1e-9  # null, as often as in the release that is drawn from
        cells = release.domain.pack((shares * release.domain.shape).astype(np.int64))
        exact = release.statistic(Tally(release.domain, *np.unique(cells, return_counts=True)))
        found[name] = perturb(exact, release.mechanism, release.share, SeededSource(seed))
    return found


def made(draws: Draws, rows: int | None = None, **within_bins: str) -> SyntheticRecords:
    plan = planned(**within_bins)
    return synthetic_records(plan, plan.synthesis[0], draws.__getitem__, rows)


def test_every_column_comes_out_in_the_survey_s_own_terms(draws):
    columns = made(draws).columns
    assert set(columns["owner"].tolist()) == {True, False}
    assert set(columns["code"].tolist()) == {7, 9}
    assert set(columns["place"].tolist()) == {"north", "south", None}
    assert columns["age"].dtype == columns["children"].dtype == columns["rent"].dtype == np.int64
    assert set(columns["children"].tolist()) == {0, 1, 2, 3, 4}
    assert columns["pay"].dtype == np.float64
    assert np.ma.getmaskarray(columns["rent"]).any()
    assert {len(column) for column in columns.values()} == {ROWS}


@pytest.mark.parametrize("rows", [0, 1, 777])
def test_there_are_as_many_records_as_wanted(draws, rows):
    assert {len(column) for column in made(draws, rows).columns.values()} == {rows}


def test_the_same_draws_give_the_same_records(draws):
    first, second = made(draws), made(dict(draws))
    for name, column in first.columns.items():
        assert np.ma.allequal(np.ma.asarray(column), np.ma.asarray(second.columns[name]))


def codes_of(records: SyntheticRecords, column: str) -> np.ndarray:
    return records.codes[:, records.domain.names.index(column)]


@pytest.mark.parametrize("within_bins", [{}, {"age": "both", "rent": "rents"}, {"pay": "uniform"}])
def test_values_stay_in_the_bins_of_their_codes(draws, within_bins):
    records = made(draws, **within_bins)
    for axis in records.domain.axes:
        if isinstance(axis, Bins):
            codes, values = codes_of(records, axis.name), records.columns[axis.name]
            null = np.ma.getmaskarray(values)
            assert np.array_equal(null, codes == axis.cells)
            kept = np.ma.getdata(values)[~null]
            assert np.all(kept >= axis.edge(codes[~null]))
            assert np.all(kept < axis.edge(codes[~null] + 1))


def inside(
    records: SyntheticRecords, shares: np.ndarray, column: str, lower: int, upper: int
) -> tuple[np.ndarray, np.ndarray]:
    """How often each whole number of a bin occurs, and how often it should by the shares."""
    values = np.ma.compressed(np.ma.asarray(records.columns[column]))
    counts = np.bincount(values[(values >= lower) & (values < upper)] - lower)
    counts = np.pad(counts, (0, upper - lower - len(counts)))
    return counts, counts.sum() * shares[lower:upper] / shares[lower:upper].sum()


def test_whole_numbers_follow_their_density_inside_each_bin(draws):
    records, release = made(draws), planned().built["ages"]
    assert isinstance(release, Density)
    assert records.refined_by == {"age": "ages", "pay": "both"}
    shares = release.probabilities(draws["ages"])
    for lower, upper in ((0, 20), (20, 40)):
        counts, expected = inside(records, shares, "age", lower, upper)
        assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM
        assert stats.chisquare(counts).pvalue < 1e-9  # not uniform


def test_real_numbers_follow_their_density_inside_each_bin(draws):
    records, release = made(draws), planned().built["both"]
    assert isinstance(release, Density)
    edges = np.asarray(release.domain.axes[1].edges)
    cumulative = np.r_[0.0, np.cumsum(release.probabilities(draws["both"]).sum(axis=0))]
    pay, uniform = records.columns["pay"], made(draws, pay="uniform").columns["pay"]
    for lower, upper in ((-50.0, 150.0), (150.0, 350.0), (350.0, 1000.0)):
        ends = np.interp([lower, upper], edges, cumulative)
        for values, follows in ((pay, True), (uniform, False)):
            chosen = values[(values >= lower) & (values < upper)]
            ranks = (np.interp(chosen, edges, cumulative) - ends[0]) / np.diff(ends)
            spread = (chosen - lower) / (upper - lower)
            of_density, of_uniform = (stats.kstest(u, "uniform").pvalue for u in (ranks, spread))
            assert (of_density if follows else of_uniform) > FALSE_ALARM
            assert (of_uniform if follows else of_density) < 1e-9


def test_a_column_with_nulls_follows_counts_in_finer_bins(draws):
    records = made(draws, rent="rents")
    assert records.refined_by["rent"] == "rents"
    noisy = draws["rents"].values.reshape(41, 3)[:40].sum(axis=1)
    counts, expected = inside(records, np.repeat(noisy / 50, 50), "rent", 0, 1000)
    by_bin = [table.reshape(20, 50).sum(axis=1) for table in (counts, expected)]
    assert stats.chisquare(*by_bin).pvalue > FALSE_ALARM
    assert stats.chisquare(by_bin[0]).pvalue < 1e-9
    assert stats.chisquare(counts[:50]).pvalue > FALSE_ALARM  # uniform in a finer bin
    assert "rent" not in made(draws).refined_by


def test_where_in_its_bin_a_value_lies_does_not_follow_from_its_bin():
    """Codes of a table in which nothing passed the threshold are random numbers too."""
    document = yaml.safe_load(PLAN)
    for name in ("x", "y"):
        document["columns"][name] = {"type": "integer", "bounds": [0, 2**20 - 1]}
    document["releases"] = [
        {"name": "sparse", "kind": "histogram", "columns": ["pay", "x", "y"], "bins": {"pay": 2}}
        | {"mechanism": "thresholded-laplace"}
    ]
    document["synthesis"] = [{"name": "people", "from": "sparse", "rows": ROWS}]
    plan = Plan.model_validate(document)
    nothing = Noisy(np.array([], dtype=np.int64), cells=np.array([], dtype=np.int64))
    pay = synthetic_records(plan, plan.synthesis[0], lambda _: nothing).columns["pay"]
    assert stats.kstest((pay + 50) / 1050, "uniform").pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("column", "name", "says"),
    [
        ("place", "ages", "within_bins.place: everybody has no bins of this column"),
        ("children", "ages", "within_bins.children: everybody has no bins"),
        ("shoe", "ages", "within_bins.shoe: everybody has no bins"),
        ("pay", "ages", "'ages' is neither a density nor counts of this column; there is everyb"),
        ("pay", "nobody", "synthesis[0].within_bins.pay: 'nobody' is neither"),
    ],
)
def test_what_a_column_cannot_follow_is_refused_at_its_place(column, name, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        planned(**{column: name})


def test_what_the_records_follow_is_graded_up_to_triples_and_the_whole_table(draws: Draws):
    """Two numbers grade a table, and each is what the noisy counts and the records say."""
    records = made(draws)
    table = records.support("people", draws["everybody"]).columns
    ways, grades = table["ways"], np.asarray(table["grade"])
    assert [int((ways == w).sum()) for w in range(1, 8)] == [7, 21, 35, 0, 0, 0, 1]
    both = np.ma.getdata(table["distance"] + table["expected_distance"])
    expected = np.select([both <= 0.1, both <= 0.3], ["accurate", "rough"], "noise")
    assert grades.tolist() == expected.tolist()
    names = table["columns"].tolist()
    (at,) = (i for i, name in enumerate(names) if name == "place x code x rent")
    domain = records.domain
    whole = draws["everybody"].values.reshape(domain.shape)
    whole = whole + (ROWS - whole.sum()) / whole.size  # the number of records is public
    noisy = np.einsum("abcdefg->acg", whole) / ROWS
    found = np.zeros(noisy.shape)
    np.add.at(found, tuple(records.codes[:, [0, 2, 6]].T), 1 / len(records.codes))
    assert table["distance"][at] == pytest.approx(np.abs(found - noisy).sum() / 2)
    assert both[names.index("place")] < both[-1]
