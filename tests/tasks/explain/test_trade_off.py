"""The curve of accuracy against budget."""

from schemas.plan import load_plan
from tasks.explain.trade_off import curve


def test_the_error_falls_along_every_curve_and_passes_through_the_plan(plan_path):
    plan = load_plan(plan_path)
    for name, built in plan.built.items():
        points = curve(plan, name)
        assert len(points) == 13
        assert all(a.error >= b.error for a, b in zip(points, points[1:], strict=False)), name
        assert (float(built.share.alpha), built.expected_error()[0].value) in points
