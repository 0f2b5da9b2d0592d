"""The evidence for models: combined estimates from all releases, for the columns of one release."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.joined import DrawnRelease
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from schemas.plan import Plan
from schemas.plan.synthesis import Synthesis
from tasks.bundle.records import Draws, draws_of_period, synthetic_records
from tasks.inference.fit import answering, unanswered

MOST_RECORDS = 2**16
"""More synthetic records than this would hardly improve a fit."""


def evidence_of(
    plan: Plan, counted: Sequence[DrawnRelease], draws: Draws, formula: str = ""
) -> Evidence:
    """The evidence of the release that answers a model, or else of the one with the most columns.

    Raises ``InputError`` if the bundle has none.
    """
    answers = answering(plan, formula)
    if not answers:
        raise InputError(unanswered(plan))
    release = answers[0]
    found = release.as_measured(draws_of_period(plan, draws)(release.name))
    measured, noisy = found.release, found.noisy
    alike = [each for each in counted if each.release.unit == release.unit]
    known = [(each.agreement, each.release.domain.axes) for each in alike]
    if measured is not release:  # its tables are not among these, so they are added here
        assert noisy is not None
        agreed = measured.agreement(noisy)
        assert agreed is not None
        known.append((agreed, measured.domain.axes))
    agreement = joined(known, measured.domain.axes)
    rows = float(agreement.margin(()).table)
    if rows < 1:
        raise InputError(
            f"{release.name}: the noisy number of records is {rows:.0f}: nothing can be fitted"
        )
    # Reversed, so that the first of several synthetic tables from one release is used.
    drawn = {section.from_: section for section in reversed(plan.synthesis)}
    section = drawn.get(release.name) or Synthesis.model_validate(
        {"name": "records", "from": release.name, "rows": 1}
    )
    records = synthetic_records(plan, section, draws, min(max(round(rows), 1000), MOST_RECORDS))
    facts, alone = (plan.most_together, plan.assumed), {}
    for place, margin in found.alone.items():
        axis = release.domain.axes[place]
        own = Agreement((axis.size,), [margin], agreement.total)
        of = records.codes[:, [place]], {axis.name: records.columns[axis.name]}
        alone[axis.name] = Evidence(Domain((axis,)), own, rows, *of, *facts)
    codes = records.codes.copy()
    for place, group in found.groups.items():
        codes[:, place] = group[codes[:, place]]
    columns = dict(records.columns)
    return Evidence(measured.domain, agreement, rows, codes, columns, *facts, alone)
