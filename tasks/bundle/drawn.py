"""A plan with the draws of its releases, from a bundle or the ledger, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.joined import DrawnRelease, counted_releases
from dpcore.line.statistic import Noisy
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.releases.counts.unit import TableOfCounts
from schemas.plan import Plan
from schemas.plan.synthesis import Synthesis
from tasks.bundle.records import draws_of_period, synthetic_records
from tasks.inference.fit import Fit, answering, fit, unanswered
from tasks.inference.measured import Draws, fit_measured

MOST_RECORDS = 2**16
"""More synthetic records than this would hardly improve a fit."""


@dataclass(frozen=True, eq=False)
class DrawnPlan:
    """``draw``: the noisy statistic of a release by its name, as it was drawn."""

    plan: Plan
    draw: Draws
    _known: dict[str, Evidence] = field(default_factory=dict, init=False, repr=False)

    def of_period(self, name: str) -> Noisy:
        """The draw as one of ``Plan.of_period``, from which records are made."""
        return draws_of_period(self.plan, self.draw)(name)

    @cached_property
    def counted(self) -> list[DrawnRelease]:
        """All releases of counts with their draws."""
        draws = {name: self.of_period(name) for name in self.plan.built}
        return counted_releases(self.plan.of_period, draws)

    def evidence(self, formula: str = "") -> Evidence:
        """Consistent tables, and records that follow them, for the release that answers a model, or else
        for the one with the most columns.

        Raises ``InputError`` if no release answers.
        """
        answers = answering(self.plan, formula)
        if not answers:
            raise InputError(unanswered(self.plan))
        release = answers[0]
        if release.name not in self._known:
            self._known[release.name] = self._evidence(release)
        return self._known[release.name]

    def _evidence(self, release: TableOfCounts) -> Evidence:
        found = release.as_measured(self.of_period(release.name))
        measured, noisy = found.release, found.noisy
        alike = [each for each in self.counted if each.release.unit == release.unit]
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
        drawn = {section.from_: section for section in reversed(self.plan.synthesis)}
        section = drawn.get(release.name) or Synthesis.model_validate(
            {"name": "records", "from": release.name, "rows": 1}
        )
        number = min(max(round(rows), 1000), MOST_RECORDS)
        records = synthetic_records(self.plan, section, self.draw, number)
        facts, alone = (self.plan.most_together, self.plan.assumed), {}
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

    def fit(self, formula: str, family: str) -> tuple[str, Fit]:
        """The release that answers a model, which measured it or else counts records, and the fit.

        Raises ``InputError`` if nothing answers, or the model has no solution.
        """
        if found := fit_measured(self.plan, self.draw, formula, family):
            return found
        made = fit(self.evidence(formula), formula, family)
        return answering(self.plan, formula)[0].name, made
