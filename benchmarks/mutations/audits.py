"""Audit every kind of release and a survey's path as the product does; exit code 1 if one fails.

    python -m benchmarks.mutations.audits short|full

The short audit is the one that precedes every release, the full one that of ``dprelease audit``.  All
bounds hold jointly, as in a plan that has all of these releases, so chance hardly ever fails them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dpcore.audit import AuditResult, audit_release, short_audit
from dpcore.releases.base import Release
from schemas.plan import load_plan
from tasks.audit.audit import ATTENDED, FULL_DRAWS, UNATTENDED
from tasks.audit.rehearsal import rehearse, rehearse_shortly
from tests.dpcore.releases.contract import CASES, RELATIONS, further_forms, under

FURTHER = further_forms(lambda release: (type(release), type(release.mechanism)))
UNDER = [
    under(CASES[name], adjacency).release
    for name in ("histogram", "gaussian margins")
    for adjacency in RELATIONS
]
"""Neighbours other than one record in place of another: a count of records, and a square of them."""

JOINT = {"short": UNATTENDED, "full": ATTENDED}
PLAN = Path("deployments/plans/eusilc.yaml")
"""A plan with units of several records and weights, for the survey's path."""


def main(depth: str) -> int:
    """1 if the audit of a release says that it loses more than it claims.

    Raises ``AuditError`` if a made-up survey is not tallied as audits assume.
    """
    {"short": rehearse_shortly, "full": rehearse.fn}[depth](load_plan(PLAN))
    releases = [case.release for name, case in CASES.items() if name not in FURTHER] + UNDER
    level = 1 - (1 - JOINT[depth]) / (len(releases) + 1)
    for release in releases:
        failed = [each for each in audited(depth, release, level) if not each.passed]
        if failed:
            print(failed[0].name, *failed[0].faults, sep="\n")
            return 1
    return 0


def audited(depth: str, release: Release, level: float) -> list[AuditResult]:
    """What the audit of this depth finds of a release; ``level``: of each of its bounds."""
    if depth == "short":
        return short_audit([release], level)
    return [audit_release(release, draws=FULL_DRAWS, level=level)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
