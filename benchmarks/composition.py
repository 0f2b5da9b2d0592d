"""How much noise the rule of composition costs, at one promise for everything together.

    python -m benchmarks.composition

prints one JSON line per case: ``releases`` of one plan, or ``monthly`` runs of a plan through a ledger
(with ``mixed``, of a plan with Laplace, Gaussian, thresholded and exponential mechanisms), each at an
equal part of a grant of (2, 1e-6).  ``basic`` and ``concentrated`` are the noise of a release under
either rule: the first error statement of its plan, or the geometric mean of all.  ``ratio`` is basic
noise, as before there was a choice, over that of the better rule, which ``composition`` names and
``dprelease explain`` shows.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from fractions import Fraction
from typing import Any

from dpcore.accounting.concentrated import Composition
from dpcore.errors import BudgetError
from schemas.plan import Plan
from tasks.ledger import ChargeRequest, Ledger, charges_of

GRANT = {"alpha": "2", "beta": "1e-6"}
COLUMNS = {
    name: {"type": "integer", "bounds": [0, 9]} for name in ("age", "rooms", "persons", "income")
}
GAUSSIAN = {
    "kind": "margins",
    "columns": list(COLUMNS),
    "ways": 2,
    "mechanism": "discrete-gaussian",
}
MIXED: list[dict[str, Any]] = [
    {"kind": "margins", "columns": list(COLUMNS), "ways": 2, "mechanism": "discrete-gaussian"},
    {"kind": "histogram", "columns": ["age", "rooms"]},
    {"kind": "histogram", "columns": list(COLUMNS), "mechanism": "stability-laplace"},
    {"kind": "quantiles", "column": "income", "levels": ["0.5"]},
]


def plan_of(releases: list[dict[str, Any]], composition: Composition, part: Fraction) -> Plan:
    """A plan over a made-up table; every release has its columns and mechanism from ``releases``."""
    return Plan.model_validate(
        {
            "dprelease": 1,
            "dataset": "table",
            "source": "table.parquet",
            "rows": 1_000_000,
            "privacy_unit": "row",
            "neighbours": "add-remove",
            "budget": {
                "composition": composition,
                "granted": GRANT,
                "requested": {"part": str(part)},
            },
            "columns": COLUMNS,
            "releases": [{"name": f"r{i}", **section} for i, section in enumerate(releases)],
            "publication": {"title": "Composition"},
        }
    )


def noise(plan: Plan) -> float:
    """The geometric mean of the first error statement of each release."""
    errors = [release.expected_error()[0].value for release in plan.built.values()]
    return math.exp(math.fsum(map(math.log, errors)) / len(errors))


def run_through_a_ledger(plan: Plan, times: int) -> None:
    """Charge the plan ``times`` times, and once more, which the ledger must refuse."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"sqlite:///{folder}/ledger.db")
        granted, composition = plan.budget.granted.budget, plan.budget.composition
        ledger.grant("table", granted, "benchmark", "composition", composition)
        charges = charges_of(plan)
        for run in range(times):
            ledger.reserve(ChargeRequest("table", f"run-{run}", plan.digest, charges))
        try:
            ledger.reserve(ChargeRequest("table", "one-more", plan.digest, charges))
        except BudgetError:
            return
        raise AssertionError("the ledger let a plan overspend its grant")


def compared(case: str, number: int, plans: dict[Composition, Plan]) -> dict[str, Any]:
    """One line of the table."""
    found = {composition: noise(plan) for composition, plan in plans.items()}
    best = min(found, key=lambda composition: found[composition])
    return {
        "case": case,
        "releases": number,
        **{composition: float(f"{value:.5g}") for composition, value in found.items()},
        "composition": best,
        "ratio": round(found["basic"] / found[best], 3),
    }


def main() -> None:
    """Print every case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    rules: tuple[Composition, ...] = ("basic", "concentrated")
    for number in (1, 2, 5, 12):
        plans = {rule: plan_of([GAUSSIAN] * number, rule, Fraction(1)) for rule in rules}
        print(json.dumps(compared("one plan", number, plans)), flush=True)
    for case, sections in (("monthly", [GAUSSIAN]), ("monthly, mixed", MIXED)):
        for number in (1, 2, 5, 12, 36, 120):
            plans = {rule: plan_of(sections, rule, Fraction(1, number)) for rule in rules}
            for plan in plans.values():
                run_through_a_ledger(plan, number)
            print(json.dumps(compared(case, number, plans)), flush=True)


if __name__ == "__main__":
    main()
