"""One release as a part of the page: what it is, what it cost, how wrong it may be, its charts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpcore.budget import decimal_text
from schemas.bundle import Manifest, ReleaseRecord, TableFile
from schemas.plan import Plan
from tasks.report.counts import draw_counts
from tasks.report.density import draw_density, draw_function
from tasks.report.machines import draw_classifier, draw_regression
from tasks.report.numbers import draw_count, draw_mean, draw_near_records, draw_quantiles
from tasks.report.parts import DataTable, Drawn, Source
from tasks.report.svg import figure
from tasks.report.synthetic import draw_synthetic

DRAWERS: Mapping[str, Callable[[Source], Drawn]] = {
    "histogram": draw_counts,
    "margins": draw_counts,
    "microdata-margins": draw_counts,
    "density": draw_density,
    "function": draw_function,
    "classifier": draw_classifier,
    "regression": draw_regression,
    "sampled-histogram": draw_counts,
    "count": draw_count,
    "mean": draw_mean,
    "quantiles": draw_quantiles,
    "near-records": draw_near_records,
}
"""How each kind is drawn; of any other kind the error statements and files are shown."""

MOST_FILES = 3


@dataclass(frozen=True)
class Part:
    """A release or a synthetic table on the page."""

    anchor: str
    heading: str
    lead: str
    drawn: Drawn
    errors: DataTable | None
    files: Sequence[TableFile]
    hidden_files: int


def release_parts(plan: Plan, manifest: Manifest, bundle: Path) -> list[Part]:
    """One part for each release, in the plan's order."""
    return [_release(Source(plan, record, bundle)) for record in manifest.releases]


def _release(source: Source) -> Part:
    record = source.record
    drawer = DRAWERS.get(record.kind)
    price = ", ".join(
        f"{name} {_about(getattr(record, name))}"
        for name in ("alpha", "beta", "gamma")
        if getattr(record, name)
    )
    return Part(
        f"release-{record.name}",
        record.name,
        f"{record.kind.capitalize()}: {record.title}. Mechanism {record.mechanism}, at {price}.",
        drawer(source) if drawer else Drawn(),
        error_table(record),
        record.files[:MOST_FILES],
        max(len(record.files) - MOST_FILES, 0),
    )


def error_table(record: ReleaseRecord) -> DataTable:
    """What was known of the errors before the draw."""
    added = "; L1: absolute errors of all cells, added up"
    return DataTable(
        f"Expected error of {record.name}, from privacy noise alone"
        + (added if any("L1" in quantity for quantity in record.errors) else ""),
        ("Quantity", "Value"),
        [(quantity, figure(value)) for quantity, value in record.errors.items()],
    )


def synthetic_parts(plan: Plan, manifest: Manifest, bundle: Path) -> list[Part]:
    """One part for each synthetic table."""
    releases = {record.name: record for record in manifest.releases}
    return [
        Part(
            f"synthetic-{record.name}",
            record.name,
            f"{record.file.rows:,} synthetic records of {len(record.file.columns)} columns, drawn"
            f" from the release {record.source}. They cost nothing more.",
            draw_synthetic(record, Source(plan, releases[record.source], bundle)),
            None,
            [record.file, record.support],
            0,
        )
        for record in manifest.synthesis
    ]


def _about(amount: Fraction) -> str:
    """An amount in a sentence: three digits where it is no short decimal."""
    text = decimal_text(amount)
    return f"about {float(text[:-1]):.3g}" if text.endswith("…") else text
