"""A model measured directly: coefficients with their errors from sampling and from noise.

The rounds are those of ``rounds``.  The last Newton step starts near the solution, so to first order

    estimate - solution of the survey = inverse (noise of the scores + noise of the curvature * step)

whose covariance is the privacy part.  The sampling part is inverse * meat * inverse, with the measured
variance ``meat`` of scores of units (Huber 1967; Binder 1983), so that it needs no assumption on
residuals, or on the similarity of the records of a unit.  The effect of clipping on scores is estimated
from counts of their lengths (``tails``), and is an additional standard error in every direction; the
scores of a mean without weights are not clipped.  If noise may change the information on a coefficient
by the fraction b, its errors are divided by sqrt(1 - b^2), because the same noisy information divides
scores and their errors; or by sqrt(1 - b) with weights, and in a Poisson model, whose curvature changes
most over a step.  If b is at least ``MOST_BLUR`` the coefficient has no errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms.gaussian import DiscreteGaussian
from dpcore.mechanisms.gaussian_rounds import GaussianRounds
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.models.design import SIMPLE, STRATUM, SurveyDesign
from dpcore.releases.models.point import ScorePoint
from dpcore.releases.models.rounds import USUAL_NOISE, Family
from dpcore.releases.models.scores import ScoredRecords
from dpcore.releases.models.steps import LEAST, MOST_STEP, ModelScores, noise_share
from dpcore.releases.models.terms import ModelTerms
from dpcore.releases.numbers.estimates import estimate_columns
from dpcore.releases.table import Published, Table, TableColumn, Uncertainty, unless
from dpcore.releases.work import Work, publishing

MOST_BLUR = 0.9

MOST_UNSURE = 0.35
"""If more than this fraction of the information on a coefficient may be noise, in both the moments and
the curvature, the scale of its term is unknown, and steps may end far from the solution.  A column may
fill a hundredth of its bounds."""

MOST_UNSURE_NUMERIC = 0.2
"""The same for terms of many values, which noise may hide altogether."""

MOST_EXPLAINED = 4.0
"""The largest variance that such terms may explain, relative to the variance of residuals."""

LARGEST_DIFFERENCE = 10.0
"""The largest coefficient of an indicator that noise hides, in standard deviations of residuals; in
curved models, in the equivalent units of a linear predictor."""

MOST_LEAST = 0.6
"""Steps are too short if the least curvature that noise allows is this fraction of the usual one."""

IN_GROUPS = 4.0
"""How much more certain the size of a group must be, because it may be any share of the records."""

TRIES = 32
"""The number of noise draws over which expected widths are averaged."""

NO_INTERVAL = 100.0
"""The expected relative width that is stated if most groups would have no interval."""

STEEP = 0.32
"""If noise may be this fraction of the information on a usual term, the first rounds no longer converge,
and intervals are wide or missing (found by simulation)."""

FAR = 3.0
"""A last step beyond this multiple of its expected length counts as an error."""

HIDDEN = (
    "perhaps few records are informative about this term, its column fills little of its"
    " bounds, or terms almost determine the response"
)

STATED = (
    "Errors include sampling and noise, to first order and with a normal approximation. The 95%"
    " interval is for {}, if the model is right. Sampling errors assume that {}. Errors include an"
    " estimate of the bias from cutting very large residuals. Not included: records with unusual terms"
    " count less, which moves coefficients if the model is wrong; if the plan clamps, a value"
    " beyond a bound counts as the bound; on a grid, a value counts as the middle of its cell"
)

Points = tuple[ScorePoint, ...]
"""One point for each group (``MeasuredModel.groups``)."""

SCORED = 2e-8
"""CPU seconds for each record, pair of terms and round."""


class ModelFit(NamedTuple):
    """Coefficients (p,) in the order of the formula's terms, and the sampling and privacy parts (p, p)
    of their covariance; ``hidden``: those without errors."""

    values: Floats
    sampling: Floats
    privacy: Floats
    hidden: Booleans

    def changed(self, change: Floats) -> ModelFit:
        """The same model in other terms (``ModelTerms.change_to``)."""
        # A sum of terms is hidden if one of its terms is.
        hidden = np.asarray((change[:, self.hidden] != 0).any(axis=1))
        own = np.where(self.hidden, 0.0, change)
        sampling, privacy = (
            own @ np.where(np.outer(~self.hidden, ~self.hidden), each, 0.0) @ own.T
            for each in (self.sampling, self.privacy)
        )
        return ModelFit(change @ self.values, sampling, privacy, hidden)


@dataclass(frozen=True)
class MeasuredModel(Release):
    """A measured model; ``terms``: the formula applied to the columns of a record; ``formula``: its
    text; ``design``: how a cell of the domain represents a unit of the survey."""

    finer = "fewer terms, or categories with more records"
    chart = "coefficients"

    formula: str
    family: Family
    terms: ModelTerms
    design: SurveyDesign = SIMPLE

    @property
    def counts_units(self) -> bool:
        return not self.design.simple

    @property
    def groups(self) -> int:
        """The number of groups of records if the model has a mean for each of them; else 1."""
        return 1 if self.terms.separate is None else self.terms.size

    @property
    def possible(self) -> tuple[float, float]:
        """The range of each coefficient: the range of the response if all coefficients are means."""
        of_all = self.terms.size == 1 and self.terms.constant is not None
        if self.family != "gaussian" or not (of_all or self.groups > 1):
            return -math.inf, math.inf
        values = self.terms.response.values
        return float(values.min()), float(values.max())

    @cached_property
    def _usual(self) -> ModelScores:
        """The rounds of one group at the usual noise."""
        terms, groups, design = self.terms, self.groups, self.design
        if groups > 1:  # strata hold units of other groups, which are not counted here
            terms, design = (
                terms.of_a_group(self.family == "gaussian"),
                replace(design, strata=None),
            )
        rows = max(self.rows // groups, 1)
        return ModelScores(terms, self.family, rows, self.adjacency, design=design, groups=groups)

    @cached_property
    def _unpriced(self) -> ModelScores:
        """The rounds of one group, chosen for the noise that the share pays for, before it is added."""
        # Shares and radii depend on the noise, and the noise on them, so usual noise is assumed first.
        noise = self._noise_of(self._usual).stddev / max(self._usual.steps.values())
        return replace(self._usual, clear=USUAL_NOISE / noise)

    @cached_property
    def scores(self) -> ModelScores:
        return replace(self._unpriced, stddev=self._noise.stddev)

    @cached_property
    def _noise(self) -> DiscreteGaussian:
        return self._noise_of(self._unpriced)

    def _noise_of(self, scores: ModelScores) -> DiscreteGaussian:
        """The noise that the share pays for, in steps."""
        size = sum(width for width, _ in scores.laws)
        squared = sum((each for _, each in scores.laws), Fraction(0))
        return DiscreteGaussian.within(self.share, size, squared)

    @cached_property
    def mechanism(self) -> GaussianRounds:
        law = self._noise.size, self._noise.l2_sensitivity_squared, self._noise.variance
        return GaussianRounds(*law, self.domain, self.scores.laws, self)

    @property
    def largest_statistic(self) -> int:
        return self.most_rows * self._usual.largest  # the same for any noise

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def records_of(self, tally: Tally) -> tuple[ScoredRecords, ...]:
        """The records of each group."""
        if self.groups == 1:
            return (self.scores.records_of(tally),)
        cells, axes = tally.domain.unpack(tally.cells), self.terms.axes
        codes, weights, groups = self.design.unpacked(cells, axes)
        # The rounds of one group have no strata (``_usual``).
        groups = groups[:, [name != STRATUM for name in self.design.groups]]
        # An absent record has null in columns that may not be nullable in the survey.
        there = np.where(weights[:, :, None] > 0, codes, 0)
        place = self.terms.term_of(there.reshape(-1, len(axes))).reshape(weights.shape)
        return tuple(
            self.scores.scored(codes, np.where(place == i, weights, 0.0), groups, tally.counts)
            for i in range(self.groups)
        )

    def first_point(self, times: int) -> Points:
        return (self.scores.first_point(times),) * self.groups

    def next_point(self, points: Points, noisy: Integers) -> Points:
        each = np.split(noisy, self.groups, axis=1)
        return tuple(map(self.scores.next_point, points, each))

    def at(self, records: tuple[ScoredRecords, ...], points: Points) -> Integers:
        most = self.largest_statistic
        sums = [self.scores.at(*each) for each in zip(records, points, strict=True)]
        return np.clip(np.hstack(sums), -most, most)

    @property
    def _apart(self) -> bool:
        """Whether group means are uncorrelated, because each drawn unit is in one group."""
        return self.design.members == 1 and not self.design.groups

    def fitted(self, noisy: Noisy) -> ModelFit:
        """The coefficients of the formula's terms."""
        return self._together(*self._ends(noisy))

    def _ends(self, noisy: Noisy) -> tuple[Points, Points]:
        """The points of the last scores, and the points after the last step."""
        points = before = self.first_point(1)
        for sums in self.mechanism.by_round(noisy.values[None, :]):
            before, points = points, self.next_point(points, sums)
        return before, points

    def _together(self, before: Points, points: Points) -> ModelFit:
        values, sampling, privacy, hidden = zip(*map(self._of, before, points), strict=True)
        joined = block_diag(*sampling), block_diag(*privacy)
        return ModelFit(np.concatenate(values), *joined, np.concatenate(hidden))

    def _of(self, before: ScorePoint, point: ScorePoint) -> ModelFit:
        terms = self.scores.terms
        last, doubts, unit = point.last, point.doubts, float(point.unit[0])
        trusted, size = float(doubts.trusted[0]), terms.size
        # The middle round's part was measured one step earlier, so noisy curvature scaled that step too.
        inverse, step = last.inverse[0], last.moved[0] + (1 - trusted) * before.last.moved[0]
        noise = float(self.scores.per_step("scores", before)[0]) * self._noise.stddev
        noise = math.hypot(trusted * noise, (1 - trusted) * float(last.heard[0]))
        blur, tail, meat = float(last.blur[0]), float(doubts.tail[0]), doubts.meat[0]
        squeezed = np.linalg.inv(before.squeeze[0])
        privacy = (noise**2 + tail**2) * squeezed.T @ squeezed
        privacy += blur**2 / 2 * (step @ step) * np.eye(size)
        privacy += blur**2 / 2 * np.outer(step, step)
        back = terms.basis[0] @ point.white[0]  # from the whitened basis to the formula's terms
        out = unit * back @ inverse
        spread = np.sum((back @ inverse) * back, axis=1)
        doubt = blur * noise_share(back, inverse[None])[0]
        most = np.where(terms.numeric, MOST_UNSURE_NUMERIC, MOST_UNSURE)
        # One of both measurements is enough to know the scale of a term.
        unknown_scale = (size > 1) & (np.minimum(doubt, doubts.unsure[0]) >= most)
        values, wider = terms.basis[0] @ point.theta[0], self._wider(doubt) / doubts.flat[0]
        covariances = [out @ each @ out.T for each in (meat, privacy)]
        both = np.outer(wider, wider)
        if self.family != "gaussian":
            # A last step much longer than its noise: the one before had not come near the solution.
            usual = np.trace(inverse @ (meat + noise**2 * np.eye(size)) @ inverse)
            far = max(1 - FAR**2 * usual / float(step @ step + 1e-300), 0.0)
            moved = unit * back @ step
            far += float(self.scores.bent(point, before.last.moved)[0]) ** 2
            covariances[1] += far * np.outer(moved, moved)
            aimed = (1 - trusted) * unit * back @ last.aimed[0]
            bent = float(self.scores.bent(point, last.aimed)[0])
            covariances[1] += bent**2 * np.outer(aimed, aimed)
        if unknown_scale.any():
            vectors, known = _least_known(inverse, LEAST * blur * math.sqrt(size))
            left = unit * back @ (vectors * np.sqrt(MOST_EXPLAINED * float(point.rows[0]) / known))
            # Otherwise a category that nobody has, which explains nothing, would widen all intervals.
            largest = np.max(np.abs(left[terms.indicators]), axis=0, initial=1e-300)
            left *= np.minimum(LARGEST_DIFFERENCE * unit / largest, 1.0)
            covariances[1] += left @ left.T
        # The sampling error is of the survey itself, so the privacy error takes all of the increase.
        covariances[1] = (covariances[0] + covariances[1]) * both - covariances[0]
        values, (sampling, privacy) = terms.rescaled(values, covariances)
        # Steps converge only where their lengths are known.
        least = LEAST * math.sqrt(size) * blur * (IN_GROUPS if self.groups > 1 else 1.0)
        unknown = least >= MOST_LEAST * float(point.rows[0])
        hidden = (doubt >= MOST_BLUR) | unknown | unknown_scale | doubts.astray[0]
        if self.family != "gaussian":
            # A term has not converged if even the shortest step with this change of its coefficient is
            # longer than any earlier step may be.
            length = (
                unit * np.abs(back @ step) / np.sqrt(point.rows[0] * np.maximum(spread, 1e-300))
            )
            hidden |= length > MOST_STEP
        return ModelFit(values, sampling, privacy, hidden)

    def _wider(self, doubt: Floats) -> Floats:
        """The factors on errors if noise may change the information by these fractions."""
        far = self.family == "poisson" or self.design.steps
        changed = doubt if far else doubt**2
        return np.asarray(np.maximum(1 - changed, 1e-9) ** -0.5)

    def publish(self, noisy: Noisy) -> Published:
        before, points = self._ends(noisy)
        found = self._together(before, points)
        facts: dict[str, Any] = {"formula": self.formula, "family": self.family}
        if self.groups == 1:
            (first,), (point,) = before, points
            facts["clipped_at"], rows = float(first.radius[0]), float(point.rows[0])
            if not self.design.steps:
                facts["records"] = rows
            if self.design.simple:
                # Only where a unit is one record do squares of scores average to squared residuals.
                apart = float(point.spread[0] * np.trace(point.doubts.meat[0])) / (
                    len(found.values) * rows
                )
                facts["residual_variance"] = apart * self.terms.scale[1] ** 2
        return Published((self._table(found), self._covariances(found)), facts)

    def _table(self, found: ModelFit) -> Table:
        sampling, privacy = (np.sqrt(np.diag(each)) for each in (found.sampling, found.privacy))
        of_term = "Estimated coefficient", found.values, sampling, privacy
        columns = [
            TableColumn("term", np.array(self.terms.names), "Term of the formula"),
            *estimate_columns(*of_term, self.possible, found.hidden, HIDDEN),
        ]
        stated = Uncertainty(
            "estimate", "standard_error", ("lower_95", "upper_95"), "normal", self.statement
        )
        return Table("tables", self.name, columns, (stated,))

    def _covariances(self, found: ModelFit) -> Table:
        first, second = np.triu_indices(len(found.values))
        names, hidden = np.array(self.terms.names), found.hidden[first] | found.hidden[second]
        if self.groups > 1 and not self._apart:
            # Groups that share units have correlated errors, and each is measured by itself.
            hidden |= first != second
        columns = [
            TableColumn("term", names[first], "Term of the formula"),
            TableColumn("other", names[second], "The same or another term"),
        ]
        for name, each in (("sampling", found.sampling), ("privacy", found.privacy)):
            text = f"Covariance of both coefficients from {name} alone"
            columns.append(TableColumn(name, unless(hidden, each[first, second]), text))
        known = (
            "Estimated to first order from the noisy sums. Square roots of variances are errors of"
            " terms. Null (not measured) for groups that may share units, strata or clusters"
        )
        stated = (
            Uncertainty(name, None, None, "normal", known) for name in ("sampling", "privacy")
        )
        return Table("tables", f"{self.name}.covariance", columns, tuple(stated))

    @property
    def statement(self) -> str:
        """The statement of what the errors include."""
        return f"{STATED.format(self.design.population, self.design.drawn)}."

    @property
    def work(self) -> Work:
        seen, pairs = min(self.rows, self.domain.size), self._usual.terms.size**2
        pairs += sum(self.design.sizes)
        return Work(SCORED * seen * pairs * len(self.scores.rounds), 64 * seen) + publishing(pairs)

    @cached_property
    def width_ratio(self) -> float:
        """The expected width of intervals relative to those of the survey itself, if no scores are
        unusually long and groups have equal shares of the records."""
        scores, (point, *_) = self.scores, self.first_point(TRIES)
        middle = replace(point, number=len(scores.rounds) - 2)
        stddev, rows = self._noise.stddev, scores.rows
        blur = float(scores.per_step("curvature", middle)[0]) * stddev / rows
        if self.groups > 1 and IN_GROUPS * blur >= 1:
            return NO_INTERVAL
        sampling = rows * (2 if self.design.steps else 1)
        own, added = scores.usually(middle, sampling)
        doubt = min(blur * math.sqrt(scores.terms.size), MOST_BLUR)
        # Some terms of most models have less information than others.
        usual = math.sqrt((own + added) / sampling / (1 - doubt))
        return usual * (1 + (doubt / STEEP) ** 6)

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        usual = (
            "if no category is rare and residuals have no long tails, which is not known beforehand"
        )
        if self.scores.whole and not self.scores.terms.binary:
            usual = (
                "if the response lies in the middle of its range, with a standard deviation of a"
                " twentieth of it"
            )
        return (
            ErrorStatement(
                "width of a 95% interval, relative to the width without noise",
                self.width_ratio,
                usual,
            ),
        )


def models_of(releases: Mapping[str, Release]) -> dict[str, MeasuredModel]:
    """The measured models among several releases, by name."""
    return {name: each for name, each in releases.items() if isinstance(each, MeasuredModel)}


def _least_known(inverse: Floats, least: float) -> tuple[Floats, Floats]:
    """The directions (p, k) whose information was raised to ``least``, and their information (k,)."""
    values, vectors = np.linalg.eigh(inverse)
    raised = 1 / values <= 1.001 * least
    return vectors[:, raised], 1 / values[raised]
