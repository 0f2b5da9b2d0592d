"""One release on the page: its description, cost, errors and charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpcore.accounting.budget import decimal_text
from dpcore.estimates.joined import counted_releases
from dpcore.releases.base import Chart
from dpcore.releases.counts.unit import BEST
from schemas.bundle.manifest import Manifest, ReleaseRecord, SynthesisRecord
from schemas.bundle.table_file import TableFile
from schemas.bundle.verdicts import judged
from schemas.plan import Plan
from schemas.plan.synthesis import Synthesis
from schemas.releases.base import ReleaseSection
from tasks.charts.svg import figure
from tasks.report.analyses import MODELS, draw_analysis, draw_coefficients
from tasks.report.counts import draw_counts
from tasks.report.curves import draw_curves, draw_mean_curves
from tasks.report.density import draw_curve
from tasks.report.machines import draw_features, draw_predictions
from tasks.report.numbers import (
    draw_criteria,
    draw_cumulative,
    draw_estimates,
    draw_levels,
    draw_number,
    draw_rows,
    draw_values,
)
from tasks.report.parts import DataTable, Drawn, Source
from tasks.report.regions import draw_regions
from tasks.report.series import draw_series
from tasks.report.synthetic import draw_synthetic

CHARTS: Mapping[Chart, Callable[[Source], Drawn]] = {
    "cells": draw_counts,
    "regions": draw_regions,
    "curve": draw_curve,
    "curves": draw_curves,
    "mean-curves": draw_mean_curves,
    "features": draw_features,
    "predictions": draw_predictions,
    "number": draw_number,
    "values": draw_values,
    "levels": draw_levels,
    "cumulative": draw_cumulative,
    "series": draw_series,
    "estimates": draw_estimates,
    "coefficients": draw_coefficients,
    "criteria": draw_criteria,
}

MOST_FILES = 3


@dataclass(frozen=True)
class ReportPart:
    """A release or a synthetic table on the page."""

    anchor: str
    heading: str
    lead: str
    drawn: Drawn
    errors: DataTable | None
    files: Sequence[TableFile]
    hidden_files: int

    def folded(self, charts: int, whole: bool) -> str:
        """The line that unfolds a part: the number of hidden charts, and of files if ``whole``."""
        numbers = (charts, "chart"), (len(self.drawn.tables), "table")
        files = len(self.files) + self.hidden_files
        named = [f"{n:,} {what}{'s' * (n > 1)}" for n, what in numbers if n]
        named += ["expected error"] if self.errors else []
        named += ["what the records follow"] if self.drawn.details else []
        named += [f"{files:,} file{'s' * (files > 1)}"] if whole else []
        return ", ".join(named).capitalize()


def sources_of(
    plan: Plan, manifest: Manifest, bundle: Path, related: Mapping[frozenset[str], float]
) -> dict[str, Source]:
    """The releases by name, in the plan's order; ``related``: as in ``Source``."""
    sources = {each.name: Source(plan, each, bundle, related) for each in manifest.releases}
    if not any(BEST[0] in file.columns for each in manifest.releases for file in each.tables):
        return sources  # no two releases share a table
    draws = {name: source.noisy for name, source in sources.items()}
    counted = counted_releases(plan.of_period, draws)
    return {name: replace(source, counted=counted) for name, source in sources.items()}


def release_part(source: Source) -> ReportPart:
    """One release on the page."""
    record = source.record
    section, chart = source.plan.section(record.name), source.release.chart
    price = ", ".join(
        f"{name} {_about(getattr(record, name))}"
        for name in ("alpha", "rho", "beta", "gamma")
        if getattr(record, name)
    )
    return ReportPart(
        f"release-{record.name}",
        headed(section),
        f"{section.words}: {record.title}. Release {record.name}, by the mechanism {record.mechanism},"
        f" at {price}.",
        CHARTS[chart](source) if chart else draw_rows(source),
        error_table(record),
        record.files[:MOST_FILES],
        max(len(record.files) - MOST_FILES, 0),
    )


def headed(section: ReleaseSection | Synthesis) -> str:
    """The heading from the plan, or the name as a heading: ``Marriage and affairs``."""
    return section.title or section.name.replace("-", " ").capitalize()


def error_table(record: ReleaseRecord) -> DataTable:
    """A table of the errors expected before the draw."""
    added = "; L1: sum of the absolute errors of all cells"
    notes = record.error_notes
    return DataTable(
        f"Expected error of {record.name} by itself, from privacy noise alone. Errors of a count are"
        " for one cell; a sum of cells has a larger error"
        + (added if any("L1" in quantity for quantity in record.errors) else ""),
        ("Quantity", "Value", *(["Note"] if notes else [])),
        [
            (quantity, figure(value), *([notes.get(quantity, "")] if notes else []))
            for quantity, value in record.errors.items()
        ],
    )


def synthetic_parts(
    plan: Plan, manifest: Manifest, sources: Mapping[str, Source]
) -> list[ReportPart]:
    """One part for each synthetic table."""
    sections = {section.name: section for section in plan.synthesis}
    verdicts = judged(manifest)
    return [
        ReportPart(
            f"synthetic-{record.name}",
            headed(sections[record.name]),
            f"{record.name}: {record.file.rows:,} synthetic records of"
            f" {len(record.file.columns)} columns{_and_members(record)}, drawn from the release"
            f" {record.source}. They cost no further budget. {verdicts.get(record.name, '')}".rstrip(),
            draw_synthetic(record, sources[record.source]),
            None,
            record.listed,
            0,
        )
        for record in manifest.synthesis
    ]


def analysis_parts(plan: Plan, manifest: Manifest, bundle: Path) -> list[ReportPart]:
    """One part for each model."""
    kinds = {each.name: each.kind for each in manifest.releases}
    return [
        ReportPart(
            f"analysis-{record.name}",
            record.title,
            f"{MODELS[record.family][0]} {record.formula}, from the noisy "
            + {
                "moments": f"moments of {record.source}",
                "model": f"scores of {record.source}",
            }.get(
                kinds.get(record.source, ""),
                f"tables of {record.source} and of all releases that count the same",
            )
            + ". It costs no further budget.",
            draw_analysis(record, bundle, plan.described_columns),
            None,
            [record.file],
            0,
        )
        for record in manifest.analyses
    ]


def _and_members(record: SynthesisRecord) -> str:
    return f", and {record.members.rows:,} of their members" if record.members else ""


def _about(amount: Fraction) -> str:
    """An amount in a sentence: exact if it is a short decimal, otherwise with three digits."""
    text = decimal_text(amount)
    return f"about {float(text[:-1]):.3g}" if text.endswith("…") else text
