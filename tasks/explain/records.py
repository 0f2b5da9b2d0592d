"""Finds synthetic records that a histogram would make more accurate, and criteria that they will hardly
meet."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from dpcore.advice.records import CLEARLY, record_distances
from dpcore.advice.usable import graded_distances
from dpcore.releases.abilities import JudgesRecords
from dpcore.releases.tables.criteria import Distance
from schemas.plan import Plan
from schemas.releases.histogram import HistogramSection
from schemas.releases.microdata import MicrodataSection
from tasks.explain.analysis import supposed_shares

FAR = 1 / 3
"""A limit below this fraction of the expected distance, which is an upper bound, will hardly be met."""


def records_text(plan: Plan) -> Iterator[str]:
    """A line for each release of synthetic records for which one histogram would be more accurate."""
    for i, section in enumerate(plan.releases):
        drawn = any(table.from_ == section.name for table in plan.synthesis)
        release = plan.built[section.name]
        if not (drawn and isinstance(section, MicrodataSection)):
            continue
        # Records of two columns follow their only table, whatever release it is in.
        if plan.linked or plan.series or len(release.domain.axes) < 3:
            continue
        if (ours := record_distances(release)) is None:
            continue
        keys = {"kind": "histogram", "name": section.name, "columns": section.columns}
        histogram = HistogramSection.model_validate(keys | {"bins": section.bins})
        joint = plan.release(histogram, plan.shares[i])
        theirs = record_distances(joint)
        if theirs and theirs[3] < CLEARLY * ours[3]:
            yield (
                f"{section.name}: draw the records from a histogram instead, because all columns"
                f" together have only {joint.domain.size} cells. In a simulation about {theirs[3]:.1%}"
                " of the records are then in a wrong cell of a table of three columns, and"
                f" {ours[3]:.1%} if drawn from this release."
            )


def hardly_met(plan: Plan) -> Iterator[str]:
    """A line for each limit of a distance that is far below the expected error of the records."""
    for judge in plan.built.values():
        if not isinstance(judge, JudgesRecords):
            continue
        name = next(table.from_ for table in plan.synthesis if table.name == judge.of)
        source = plan.built[name]
        shares = supposed_shares(plan, source.domain)
        for each in judge.criteria:
            if not isinstance(each, Distance) or any(len(names) < 2 for names in each.sets):
                continue
            own = () if len(each.sets) > 1 else each.sets
            graded = graded_distances(source, shares, own)
            expected = min(median(apart for apart, _ in graded), 1.0) if graded else 0.0
            if each.at_most < FAR * expected:
                yield (
                    f"{judge.name}: {judge.of} will hardly meet the limit {each.at_most:g} of the"
                    f" {each.words}: up to {expected:.2g} is expected in a table of {name}."
                )
