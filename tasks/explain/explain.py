"""Tables of a plan's cost and expected accuracy, before any data is opened."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from dpcore.accounting.budget import Budget, decimal_text, total
from dpcore.releases.abilities import ColumnSearch
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import tables_of_counts
from dpcore.releases.models.model import models_of
from schemas.plan import Plan
from schemas.plan.searches import search_words
from tasks.explain.analysis import analyses_text
from tasks.explain.least import least_rows
from tasks.explain.records import hardly_met, records_text
from tasks.explain.runs import runs_text, series_text
from tasks.explain.tables import amounts, text_table
from tasks.explain.verdicts import verdict_text, verdicts
from tasks.explain.ways import model_widths, widths_text
from tasks.explain.work import IMPLICATE, implicate_values, work_of, work_text


def cost_rows(plan: Plan) -> list[dict[str, str]]:
    """One row per release: its name, description and cost."""
    return [
        {
            "release": name,
            "kind": plan.section(name).kind,
            "over": plan.section(name).subject,
            "mechanism": plan.section(name).mechanism,
            "numbers": f"{_numbers(release):,}",
            **{c: decimal_text(getattr(plan.prices[name], c)) for c in plan.requested.coordinates},
        }
        for name, release in plan.built.items()
    ]


def error_rows(plan: Plan) -> list[dict[str, str]]:
    """One row per error statement of each release; widths for models are in a separate table."""
    models = models_of(plan.built)
    return [
        {
            "release": name,
            "quantity": error.quantity,
            "value": f"{error.value:.4g}",
            "note": error.note,
        }
        for name, release in plan.built.items()
        if name not in models
        for error in release.expected_error()
    ]


def errors_text(plan: Plan) -> list[str]:
    rows = error_rows(plan)
    return ["Expected error, from privacy noise alone", text_table(rows)] if rows else []


def budget_rows(
    plan: Plan, granted: Budget | None, spent: Budget, refusal: str = ""
) -> tuple[list[dict[str, str]], str]:
    """The dataset's budget before and after the release, and a message if the release would be refused.

    ``granted`` is None if the ledger does not know the dataset; ``refusal``: see
    ``tasks.explain.account``.
    """
    requested = total(plan.prices.values())
    grant = plan.budget.caps if granted is None else granted
    origin = (
        "by the plan; the ledger does not know the dataset yet" if granted is None else "ledger"
    )
    rows = [
        amounts(f"granted ({origin})", grant, grant.coordinates),
        amounts("spent so far", spent, grant.coordinates),
        amounts("this release", requested, grant.coordinates),
    ]
    if not grant.covers(spent + requested):
        alike = grant.coordinates == requested.coordinates  # else the refusal says what to do
        short = "The grant does not cover this release: a run would be refused." * alike
        return rows, "\n".join(filter(None, (short, refusal)))
    return [
        *rows,
        amounts("left afterwards", grant - spent - requested, grant.coordinates),
    ], refusal


def describe_dataset(plan: Plan) -> str:
    """The dataset's public facts in one line."""
    who = plan.protection.who if plan.unit or plan.counts else "one row"
    return (
        f"dataset {plan.dataset}: {plan.protection.records} records, privacy unit: {who},"
        f" neighbours: {plan.neighbours}"
    )


def promises(plan: Plan) -> list[str]:
    """A line on the promise of a release priced in rho, alone and with all others; otherwise empty."""
    if not plan.requested.rho:
        return []
    return [
        f"By itself this release guarantees {plan.promise}. All releases charged to the same grant"
        f" together guarantee {plan.budget.granted.budget}. The table shows the rho of this promise, and"
        " the part of its beta that mechanisms may spend."
    ]


def explain(plan: Plan, granted: Budget | None, spent: Budget, refusal: str = "") -> str:
    """The explanation as text.  ``granted`` is None if the ledger does not know the dataset."""
    from dpcore.audit.short import duration

    budget, verdict = budget_rows(plan, granted, spent, refusal)
    grant = plan.budget.caps if granted is None else granted
    left = grant - spent if grant.covers(spent) else Budget()
    return "\n".join(
        [
            f"{plan.publication.title}",
            describe_dataset(plan),
            "",
            *verdict_text(plan),
            *records_text(plan),
            *hardly_met(plan),
            "",
            "What each release costs (alpha is epsilon, beta is delta)",
            text_table(cost_rows(plan)),
            "",
            "Budget of the dataset",
            text_table(budget),
            *promises(plan),
            *series_text(plan),
            f"The grant covers {runs_text(plan, left, datetime.now(UTC))}.",
            f"{duration(plan.built.values()).capitalize()}.",
            work_text(plan),
            *unused_text(plan),
            *known_text(plan),
            *search_words(plan),
            verdict + "\n" * bool(verdict),
            *errors_text(plan),
            *analyses_text(plan),
            *widths_text(plan),
            *least_text(plan),
            *implicates_text(plan),
        ]
    )


def explanation(
    plan: Plan, granted: Budget | None, spent: Budget, refusal: str = ""
) -> dict[str, Any]:
    """The costs, errors and work of a plan as JSON values; budgets are exact, as text.

    ``left``: the budget afterwards; null if the grant does not cover the release.  ``widths``: of
    intervals, relative to intervals without noise; null if an interval does not exist.
    """
    grant = plan.budget.caps if granted is None else granted
    requested = total(plan.prices.values())
    left = grant - spent - requested if grant.covers(spent + requested) else None
    budget = {"granted": grant, "spent": spent, "requested": requested, "left": left}

    def exact(budget: Budget) -> dict[str, str]:
        return {name: str(getattr(budget, name)) for name in grant.coordinates}

    return {
        "dataset": plan.dataset,
        "releases": [
            {
                **row,
                "numbers": _numbers(release),
                **exact(plan.prices[row["release"]]),
                "errors": {e.quantity: e.value for e in release.expected_error()},
                "work": asdict(release.work),
            }
            for row, release in zip(cost_rows(plan), plan.built.values(), strict=True)
        ],
        "budget": {name: each and exact(each) for name, each in budget.items()},
        "granted_by": "plan" if granted is None else "ledger",
        "refused": budget_rows(plan, granted, spent, refusal)[1],
        "work": asdict(work_of(plan)),
        "verdicts": [
            {
                "name": v.name,
                "verdict": v.says,
                "error": v.words,
                # Null if no amount makes it good; then `rough_from` may state the amount for rough.
                "good_from": None,
                f"{v.aim}_from": v.enough and str(v.enough),
            }
            for v in verdicts(plan)
        ],
        "models": [
            {
                "formula": each.formula,
                "family": each.family,
                "way": each.taken,
                "widths": {way: w if isfinite(w) else None for way, w in each.widths.items()},
            }
            for each in model_widths(plan)
        ],
    }


def _numbers(release: Release) -> int:
    """The number of noisy values."""
    # A search adds noise to the count of every possible text, but publishes at most these.
    if isinstance(release, ColumnSearch):
        return sum(domain.size for domain in release.domains)
    return int(getattr(release.mechanism, "numbers", release.mechanism.size))


def unused_text(plan: Plan) -> list[str]:
    """A line on columns that no release uses; empty if there are none."""
    unused = [name for name in plan.unused if name not in plan.design_columns]
    return [f"Columns in no release: {', '.join(unused)}."] if unused else []


def known_text(plan: Plan) -> list[str]:
    """A line on releases that measure only the number of records, although it is public."""
    known = [
        release.name
        for release in tables_of_counts(plan.built).values()
        if release.domain.size == 1
        and release.adjacency.public_rows
        and not release.adjacency.weighted
    ]
    says = "All records are in one cell, so its count is public, but a share of the budget is spent"
    return [f"{says} to publish it with noise in {', '.join(known)}."] if known else []


def implicates_text(plan: Plan) -> list[str]:
    """Lines on the largest size of files of implicates, and on their processor time."""
    lines = []
    for table in plan.synthesis:
        if table.implicates:
            values = implicate_values(plan, table)
            lines.append(
                f"{table.name}: {table.implicates} implicates, a file of at most {8 * values / 1e6:.3g}"
                f" MB, which takes about {IMPLICATE * values:.2g} of the processor seconds above; no"
                " budget is spent."
            )
    return ["", *lines] if lines else []


def least_text(plan: Plan) -> list[str]:
    """Lines on the distance from the least possible errors; empty if none is known."""
    heading = (
        "Smallest possible errors with the same promise. Least: the smallest error in the worst case. On"
        " every table: the error that a mechanism must have on every table if its worst case is at most"
        " the expected error"
    )
    rows = least_rows(plan)
    return ["", heading, text_table(rows)] if rows else []
