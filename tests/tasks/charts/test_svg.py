"""Charts as declarations: scales, ticks, labels, marks and panels."""

from xml.etree import ElementTree

import numpy as np
import pytest

from tasks.charts import svg
from tasks.charts.chart import Axis, Panel, chart
from tasks.charts.marks import area, bars, dots, line, texts, tiles
from tests.tasks.report.pages import read_page


@pytest.mark.parametrize("ends", [(0, 1), (-3, 17), (0, 1e-9), (1e6, 1.2e6), (0, 4.0)])
def test_ticks_are_few_round_and_inside(ends):
    scale = svg.Scale(*map(float, ends), 0.0, 100.0)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(ends[0] - 1e-9 <= tick <= ends[1] * (1 + 1e-9) for tick in ticks)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])


def test_a_scale_of_nothing_still_draws():
    assert Axis().scale(np.array([]), 0.0, 10.0)(0.0) == 0.0
    assert Axis().scale(np.array([0.0, np.inf]), 0.0, 10.0).high == 1.0


@pytest.mark.parametrize("text", ["plain", "w" * 300, "表" * 300, "a\u0301" * 100])
def test_a_label_fits_its_room(text):
    assert svg.text_width([svg.clip(text, 80)]) <= 80


def test_joined_runs_cover_exactly_the_true_cells():
    random = np.random.default_rng(3)
    mask = random.random((5, 7)) < 0.5
    x, y = svg.Scale(0.0, 7.0, 10.0, 80.0), svg.Scale(0.0, 5.0, 4.0, 29.0)
    (path,) = read_page(tiles(mask, "shade0").draw(x, y)).all("path")
    covered = np.zeros((5, 7), dtype=bool)
    for run in filter(None, path.attributes["d"].split("M")):
        start, rest = run.split(" ", 1)
        top, end = rest.partition("V")[0].split("H")
        row = round((float(top) - 4) / 5)
        first, last = (round((float(place) - 10) / 10) for place in (start, end))
        covered[row, first:last] = True
    assert (covered == mask).all()


def test_a_gap_is_left_open_and_a_point_on_its_own_is_a_dot():
    x, nan = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], np.nan
    y = [1.0, 2.0, nan, 3.0, nan, nan]
    drawn = chart("t", "d", [Panel([line(x, y), area(x, y, y), dots(x, y)])])
    marks = [n for n in read_page(drawn).all("path", "circle") if "class" in n.attributes]
    assert [n.attributes["class"] for n in marks] == ["line", "point", "band", "band", *["dot"] * 3]
    assert "nan" not in drawn


def test_a_picture_is_well_formed_and_escapes_what_people_wrote():
    hostile = "</title></style><script>alert(1)</script>\" onload='x"
    panel = Panel(
        [texts([0.0], [0.0], [hostile]), bars([0.5], [1.0])], Axis(hostile), Axis(hostile)
    )
    named = Panel(
        [bars([0.5], [1.0])], y=Axis(names=[hostile]), heading=hostile, key=[("bar", hostile)]
    )
    root = ElementTree.fromstring(chart(hostile, hostile, [panel, named]))
    assert not [node for node in root.iter() if "script" in node.tag or "onload" in node.attrib]
