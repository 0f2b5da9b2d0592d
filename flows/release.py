"""The release flow: a plan goes in, a published bundle comes out.

    check budget -> audit -> ingest -> validate -> reserve budget -> tally -> draw each release
        -> write tables, synthesize, fit models -> (approval) -> publish -> announce

Draws run in parallel, and so do tables and synthetic tables (``flows.parallel``).

A committed draw is never repeated: a run that finds every draw committed continues with the tables,
and a run that finds its bundle published changes nothing.
"""

from pathlib import Path
from typing import Any

from flows.approval import await_approval
from flows.audit import require_passed
from flows.embedded import flow
from flows.identity import own_release_id
from flows.notify import HOOKS
from flows.parallel import require_workers, task_runner, wait_for_all
from schemas.identity import check_release_id
from schemas.plan import Plan, load_plan
from tasks.announce.announce import announce
from tasks.audit.audit import audit_shortly
from tasks.budget.charge import check_budget, missing_draws, reserve_budget
from tasks.budget.checkpoint import add_to_checkpoint
from tasks.bundle.analyses import write_analyses
from tasks.bundle.publish import (
    bundle_path,
    check_published,
    publish,
    staging_folder,
    write_microdata,
    write_release,
)
from tasks.bundle.series import earlier_runs
from tasks.bundle.sign import signing_key
from tasks.draw import draw, tally_survey
from tasks.explain.analysis import check_analyses
from tasks.ledger import Ledger
from tasks.ledger.runs_and_grant import at_its_run
from tasks.survey.reading import closing_survey
from tasks.survey.steps import ingest_survey, require_source, validate_survey
from tasks.workplace.home import ledger_url, one_at_a_time, private_workspace, remove_abandoned
from tasks.workplace.plans import find_plan, published_folder
from tasks.workplace.schedule import due_of
from tasks.workplace.step import log_line


@flow(
    name="release",
    flow_run_name="release: {plan}",
    task_runner=task_runner(),
    **HOOKS,
)
def release(
    plan: str,
    release_id: str | None = None,
    out: str | None = None,
    overrides: dict[str, Any] | None = None,
) -> str:
    """Publish one release of a survey and return the path of its bundle.

    Args:
        plan: Name of a plan in the folder of plans, or path of a YAML document.
        release_id: Names the release; the same id never charges or draws twice. By default it is
            made of the plan's name and the time at which the run was due.
        out: Folder under which the bundle appears, as DATASET/RELEASE_ID.
        overrides: Values for dotted keys of the plan, such as `source` or `budget.requested.alpha`.

    Returns:
        The path of the bundle.

    Raises:
        InputError: The plan, the survey or the signing key is not valid or cannot be read.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        LedgerError: The ledger cannot be used, or it has other charges under this release id.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.

    Examples:
        bundle = release("deployments/plans/fair.yaml", release_id="2025-q1", out="published")
    """
    the_plan = load_plan(find_plan(plan), overrides)
    release_id = check_release_id(release_id or own_release_id(plan))
    if the_plan.series:
        due = due_of(find_plan(plan), release_id)
        the_plan = at_its_run(the_plan, Ledger(ledger_url()), release_id, due)
    return carry_out(the_plan, release_id, Path(out) if out else published_folder())


def carry_out(the_plan: Plan, release_id: str, out: Path) -> str:
    """Run a release from the budget check to the bundle, inside a flow; returns the bundle's path."""
    signing_key()  # fail before anything is charged if the key cannot be read
    require_workers()
    bundle = bundle_path(the_plan, release_id, out)
    log_line(f"release {release_id} of {the_plan.dataset}: a retry with this id costs nothing more")
    remove_abandoned()
    check_budget(the_plan, release_id, bundle.parent)
    if bundle.exists():
        check_published(the_plan, release_id, bundle)
        log_line("already published: nothing was charged or drawn again")
        return str(bundle)
    check_analyses(the_plan)
    if missing_draws(the_plan, release_id):
        require_source(the_plan)
    earlier_runs(the_plan, release_id, bundle.parent)  # fail before anything is charged
    audited = audit_shortly(the_plan)
    require_passed(the_plan, audited)
    with staging_folder(bundle) as staging:
        if missing_draws(the_plan, release_id):
            draw_missing(the_plan, release_id)
        add_to_checkpoint(Ledger(ledger_url()))
        tables = wait_for_all(
            write_release.submit(the_plan, release_id, name, staging) for name in the_plan.built
        )
        microdata = wait_for_all(
            write_microdata.submit(the_plan, release_id, synthesis.name, staging)
            for synthesis in the_plan.synthesis
        )
        analyses = write_analyses(the_plan, release_id, staging)
        await_approval(the_plan, release_id, audited)
        publish(the_plan, release_id, staging, bundle, tables, microdata, analyses, audited)
    announce(the_plan, release_id, bundle)
    return str(bundle)


def draw_missing(plan: Plan, release_id: str) -> None:
    """The private part, one run at a time for each dataset: from the survey to committed draws."""
    with one_at_a_time(plan.dataset), private_workspace(plan.dataset, release_id) as workspace:
        survey = ingest_survey(plan, workspace)
        with closing_survey(survey):
            validate_survey(plan, survey)
            reserve_budget(plan, release_id)
            names = missing_draws(plan, release_id)
            tallied = tally_survey(plan, release_id, names, survey, workspace)
        sections = [plan.section(name) for name in names]
        wait_for_all(
            draw.submit(plan, release_id, s.name, f"{s.kind}: {s.name} ({s.title})", tallied)
            for s in sections
        )
