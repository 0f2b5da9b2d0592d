"""The tally in SQL counts what a record-by-record oracle in numpy counts."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Axis, Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import DataError
from schemas.survey.columns import Column
from schemas.survey.unit import MOST_STEPS
from tasks.survey.ingest import ingest
from tasks.survey.tally import LARGEST_PACK, Counting, pack, tallies
from tests.tasks.survey.tables import AWKWARD, assert_tells_nothing, column


def survey(tmp_path: Path, frame: pd.DataFrame, columns: Mapping[str, Column]) -> Path:
    frame.to_parquet(tmp_path / "t.parquet")
    return ingest(str(tmp_path / "t.parquet"), columns, len(frame), tmp_path / "work")


def tally(database: Path, domain: Domain, rows: int | None = None) -> Tally:
    return tallies(database, [domain], Counting(rows=rows))[0]


def code(value: object, axis: Axis) -> int:
    """The oracle: the cell of one value, by the words of ``dpcore.domain.axes``."""
    if pd.isna(value):
        assert axis.nullable
        return axis.size - 1
    if isinstance(axis, Categories):
        return axis.categories.index(value)
    if isinstance(axis, Bins):
        for point in axis.points:
            if axis.edges[point] == value:
                return point
        return min(sum(edge <= value for edge in axis.edges) - 1, axis.cells - 1)
    if value in axis.points:
        return axis.cells + axis.points.index(value)
    if axis.integer:
        return int(value - axis.lower)
    if axis.transform != "none":
        return min(sum(edge <= value for edge in axis.edges) - 1, axis.cells - 1)
    return min(int((value - axis.lower) / (axis.upper - axis.lower) * axis.cells), axis.cells - 1)


def oracle(frame: pd.DataFrame, domain: Domain) -> dict[int, int]:
    codes = [[code(v, axis) for v in frame[axis.name].tolist()] for axis in domain.axes]
    cells = domain.pack(np.array(codes, dtype=np.int64).T)
    return pd.Series(cells).value_counts().to_dict()


def assert_agrees(database: Path, frame: pd.DataFrame, domain: Domain) -> None:
    found = tally(database, domain, len(frame))
    assert found.domain == domain
    assert found.cells.dtype == found.counts.dtype == np.int64
    assert np.all(np.diff(found.cells) > 0)
    assert dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True)) == oracle(
        frame, domain
    )


COLUMNS = {
    "the sex": column("categorical", categories=["F", "M", "x"], nullable=True),
    "region-2": column("categorical", categories=[30, 10, 20]),
    "share": column("categorical", categories=[0.5, -0.0, 0.1]),
    "employed": column("categorical", categories=[False, True], nullable=True),
    "age": column("integer", bounds=(-3, 96)),
    "children": column("integer", bounds=(0, 9), nullable=True),
    "income": column("continuous", bounds=(-0.3, 0.7), grid=999),
    "wealth": column("continuous", bounds=(0.0, 1e9), grid=64, nullable=True),
    "dose": column("continuous", levels=[0.0, 0.1, 0.30000000000000004], nullable=True),
    "hours": column("integer", levels=[-5, 0, 2**53]),
}
POINTS = column("continuous", bounds=(0, 1e9), point_masses=[0, 12345.678, 1e9], nullable=True)
AXES = {
    **{name: of.axis(name) for name, of in COLUMNS.items()},
    "age bins": COLUMNS["age"].bins("age", [-3, 0, 18, 65, 97]),
    "children bins": COLUMNS["children"].bins("children", [0, 1, 10]),
    "income bins": COLUMNS["income"].bins("income", [-0.3, -0.1, 0.1, 0.30000000000000004, 0.7]),
    "wealth bins": COLUMNS["wealth"].bins("wealth", [0.0, 1e9]),
    "income by log1p": replace(COLUMNS["income"].axis("income"), cells=200, transform="log1p"),
    "wealth by sqrt": replace(COLUMNS["wealth"].axis("wealth"), cells=50, transform="sqrt"),
    "wealth points": POINTS.bins("wealth", [0.0, 12345.678, 1e6, 1e9]),
    "wealth beside points": replace(POINTS.axis("wealth"), points=(0.0, 12345.678, 1e9)),
    "children beside points": replace(COLUMNS["children"].axis("children"), points=(0.0, 9.0)),
}


WEALTH = [0.0, 1e9, 12345.678, 12345.678000000002, 12345.677999999998, 1e-300, 999999999.9999999]


def records(n: int = 5000) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    income = rng.uniform(-0.3, 0.7, n)
    edges = np.concatenate([AXES[f"income{of}"].edges for of in ("", " bins", " by log1p")])
    edges = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 1)])
    edges = edges[(edges >= -0.3) & (edges <= 0.7)]
    income[-len(edges) :] = edges

    def some_null(values: np.ndarray, kind: str) -> pd.Series:
        return pd.Series(values).astype(kind).mask(rng.random(n) < 0.1)

    return pd.DataFrame(
        {
            "the sex": some_null(rng.choice(["F", "M", "x"], n), "object"),
            "region-2": rng.choice([10, 20, 30], n),
            "share": rng.choice([0.0, -0.0, 0.1, 0.5], n),
            "employed": some_null(rng.choice([True, False], n), "boolean"),
            "age": rng.integers(-3, 97, n),
            "children": some_null(rng.integers(0, 10, n), "Int64"),
            "income": income,
            "wealth": some_null(rng.choice(WEALTH, n), "Float64"),
            "dose": some_null(rng.choice([-0.0, 0.1, 0.30000000000000004], n), "Float64"),
            "hours": rng.choice([-5, 0, 2**53], n),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    frame = records()
    return survey(tmp_path_factory.mktemp("tally"), frame, COLUMNS), frame


@pytest.mark.parametrize("name", AXES)
def test_every_kind_of_axis_agrees_with_the_oracle(name, table):
    assert_agrees(*table, Domain((AXES[name],)))


@pytest.mark.slow
def test_several_axes_agree_with_the_oracle_in_any_order(table):
    database, frame = table
    for names in (["the sex", "age bins", "income"], ["income bins", "children", "employed"]):
        assert_agrees(database, frame, Domain(tuple(AXES[name] for name in names)))
        assert_agrees(database, frame, Domain(tuple(AXES[name] for name in reversed(names))))
    assert_agrees(database, frame, Domain(tuple(AXES[name] for name in COLUMNS)))


SHARING = [
    ("the sex", "age bins"),
    ("age bins", "the sex", "employed"),
    ("age",),
    ("income bins", "children"),
    ("income",),
    ("region-2", "share", "wealth", "income"),
    ("children bins", "wealth bins"),
    (),
    ("age",),
]


@pytest.mark.slow
@pytest.mark.parametrize("largest", [0, 500, LARGEST_PACK])
def test_releases_that_share_a_reading_get_what_each_would_get_alone(largest, table, monkeypatch):
    database, frame = table
    domains = [Domain(tuple(AXES[name] for name in names)) for names in SHARING]
    alone = [tally(database, domain, len(frame)) for domain in domains]
    monkeypatch.setattr("tasks.survey.tally.LARGEST_PACK", largest)
    shared = tallies(database, domains, Counting(rows=len(frame)))
    for domain, one, other in zip(domains, alone, shared, strict=True):
        assert one.domain == other.domain == domain
        np.testing.assert_array_equal(one.cells, other.cells)
        np.testing.assert_array_equal(one.counts, other.counts)


@pytest.mark.slow
def test_a_tally_of_more_cells_than_a_number_holds_is_what_numpy_counts(tmp_path):
    generator = np.random.default_rng(11)
    codes = generator.integers(0, 3, (50, 90))[generator.integers(0, 50, 400)]
    frame = pd.DataFrame({f"q{i}": np.array(["a", "b", None])[codes[:, i]] for i in range(90)})
    nullable = column("categorical", categories=["a", "b"], nullable=True)
    columns = dict.fromkeys(frame, nullable) | {"x": column("continuous", bounds=(0, 1), grid=512)}
    frame["x"] = generator.random(400).round(1)
    database = survey(tmp_path, frame, columns)
    domain = Domain(tuple(of.axis(name) for name, of in columns.items()))
    cells = domain.pack(np.column_stack([codes, [code(x, domain.axes[-1]) for x in frame["x"]]]))
    expected, counts = np.unique(cells, axis=0, return_counts=True)
    pair = domain.select(("x", "q7"))
    whole, few = tallies(database, [domain, pair], Counting(rows=len(frame)))
    assert expected.shape[1] == len(domain.words) == 3
    np.testing.assert_array_equal(whole.cells, expected)
    np.testing.assert_array_equal(whole.counts, counts)
    assert few.domain == pair
    np.testing.assert_array_equal(few.dense(), whole.margin(pair.names))


def test_domains_are_packed_while_few_cells_can_be_occupied():
    letters = [Categories(name, tuple(range(10))) for name in "abcd"]
    wide = Grid("x", 0.0, 1.0, 2**40)
    pairs = [Domain((one, other)) for one in letters for other in letters if one != other]
    # 10^4 cells in all: one reading, however many records.
    assert [sorted(axis.name for axis in axes) for axes in pack(pairs, 10**9)] == [list("abcd")]
    # 2^40 cells more: of few records only few can be occupied, of many nobody knows.
    with_wide = [*pairs, Domain((wide,))]
    assert len(pack(with_wide, 1000)) == 1
    assert pack(with_wide, 10**9)[0] == pack(with_wide, None)[0] == (wide,)
    assert len(pack(with_wide, 10**9)) == 2
    # A margin of what is counted anyhow costs no reading.
    assert len(pack([Domain((wide, letters[0])), Domain((letters[0],))], 10**9)) == 1
    # A cell of the pack may have several words.
    assert len(pack([Domain((wide,)), Domain((Grid("y", 0.0, 1.0, 2**40),))], 1)) == 1
    assert pack([], 10) == []


@pytest.mark.parametrize(
    ("lower", "upper", "cells"),
    [(0.0, 1.0, 10), (-1e300, 1e300, 7), (0.0, 5e-324, 2)],
)
def test_the_grid_agrees_at_its_edges_and_next_to_them(lower, upper, cells, tmp_path):
    edges = np.linspace(lower, upper, cells + 1)
    x = np.concatenate([edges, np.nextafter(edges, lower), np.nextafter(edges, upper)])
    frame = pd.DataFrame({"x": np.clip(x, lower, upper)})
    database = survey(tmp_path, frame, {"x": column("continuous", bounds=(lower, upper))})
    assert_agrees(database, frame, Domain((Grid("x", lower, upper, cells),)))
    if cells > 2:
        assert_agrees(database, frame, Domain((Bins("x", tuple(np.unique(edges).tolist())),)))


def test_awkward_names_and_categories_stay_text(tmp_path):
    name = """it's "quoted" - a; name"""
    frame = pd.DataFrame({name: AWKWARD * 2})
    columns = {name: column("categorical", categories=AWKWARD)}
    database = survey(tmp_path, frame, columns)
    assert_agrees(database, frame, Domain((columns[name].axis(name),)))


def test_whole_numbers_that_doubles_cannot_tell_apart_at_the_largest_bounds(tmp_path):
    top = 2**53
    frame = pd.DataFrame({"i": [top - 2, top - 1, top, top]})
    columns = {"i": column("integer", bounds=(top - 2, top))}
    found = tally(survey(tmp_path, frame, columns), Domain((columns["i"].axis("i"),)))
    assert found.dense().tolist() == [1, 1, 2]


def test_an_empty_table_has_an_empty_tally(tmp_path):
    frame = pd.DataFrame({"i": np.array([], dtype=np.int64)})
    columns = {"i": column("integer", bounds=(0, 9))}
    found = tally(survey(tmp_path, frame, columns), Domain((columns["i"].axis("i"),)), 0)
    assert found.cells.shape == found.counts.shape == (0,)
    assert found.cells.dtype == found.counts.dtype == np.int64


def test_a_domain_without_axes_counts_the_records(table):
    database, frame = table
    found = tally(database, Domain(()), len(frame))
    assert (found.cells.tolist(), found.counts.tolist()) == ([0], [len(frame)])


TENTHS = {"bounds": (0, 1)}
WITHOUT_A_CELL = [
    (["a", "SECRET_7391"], column("categorical", categories=["a"]), None),
    (["a", None], column("categorical", categories=["a"]), None),
    ([1, 987654321], column("integer", bounds=(0, 9)), None),
    ([1, 10], column("integer", bounds=(0, 9)), None),
    ([1, 10], column("integer", bounds=(0, 9)), (0.0, 10.0)),
    ([1, -1], column("integer", bounds=(0, 9)), None),
    ([0.5, 987654321.0], column("continuous", **TENTHS), None),
    ([0.5, 987654321.0], column("continuous", **TENTHS), (0.0, 1.0)),
    ([0.5, -1e-300], column("continuous", **TENTHS), None),
    ([0.5, None], column("continuous", **TENTHS), None),
    ([0.5, 987654321.0], column("continuous", levels=[0, 0.5, 1e9]), None),
    ([5, 987654321], column("integer", levels=[0, 5, 10**9]), None),
    (["0.5", "NaN"], column("continuous", **TENTHS, nullable=True), None),
    (["0.5", "NaN"], column("continuous", **TENTHS), (0.0, 1.0)),
    (["0.5", "inf"], column("continuous", **TENTHS), None),
    (["1", "SECRET_7391"], column("integer", bounds=(0, 9), nullable=True), None),
]


@pytest.mark.slow
def test_a_record_without_a_cell_stops_the_tally_and_is_not_shown(tmp_path):
    frame = pd.DataFrame({f"x{i}": values for i, (values, *_) in enumerate(WITHOUT_A_CELL)})
    columns = {f"x{i}": of for i, (_, of, _) in enumerate(WITHOUT_A_CELL)}
    database = survey(tmp_path, frame, columns)
    for (name, of), (*_, edges) in zip(columns.items(), WITHOUT_A_CELL, strict=True):
        axis = Bins(name, edges, integer=edges[1] > 1) if edges else of.axis(name)
        with pytest.raises(DataError, match="validate") as caught:
            tally(database, Domain((axis,)))
        assert_tells_nothing(caught.value)


@pytest.mark.slow
def test_rows_that_are_private_may_be_any_number_and_counts_are_cut(tmp_path):
    columns = {"x": column("categorical", categories=["a"])}
    database = survey(tmp_path, pd.DataFrame({"x": ["a"] * 1025}), columns)
    domain = Domain((columns["x"].axis("x"),))
    for rows, counted in ((1, 1024), (2, 1025), (10_000, 1025)):
        (found,) = tallies(
            database, [domain], Counting(rows=rows, adjacency=Adjacency("add-remove"))
        )
        assert found.counts.tolist() == [counted]


def test_more_records_than_the_guarantee_is_for_are_refused(tmp_path, monkeypatch):
    columns = {"x": column("categorical", categories=["a", "b"])}
    database = survey(tmp_path, pd.DataFrame({"x": ["a", "b"]}), columns)
    domain = Domain((columns["x"].axis("x"),))
    most = 10**12 * MOST_STEPS // 2
    for count, fits in ((most, True), (4 * most, False)):
        found = pa.table({"cell_0": [0, 1], "records": [count, count]})
        counted = SimpleNamespace(to_pyarrow=lambda found=found: found)
        monkeypatch.setattr("tasks.survey.tally.count_cells", lambda *_, counted=counted: counted)
        with nullcontext() if fits else pytest.raises(DataError, match="more than a trillion"):
            tallies(database, [domain], Counting(rows=2**40, adjacency=Adjacency("add-remove")))


def test_counts_that_do_not_add_up_and_columns_that_are_not_there(table):
    database, frame = table
    with pytest.raises(DataError, match=r"^rows: the survey table does not have the") as caught:
        tally(database, Domain((AXES["age"],)), len(frame) + 1)
    assert str(len(frame)) not in str(caught.value)
    with pytest.raises(DataError, match="could not be tallied") as caught:
        tally(database, Domain((Categories("no such column", ("a",)),)))
    assert caught.value.__context__ is None


def test_only_two_finite_numbers_are_equal(tmp_path):
    of = column("continuous", bounds=(0.0, 9.0), nullable=True)
    x = [1.0, 0.1, np.nan, np.inf, None, 2.0, None]
    y = [1.0, 0.1, np.nan, np.inf, None, 3.0, 4.0]
    frame = pd.DataFrame({"x": pa.array(x), "y": pa.array(y)})
    domain = Domain((Categories("same", ("no", "yes"), compares=("x", "y")),))
    database = survey(tmp_path, frame, {"x": of, "y": of})
    (found,) = tallies(database, [domain], Counting(invalid="own-cell"))
    assert found.dense().tolist() == [5, 2]
    relation = Categories(
        "x_against_y", ("less", "equal", "more"), nullable=True, compares=("x", "y")
    )
    (found,) = tallies(database, [Domain((relation,))], Counting(invalid="own-cell"))
    assert found.dense().tolist() == [1, 2, 0, 4]
