"""Charts by hand: scales, ticks, labels."""

import doctest

import numpy as np
import pytest

from schemas.columns import IntegerColumn
from tasks.report import cells, svg
from tasks.report.heat import Cells, Side, heat_map
from tests.tasks.report.pages import read_page


@pytest.mark.parametrize("module", [svg, cells])
def test_the_examples_hold(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("ends", [(0, 1), (-3, 17), (0, 1e-9), (1e6, 1.2e6), (0, 4.0)])
def test_ticks_are_few_round_and_inside(ends):
    scale = svg.Scale(*map(float, ends), 0.0, 100.0)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(ends[0] - 1e-9 <= tick <= ends[1] * (1 + 1e-9) for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])


def test_a_scale_of_nothing_still_draws():
    assert svg.around([], 0.0, 10.0)(0.0) == 0.0
    assert svg.around([0.0, float("inf")], 0.0, 10.0).high == 1.0


@pytest.mark.parametrize("text", ["plain", "w" * 300, "表" * 300, "a\u0301" * 100])
def test_a_label_fits_its_room(text):
    assert svg.text_width([svg.clip(text, 80)]) <= 80


def test_a_short_label_is_left_as_it_is():
    assert svg.clip("sex", 80) == "sex"


def test_joined_runs_cover_exactly_the_true_cells():
    random = np.random.default_rng(3)
    mask = random.random((5, 7)) < 0.5
    cells_ = Cells(5, 7, left=10.0, width=10.0, height=5.0)
    covered = np.zeros((5, 7), dtype=bool)
    for run in filter(None, cells_.path(mask).split("M")):
        start, rest = run.split(" ", 1)
        y, end = rest.partition("V")[0].split("H")
        row = round((float(y) - cells_.y(0)) / 5)
        first, last = (round((float(x) - 10) / 10) for x in (start, end))
        covered[row, first:last] = True
    assert (covered == mask).all()


def test_numbers_are_written_only_where_they_fit():
    wide = heat_map(np.full((2, 2), 1234.0), Side("a", "xy"), Side("b", "uv"), "t", "d")
    narrow = heat_map(np.full((2, 60), 1234.0), Side("a", "xy"), Side("b", "u" * 60), "t", "d")
    assert wide.count("1,234") == 4
    assert "1,234" not in narrow


def test_the_numbers_of_an_axis_and_of_shades_stay_apart_and_inside():
    axis = svg.horizontal_axis(svg.Scale(0.0, 1.5e6, 60.0, svg.WIDTH - 8.0), 100.0, 0.0, "t")
    sides = Side("a", "xy"), Side("b", "uv")
    shades = heat_map(np.full((2, 2), 1.4e6), *sides, "t", "d")
    for drawn in (f"<svg>{axis}</svg>", shades):
        ends = []
        for node in read_page(drawn).all("text"):
            if node.attributes.get("class") != "tick":
                continue
            x, width = float(node.attributes["x"]), svg.text_width([node.words])
            start = x - width / {"middle": 2, "end": 1}[node.attributes["text-anchor"]]
            ends.append((start, start + width))
        assert len(ends) > 2
        assert ends[0][0] >= 0
        assert ends[-1][1] <= svg.WIDTH
        if drawn is shades:
            assert all(a[1] < b[0] for a, b in zip(ends, ends[1:], strict=False))


@pytest.mark.parametrize(("start", "end"), [(0.0, 60.0), (60.0, 300.0), (200.0, svg.WIDTH - 8.0)])
def test_the_title_of_an_axis_stays_inside(start, end):
    title = "alpha (epsilon) spent, of all that was granted"
    axis = svg.horizontal_axis(svg.Scale(0.0, 1.0, start, end), 100.0, 0.0, title)
    (node,) = [n for n in read_page(f"<svg>{axis}</svg>").all("text") if n.words == title]
    middle, half = float(node.attributes["x"]), svg.text_width([title]) / 2
    assert half <= middle <= svg.WIDTH - half


def test_whole_numbers_below_zero_are_not_joined_by_a_dash():
    column = IntegerColumn(type="integer", bounds=[-1, 20])
    assert cells._label((-1, 15), column) == "-1 to 15"
    assert cells._label((16, 20), column) == "16–20"


def test_an_empty_heat_map_and_negative_numbers_draw():
    for values in (np.zeros((1, 1)), np.full((2, 3), -5.0)):
        sides = Side("a", ["x"] * len(values)), Side("b", ["y"] * values.shape[1])
        read_page(heat_map(values, *sides, "t", "d"))
