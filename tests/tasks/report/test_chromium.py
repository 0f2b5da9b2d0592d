"""The report in a real browser: wide, on a phone, light, dark and on paper."""

import pytest

from schemas.plan import load_plan
from tasks.report.page import REPORT
from tests.conftest import plan_of_every_kind
from tests.tasks.browser import (
    PHONE,
    WIDE,
    contrast,
    fills,
    require_accessible,
    require_fit,
    strokes,
    visit,
)
from tests.tasks.made_up import opened_once, publish_made_up
from tests.tasks.report.test_page import PLANS

pytestmark = pytest.mark.slow

LEGIBLE, VISIBLE = 4.5, 3.0
"""Contrast that WCAG 2.2 asks of text and of graphics, level AA."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    model = {"name": "pay", "title": "What pay depends on", "formula": "income ~ children + C(sex)"}
    document = plan_of_every_kind() | {"analyses": [model]}
    return opened_once(tmp_path_factory.mktemp("report"), document).path / REPORT


def test_a_worked_plan_fits_a_screen_and_a_phone(chromium, tmp_path):
    plan = load_plan(PLANS["fair"], {"source": "nowhere.parquet"})
    page = publish_made_up(plan, "r1", tmp_path) / REPORT
    for width in (WIDE, PHONE):
        with visit(chromium, page, width) as tab:
            require_fit(tab)


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (PHONE, "dark")])
def test_axe_finds_nothing(chromium, report, width, scheme):
    with visit(chromium, report, width, scheme) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        require_accessible(tab)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_are_legible(chromium, report, scheme):
    with visit(chromium, report, scheme=scheme) as tab:
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        for text in fills(tab, "svg text:not(.low):not(.high)"):
            assert contrast(text, paper) >= LEGIBLE
        for drawn in strokes(tab, ".bar, .whisker, .line, .wide, .zero, .limit") | fills(
            tab, ".dot, .point"
        ):
            assert contrast(drawn, paper) >= VISIBLE
        for half, text in ((range(4), ".low"), (range(4, 8), ".high")):
            shades = [fills(tab, f".shade{k}").pop() for k in half]
            for shade in shades:
                assert contrast(fills(tab, text).pop(), shade) >= LEGIBLE
        luminances = [contrast(fills(tab, f".shade{k}").pop(), "rgb(0,0,0)") for k in range(8)]
        assert luminances == sorted(luminances, reverse=scheme == "light")


def test_dark_differs_from_light_and_paper_is_always_light(chromium, report):
    with visit(chromium, report, scheme="dark") as tab:
        background = "getComputedStyle(document.body).backgroundColor"
        dark = tab.evaluate(background)
        tab.emulate_media(media="print")
        assert tab.evaluate(background) == "rgb(255, 255, 255)" != dark
        assert tab.pdf(format="A4").startswith(b"%PDF")
