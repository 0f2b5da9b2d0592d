"""Steps that charge a plan to the ledger: checked before private values are read, then reserved."""

import os
from collections.abc import Collection
from functools import partial
from pathlib import Path

from dpcore.errors import (
    BudgetError,
    DPReleaseError,
    InputError,
    LostLedgerError,
    UnreadableError,
)
from schemas.plan import Plan
from tasks.budget.checkpoint import require_checkpoint
from tasks.bundle.digests import is_bundle
from tasks.bundle.folders import folders_in
from tasks.bundle.verify import read_manifest
from tasks.ledger import ChargeRequest, Ledger, charges_of, ledger_if_any
from tasks.ledger.runs_and_grant import no_grant, require_grant
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tasks.workplace.places import FLOW_RUN
from tasks.workplace.schedule import STAMP, due_in
from tasks.workplace.step import log_line, step


@step("check budget")
def check_budget(job: ReleaseJob) -> None:
    """Check ledger and budget before any private value is read; write nothing.

    Every bundle of the dataset must be a release in the ledger, with the same draws; otherwise the
    ledger was lost, is an old copy, or is the wrong one.
    """
    # A missing ledger is not made here, because a new file would be in the way of a backup.
    ledger, dataset = ledger_if_any(), job.dataset
    if ledger:
        ledger.require_sound(dataset)
    for bundle in filter(is_bundle, folders_in(job.folder).values()):
        require_charged(bundle, dataset, ledger)
    require_checkpoint(ledger, dataset)
    if ledger is None or ledger.account(dataset) is None:
        if not _may_grant(ledger):
            raise BudgetError(f"{no_grant(job.plan)}; nothing was charged")
        log_line(
            "this dataset is new in the ledger, so the plan's grant will be recorded. If other people"
            " or machines release it too, name the ledger that they share with --ledger"
        )
        return
    _say_what_can_go_on(job, ledger)
    require_budget(job, ledger)


def _say_what_can_go_on(job: ReleaseJob, ledger: Ledger) -> None:
    """Point a person who starts a new release to the plan's last charged release without a bundle: its
    run may have been killed, and the new release is charged again."""
    if FLOW_RUN in os.environ or ledger.release(job.dataset, job.release_id):
        return
    same, made = ledger.ids_of_plan(job.dataset, job.plan.digest), folders_in(job.folder)
    unpublished = sorted(set(same) - set(made))
    decision = ledger.decision(job.dataset, unpublished[-1]) if unpublished else None
    if unpublished and (decision is None or decision.approved):
        log_line(
            f"release {unpublished[-1]} of this plan was charged, but has no bundle in {job.folder}. If"
            f" its run stopped, run it again with --release-id {unpublished[-1]}, which costs nothing"
            f" more. {job.release_id} is a new release, and is charged too"
        )


def _may_grant(ledger: Ledger | None) -> bool:
    """Whether the first use of a dataset grants what its plan states: if one person uses the ledger."""
    return FLOW_RUN not in os.environ and not (ledger and ledger.shared)


@step("check the survey")
def check_survey(plan: Plan, sources: Collection[str]) -> None:
    """Raise ``BudgetError`` if the survey of these names belongs to another dataset."""
    ledger = Ledger(ledger_url())
    if not sources and ledger.shared:
        raise InputError(
            "source: a shared ledger cannot identify a table in memory: write it to a file, and name"
            " the file"
        )
    ledger.require_own(plan.dataset, sources)


def _charge_request(job: ReleaseJob) -> ChargeRequest:
    due = due_in(job.release_id)
    return ChargeRequest(
        job.dataset,
        job.release_id,
        job.plan.digest,
        charges_of(job.plan),
        job.open_fraction,
        job.plan.publication.requester,
        ending=f"-{due:{STAMP}}" if due else "",  # a scheduled run's id states its due time
    )


def require_budget(job: ReleaseJob, ledger: Ledger) -> None:
    """Raise the error that reserving would raise; for an unknown dataset the plan's grant is assumed."""
    account, plan = ledger.account(job.dataset), job.plan
    if account is None:
        return
    if {*ledger.release(job.dataset, job.release_id)} != {*plan.built}:  # else nothing is charged
        require_grant(plan, account)
    ledger.check(_charge_request(job))


def require_charged(bundle: Path, dataset: str, ledger: Ledger | None) -> None:
    """Raise ``LostLedgerError`` if a published bundle was not charged to this ledger.

    A bundle with a damaged or unreadable manifest is identified by the name of its folder.
    """
    try:
        manifest = read_manifest(bundle)
    except DPReleaseError as error:
        known = bool(ledger and ledger.release(dataset, bundle.name))
        if not known and isinstance(error, UnreadableError):
            raise
        log_line(f"not compared with the ledger: {error}")
    else:
        charges = ledger.release(manifest.dataset, manifest.release_id) if ledger else {}
        drawn = {name: charge.digest for name, charge in charges.items()}
        known = drawn == manifest.draws
    if not known:
        raise LostLedgerError(
            f"{bundle} was published, but this ledger has no charge for it: the ledger was lost, is"
            " an old copy, or is the wrong one. Name the right one with --ledger, or restore it; if"
            " there is no newer copy, add the draws that bundles contain: dprelease ledger recover"
            f" {dataset} --who WHO --why WHY"
        )


@step("reserve budget")
def reserve_budget(job: ReleaseJob, sources: Collection[str] = ()) -> None:
    """Charge the whole release in one transaction; earlier charges stay unchanged.

    In a ledger that one person uses, an unknown dataset is first granted the amount that the plan
    states; from then on the ledger decides.
    """
    ledger, plan = Ledger(ledger_url()), job.plan
    granted, composition = plan.budget.granted.budget, plan.budget.composition
    why = "first use of the dataset"
    if _may_grant(ledger):
        ledger.first_grant(plan.dataset, granted, "release plan", why, composition)
    ledger.reserve(_charge_request(job), sources)
    if who := plan.publication.requester:
        ledger.record_request(job.dataset, job.release_id, who, why=plan.publication.title)


def missing_draws(job: ReleaseJob) -> list[str]:
    """The releases of the plan that have no committed draw yet."""
    ledger = Ledger(ledger_url())
    made = partial(ledger.committed, job.dataset, job.release_id)
    return [name for name in job.plan.built if made(name) is None]
