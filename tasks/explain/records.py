"""Finds synthetic records that would be more accurate if drawn from a histogram of all their columns."""

from __future__ import annotations

from collections.abc import Iterator

from dpcore.advice.records import CLEARLY, record_distances
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.microdata import Microdata
from schemas.plan import Plan
from schemas.releases.histogram import HistogramSection
from schemas.releases.microdata import MicrodataSection


def records_text(plan: Plan) -> Iterator[str]:
    """A line for each release from which records are drawn, if a histogram is better for them."""
    for i, section in enumerate(plan.releases):
        drawn = any(table.from_ == section.name for table in plan.synthesis)
        release = plan.built[section.name]
        if not (drawn and isinstance(section, MicrodataSection) and isinstance(release, Microdata)):
            continue
        # Records of two columns follow their only table, whatever release it is in.
        if plan.linked or plan.series or len(release.domain.axes) < 3:
            continue
        keys = {"kind": "histogram", "name": section.name, "columns": section.columns}
        histogram = HistogramSection.model_validate(keys | {"bins": section.bins})
        joint = plan.release(histogram, plan.shares[i])
        assert isinstance(joint, Histogram)
        ours, theirs = record_distances(release), record_distances(joint)
        if ours and theirs and theirs[3] < CLEARLY * ours[3]:
            yield (
                f"{section.name}: draw the records from a histogram instead, because all columns"
                f" together have only {joint.domain.size} cells. In a simulation about {theirs[3]:.1%}"
                " of the records are then in a wrong cell of a table of three columns, and"
                f" {ours[3]:.1%} if drawn from this release."
            )
