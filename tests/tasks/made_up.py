"""Bundles of made-up surveys, published through the real steps, without a flow or a source table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import AuditResult
from dpcore.audit.releases import claim_of
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.base import Release
from dpcore.sampling.source import SeededSource, SystemSource
from schemas.plan import Plan, load_plan
from tasks.budget.charge import reserve_budget
from tasks.bundle.analyses import write_analyses
from tasks.bundle.publish import (
    PreparedBundle,
    publish,
    write_microdata,
    write_release,
)
from tasks.bundle.reader import BundleReader
from tasks.bundle.staging import staging_folder
from tasks.ledger import Ledger
from tasks.ledger.runs_and_grant import as_found
from tasks.workplace.home import ledger_url
from tasks.workplace.job import ReleaseJob
from tests.conftest import short_fits

OCCUPIED = 60


def publish_made_up(plan: Plan, release_id: str, out: Path) -> Path:
    """Charge, draw and publish a plan over surveys that were made up for each of its releases."""
    job, ledger = ReleaseJob(plan, release_id, out), Ledger(ledger_url())
    reserve_budget.fn(job)
    for name in dict.fromkeys([*plan.finding, *plan.built]):
        if name not in plan.finding:
            job = as_found(job, ledger)
        release = job.plan.built[name]
        exact = release.statistic(made_up_tally(release.domain, plan.rows))
        noisy = perturb(exact, release.mechanism, release.share, SystemSource())
        ledger.commit(plan.dataset, release_id, name, noisy)
    job = as_found(job, ledger)
    plan = job.plan
    with staging_folder(job.bundle) as staging:
        with short_fits():
            releases = [write_release.fn(job, name, staging) for name in plan.built]
            synthesis = [write_microdata.fn(job, table.name, staging) for table in plan.synthesis]
            analyses = write_analyses.fn(job, staging)
        made = PreparedBundle(staging, releases, synthesis, analyses, made_up_audits(plan))
        publish.fn(job, made)
    return job.bundle


def opened_once(folder: Path, document: dict) -> BundleReader:
    """A bundle for all tests of a module, with a home of its own in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DPRELEASE_HOME", str(folder / "home"))
        patch.delenv("DPRELEASE_LEDGER", raising=False)
        return opened(load_plan(document), folder)


def opened(plan: Plan, folder: Path) -> BundleReader:
    """The reader of a bundle of a plan that was published in a folder."""
    return BundleReader.open(publish_made_up(plan, "r1", folder / "out"))


def made_up_tally(domain: Domain, rows: int) -> Tally:
    """All records in a few cells, many in the first: a classifier is trained at once."""
    random = np.random.default_rng(rows)
    codes = np.column_stack([random.integers(axis.size, size=OCCUPIED) for axis in domain.axes])
    cells = np.unique(domain.pack(codes), axis=0)
    weights = 1 / np.arange(1, len(cells) + 1) ** 1.5
    counts = random.multinomial(rows, weights / weights.sum())
    return Tally(domain, cells[counts > 0], counts[counts > 0])


def drawn_evenly(release: Release, first: Sequence[int] = ()) -> Noisy:
    """A draw over 3000 records, each in any cell; the ``first`` ones in these, by the first column."""
    codes = np.random.default_rng(3).integers(
        0, release.domain.shape, (3000, len(release.domain.axes))
    )
    codes[: len(first), 0] = first
    exact = release.statistic(Tally.of(release.domain, release.domain.pack(codes)))
    return perturb(exact, release.mechanism, release.share, SeededSource(1))


def made_up_audits(plan: Plan) -> list[AuditResult]:
    return made_up_audits_of(list(plan.built.values()))


def made_up_audits_of(releases: Sequence[Release]) -> list[AuditResult]:
    """Of all releases together and of each."""
    each = [made_up_audit(release.name, claim_of([release])) for release in releases]
    return [made_up_audit("all", claim_of(list(releases))), *each]


def made_up_audit(name: str, claim: Budget) -> AuditResult:
    """A result such as the audit before a release gives."""
    return AuditResult(
        name=name,
        estimate=0.5,
        lower_bound=min(0.25, float(claim.alpha) / 2),
        level=0.999,
        draws=1000,
        search_draws=500,
        pair="all columns end to end; others like the first",
        outcome="score",
        hits=(1, 2),
        claim=claim,
        score="score",
    )
