"""Mean curves: the longest curve, gaps and steps of a record, and bands that hold everywhere at once."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.advice.usable import relative_error, verdict
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.curves import longest
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.banded import BAND
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.table import ENDS, LEVEL
from tests.chance import FALSE_ALARM, most_failures

SHARE = Budget.of("1", "1e-6")
TIMES = (0.0, 1.0, 2.5, 3.0, 4.0, 6.0, 7.0, 8.0)
ROWS = 2000
HOME = Categories("home", ("flat", "house", "boat"))
BY_NUMBER = Grid("rooms", 1, 4, 3, integer=True)


def points(nullable: bool = False, cells: int = 64) -> tuple[Grid, ...]:
    return tuple(Grid(f"h{i}", 0.0, 4.0, cells, nullable) for i in range(len(TIMES)))


PLAIN = MeanCurve("c", Domain(points()), ROWS, SHARE, times=TIMES)
SMOOTH = replace(PLAIN, step_at_most=0.5)
COUNTED = replace(SMOOTH, adjacency=Adjacency("add-remove"))
GROUPED = MeanCurve("c", Domain((HOME, *points())), ROWS, SHARE, times=TIMES, step_at_most=0.5)


def codes(rows: int, seed: int = 1) -> np.ndarray:
    """Curves that go up and down, within the largest step of the releases here."""
    random = np.random.default_rng(seed)
    steps = random.integers(-8, 9, (rows, len(TIMES)))
    return np.clip(random.integers(20, 60, (rows, 1)) + np.cumsum(steps, axis=1), 0, 63)


def values(curves: np.ndarray) -> np.ndarray:
    """The middle of each cell."""
    return (curves + 0.5) * 4 / 64


def draws(release: MeanCurve, curves: np.ndarray, times: int) -> Iterator[Noisy]:
    """Noise of the stated law on the exact statistic."""
    exact = release.statistic(Tally.of(release.domain, release.domain.pack(curves)))
    mechanism, random = release.mechanism, np.random.default_rng(7)
    for _ in range(times):
        yield Noisy(exact._statistic.values + mechanism.simulate(mechanism.size, random))


@pytest.mark.parametrize(
    ("reach", "step", "size", "weight"),
    [
        (3, 2, 3, 1),
        (3, 2, 4, 2),
        (2, 2, 4, 1),
        (4, 2, 3, 3),
        (5, 4, 4, 1),
        (4, 6, 3, 1),
        (2, 9, 2, 5),
    ],
)
def test_the_longest_curve_is_that_of_all_curves(reach: int, step: int, size: int, weight: int):
    allowed = (
        curve
        for curve in product(range(-reach, reach + 1), repeat=size)
        if all(abs(a - b) <= step for a, b in pairwise(curve))
    )
    lengths = (
        sum(v * v for v in curve) + weight**2 * sum((a - b) ** 2 for a, b in pairwise(curve))
        for curve in allowed
    )
    assert longest(reach, step, size, weight) == max(lengths)


def test_gaps_are_filled_from_the_records_own_neighbours():
    release = replace(PLAIN, domain=Domain(points(nullable=True)))
    random = np.random.default_rng(3)
    curves = random.integers(0, 64, (200, len(TIMES)))
    curves[random.random(curves.shape) < 0.5] = 64
    curves[0], curves[1] = 64, [64] * 3 + [9] + [64] * 4
    found, known = release.curves.of(curves)
    assert not known[0]
    assert known[1:].sum() == len(found) == (curves < 64).any(axis=1).sum()
    assert np.all(found[0] == 2 * 9 - 63)
    for curve, got in zip(curves[known], found, strict=True):
        has = curve < 64
        line = np.interp(TIMES, np.array(TIMES)[has], curve[has])
        assert np.abs(line - (got + 63) / 2).max() <= 0.5 + 1e-9
        one, _ = release.curves.of(curve[None])  # whatever the other records are
        assert np.array_equal(one[0], got)


def test_steps_are_cut_and_curves_that_keep_to_the_stated_step_stay_as_they_are():
    random = np.random.default_rng(4)
    exact = np.cumsum(random.uniform(-0.5, 0.5, (500, len(TIMES))), axis=1) + 2
    exact = exact[np.all((exact >= 0) & (exact < 4), axis=1)]
    kept = (exact * 16).astype(np.int64)
    assert len(kept) > 200
    assert np.array_equal(SMOOTH.curves.of(kept)[0], 2 * kept - 63)
    wild = random.integers(0, 64, (500, len(TIMES)))
    cut = SMOOTH.curves.of(wild)[0]
    assert np.abs(np.diff(cut, axis=1)).max() == 2 * SMOOTH.curves.step
    assert np.abs(cut).max() <= 63
    far = 2 * SMOOTH.curves.step * np.abs(np.subtract.outer(range(len(TIMES)), range(len(TIMES))))
    given = 2 * wild - 63
    below, above = (given[:, None] + far).min(axis=2), (given[:, None] - far).max(axis=2)
    assert np.array_equal(2 * cut, below + above)  # no curve with such steps is nearer everywhere


def test_a_largest_step_makes_the_band_much_narrower_and_a_large_one_changes_nothing():
    widths = [
        release.expected_error()[1].value
        for release in (PLAIN, SMOOTH, replace(PLAIN, step_at_most=100))
    ]
    assert widths[1] < 0.7 * widths[0] == 0.7 * widths[2]


def test_a_curve_is_as_usable_as_its_noise_is_small_beside_the_range():
    for release, verdicts in ((SMOOTH, ["rough", "good"]), (PLAIN, ["not usable", "rough"])):
        errors = [relative_error(replace(release, rows=rows)) for rows in (800, 3200)]
        assert errors[1] == pytest.approx(errors[0] / 4)
        assert [verdict(error) for error in errors] == verdicts


@pytest.mark.slow
@pytest.mark.parametrize("release", [SMOOTH, COUNTED], ids=["smooth", "counted"])
def test_errors_are_those_stated_and_the_band_holds_as_often_as_it_says(release: MeanCurve):
    curves, times = codes(ROWS), 1500
    curves = (release.curves.of(curves)[0] + 63) // 2
    truth, z, held, inside = values(curves).mean(axis=0), [], 0, 0
    for noisy in draws(release, curves, times):
        found = {name: each[0] for name, each in release.stated(noisy)[0].items()}
        z.append((found["estimate"] - truth) / found["standard_error"])
        lower, upper = (found[end] for end in BAND)
        held += bool(np.all((lower <= truth) & (truth <= upper)))
        inside += int((found[ENDS[0]][3] <= truth[3]) and (truth[3] <= found[ENDS[1]][3]))
    assert times - held <= most_failures(times, 1 - LEVEL)
    assert held <= most_failures(times, LEVEL + 0.01)  # what 4000 draws know of the factor
    assert times - inside <= most_failures(times, 1 - LEVEL)
    assert inside <= most_failures(times, LEVEL)
    for scale, right in ((1, True), (2 / 3, False), (3 / 2, False)):
        chance = stats.kstest(np.array(z)[:, 2] * scale, "norm").pvalue
        assert chance > FALSE_ALARM if right else chance < 1e-9


@pytest.mark.parametrize("adjacency", [Adjacency(), Adjacency("add-remove")])
def test_each_group_has_its_curve_and_a_group_of_nobody_none(adjacency: Adjacency):
    release = replace(GROUPED, adjacency=adjacency)
    curves, home = codes(ROWS), np.r_[np.zeros(1200, dtype=int), np.ones(800, dtype=int)]
    (noisy,) = draws(release, np.c_[home, curves], 1)
    (table,) = release.publish(noisy).tables
    for group, name in enumerate(HOME.categories[:2]):
        here = table.columns["home"] == name
        truth = values(curves[home == group]).mean(axis=0)
        off = np.abs(table.columns["estimate"][here] - truth)
        assert np.all(off < 5 * table.columns["standard_error"][here])
        assert np.array_equal(table.columns["time"][here], TIMES)
    boat = table.columns["home"] == "boat"
    for column in ("estimate", "standard_error", *ENDS, *BAND):
        assert np.array_equal(np.ma.getmaskarray(table.columns[column]), boat)
    found = release.evaluate(
        noisy, {"home": np.array(["house", "boat"]), "time": np.array([1.75, 0.0])}
    )
    between = table.columns["estimate"][table.columns["home"] == "house"][1:3].mean()
    assert found["estimate"][0] == pytest.approx(between)
    assert np.ma.getmaskarray(found["estimate"]).tolist() == [False, True]


def test_the_curve_at_its_times_is_the_table_and_outside_of_them_nothing():
    (noisy,) = draws(COUNTED, codes(ROWS), 1)
    (table,) = COUNTED.publish(noisy).tables
    for name, each in COUNTED.evaluate(noisy, {"time": np.array(TIMES)}).items():
        np.testing.assert_allclose(each, table.columns[name])
    for time in (-0.1, 8.1, np.nan):
        with pytest.raises(ValueError, match=r"time must lie in \[0, 8\]"):
            COUNTED.evaluate(noisy, {"time": np.array([time])})
    with pytest.raises(ValueError, match="give values of"):
        COUNTED.evaluate(noisy, {})


def test_groups_of_whole_numbers_are_named_by_them():
    release = replace(GROUPED, domain=Domain((BY_NUMBER, *points())))
    (noisy,) = draws(release, np.c_[np.arange(ROWS) % 2, codes(ROWS)], 1)
    found = release.evaluate(noisy, {"rooms": np.array([1, 2, 3]), "time": np.zeros(3)})
    assert np.ma.getmaskarray(found["estimate"]).tolist() == [False, False, True]
    for rooms in (0, 4, 1.5):
        with pytest.raises(ValueError, match="rooms must be a whole number from 1 to 3"):
            release.evaluate(noisy, {"rooms": np.array([rooms]), "time": np.zeros(1)})


OTHER = (*points()[:-1], Grid("h7", 0.0, 8.0, 64))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"domain": Domain((*points()[:-1], HOME))}, "curve: 'home' is not numeric"),
        ({"domain": Domain((*points()[:-1], Grid("h7", 0, 4, 32)))}, "curve: .* the same `grid`"),
        ({"domain": Domain(OTHER), "step_at_most": 1.0}, "step_at_most: needs the same bounds"),
        (
            {"domain": Domain(points(cells=2**40)), "step_at_most": 1.0},
            "step_at_most: .*131,072 cells",
        ),
        ({"domain": Domain(points(cells=2**60))}, "column: exact numbers may reach"),
        ({"domain": Domain(points(cells=65536)), "step_at_most": 1e-9}, "step_at_most: .*1/1000"),
        (
            {"domain": Domain((Categories("x", tuple(range(300))), *points()))},
            "by: 300 groups are too many",
        ),
    ],
)
def test_what_has_no_curve_is_refused(change: dict, says: str):
    with pytest.raises(ValueError, match=f"^{says}"):
        replace(PLAIN, **change)


def test_bounds_may_differ_where_no_step_is_stated():
    """Noise is then in proportion to the bounds at each time."""
    release = replace(PLAIN, domain=Domain(OTHER))
    (noisy,) = draws(release, codes(ROWS), 1)
    error = release.stated(noisy)[0]["standard_error"][0]
    assert error[-1] == pytest.approx(2 * error[0])
