"""The checks of a release that need no access to the survey's records.

They read public facts, the ledger, earlier bundles and the name of the survey's source. Checks of
the records follow, and the audit comes last, because it takes longest.
"""

import os

from tasks.budget.charge import check_budget, check_survey, missing_draws
from tasks.bundle.publish import check_published
from tasks.bundle.series import earlier_runs
from tasks.bundle.sign import signing_key
from tasks.explain.analysis import check_analyses
from tasks.explain.records import hardly_met
from tasks.explain.work import bundle_bytes
from tasks.survey.steps import name_survey, require_source
from tasks.workplace.job import ReleaseJob
from tasks.workplace.room import require_room
from tasks.workplace.step import log_line


def admit(job: ReleaseJob) -> list[str] | None:
    """The survey's names in the ledger; empty if everything is drawn, None if the bundle is published.

    Checks everything that can be checked before the survey is read.  Raises the ``DPReleaseError`` of
    the first fault; then nothing was charged.
    """
    signing_key()  # raises if it cannot be read
    check_budget(job)
    if os.path.lexists(job.bundle):
        check_published(job)
        return None
    plan = job.plan
    check_analyses(plan)
    sources: list[str] = []
    if missing_draws(job):
        require_source(plan)
        for line in hardly_met(plan):
            log_line(line)
        sources = name_survey(plan)
        check_survey(plan, sources)
        require_room(job.folder, bundle_bytes(plan))
    earlier_runs(job)  # raises if one is missing
    return sources
