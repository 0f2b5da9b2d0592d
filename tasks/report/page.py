"""Assembles the parts of a report to one HTML file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from schemas.bundle.manifest import Manifest
from schemas.documents.terms import cited
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, Column, meaning
from tasks.ledger import HistoryRecord
from tasks.report.audit import draw_audit, in_one_sentence
from tasks.report.cells import category_text
from tasks.report.findings import Findings
from tasks.report.history import history_figure, history_until
from tasks.report.parts import DataTable
from tasks.report.release import (
    analysis_parts,
    release_part,
    sources_of,
    synthetic_parts,
)
from tasks.report.words import in_plain_words, in_short, in_symbols, limits

REPORT = "report.html"
MOST_CATEGORIES = 12

ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("tasks.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def report_page(
    plan: Plan, manifest: Manifest, bundle: Path, history: Iterable[HistoryRecord], found: Findings
) -> str:
    """The report of a bundle as HTML, from its tables, its manifest and the ledger's history."""
    sources = sources_of(plan, manifest, bundle, found.related)
    return render(
        "report.html",
        manifest=manifest,
        publication=plan.publication,
        records=plan.protection.records,
        unit=plan.protection.one,
        citation=cited(manifest, plan.publication),
        findings=found,
        short=in_short(plan, manifest.guarantee),
        words=in_plain_words(plan, manifest.guarantee),
        symbols=in_symbols(plan, manifest.guarantee),
        columns=columns_table(plan),
        releases=[release_part(source) for source in sources.values()],
        synthetic=synthetic_parts(plan, manifest, sources),
        analyses=analysis_parts(plan, manifest, bundle),
        budget=history_figure(history_until(history, manifest.drawn_at)),
        audited=in_one_sentence(manifest.audit),
        audit=draw_audit(manifest.audit, manifest.audit_of_each),
        limits=limits(plan),
    )


def render(template: str, **values: Any) -> str:
    """A page from a template; everything that is not markup of ours is escaped."""
    return ENVIRONMENT.get_template(template).render(**values)


def columns_table(plan: Plan) -> DataTable:
    """One row for each published column, in the plan's order."""
    shown = plan.published_columns
    return DataTable(
        "The published columns. This table is public and was not read from the records"
        f"{plan.protection.except_found}",
        ("Column", "Meaning", "Values"),
        [
            (name, meaning(shown[name]), values(shown[name]))
            for name in plan.columns
            if name in shown
        ],
    )


def values(column: Column) -> str:
    """The categories with their labels, or the bounds with their unit; also null, if values may be
    missing."""
    if isinstance(column, CategoricalColumn):
        shown = [category_text(c, column) for c in column.categories[:MOST_CATEGORIES]]
        more = len(column.categories) - len(shown)
        text = "; ".join([*shown, f"{more} more in codebook.csv"] if more else shown)
    else:
        kind = "whole numbers" if column.type == "integer" else "numbers"
        low, high = (plain(float(bound)) for bound in column.bounds)
        text = f"{kind} from {low} to {high} {column.unit}".rstrip()
        if column.listed is None and column.labels:
            text += "; " + "; ".join(f"{value}: {label}" for value, label in column.labels.items())
        if column.listed is not None:
            text = f"{'; '.join(category_text(level, column) for level in column.listed)} {column.unit}"
    return f"{text}; or null" if column.nullable else text
