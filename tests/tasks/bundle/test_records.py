"""Synthetic records of mixed columns, from made-up draws."""

import re

import numpy as np
import pytest
from scipy import stats

from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.bundle.records import SyntheticRecords, joined, record_blocks, synthetic_records
from tasks.report.support import excluded_by_plan
from tests.chance import FALSE_ALARM
from tests.shortest import from_yaml

ROWS = 20_000
PLAN = """
rows: 20000
alpha: "60"
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
"""
Draws = dict[str, Noisy]


def planned(**within_bins: str) -> Plan:
    document = from_yaml(PLAN)
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


@pytest.mark.parametrize("rows", [0, 1, 777])
def test_there_are_as_many_records_as_wanted(draws, rows):
    assert {len(column) for column in made(draws, rows).columns.values()} == {rows}


@pytest.mark.slow
def test_records_in_blocks_are_as_many_and_follow_what_all_at_once_follow(draws, monkeypatch):
    whole = made(draws, 5000)
    monkeypatch.setattr("dpcore.releases.abilities.BLOCK", 1000)
    plan = planned()
    of = plan, plan.synthesis[0], draws.__getitem__, 5000
    blocks = [*record_blocks(*of)]
    assert [len(block.codes) for block in blocks] == [1000] * 5
    assert [block.before for block in blocks] == [0, 1000, 2000, 3000, 4000]
    together, again = joined(blocks), synthetic_records(*of)
    for name, column in together.columns.items():
        assert np.ma.allequal(np.ma.asarray(column), np.ma.asarray(again.columns[name]))
    for place, axis in enumerate(whole.domain.axes):
        one, other = (
            np.bincount(r.codes[:, place], minlength=axis.size) for r in (whole, together)
        )
        assert np.abs(one - other).max() <= 50
    small = joined([block.without_values for block in blocks])
    assert small.codes.dtype == np.int8
    noisy = draws["everybody"]
    one, other = (records.support("people", noisy).columns for records in (small, together))
    for name, column in other.items():
        np.testing.assert_array_equal(one[name], column)


@pytest.mark.slow
def test_the_same_draws_give_the_same_records(draws):
    first, second = made(draws), made(dict(draws))
    for name, column in first.columns.items():
        assert np.ma.allequal(np.ma.asarray(column), np.ma.asarray(second.columns[name]))


def codes_of(records: SyntheticRecords, column: str) -> np.ndarray:
    return records.codes[:, records.domain.names.index(column)]


def inside(
    records: SyntheticRecords, shares: np.ndarray, column: str, lower: int, upper: int
) -> tuple[np.ndarray, np.ndarray]:
    """How often each whole number of a bin occurs, and how often it should by the shares."""
    values = np.ma.compressed(np.ma.asarray(records.columns[column]))
    counts = np.bincount(values[(values >= lower) & (values < upper)] - lower)
    counts = np.pad(counts, (0, upper - lower - len(counts)))
    return counts, counts.sum() * shares[lower:upper] / shares[lower:upper].sum()


@pytest.mark.slow
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


@pytest.mark.parametrize("section", [{}, {"by": "place"}, {"transform": "log1p"}], ids=str)
def test_a_density_smoother_than_the_bins_places_no_values_unless_the_plan_says_so(section):
    document = from_yaml(PLAN)
    document["columns"]["pay"]["bounds"] = [0, 1000]
    records, _, density, *_ = document["releases"]
    density |= {"columns": ["pay"], "bandwidth": 0.05, **section}

    def follows(edges: list[int], **within: str) -> bool:
        records["bins"]["pay"] = edges
        document["synthesis"][0]["within_bins"] = within
        plan = Plan.model_validate(document)
        return "pay" in plan.synthesis[0].refining(plan.built)

    assert follows([0, 10, 100, 1000])
    narrow = [*range(0, 1001, 10)]
    assert not follows(narrow)
    assert follows(narrow, pay="both")


def test_where_in_its_bin_a_value_lies_does_not_follow_from_its_bin():
    """Codes of a table in which nothing passed the threshold are random numbers too."""
    document = from_yaml(PLAN)
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


@pytest.mark.slow
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


@pytest.mark.parametrize(("asked", "wrong"), [("'yes'", True), ("'yes', 'no'", False)])
def test_records_that_the_plan_excludes_but_the_survey_has_are_noticed(asked, wrong):
    """A questionnaire said that a question is for the sick, but the survey codes no for all others."""
    plan = Plan.model_validate(
        from_yaml(f"""
rows: 5000
alpha: "4"
columns:
  sick: {{type: categorical, categories: ['yes', 'no']}}
  died: {{type: categorical, categories: ['yes', 'no'], nullable: true}}
releases:
  - name: pairs
    kind: microdata-margins
    columns: [sick, died]
    rules: [{{if: {{sick: ['no']}}, then: {{died: [{"null" if wrong else asked}]}}}}]
    mechanism: discrete-laplace
synthesis:
  - {{name: people, from: pairs, rows: 5000}}
""")
    )
    release = plan.built["pairs"]
    sick = np.arange(ROWS // 4) % 9 > 0  # code 0 is yes
    cells = release.domain.pack(np.column_stack([sick, np.ones(len(sick), dtype=int)]))
    exact = release.statistic(Tally(release.domain, *np.unique(cells, return_counts=True)))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    records = synthetic_records(plan, plan.synthesis[0], {"pairs": noisy}.__getitem__)
    support = records.support("people", noisy).columns
    assert support["excluded"].tolist()[-1] == wrong
    found = excluded_by_plan(support)
    assert len(found) == wrong
    assert all("by sick x died" in each for each in found)
