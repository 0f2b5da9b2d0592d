"""The release flow: a plan goes in, a published bundle comes out.

    check budget -> audit -> ingest -> validate -> reserve budget -> tally -> draw each release
        -> write tables, synthesize -> (approval) -> publish -> announce

Draws do not wait for each other, nor do tables, nor synthetic tables (``flows.parallel``).

What was drawn once stays drawn: a run that finds every draw committed goes straight to publishing,
and a run that finds its bundle published changes nothing.
"""

from pathlib import Path
from typing import Any

from prefect import flow

from flows.approval import await_approval
from flows.audit import require_passed
from flows.identity import own_release_id
from flows.notify import HOOKS
from flows.parallel import require_workers, task_runner, together
from schemas.plan import Plan, check_release_id, load_plan
from tasks.announce import announce
from tasks.audit import audit_shortly
from tasks.charge import check_budget, reserve_budget, undrawn
from tasks.draw import draw, tally_survey
from tasks.home import one_at_a_time, private_workspace, remove_abandoned
from tasks.plans import find_plan, published_folder
from tasks.progress import say
from tasks.publish import (
    bundle_path,
    check_published,
    publish,
    staging_folder,
    write_microdata,
    write_release,
)
from tasks.reading import held
from tasks.river import ingest_survey, validate_survey
from tasks.sign import signing_key


@flow(
    name="release",
    flow_run_name="release: {plan}",
    task_runner=task_runner(),
    log_prints=False,
    persist_result=False,
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
        overrides: Values that replace those at dotted places of the plan, such as source.
    """
    the_plan = load_plan(find_plan(plan), overrides)
    release_id = check_release_id(release_id or own_release_id(plan))
    return carry_out(the_plan, release_id, Path(out) if out else published_folder())


def carry_out(the_plan: Plan, release_id: str, out: Path) -> str:
    """Everything from the budget to the bundle, inside a run of some flow; returns its path."""
    signing_key()  # what cannot be read or reached is told before anything is charged
    require_workers()
    bundle = bundle_path(the_plan, release_id, out)
    say(f"release {release_id} of {the_plan.dataset}: a retry with this id costs nothing more")
    remove_abandoned()
    check_budget(the_plan, release_id, bundle.parent)
    if bundle.exists():
        check_published(the_plan, release_id, bundle)
        say("published before: nothing was charged or drawn again")
        return str(bundle)
    audited = audit_shortly(the_plan)
    require_passed(the_plan, audited)
    with staging_folder(bundle) as staging:
        if undrawn(the_plan, release_id):
            cross_the_line(the_plan, release_id)
        tables = together(
            write_release.submit(the_plan, release_id, name, staging) for name in the_plan.built
        )
        microdata = together(
            write_microdata.submit(the_plan, release_id, synthesis.name, staging)
            for synthesis in the_plan.synthesis
        )
        await_approval(the_plan, release_id, audited)
        publish(the_plan, release_id, staging, bundle, tables, microdata, audited)
    announce(the_plan, release_id, bundle)
    return str(bundle)


def cross_the_line(plan: Plan, release_id: str) -> None:
    """Everything private, one run at a time for each dataset: from the survey to committed draws."""
    with one_at_a_time(plan.dataset), private_workspace(plan.dataset, release_id) as workspace:
        survey = ingest_survey(plan, workspace)
        with held(survey):
            validate_survey(plan, survey)
            reserve_budget(plan, release_id)
            names = undrawn(plan, release_id)
            tallied = tally_survey(plan, release_id, names, survey, workspace)
        sections = [plan.section(name) for name in names]
        together(
            draw.submit(plan, release_id, s.name, f"{s.kind}: {s.name} ({s.title})", tallied)
            for s in sections
        )
