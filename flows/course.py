"""The steps of a release and of an audit, in order.

A Prefect flow runs the steps as tasks.  ``dprelease.release`` and ``dprelease.audit`` call them as plain
functions, without Prefect.
"""

import os
from pathlib import Path

from dpcore.audit import AuditResult
from dpcore.errors import InputError
from flows.approval import await_approval
from flows.operation.parallel import wait_for_all
from schemas.plan import Plan
from tasks.admission import admit
from tasks.announce.announce import announce, show_audit, tag_run
from tasks.audit.audit import (
    ATTENDED,
    FULL_DRAWS,
    QUICK_DRAWS,
    audit_one,
    audit_shortly,
    audit_together,
    level_of_each,
    require_passed,
)
from tasks.audit.rehearsal import rehearse
from tasks.budget.charge import missing_draws, reserve_budget
from tasks.budget.checkpoint import add_to_checkpoint
from tasks.bundle.analyses import write_analyses
from tasks.bundle.publish import (
    PreparedBundle,
    publish,
    tally_records,
    withheld,
    write_microdata,
    write_release,
)
from tasks.bundle.staging import staging_folder
from tasks.draw import draw, records_file, tally_survey
from tasks.ledger import Ledger
from tasks.ledger.runs_and_grant import as_found
from tasks.survey.reading import held_open
from tasks.survey.steps import ingest_survey, validate_survey
from tasks.workplace.events import recorded_run
from tasks.workplace.home import ledger_url, one_at_a_time, private_workspace, remove_abandoned
from tasks.workplace.job import ReleaseJob
from tasks.workplace.places import FLOW_RUN, lasting
from tasks.workplace.step import in_flow_run, log_line


def carry_out(job: ReleaseJob) -> str:
    """Run a release from the budget check to the bundle; returns the bundle's path."""
    lasting(job.out, "out")
    with recorded_run(job.dataset, job.release_id):
        return _carried_out(job)


def _carried_out(job: ReleaseJob) -> str:
    tag_run(job.dataset)
    _say_what_begins(job)
    remove_abandoned()  # before free disk space is checked
    sources = admit(job)
    if sources is None:
        log_line("already published: nothing was charged or drawn again")
        return str(job.bundle)
    # Made before the budget is spent, so that a folder that cannot be written costs nothing.
    with staging_folder(job.bundle) as staging:
        audited = draw_missing(job, sources)
        # Before publication: a restored old ledger would not know of these draws and repeat them.
        add_to_checkpoint(Ledger(ledger_url()), job.dataset)
        job = as_found(job, Ledger(ledger_url()))
        tables = wait_for_all(write_release.submit(job, name, staging) for name in job.plan.built)
        kept_back = withheld(tables)
        for records, judge in kept_back.items():
            log_line(
                f"the synthetic records {records} are withheld: they do not meet the criteria of"
                f" {judge}. The table of {judge} shows the measurements; the bundle has everything else"
            )
        microdata = wait_for_all(
            write_microdata.submit(job, synthesis.name, staging)
            for synthesis in job.plan.synthesis
            if synthesis.name not in kept_back
        )
        analyses = write_analyses(job, staging)
        made = PreparedBundle(staging, tables, microdata, analyses, audited)
        await_approval(job, made)
        publish(job, made)
    if in_flow_run():
        announce(job)
    return str(job.bundle)


def _say_what_begins(job: ReleaseJob) -> None:
    retry = f"run it with --release-id {job.release_id}"
    again = "press Retry" if FLOW_RUN in os.environ else retry
    log_line(f"release {job.release_id} of {job.dataset}: charged once; if it stops, {again}")
    if series := job.plan.series:
        log_line(f"{series.named(job.plan.columns)} of the series of this plan")


def draw_missing(job: ReleaseJob, sources: list[str]) -> list[AuditResult]:
    """Run the private steps, from the survey to committed draws; one run at a time for each dataset.

    Returns the results of the short audit, which runs after the survey is checked against the plan.
    """
    plan = job.plan
    if not missing_draws(job):
        return passed_audit(plan)  # each bundle states an audit, even of earlier draws
    with one_at_a_time(job.dataset), private_workspace(job.dataset, job.release_id) as workspace:
        with held_open(ingest_survey(plan, workspace)) as survey:
            # Everything that may refuse the release comes before the charge, and every tally after it.
            validate_survey(plan, survey)
            audited = passed_audit(plan)
            reserve_budget(job, sources)
            # Looked up again: while this run waited, another run of this release may have drawn.
            names = missing_draws(job)
            if finding := [name for name in names if name in plan.finding]:
                _draw(job, finding, tally_survey(job, finding, survey, workspace))
            job = as_found(job, Ledger(ledger_url()))
            names = missing_draws(job)
            tallied = tally_survey(job, names, survey, workspace)
        judging = [name for name in names if name in job.plan.judging]
        _draw(job, [name for name in names if name not in judging], tallied)
        # Last, because these releases measure synthetic records, which are made from all other draws.
        for name in judging:
            tally_records(job, name, tallied / records_file(name))
        _draw(job, judging, tallied)
    return audited


def _draw(job: ReleaseJob, names: list[str], tallied: Path) -> None:
    wait_for_all(
        draw.submit(job, s.name, f"{s.kind}: {s.name} ({s.subject})", tallied)
        for s in map(job.plan.section, names)
    )


def passed_audit(plan: Plan) -> list[AuditResult]:
    """The results of the short audit; raises ``AuditError`` if a bound is above its claim."""
    audited = audit_shortly(plan)
    require_passed(plan, audited)
    return audited


def audit_plan(the_plan: Plan, draws: int | None = None, quick: bool = False) -> list[AuditResult]:
    """Audit every release of a plan, and all of them together; raises ``AuditError``."""
    if draws is not None and draws < 1:
        raise InputError("draws: write a positive whole number")
    tag_run(the_plan.dataset)
    draws = draws or (QUICK_DRAWS if quick else FULL_DRAWS)
    if not quick:
        rehearse(the_plan)
    level = level_of_each(the_plan, ATTENDED)
    results = [audit_one(the_plan, name, draws, level) for name in the_plan.built]
    if len(results) > 1:
        results.append(audit_together(the_plan, draws, level))
    if in_flow_run():
        show_audit(the_plan, results)
    require_passed(the_plan, results)
    return results
