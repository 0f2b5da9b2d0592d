"""From committed draws to a bundle: whole or not at all, and never changed after.

Nothing here can reach the survey: the only inputs are the plan and the ledger's committed draws.
The bundle is built in a staging folder beside its place and renamed into it when it is complete and
on disk; a release that is published already is checked and left as it is.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpcore.adjacency import ROW
from dpcore.audit import AuditResult
from dpcore.budget import total
from dpcore.errors import ApprovalError, BundleError, LedgerError
from dpcore.releases.base import Published
from dpcore.statistic import Noisy
from schemas.bundle import (
    DIGESTS,
    MANIFEST,
    Approval,
    Guarantee,
    Manifest,
    ReleaseRecord,
    SynthesisRecord,
    privacy_statement,
)
from schemas.draws import draw_table
from schemas.plan import Plan
from schemas.standards import documents
from tasks.home import home, ledger_url, locked, private_folder
from tasks.ledger import ChargeRecord, Decision, Ledger, State
from tasks.parquet import write_table
from tasks.records import synthetic_records
from tasks.report import write_report
from tasks.sign import sign, signing_key
from tasks.step import step
from tasks.verify import bundle_digest, read_manifest, verify_files, verify_seal


def bundle_path(plan: Plan, release_id: str, out: Path) -> Path:
    """Where the bundle of a release is published."""
    return out / plan.dataset / release_id


@step("write tables", run_name="write tables: {name}")
def write_release(plan: Plan, release_id: str, name: str, staging: Path) -> ReleaseRecord:
    """Publish one committed draw as tables in the staging folder."""
    charge, noisy = _committed(plan, release_id, name)
    release, section = plan.built[name], plan.section(name)
    published: Published = release.publish(noisy)
    about = _about(plan, release_id)
    return ReleaseRecord(
        name=name,
        kind=section.kind,
        title=section.title,
        mechanism=section.mechanism,
        **_amounts(charge),
        event={key: str(value) for key, value in charge.event.items()},
        draw_sha256=noisy.digest(),
        errors={error.quantity: error.value for error in release.expected_error()},
        facts=dict(published.facts),
        files=[write_table(staging, table, plan.columns, about) for table in published.tables],
        draw=write_table(staging, draw_table(name, noisy), plan.columns, about),
    )


@step("synthesize", run_name="synthesize: {name}")
def write_microdata(plan: Plan, release_id: str, name: str, staging: Path) -> SynthesisRecord:
    """Draw one synthetic table from committed draws alone."""
    synthesis = next(table for table in plan.synthesis if table.name == name)
    _, noisy = _committed(plan, release_id, synthesis.from_)
    records = synthetic_records(plan, synthesis, partial(_draw, plan, release_id))
    about = _about(plan, release_id)
    file = write_table(staging, records.table(name, plan.columns), plan.columns, about)
    support = write_table(staging, records.support(name, noisy), plan.columns, about)
    return SynthesisRecord(
        name=name,
        source=synthesis.from_,
        refined_by=records.refined_by,
        file=file,
        support=support,
    )


@step("publish")
def publish(
    plan: Plan,
    release_id: str,
    staging: Path,
    target: Path,
    releases: list[ReleaseRecord],
    synthesis: list[SynthesisRecord],
    audited: list[AuditResult],
) -> None:
    """Complete the staging folder and put it in its place, at once."""
    ledger = Ledger(ledger_url())
    charges = ledger.release(plan.dataset, release_id)
    approval = require_approved(plan, release_id, ledger.decision(plan.dataset, release_id))
    manifest = Manifest(
        format=1,
        dataset=plan.dataset,
        release_id=release_id,
        title=plan.publication.title,
        # When the last draw was committed: publishing the same draws again says the same.
        drawn_at=max(charge.committed_at or "" for charge in charges.values()),
        plan_digest=plan.digest,
        plan=plan.public(),
        guarantee=_guarantee(plan),
        releases=releases,
        synthesis=synthesis,
        audit=audited[0].to_dict(),
        audit_of_each=[result.to_dict() for result in audited[1:]],
        approval=approval,
        versions=_versions(),
    )
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    (staging / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path, document in documents(manifest).items():
        (staging / path).write_text(document, encoding="utf-8")
    write_report(plan, manifest, staging, ledger.history(plan.dataset))
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    lines = [f"{_sha256(path)}  {path.relative_to(staging).as_posix()}\n" for path in files]
    (staging / DIGESTS).write_text("".join(lines), encoding="utf-8")
    verify_files(staging, manifest)
    if key := signing_key():
        sign(staging, key)
    _open_to_readers(staging)
    _flush(staging)
    ledger.seal(plan.dataset, release_id, bundle_digest(staging))
    try:
        os.rename(staging, target)
    except OSError:
        if not target.exists():
            raise BundleError(f"the bundle could not be moved to {target}") from None
        # Another run was first: its bundle stays, and is checked like any other.
    _flush_folder(target.parent)
    check_published(plan, release_id, target)


def require_approved(plan: Plan, release_id: str, decision: Decision | None) -> Approval | None:
    """The approval, if the plan asks for one; raises ``ApprovalError`` unless it may be published.

    A rejection counts whatever the plan says.
    """
    if decision is not None and not decision.approved:
        raise ApprovalError(
            f"release {release_id} of {plan.dataset} was {decision}: nothing is published, and its"
            " budget stays spent, for the noise was drawn"
        )
    if not plan.publication.approval:
        return None
    if decision is None:
        waiting = ApprovalError(
            f"release {release_id} of {plan.dataset} is drawn and waits for a disclosure officer."
            f" Decide with `dprelease approve {plan.dataset} {release_id} --who NAME --why REASON`"
            " or `dprelease reject ...`, then run the plan again with this release id"
        )
        waiting.release_id = release_id
        raise waiting
    return Approval(who=decision.who, why=decision.why, at=decision.at)


def check_published(plan: Plan, release_id: str, target: Path) -> None:
    """Raise ``BundleError`` where what stands at ``target`` is not this release, unchanged."""
    manifest = read_manifest(target)
    verify_files(target, manifest)
    ledger = Ledger(ledger_url())
    charges = ledger.release(plan.dataset, release_id)
    drawn = {name: charge.digest for name, charge in charges.items()}
    if manifest.plan_digest != plan.digest or drawn != {
        record.name: record.draw_sha256 for record in manifest.releases
    }:
        raise BundleError(
            f"{target} holds another bundle; a published bundle is never changed: use another"
            " release id or another folder"
        )
    verify_seal(target, manifest, ledger)


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """An empty folder beside the bundle's place, on the same disk; it does not stay.

    One run at a time works on a bundle; what a killed one left behind is removed.
    """
    locks = private_folder(home() / "locks")
    name = hashlib.sha256(str(target.absolute()).encode()).hexdigest()
    with locked(locks / name):
        for leftover in target.parent.glob(f".{target.name}.staging*"):
            shutil.rmtree(leftover, ignore_errors=True)
        staging = target.parent / f".{target.name}.staging"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.parent.chmod(0o755)  # public, whatever the umask of the process
            staging.mkdir(mode=0o700)
        except OSError as error:
            raise BundleError(f"{target.parent} cannot be written ({error.strerror})") from None
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _committed(plan: Plan, release_id: str, name: str) -> tuple[ChargeRecord, Noisy]:
    """The draw, which must be committed and fit for publication."""
    ledger = Ledger(ledger_url())
    noisy = ledger.committed(plan.dataset, release_id, name)
    charge = ledger.release(plan.dataset, release_id).get(name)
    if noisy is None or charge is None or charge.state is not State.COMMITTED:
        raise LedgerError(f"{name}: only a committed draw can be published, and there is none")
    if charge.plan_digest != plan.digest:
        raise LedgerError(f"{name}: the draw belongs to another plan")
    if noisy.reproducible:
        raise BundleError(
            f"{name}: drawn from a seeded source; whoever knows the seed can take the noise away"
        )
    return charge, noisy


def _draw(plan: Plan, release_id: str, name: str) -> Noisy:
    return _committed(plan, release_id, name)[1]


def _guarantee(plan: Plan) -> Guarantee:
    spent = total(release.share for release in plan.built.values())
    return Guarantee(
        privacy_unit=plan.unit.name if plan.unit else ROW,
        neighbours=plan.neighbours,
        alpha=spent.alpha,
        beta=spent.beta,
        gamma=spent.gamma,
        epsilon=spent.alpha,
        delta=spent.beta,
        statement=privacy_statement(spent, plan.protection),
    )


def _amounts(charge: ChargeRecord) -> dict[str, Any]:
    return {
        "alpha": charge.budget.alpha,
        "beta": charge.budget.beta,
        "gamma": charge.budget.gamma,
    }


def _about(plan: Plan, release_id: str) -> Mapping[str, str]:
    return {
        "dprelease.dataset": plan.dataset,
        "dprelease.release_id": release_id,
        "dprelease.privacy": _guarantee(plan).statement,
    }


def _versions() -> dict[str, str]:
    packages = ("dprelease", "numpy", "scipy", "duckdb", "pyarrow", "pandera", "prefect")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_to_readers(folder: Path) -> None:
    """Published is published, whatever the umask of the process that kept the survey."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _flush(folder: Path) -> None:
    """Everything in the folder to disk, before it gets its name."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            _flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
