"""A plan with the draws of its releases, from a bundle or the ledger, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from dpcore.estimates.evidence import Evidence
from dpcore.estimates.joined import DrawnRelease, counted_releases
from dpcore.line.statistic import Noisy
from schemas.plan import Plan
from tasks.bundle.evidence import evidence_of
from tasks.bundle.records import Draws, draws_of_period
from tasks.inference.fit import Fit, answering, fit
from tasks.inference.measured import fit_measured


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
        for the one with the most columns."""
        answers = answering(self.plan, formula)
        source = answers[0].name if answers else ""
        if source not in self._known:
            self._known[source] = evidence_of(self.plan, self.counted, self.draw, formula)
        return self._known[source]

    def fit(self, formula: str, family: str) -> tuple[str, Fit]:
        """The release that answers a model, and the fit: one that measured it, or else counts.

        Raises ``InputError`` if nothing answers, or the model has no solution.
        """
        if found := fit_measured(self.plan, self.draw, formula, family):
            return found
        made = fit(self.evidence(formula), formula, family)
        return answering(self.plan, formula)[0].name, made
