"""The curve of accuracy against budget."""

from xml.etree import ElementTree

from schemas.plan import load_plan
from tasks.explain.trade_off import curve, trade_off_picture

SVG = "{http://www.w3.org/2000/svg}"


def test_the_error_falls_along_every_curve_and_passes_through_the_plan(plan_path):
    plan = load_plan(plan_path)
    for name, built in plan.built.items():
        points = curve(plan, name)
        assert len(points) == 13
        assert all(a.error >= b.error for a, b in zip(points, points[1:], strict=False)), name
        assert (float(built.share.alpha), built.expected_error()[0].value) in points


def test_the_picture_has_a_curve_for_each_release_and_asks_for_nothing(plan_path):
    plan = load_plan(plan_path)
    text = trade_off_picture(plan)
    root = ElementTree.fromstring(text)
    assert len(root.findall(f".//{SVG}path")) == len(plan.built)
    words = {node.text for node in root.iter(f"{SVG}text")}
    assert set(plan.built) <= words
    assert "alpha of the release; both axes are logarithmic" in words
    assert text.count("http") == 1  # the name space
