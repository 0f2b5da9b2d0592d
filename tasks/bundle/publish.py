"""Publishes committed draws as a bundle, which appears whole or not at all and is never changed.

Nothing here can reach the survey: the only inputs are the plan and the ledger's committed draws.
The bundle is built in a staging folder (``staging``); a release that is already published is checked and
left as it is.
"""

import json
import logging
import platform
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.audit import AuditResult
from dpcore.domain.adjacency import ROW
from dpcore.errors import ApprovalError, BundleError, LedgerError
from dpcore.estimates.joined import replicates_of_best, with_best
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import (
    FitsRecords,
    JudgesRecords,
    Replicable,
    ReplicableRun,
    RunOfSeries,
)
from dpcore.releases.counts.unit import BEST, tables_of_counts
from dpcore.releases.replicates import replicates_within
from dpcore.releases.table import MOST_FILES, Table
from schemas.bundle.draws import draw_table
from schemas.bundle.manifest import (
    AnalysisRecord,
    Approval,
    Guarantee,
    Manifest,
    ReleaseRecord,
    SynthesisRecord,
    privacy_statement,
)
from schemas.bundle.table_file import TableFile
from schemas.documents import documents
from schemas.plan import Plan
from tasks.bundle.digests import DIGESTS, MANIFEST, bundle_digest, is_bundle, sha256_of
from tasks.bundle.drawn import DrawnPlan
from tasks.bundle.implicates import make_implicates
from tasks.bundle.parquet import write_csv, write_table, write_tables
from tasks.bundle.records import (
    SyntheticRecords,
    draws_of_period,
    joined,
    record_blocks,
    tally_of_records,
    understated_by,
)
from tasks.bundle.series import earlier_runs
from tasks.bundle.sign import sign, signing_key
from tasks.bundle.staging import flush, move_whole, open_to_readers
from tasks.bundle.verify import read_manifest, verify_files, verify_seal
from tasks.inference.measured import Draws
from tasks.ledger import ChargeRecord, Decision, Ledger
from tasks.ledger.notes import require_not_rejected
from tasks.report import REPORT, findings, report_page
from tasks.report.support import excluded_by_plan
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import step

LOGGER = logging.getLogger("dprelease")

_MEASURING = Lock()
_MEASURED: dict[tuple[str | None, ...], DrawnPlan] = {}
"""A cache of the last result of ``drawn_plan``, by the digests of the plan and of its draws."""


@dataclass(frozen=True)
class PreparedBundle:
    """A release that is not published yet: the folder with its files, and records of them."""

    staging: Path
    releases: list[ReleaseRecord]
    synthesis: list[SynthesisRecord]
    analyses: list[AnalysisRecord]
    audited: list[AuditResult]


@step("write tables", run_name="write tables: {name}")
def write_release(job: ReleaseJob, name: str, staging: Path) -> ReleaseRecord:
    """Publish one committed draw as tables in the staging folder."""
    plan, (charge, noisy) = job.plan, committed(job, name)
    section = plan.section(name)
    release = plan.counting(plan.built[name], plan.built, draws_of(job))
    facts: dict[str, object] = {}
    replicate_noise: Callable[[int], Mapping[str, NDArray[np.float32]]] | None = None
    if isinstance(release, RunOfSeries):
        earlier = earlier_runs(job)
        facts["earlier_runs"] = earlier.release_ids
        published = release.publish(noisy, earlier.draws(name))
        if isinstance(release, ReplicableRun):
            replicate_noise = partial(release.replicate_noise, noisy, earlier=earlier.draws(name))
    else:
        published = release.publish(noisy)
        if isinstance(release, Replicable):
            replicate_noise = partial(release.replicate_noise, noisy)
    if (table := tables_of_counts(plan.built).get(name)) is not None:
        counted = drawn_plan(job).counted
        published = with_best(published, table, counted)
        if any(BEST[0] in each.columns for each in published.tables):
            replicate_noise = partial(replicates_of_best, table, counted)
    rows = sum(len(table.parts[0].values) for table in published.tables)
    number = replicates_within(plan.publication.replicates, rows)
    noise = replicate_noise(number) if number and replicate_noise else {}
    about = file_metadata(job)
    files = [
        write_tables(staging, file, tables, plan.described_columns, about, noise)
        for file, tables in _in_files(name, published.tables).items()
    ]
    expected = release.expected_error()
    return ReleaseRecord(
        name=name,
        kind=section.kind,
        title=section.subject,
        mechanism=section.mechanism,
        **asdict(charge.budget),
        event=release.event.to_dict(),
        draw_sha256=noisy.digest(),
        errors={error.quantity: error.value for error in expected},
        error_notes={error.quantity: error.note for error in expected if error.note},
        facts={**published.facts, **facts},
        files=[with_csv(plan, staging, file) for file in files],
        draw=write_table(staging, draw_table(name, noisy), plan.described_columns, about),
    )


@step("synthesize", run_name="synthesize: {name}")
def write_microdata(job: ReleaseJob, name: str, staging: Path) -> SynthesisRecord:
    """Draw one synthetic table from committed draws alone."""
    plan, draws = job.plan, draws_of(job)
    synthesis = next(table for table in plan.synthesis if table.name == name)
    noisy = draws_of_period(plan, draws)(synthesis.from_)
    facts: dict[str, Any] = {
        "understated": understated_by(synthesis.sampler(plan.of_period), noisy),
        "rows_per_unit": plan.unit.max_rows if plan.unit else 1,
        "cluster": plan.cluster,
    }
    # Without its files, which are written later, because they contain the record's warning.
    stated = SynthesisRecord.model_construct(**facts)
    seen: list[SyntheticRecords] = []

    def warned(tables: Iterator[Table]) -> TableFile:
        return written(job, staging, next(tables), {"dprelease.warning": stated.warning}, tables)

    def blocks() -> Iterator[SyntheticRecords]:
        for block in record_blocks(plan, synthesis, draws):
            # The support needs the codes of all blocks; the values would take too much memory.
            seen.append(block.without_values)
            yield block

    if plan.linked:
        both = zip(*(block.linked_tables(name, plan) for block in blocks()), strict=True)
        files = dict(zip(("file", "members"), map(warned, map(iter, both)), strict=True))
    else:
        files = {"file": warned(block.table(name, plan.columns) for block in blocks())}
    records = joined(seen)
    support = records.support(name, noisy)
    files["support"] = written(job, staging, support)
    facts["pairs"] = Counter(support.columns["grade"][support.columns["ways"] == 2].tolist())
    for warning in excluded_by_plan(support.columns):
        LOGGER.warning(f"{name}: {warning}")
    if synthesis.implicates:
        release = plan.of_period[synthesis.from_]
        assert isinstance(release, FitsRecords)  # the plan was checked
        drawn = drawn_plan(job)
        several = make_implicates(release, synthesis, drawn.counted, drawn.of_period)
        for key, table in zip(
            ("implicates", "spread"), several.tables(plan, synthesis, draws), strict=True
        ):
            files[key] = written(job, staging, table, {"dprelease.warning": stated.rules})
    return SynthesisRecord(
        name=name,
        source=synthesis.from_,
        refined_by=records.refined_by,
        followed=list(records.followed),
        **(facts | files),
    )


@step("count records", run_name="count records: {name}")
def tally_records(job: ReleaseJob, name: str, path: Path) -> None:
    """Make the synthetic records whose quality a release measures, and count them by cell."""
    release = job.plan.built[name]
    assert isinstance(release, JudgesRecords)
    tally = tally_of_records(job.plan, release.of, release.domain, draws_of(job))
    np.save(path, np.vstack([tally.cells.T, tally.counts]))


def written(
    job: ReleaseJob,
    staging: Path,
    table: Table,
    said: Mapping[str, str] = MappingProxyType({}),
    more: Iterable[Table] = (),
) -> TableFile:
    """Write a table to the staging folder; ``said``: metadata of this file alone; ``more``: as in
    ``write_table``."""
    about = {**file_metadata(job), **said}
    file = write_table(staging, table, job.plan.described_columns, about, more)
    return with_csv(job.plan, staging, file)


def with_csv(plan: Plan, staging: Path, file: TableFile) -> TableFile:
    """The record of a table; the table is also written as CSV unless the plan excludes CSV."""
    return write_csv(staging, file) if plan.publication.csv else file


@step("publish")
def publish(job: ReleaseJob, made: PreparedBundle) -> None:
    """Complete the staging folder and move it to its final path in one step."""
    plan, release_id, staging = job.plan, job.release_id, made.staging
    ledger = Ledger(ledger_url())
    charges = ledger.release(plan.dataset, release_id)
    # Read again, because the bundle states the decision that the ledger has now.
    approval = require_approved(job, ledger.decision(plan.dataset, release_id))
    manifest = Manifest(
        format=1,
        dataset=plan.dataset,
        release_id=release_id,
        title=plan.publication.title,
        # The time of the last draw, so that publishing the same draws again gives the same manifest.
        drawn_at=max(charge.committed_at or "" for charge in charges.values()),
        plan_digest=plan.digest,
        plan=plan.public(),
        guarantee=_guarantee(plan),
        releases=made.releases,
        synthesis=made.synthesis,
        analyses=made.analyses,
        request=_request(charges.values()),
        scheduled=plan.operation.schedule is not None,
        audit=made.audited[0].to_dict(),
        audit_of_each=[result.to_dict() for result in made.audited[1:]],
        approval=approval,
        versions=_versions(),
    )
    found = findings(plan, manifest, staging)
    manifest = manifest.model_copy(update={"findings": list(found.sentences)})
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    (staging / MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path, document in documents(manifest).items():
        (staging / path).write_text(document, encoding="utf-8")
    page = report_page(plan, manifest, staging, ledger.history(plan.dataset), found)
    (staging / REPORT).write_text(page, encoding="utf-8", newline="\n")
    files = sorted(path for path in staging.rglob("*") if path.is_file())
    lines = [f"{sha256_of(path)}  {path.relative_to(staging).as_posix()}\n" for path in files]
    (staging / DIGESTS).write_text("".join(lines), encoding="utf-8")
    verify_files(staging, manifest)  # as a reader would, before the bundle can no longer be changed
    if key := signing_key():
        sign(staging, key)
    open_to_readers(staging)
    flush(staging)
    # Sealed before it appears: a bundle whose digest the ledger lacks counts as forged.
    ledger.seal(plan.dataset, release_id, bundle_digest(staging))
    # If another run was first, its bundle stays; the next line checks it.
    move_whole(staging, job.bundle)
    check_published(job)


def _request(charges: Collection[ChargeRecord]) -> Literal["open", "allowance"] | None:
    """How a release was requested; the bundle states this, so that a lost release can be recovered."""
    if any(charge.analyst for charge in charges):
        return "allowance"
    return "open" if any(charge.open_fraction for charge in charges) else None


def require_approved(job: ReleaseJob, decision: Decision | None) -> Approval | None:
    """The approval, if the plan asks for one; ``ApprovalError`` if the release may not be published.

    A rejection counts even if the plan does not ask for approval.
    """
    dataset, release_id = job.dataset, job.release_id
    require_not_rejected(dataset, release_id, decision)
    if not job.plan.publication.approval:
        return None
    if decision is None:
        waiting = ApprovalError(
            f"release {release_id} of {dataset} is drawn and waits for a disclosure officer."
            f" Decide with `dprelease approve {dataset} {release_id} --who NAME --why REASON`"
            " or `dprelease reject ...`, then run the plan again with this release id"
        )
        waiting.release_id = release_id
        raise waiting
    return Approval(who=decision.who, why=decision.why, at=decision.at)


def check_published(job: ReleaseJob) -> None:
    """Raise ``BundleError`` unless the unchanged bundle of this release is in its place.

    Raises ``ApprovalError`` if the release was rejected after it was published.
    """
    target = job.bundle
    if not is_bundle(target):
        kind = "a folder without a bundle" if target.is_dir() else "a file"
        raise BundleError(
            f"{target}: {kind} is in the bundle's place: move it away, and run again with the same"
            " release id, which charges nothing twice"
        )
    manifest = read_manifest(target)
    verify_files(target, manifest)
    ledger = Ledger(ledger_url())
    decision = ledger.decision(job.dataset, job.release_id)
    if decision is not None and not decision.approved:
        raise ApprovalError(f"{target} is published, but was {decision}: withdraw this bundle")
    charges = ledger.release(job.dataset, job.release_id)
    drawn = {name: charge.digest for name, charge in charges.items()}
    if manifest.plan_digest != job.plan.digest or drawn != manifest.draws:
        raise BundleError(
            f"{target} is the bundle of another plan or another draw, and a published bundle is never"
            " changed: use another release id or another folder"
        )
    verify_seal(target, manifest, ledger)


def committed(job: ReleaseJob, name: str) -> tuple[ChargeRecord, Noisy]:
    """The charge and its committed draw; raises an error if the draw may not be published."""
    found = Ledger(ledger_url()).charged_draw(job.dataset, job.release_id, name)
    if found is None:
        raise LedgerError(f"{name}: has no committed draw to publish; run the plan first")
    charge, noisy = found
    if charge.plan_digest != job.plan.digest:
        raise LedgerError(f"{name}: the draw belongs to another plan")
    if noisy.reproducible:
        raise BundleError(
            f"{name}: was drawn from a seeded source and cannot be published: with the seed, anybody"
            " can remove the noise"
        )
    return charge, noisy


def draws_of(job: ReleaseJob) -> Draws:
    """The committed draws by their releases' names."""
    return lambda name: committed(job, name)[1]


def withheld(releases: Sequence[ReleaseRecord]) -> dict[str, str]:
    """The synthetic tables that are withheld, each with the release that did not accept it."""
    return {r.facts["records"]: r.name for r in releases if r.facts.get("withheld")}


def _in_files(release: str, tables: Sequence[Table]) -> dict[str, list[Table]]:
    """The tables of each file, by the file's name; many tables of the same numbers share a file."""
    alike: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        numbers = tuple(part.name for part in table.parts if part.about is None)
        alike.setdefault(numbers, []).append(table)
    most = max(alike.values(), key=len, default=[])
    if len(most) <= MOST_FILES:
        most = []
    shared = {table.name for table in most}
    alone = {table.name: [table] for table in tables if table.name not in shared}
    return alone | ({release: most} if most else {})


def drawn_plan(job: ReleaseJob) -> DrawnPlan:
    """The plan with its committed draws; cached for the bundle's other tables."""
    plan, charges = job.plan, Ledger(ledger_url()).release(job.dataset, job.release_id)
    drawn = (plan.digest, job.release_id, *(charge.digest for charge in charges.values()))
    with _MEASURING:  # tables are written in parallel, and the first one reads the draws for all
        found = _MEASURED.get(drawn)
        if found is None or found.plan is not plan:  # draws belong to the releases of one plan
            found = DrawnPlan(plan, draws_of(job))
            _ = found.counted
            _MEASURED.clear()
            _MEASURED[drawn] = found
        return found


def _guarantee(plan: Plan) -> Guarantee:
    kept = plan.promise
    return Guarantee(
        privacy_unit=plan.unit.name if plan.unit else ROW,
        neighbours=plan.neighbours,
        alpha=kept.alpha,
        beta=kept.beta,
        gamma=kept.gamma,
        composition=plan.budget.composition,
        epsilon=kept.alpha,
        delta=kept.beta,
        statement=privacy_statement(plan),
        domain=plan.protection.domain,
    )


def file_metadata(job: ReleaseJob) -> dict[str, str]:
    """Metadata that every file carries, so that it is understood without its bundle."""
    return {
        "dprelease.dataset": job.dataset,
        "dprelease.release_id": job.release_id,
        "dprelease.privacy": _guarantee(job.plan).statement,
    }


def _versions() -> dict[str, str]:
    packages = ("dprelease", "numpy", "scipy", "duckdb", "pyarrow", "pandera", "prefect")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
