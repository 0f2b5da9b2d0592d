"""Steps that tally a plan's releases and draw each noisy statistic across the privacy line.

Between the two steps, the tallies are files in the private workspace, so that the draws can run in any
order, in parallel and in other processes:

    survey --tally--> WORKSPACE/tallies/NAME.npy --statistic, privacy line--> ledger
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from dpcore.domain.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.words import in_words
from dpcore.errors import LedgerError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import JudgesRecords, StoredInPart
from dpcore.releases.models.model import MeasuredModel, models_of
from dpcore.sampling.source import RandomSource, SystemSource
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, Invalid
from tasks.ledger import ChargeRecord, Ledger, State
from tasks.survey.found import tally_texts
from tasks.survey.reading import Survey
from tasks.survey.tally import Counting, tallies
from tasks.workplace.home import ledger_url, private_folder
from tasks.workplace.job import ReleaseJob
from tasks.workplace.step import step


@step("tally")
def tally_survey(job: ReleaseJob, names: Sequence[str], survey: Survey, workspace: Path) -> Path:
    """Tally the survey for the named releases; returns the private folder that holds the tallies.

    Raises ``LedgerError`` if the budget of one of them is not reserved.
    """
    for name in names:
        _require_reserved(job, name)
    folder = private_folder(workspace / "tallies")
    for name, tally in tally_releases(job.plan, names, survey).items():
        np.save(folder / f"{name}.npy", np.vstack([tally.cells.T, tally.counts]))
    return folder


def tally_releases(plan: Plan, names: Sequence[str], survey: Survey) -> dict[str, Tally]:
    """The private tallies of the named releases: counts of records, or of steps of weight."""
    found: dict[str, Tally] = {}
    for name in (name for name in names if plan.section(name).finds):
        found[name] = _searched(plan, name, survey)
    for name, release in models_of(plan.built).items():
        if name in names and release.counts_units:
            found[name] = _units(plan, release, survey)
    others = [plan.section(name) for name in names if name not in found]
    for weighted in (False, True):
        if chosen := [section.name for section in others if section.counts_weights == weighted]:
            facts = plan.facts.weighted if weighted else plan.facts
            domains = [plan.built[name].domain for name in chosen]
            how = replace(
                _counting(plan, facts.adjacency),
                rows=facts.rows,
                weights=facts.weights if weighted else None,
                periods=plan.series.bound(plan.columns) if plan.series else None,
                linked=plan.linked,
            )
            counted = tallies(survey, domains, how)
            found |= dict(zip(chosen, counted, strict=True))
    return found


def _units(plan: Plan, release: MeasuredModel, survey: Survey) -> Tally:
    """The private tally of units for a model with weights, strata, or several records per unit."""
    how = replace(_counting(plan, release.adjacency), weights=plan.weights, design=release.design)
    (tally,) = tallies(survey, [release.domain], how)
    return tally


def _searched(plan: Plan, name: str, survey: Survey) -> Tally:
    """The private tally of one record of each unit, from which categories or bounds are found."""
    column, search = plan.section(name).finds, plan.built[name]
    if isinstance(plan.columns[column], CategoricalColumn):
        return tally_texts(survey, column, search.domain, search.most_rows, plan.unit, plan.counts)
    unit = plan.unit.model_copy(update={"max_rows": 1}) if plan.unit else None
    # A number that is not finite counts as null, because it lies in no range.
    rule: Invalid = "refuse" if plan.invalid == "refuse" else "own-cell"
    how = replace(_counting(plan, search.adjacency), unit=unit, columns={}, invalid=rule)
    (tally,) = tallies(survey, [search.domain], how)
    return tally


def _counting(plan: Plan, adjacency: Adjacency) -> Counting:
    return Counting(
        plan.rows, adjacency, plan.unit, None, plan.read_columns, plan.invalid, counts=plan.counts
    )


@step("draw", run_name="{title}")
def draw(
    job: ReleaseJob,
    name: str,
    title: str,
    tallied: Path,
    source: RandomSource | None = None,
) -> None:
    """Draw the noisy statistic of one release, once, and commit it to the ledger.

    ``title`` is the run's name in Prefect; ``tallied`` is the private folder of the tallies.
    ``source`` is for tests; production draws from the operating system.  Raises ``LedgerError`` if
    the release's budget is not reserved.
    """
    charge = _require_reserved(job, name)
    if charge.state is State.COMMITTED:
        return
    built = job.plan.built
    release = job.plan.counting(built[name], built, partial(_drawn, job))
    if isinstance(release, JudgesRecords):
        release = release.judging(_read_tally(tallied / records_file(name), release.domain))
    exact = release.statistic(_read_tally(tallied / f"{name}.npy", release.domain))
    noisy = perturb(exact, release.mechanism, release.share, source or SystemSource())
    if isinstance(release, StoredInPart):
        noisy = release.stored_part(noisy)
    Ledger(ledger_url()).commit(job.dataset, job.release_id, name, noisy)


def _drawn(job: ReleaseJob, name: str) -> Noisy:
    noisy = Ledger(ledger_url()).committed(job.dataset, job.release_id, name)
    assert noisy is not None  # records were already made of it
    return noisy


def records_file(name: str) -> str:
    """The file with the records whose quality a release measures; it is next to the release's tally."""
    return f"{name}.records.npy"


def _require_reserved(job: ReleaseJob, name: str) -> ChargeRecord:
    """The charge of a release; raises ``LedgerError`` if it is not reserved, before its data is read."""
    charge = Ledger(ledger_url()).release(job.dataset, job.release_id).get(name)
    if charge is None or charge.state not in (State.RESERVED, State.COMMITTED):
        raise LedgerError(f"{name}: its budget is not reserved, so its data may not be read")
    price = job.plan.prices[name]
    if charge.budget != price:
        raise LedgerError(
            f"{name}: the ledger reserved {charge.budget}, but the plan now asks for {price}; run the"
            " plan as it was reserved, or use another --release-id"
        )
    return charge


def _read_tally(path: Path, domain: Domain) -> Tally:
    *words, counts = np.load(path, allow_pickle=False)
    return Tally(domain, in_words(np.stack(words)), counts)
