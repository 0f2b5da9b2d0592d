"""The steps of a release and of an audit, in order.

A Prefect flow runs the steps as tasks.  ``dprelease.release`` and ``dprelease.audit`` call them as plain
functions, without Prefect.
"""

import os
from fractions import Fraction
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
    bundle_path,
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
from tasks.workplace.places import FLOW_RUN, lasting
from tasks.workplace.step import in_flow_run, log_line


def carry_out(the_plan: Plan, release_id: str, out: Path, part: Fraction | None = None) -> str:
    """Run a release from the budget check to the bundle; returns the bundle's path.

    ``part``: the part of the grant that all requests together may spend; None for a release that nobody
    requested.
    """
    lasting(out, "out")
    with recorded_run(the_plan.dataset, release_id):
        return _carried_out(the_plan, release_id, out, part)


def _carried_out(the_plan: Plan, release_id: str, out: Path, part: Fraction | None) -> str:
    tag_run(the_plan.dataset)
    again = "press Retry" if FLOW_RUN in os.environ else f"run it with --release-id {release_id}"
    log_line(f"release {release_id} of {the_plan.dataset}: charged once; if it stops, {again}")
    if the_plan.series:
        log_line(f"{the_plan.series.named(the_plan.columns)} of the series of this plan")
    remove_abandoned()  # before free disk space is checked
    bundle = bundle_path(the_plan, release_id, out)
    sources = admit(the_plan, release_id, bundle, part)
    if sources is None:
        log_line("already published: nothing was charged or drawn again")
        return str(bundle)
    # Made before the budget is spent, so that a folder that cannot be written costs nothing.
    with staging_folder(bundle) as staging:
        audited = draw_missing(the_plan, release_id, sources, part)
        # Before publication: a restored old ledger would not know of these draws and repeat them.
        add_to_checkpoint(Ledger(ledger_url()), the_plan.dataset)
        the_plan = as_found(the_plan, release_id, Ledger(ledger_url()))
        tables = wait_for_all(
            write_release.submit(the_plan, release_id, name, staging) for name in the_plan.built
        )
        kept_back = withheld(tables)
        for records, judge in kept_back.items():
            log_line(
                f"the synthetic records {records} are withheld: they do not meet the criteria of"
                f" {judge}; its table shows the measurements, and the bundle has everything else"
            )
        microdata = wait_for_all(
            write_microdata.submit(the_plan, release_id, synthesis.name, staging)
            for synthesis in the_plan.synthesis
            if synthesis.name not in kept_back
        )
        analyses = write_analyses(the_plan, release_id, staging)
        made = PreparedBundle(staging, tables, microdata, analyses, audited)
        await_approval(the_plan, release_id, made)
        publish(the_plan, release_id, made, bundle)
    if in_flow_run():
        announce(the_plan, release_id, bundle)
    return str(bundle)


def draw_missing(
    plan: Plan, release_id: str, sources: list[str], part: Fraction | None = None
) -> list[AuditResult]:
    """Run the private steps, from the survey to committed draws; one run at a time for each dataset.

    Returns the results of the short audit, which runs after the survey is checked against the plan.
    """
    if not missing_draws(plan, release_id):
        return passed_audit(plan)  # each bundle states an audit, even of earlier draws
    with one_at_a_time(plan.dataset), private_workspace(plan.dataset, release_id) as workspace:
        with held_open(ingest_survey(plan, workspace)) as survey:
            # Everything that may refuse the release comes before the charge, and every tally after it.
            validate_survey(plan, survey)
            audited = passed_audit(plan)
            reserve_budget(plan, release_id, sources, part)
            # Looked up again: while this run waited, another run of this release may have drawn.
            names = missing_draws(plan, release_id)
            if finding := [name for name in names if name in plan.finding]:
                _draw(
                    plan,
                    release_id,
                    finding,
                    tally_survey(plan, release_id, finding, survey, workspace),
                )
            plan = as_found(plan, release_id, Ledger(ledger_url()))
            names = missing_draws(plan, release_id)
            tallied = tally_survey(plan, release_id, names, survey, workspace)
        judging = [name for name in names if name in plan.judging]
        _draw(plan, release_id, [name for name in names if name not in judging], tallied)
        # Last, because these releases measure synthetic records, which are made from all other draws.
        for name in judging:
            tally_records(plan, release_id, name, tallied / records_file(name))
        _draw(plan, release_id, judging, tallied)
    return audited


def _draw(plan: Plan, release_id: str, names: list[str], tallied: Path) -> None:
    wait_for_all(
        draw.submit(plan, release_id, s.name, f"{s.kind}: {s.name} ({s.subject})", tallied)
        for s in map(plan.section, names)
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
