"""``explain`` prints the least possible errors where they are known, and says where only a rate is."""

from schemas.plan import Plan
from tasks.explain.least import least_rows
from tests.conftest import plan_of_every_kind


def test_every_known_bound_is_printed_with_its_class():
    rows = {
        (r["release"], r["quantity"]): r
        for r in least_rows(Plan.model_validate(plan_of_every_kind()))
    }
    assert {name for name, _ in rows} == {
        "people",
        "rare",
        "pairs",
        "wealth",
        "ages",
        "pure-wealth",
        "grown-up",
    }
    count = rows["grown-up", "expected absolute loss, at most"]
    assert 1 <= float(count["ratio"]) < 1.1
    assert 0 < float(count["on every table"]) < float(count["least"])
    assert count["least among"].startswith("all mechanisms of alpha 0.")
    assert (
        rows["pairs", "root mean square error of a count"]["least among"]
        == "Gaussian noise on linear queries"
    )
    density = rows["wealth", "integrated squared error from noise"]
    assert {density[key] for key in ("least", "on every table", "ratio")} == {"-"}
