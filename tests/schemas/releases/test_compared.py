"""Which pairs of numbers are compared in records, without being named."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.post.records.compared import compared
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from schemas.plan import Plan
from schemas.releases.compared import MOST, compared_columns
from tests.shortest import document

DAYS: dict[str, Any] = {"type": "integer", "bounds": [0, 999], "unit": "days"}
COLUMNS: dict[str, Any] = {
    "relapse": DAYS,
    "death": DAYS | {"nullable": True},
    "visit": DAYS | {"bounds": [0, 99]},
    "weeks": DAYS | {"unit": "weeks"},
    "sevens": DAYS | {"step": 7},
    "share": {"type": "continuous", "bounds": [0, 999], "unit": "days"},
    "sex": {"type": "categorical", "categories": ["F", "M"]},
}


def release_of(
    columns: dict[str, Any] | None = None,
    beta: str = "1e-6",
    neighbours: str = "replace-one",
    **stated: Any,
) -> CompressedMicrodata:
    columns = columns or COLUMNS
    bins = {name: 20 for name, of in columns.items() if of["type"] != "categorical"}
    section: dict[str, Any] = {
        "name": "everybody",
        "kind": "microdata-margins",
        "columns": [*columns],
        "bins": bins,
        "compress": {},
        "mechanism": "discrete-gaussian",
    }
    plan = Plan.model_validate(
        document(columns, [section | stated], beta=beta, neighbours=neighbours)
    )
    (release,) = plan.built.values()
    assert isinstance(release, CompressedMicrodata)
    described, compares = plan.described_columns, dict(compared_columns(release.domain.axes))
    assert compares.items() <= described.items()
    assert all(
        compares[axis.name].nullable == axis.nullable
        for axis in release.domain.axes
        if axis.name in compares
    )
    return release


def named(domain: Domain) -> list[tuple[str, str]]:
    return [(domain.names[one], domain.names[other]) for _, (one, other) in compared(domain)]


def test_numbers_of_one_type_step_unit_and_range_are_compared():
    release = release_of()
    assert named(release.domain) == [("relapse", "death")]
    place = len(release.domain.axes) - 1
    axis = release.domain.axes[place]
    assert axis == Categories(
        "relapse_against_death", ("less", "equal", "more"), True, compares=("relapse", "death")
    )
    assert [attrs for attrs in release.tables if place in attrs] == [(place,)]


@pytest.mark.parametrize(("upper", "found"), [(999, [("one", "other")]), (899, [])])
def test_without_a_unit_only_numbers_with_the_same_bounds_are_compared(upper, found):
    number = {"type": "integer", "bounds": [0, 999]}
    columns = {"one": number, "other": number | {"bounds": [0, upper]}, "sex": COLUMNS["sex"]}
    assert named(release_of(columns).domain) == found


def test_only_the_same_part_of_two_dates_is_compared():
    dates = {
        f"{date}_{part}": {"type": "integer", "from": {"column": date, "part": part}} | bounds
        for date in ("birth", "wedding")
        for part, bounds in (("month", {"bounds": [1, 12]}), ("hour", {"bounds": [0, 23]}))
    }
    found = named(release_of(dates, bins={}).domain)
    assert found == [("birth_month", "wedding_month"), ("birth_hour", "wedding_hour")]


def test_relations_get_a_small_part_of_the_precision():
    release = release_of()
    squared = dict(zip(release.tables, (each**2 for each in release.times), strict=True))
    place = len(release.domain.axes) - 1
    assert 0.03 < squared[place,] / sum(squared.values()) < 0.07


def test_a_record_moves_the_second_round_by_at_most_its_sensitivity():
    """The largest contribution of one record is the bound itself, so a forgotten table would show."""
    release = release_of(neighbours="add-remove")
    mechanism, random = release.mechanism, np.random.default_rng(0)
    once = random.integers(0, 50, mechanism.first.size)
    grouping = mechanism.grouping(once)
    codes = random.integers(0, release.domain.shape, (200, len(release.domain.axes)))
    squares = []
    for cell in release.domain.pack(codes):
        record = Tally.of(release.domain, cell.reshape(1), np.array([1]))
        squares.append(int((mechanism.together(record, grouping) ** 2).sum()))
    assert max(squares) == mechanism.again.l2_sensitivity_squared


def test_the_columns_of_an_inequality_or_with_other_noise_are_not_compared():
    assert not named(release_of(rules=["death >= relapse"]).domain)
    assert not named(release_of(often_equal=[["relapse", "death"]]).domain)
    assert not named(release_of(mechanism="discrete-laplace", beta="0").domain)


def test_only_measured_pairs_are_compared():
    pairs = [["relapse", name] for name in COLUMNS if name not in ("relapse", "death")]
    assert not named(release_of(pairs=[*pairs, ["death", "sex"]]).domain)


def test_a_taken_name_is_left_alone():
    assert not named(release_of(COLUMNS | {"relapse_against_death": COLUMNS["sex"]}).domain)


def test_of_many_pairs_those_with_the_largest_overlap_are_compared():
    many = {f"day{i}": DAYS | {"bounds": [0, 999 - 20 * i]} for i in range(12)}
    found = named(release_of(many).domain)
    assert len(found) == MOST < len([*combinations(many, 2)])
    assert ("day0", "day11") not in found
    assert ("day0", "day1") in found


def test_the_quality_of_records_of_compared_columns_can_be_measured():
    columns = {name: COLUMNS[name] for name in ("relapse", "death", "sex")}
    bins = {"relapse": 20, "death": 20}
    records = {
        "name": "everybody",
        "kind": "microdata-margins",
        "columns": [*columns],
        "bins": bins,
    }
    accept = [{"distance": ["relapse", "death"], "at_most": 0.5}]
    quality = {"name": "good", "kind": "quality", "records": "people", "accept": accept}
    gaussian = {"compress": {}, "mechanism": "discrete-gaussian"}
    whole = document(columns, [records | gaussian, quality], beta="1e-6", neighbours="replace-one")
    whole["synthesis"] = [{"name": "people", "from": "everybody", "rows": 100}]
    built = Plan.model_validate(whole).built
    assert named(built["everybody"].domain) == [("relapse", "death")]
    assert set(built["good"].domain.axes) < set(built["everybody"].domain.axes)
