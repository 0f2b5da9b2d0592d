"""A model measured directly: coefficients with their errors from sampling and from noise.

The rounds are those of ``scores``.  The last Newton step starts near the solution, so to first order

    estimate - solution of the survey = inverse (noise of the scores + noise of the curvature * step)

whose covariance is the privacy part.  The sampling part is inverse * meat * inverse, with the measured
variance ``meat`` of scores of units (Huber 1967; Binder 1983), so that it needs no assumption on
residuals, or on how similar the records of a unit are.  What clipping
takes from scores is estimated from their lengths, which are counted; half of it is one more standard
error in every direction.  Where noise may change the information on a coefficient by the part b, its
errors are divided by sqrt(1 - b); from ``MOST_BLUR`` on it has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.models.design import SIMPLE, SurveyDesign
from dpcore.releases.models.scores import Family, ScorePoint
from dpcore.releases.models.steps import LEAST, ModelScores
from dpcore.releases.models.terms import ModelTerms
from dpcore.releases.table import (
    Published,
    Table,
    TableColumn,
    Uncertainty,
    reason_column,
    unless,
)
from dpcore.releases.work import Work, publishing

MOST_BLUR = 0.9

MOST_LEAST = 0.6
"""From this part of the usual curvature on, the least that noise leaves makes steps too short."""

FAR = 3.0
"""Times its expected length, what a last step is beyond is an error."""

HIDDEN = "noise hides how much the records say of this term: there may be too few of a kind"

STATED = (
    "Sampling and noise together, to first order and by the normal law; the interval is for {}, and"
    " holds it 19 times in 20 where the model is right. Sampling errors suppose that {}. The error"
    " includes an estimate of what the cutting of very large residuals moves. Not included: records with"
    " unusual terms count less, which moves coefficients where the model is wrong; a value beyond a"
    " bound, where the plan clamps, counts as the bound, and one on a grid as the middle of its cell"
)

SCORED = 2e-8
"""Seconds for each record, pair of terms and round."""


class ModelFit(NamedTuple):
    """Coefficients (p,) in the order of the formula's terms, and the parts (p, p) of their covariance;
    infinite errors where there are none."""

    values: Floats
    sampling: Floats
    privacy: Floats
    hidden: Booleans


@dataclass(frozen=True)
class MeasuredModel(Release):
    """``terms``: what the formula makes of the columns of a record; ``formula``: as it was written;
    ``design``: how a cell of the domain is one unit of the survey."""

    finer = "fewer terms, or categories with more records"
    chart = "coefficients"

    formula: str = ""
    family: Family = "gaussian"
    terms: ModelTerms | None = None
    design: SurveyDesign = SIMPLE

    @cached_property
    def _unpriced(self) -> ModelScores:
        assert self.terms is not None
        return ModelScores(self.terms, self.family, self.rows, self.adjacency, design=self.design)

    @cached_property
    def scores(self) -> ModelScores:
        return replace(self._unpriced, stddev=self._noise.stddev)

    @cached_property
    def _noise(self) -> DiscreteGaussian:
        laws = self._unpriced.laws
        size, squared = (
            sum(width for width, _ in laws),
            sum((each for _, each in laws), Fraction(0)),
        )
        return DiscreteGaussian.within(self.share, size, squared)

    @cached_property
    def mechanism(self) -> GaussianRounds:
        law = self._noise.size, self._noise.l2_sensitivity_squared, self._noise.variance
        return GaussianRounds(*law, self.domain, self.scores.laws, self)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._unpriced.largest

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def records_of(self, tally: Tally) -> Any:
        return self.scores.records_of(tally)

    def first_point(self, times: int) -> ScorePoint:
        return self.scores.first_point(times)

    def next_point(self, point: ScorePoint, noisy: Integers) -> ScorePoint:
        return self.scores.next_point(point, noisy)

    def at(self, records: Any, point: ScorePoint) -> Integers:
        most = self.largest_statistic
        return np.clip(self.scores.at(records, point), -most, most)

    def fitted(self, noisy: Noisy) -> ModelFit:
        """The coefficients of the formula's terms."""
        return self._of(*self._ends(noisy))

    def _ends(self, noisy: Noisy) -> tuple[ScorePoint, ScorePoint]:
        """Where the last scores were measured, and where they led."""
        point = before = self.first_point(1)
        for sums in self.mechanism.by_round(noisy.values[None, :]):
            before, point = point, self.next_point(point, sums)
        return before, point

    def _of(self, before: ScorePoint, point: ScorePoint) -> ModelFit:
        assert self.terms is not None
        unit = math.sqrt(point.spread[0]) / point.slope[0]
        inverse, step, size = point.inverse[0], point.moved[0], len(point.moved[0])
        noise = float(self.scores.per_step("scores", before)[0]) * self._noise.stddev
        blur, tail = float(point.blur[0]), float(point.tail[0]) / 2
        privacy = (noise**2 + tail**2 + blur**2 / 2 * (step @ step)) * np.eye(size)
        privacy += blur**2 / 2 * np.outer(step, step)
        back = (
            self.terms.basis[0] @ point.white[0]
        )  # from the whitened basis to the formula's terms
        out = unit * back @ inverse
        spread = np.sum((back @ inverse) * back, axis=1)
        doubt = blur * np.sum((back @ inverse) ** 2, axis=1) / np.maximum(spread, 1e-300)
        values, wider = self.terms.basis[0] @ point.theta[0], np.maximum(1 - doubt, 1e-9) ** -0.5
        covariances = [out @ each @ out.T for each in (point.meat[0], privacy)]
        both = np.outer(wider, wider)
        if self.family != "gaussian":
            # A last step much longer than its noise: the one before had not come near the solution.
            usual = np.trace(inverse @ (point.meat[0] + noise**2 * np.eye(size)) @ inverse)
            far = max(1 - FAR**2 * usual / float(step @ step + 1e-300), 0.0)
            moved = unit * back @ step
            covariances[1] += far * np.outer(moved, moved)
        # What is not known of the information is known because of noise.
        covariances[1] = (covariances[0] + covariances[1]) * both - covariances[0]
        values, (sampling, privacy) = self._rescaled(values, covariances)
        # Steps come near only where their lengths are known.
        unknown = LEAST * math.sqrt(size) * blur >= MOST_LEAST * float(point.rows[0])
        hidden = (doubt >= MOST_BLUR) | unknown
        return ModelFit(values, sampling, privacy, hidden)

    def _rescaled(self, values: Floats, covariances: list[Floats]) -> tuple[Floats, list[Floats]]:
        """In the units of the response, which is scaled where sums are taken."""
        assert self.terms is not None
        middle, half = self.terms.scale
        moved = values * half
        if self.terms.constant is not None:
            moved[self.terms.constant] += middle
        return moved, [each * half**2 for each in covariances]

    def publish(self, noisy: Noisy) -> Published:
        assert self.terms is not None
        before, point = self._ends(noisy)
        found = self._of(before, point)
        facts = {
            "formula": self.formula,
            "family": self.family,
            "clipped_at": float(before.radius[0]),
        }
        rows = float(point.rows[0])
        if self.design.steps:
            facts["population"] = rows * self.design.usual * self.design.step
        else:
            facts["records"] = rows
        if self.design.simple:
            apart = float(point.spread[0] * np.trace(point.meat[0])) / (len(found.values) * rows)
            facts["residual_variance"] = apart * self.terms.scale[1] ** 2
        return Published((self._table(found), self._covariances(found)), facts)

    def _table(self, found: ModelFit) -> Table:
        assert self.terms is not None
        sampling, privacy = (np.sqrt(np.diag(each)) for each in (found.sampling, found.privacy))
        error = np.hypot(sampling, privacy)
        columns = [TableColumn("term", np.array(self.terms.names), "Term of the formula")]
        for name, values, text in (
            ("estimate", found.values, "Estimated coefficient"),
            ("standard_error", error, "Its standard error, of sampling and of noise together"),
            (
                "sampling_error",
                sampling,
                "Its part from sampling, as the survey itself would have it",
            ),
            ("privacy_error", privacy, "Its part from the noise that protects privacy"),
            ("lower_95", found.values - SIGMAS_95 * error, "Lower end of a 95% interval"),
            ("upper_95", found.values + SIGMAS_95 * error, "Upper end of a 95% interval"),
        ):
            columns.append(TableColumn(name, unless(found.hidden, values), text))
        columns.append(reason_column(found.hidden, HIDDEN))
        stated = Uncertainty(
            "estimate", "standard_error", ("lower_95", "upper_95"), "normal", self.statement
        )
        return Table("tables", self.name, columns, (stated,))

    def _covariances(self, found: ModelFit) -> Table:
        assert self.terms is not None
        first, second = np.triu_indices(len(found.values))
        names, hidden = np.array(self.terms.names), found.hidden[first] | found.hidden[second]
        columns = [
            TableColumn("term", names[first], "Term of the formula"),
            TableColumn("other", names[second], "The same or another term"),
        ]
        for name, each in (("sampling", found.sampling), ("privacy", found.privacy)):
            text = f"Covariance of both coefficients, its part from {name}"
            columns.append(TableColumn(name, unless(hidden, each[first, second]), text))
        known = (
            "Estimated to first order from the noisy sums; the square roots are the errors of terms"
        )
        stated = (
            Uncertainty(name, None, None, "normal", known) for name in ("sampling", "privacy")
        )
        return Table("tables", f"{self.name}.covariance", columns, tuple(stated))

    @property
    def statement(self) -> str:
        """What the stated errors are about."""
        return f"{STATED.format(self.design.population, self.design.drawn)}."

    @property
    def work(self) -> Work:
        assert self.terms is not None
        seen, pairs = min(self.rows, self.domain.size), self.terms.size**2 + sum(self.design.sizes)
        return Work(SCORED * seen * pairs * len(self.scores.rounds), 64 * seen) + publishing(pairs)

    @cached_property
    def width_ratio(self) -> float:
        """About how many times as wide intervals are as those of the survey itself, if no scores are
        longer than most are."""
        scores, point = self.scores, self.first_point(1)
        last = replace(
            point, number=len(scores.rounds) - 1, radius=np.array([scores.radii["shortest"]])
        )
        noise = float(scores.per_step("scores", last)[0]) * self._noise.stddev
        middle = replace(last, number=last.number - 1)
        blur = float(scores.per_step("curvature", middle)[0]) * self._noise.stddev / self.rows
        doubt = min(blur * math.sqrt(scores.terms.size), MOST_BLUR)
        sampling = self.rows * (2 if self.design.steps else 1)
        return math.sqrt(1 + noise**2 / sampling) / math.sqrt(1 - doubt)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return (
            ErrorStatement(
                "width of a 95% interval, in widths of the survey's own",
                self.width_ratio,
                "if terms are not rare, and residuals have no long tails",
            ),
        )
