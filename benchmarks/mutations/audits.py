"""Audit releases of every kind, and the paths of surveys, as the product does; exit code 1 if one fails.

    python -m benchmarks.mutations.audits short|full [SUBJECT ...]

The short audit is the one that precedes every release, the full one that of ``dprelease audit``.  All
bounds hold jointly, as in a plan that has all of these releases, so chance hardly ever fails them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dpcore.accounting.budget import Budget
from dpcore.audit import AuditResult, audit_release, short_audit
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from schemas.plan import Plan, load_plan
from tasks.audit.audit import ATTENDED, FULL_DRAWS, UNATTENDED
from tasks.audit.rehearsal import rehearse, rehearse_shortly
from tests.bare import open_plan
from tests.dpcore.releases.contract import CASES, EVEN, PURE, YES, under
from tests.tasks.made_up_series import plan_of

JOINT = {"short": UNATTENDED, "full": ATTENDED}
PLANS = Path("deployments/plans")
GROUPED = Domain((YES, *EVEN.axes))
UNITS = Adjacency("replace-one", 2)


def _series() -> Plan:
    """Persons who are in two of four weeks, with up to two records in each."""
    series = {"period": "week", "periods": 4, "in_periods": 2, "run": 2}
    return plan_of(2, series=series, privacy_unit={"column": "person", "max_rows": 2})


def _texts() -> Plan:
    """Homes whose members tell their jobs."""
    return load_plan(open_plan())


SURVEYS: dict[str, Callable[[], Plan]] = {
    "plan of persons": lambda: load_plan(PLANS / "eusilc.yaml"),
    "plan of households": lambda: load_plan(PLANS / "eusilc_linked.yaml"),
    "plan of counts": lambda: plan_of(1, series=None, counts="n"),
    "plan of a series": _series,
    "plan of texts": _texts,
}

RELEASES: dict[str, Release] = {name: case.release for name, case in CASES.items()} | {
    "units": under(CASES["histogram"], UNITS).release,
    "units that are added": under(CASES["histogram"], Adjacency("add-remove", 2)).release,
    "histogram at half of alpha": replace(CASES["histogram"].release, share=Budget.of("0.5")),
    "gaussian units": under(CASES["gaussian margins"], UNITS).release,
    "quartiles by group": ColumnQuantiles(
        "q", GROUPED, 500, PURE, (Fraction(1, 4), Fraction(3, 4)), 1
    ),
    "quantiles at a large alpha": replace(CASES["quantiles"].release, share=Budget.of("8")),
    "density at a private bandwidth, in rho": replace(
        CASES["density at a private bandwidth"].release, share=Budget(rho=Fraction(1, 2))
    ),
}

RELEASES |= {
    f"{name} of many records": replace(RELEASES[name], rows=500)
    for name in (
        "random histogram",
        "random count",
        "compressed microdata",
    )
}

SUBJECTS = (*SURVEYS, *RELEASES)


def main(depth: str, *subjects: str) -> int:
    """1 if the audit of a release says that it loses more than it claims, or a survey's path fails.

    Raises ``AuditError`` if a made-up survey is not tallied as audits assume.
    """
    level = 1 - (1 - JOINT[depth]) / (len(SUBJECTS) + 1)
    for name in subjects or SUBJECTS:
        if name in SURVEYS:
            {"short": rehearse_shortly, "full": rehearse.fn}[depth](SURVEYS[name]())
            continue
        failed = [each for each in audited(depth, RELEASES[name], level) if not each.passed]
        if failed:
            print(name, *failed[0].faults, sep="\n")
            return 1
    return 0


def audited(depth: str, release: Release, level: float) -> Sequence[AuditResult]:
    """What the audit of this depth finds of a release; ``level``: of each of its bounds."""
    if depth == "short":
        return short_audit([release], level)
    return [audit_release(release, draws=FULL_DRAWS, level=level)]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
