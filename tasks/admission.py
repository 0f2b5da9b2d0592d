"""The way in: what must hold before a release may be charged, behind one door.

It reads public facts, the ledger, earlier bundles and the name of the survey's source, and audits the
plan on made-up surveys.  What is quick to find out comes first.
"""

import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpcore.audit import AuditResult
from schemas.plan import Plan
from tasks.audit.audit import audit_shortly, require_passed
from tasks.budget.charge import check_budget, check_survey, missing_draws
from tasks.bundle.publish import check_published
from tasks.bundle.series import earlier_runs
from tasks.bundle.sign import signing_key
from tasks.explain.analysis import check_analyses
from tasks.explain.work import bundle_bytes
from tasks.survey.steps import name_survey, require_source
from tasks.workplace.room import require_room


@dataclass(frozen=True)
class Admission:
    """A release that may be charged.

    ``sources``: the names of the survey, none where everything is drawn; ``audited``: the results of the
    short audit.
    """

    sources: list[str]
    audited: list[AuditResult]


def admit(
    plan: Plan, release_id: str, bundle: Path, part: Fraction | None = None
) -> Admission | None:
    """Check everything that can be checked before a charge; None if the bundle is already published.

    ``part``: the part of the grant that all requests together may spend; None for a release that nobody
    requested.  Raises the ``DPReleaseError`` of the first fault; then nothing was charged.
    """
    signing_key()  # raises where it cannot be read
    check_budget(plan, release_id, bundle.parent, part)
    if os.path.lexists(bundle):
        check_published(plan, release_id, bundle)
        return None
    check_analyses(plan)
    sources: list[str] = []
    if missing_draws(plan, release_id):
        require_source(plan)
        sources = name_survey(plan)
        check_survey(plan, sources)
        require_room(bundle.parent, bundle_bytes(plan))
    earlier_runs(plan, release_id, bundle.parent)  # raises where one is missing
    audited = audit_shortly(plan)
    require_passed(plan, audited)
    return Admission(sources, audited)
