"""Newton steps from noisy sums of scores: the point of each round, and the final estimate.

This module sees no records.  Rough steps are shrunken by the part that noise explains (James & Stein
1961); the last step is not, so that the estimate has no bias towards the start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.releases.models.convergence import growing, inverse_after_growth, steep, subsets_solved
from dpcore.releases.models.point import Coordinates, Doubts, NewtonStep, ScorePoint
from dpcore.releases.models.rounds import BINS
from dpcore.releases.models.tails import CutScores, uneven

LARGEST_COEFFICIENT = 1e4

MOST_STEP = 1.5
"""The largest root mean square change of predictors in a step of a curved model."""

MOST, SURELY, ROOM = 0.99, 0.6, 1.25
"""By noisy counts, the interval of a term contains the first fraction of the records; it certainly
contains the second, and is widened by the third number.  Records far outside would have so much leverage
that they count for nothing, although they may have nearly all information on the term."""

SQUEEZED = 2.0, 0.6
"""Whitened far values that are longer than this, in roots of the number of terms, are squeezed to the
geometric mean of both lengths.  The first number is for an amount alone.  The second is for an amount
with powers, whose coefficients depend more on few records."""

MOST_SQUEEZED = 0.3
"""The least factor of squeezing: if noise hides terms, whitened rows may have any length."""

LEAST = 0.6
"""Curvature is taken as at least this multiple of its noise and of the root of the number of terms."""

MOST_BETWEEN = 0.5
"""The largest fraction of the variance of scores that is attributed to differences between strata."""

Measured = dict[str, tuple[Floats, Floats]]
"""The noisy sums (t, width) of each part of a round, and the noise (t,) in each of its numbers."""


@dataclass(frozen=True, eq=False)
class ModelScores(CutScores):
    """The rounds of a model, with the results of each."""

    def first_point(self, times: int) -> ScorePoint:
        p, one = self.terms.size, np.ones(times)
        none, square = np.zeros((times, p)), np.zeros((times, p, p))
        rows, same = one * self.rows, square + np.eye(p)
        middle, width = (0.5, 0.5) if self.family == "binomial" else (0.0, 1.0)
        near = Coordinates(one * middle, one * width, none, same)
        step = NewtonStep(inverse=square, blur=one, aimed=none, heard=one, moved=none)
        doubts = Doubts(none, square, tail=0 * one, trusted=one, flat=none + 1, astray=none > 0)
        return ScorePoint(0, none, square, one, one, one, same, rows, near, step, doubts)

    def next_point(self, point: ScorePoint, noisy: Integers) -> ScorePoint:
        """The point after a round with these noisy sums (t, width)."""
        name, place, parts = self.rounds[point.number], 0, Measured()
        for part in self.parts_of(name):
            end, step = place + self.numbers_of(part), self.per_step(part, point)
            parts[part] = noisy[:, place:end] * step[:, None], step * self.stddev
            place = end
        if "scores" in parts:
            scores, noise = parts["scores"]
            back = np.swapaxes(np.linalg.inv(point.squeeze), 1, 2)
            parts["scores"] = _times(back, scores), noise
        after = {
            "response": self._after_response,
            "moments": self._after_moments,
            "rough": self._after_rough,
            "again": self._after_rough,
            "middle": self._after_middle,
            "last": self._after_last,
        }
        found = after[name](point, parts)
        # A smaller limit would cut coordinates of the basis, and so move terms that are known well.
        theta = np.clip(np.nan_to_num(found.theta), -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)
        return replace(found, theta=theta, number=point.number + 1)

    def _after_response(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        if "terms" in parts:
            point = self._within_intervals(point, *parts["terms"])
        if "bins" not in parts:
            return point
        counts, _ = parts["bins"]
        total = np.maximum(counts.sum(axis=1), 1.0)
        below = np.clip(np.maximum.accumulate(np.cumsum(counts, axis=1), axis=1), 0, None)
        below = np.c_[np.zeros(len(total)), below / total[:, None]]
        # Noisy counts may be negative, and np.interp needs numbers that ascend strictly.
        below = np.clip(below, 0.0, 1.0) + 1e-9 * np.arange(BINS + 1)
        at = np.array([[np.interp(q, each, self.edges) for q in (0.1, 0.5, 0.9)] for each in below])
        least, zero = (self.edges[-1] - self.edges[0]) / BINS, np.zeros(len(at))
        if self.terms.binary:  # its ends are all of its values
            near = replace(point.near, location=zero, width=zero + 1)
            return replace(point, near=near, spread=zero)
        if self.family == "poisson":
            width = np.maximum(2 * at[:, 2], 2 * self.edges[1])
            return replace(point, near=replace(point.near, location=zero, width=width))
        width = np.maximum(at[:, 2] - at[:, 0], least)
        near = replace(point.near, location=at[:, 1], width=width)
        return replace(point, near=near, spread=self._variance(*parts["bins"]))

    def _within_intervals(self, point: ScorePoint, counts: Floats, noise: Floats) -> ScorePoint:
        """Find the narrowest interval of bins for each numeric term (``MOST``), and coordinates within
        it: the term, or all functions of its column, as ``ModelTerms.inside`` gives them.

        If moments were relative to the bounds, noise would hide the moments of a column whose values
        fill little of its bounds.
        """
        number = point.rows
        if self.unknown_rows:
            number = counts.sum(axis=1) / len(self.located)
        middle, local, place = point.near.middle.copy(), point.near.local.copy(), 0
        for j, edges in self.located.items():
            below = np.cumsum(counts[:, place : place + len(edges) - 1], axis=1)
            below, place = np.c_[np.zeros(len(below)), below], place + len(edges) - 1
            first, last = np.triu_indices(len(edges), 1)
            inside = below[:, last] - below[:, first]
            chance = noise[:, None] * np.sqrt(last - first)
            fits = inside >= MOST * number[:, None]
            fits &= inside - chance >= SURELY * number[:, None]
            # However few records the noisy counts show, one interval must remain.
            fits[:, (first == 0) & (last == len(edges) - 1)] = True
            centre, half = (edges[last] + edges[first]) / 2, (edges[last] - edges[first]) / 2
            if self.terms.constant is None:  # no other term could compensate a shift
                centre, half = 0 * centre, half + np.abs(centre)
            best = np.argmin(np.where(fits, half, np.inf), axis=1)
            whole = half[best] * ROOM >= half[(first == 0) & (last == len(edges) - 1)]
            places = np.array(self.terms.tables[j][0])
            for at in np.unique(best[~whole]):  # the bounds themselves clip no value
                rows = np.flatnonzero(~whole & (best == at))
                found = self.terms.inside(j, centre[at], ROOM * half[at])
                middle[np.ix_(rows, places)], local[np.ix_(rows, places, places)] = found
        return replace(point, near=replace(point.near, middle=middle, local=local))

    def _variance(self, counts: Floats, noise: Floats) -> Floats:
        """A lower bound (t,) on the likely variance of the response; it includes values far from the
        bins in which most responses lie."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        total = np.maximum(counts.sum(axis=1), 1.0)
        apart = (middles - (counts @ middles / total)[:, None]) ** 2
        chance = noise * np.sqrt(np.sum(apart**2, axis=1))
        return np.asarray(np.maximum(np.sum(counts * apart, axis=1) - chance, 0.0) / total)

    @property
    def unknown_rows(self) -> bool:
        """Whether the number of records that count, or their weight, is private."""
        nulls = any(axis.nullable for axis in self.terms.axes)
        unknown = nulls or self.design.steps > 0 or not self.adjacency.public_rows
        return unknown or self.groups > 1

    def _after_moments(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        numbers, noise = parts["moments"]
        p, both = self.terms.size, _matrices(numbers, self.moments_size)
        # If no term is a constant, an added one comes first.
        own = slice(both.shape[1] - 1 - p, both.shape[1] - 1)
        base = self.terms.constant if self.terms.constant is not None else 0
        squares, products, constant = both[:, own, own], both[:, own, -1], both[:, base]
        rows = point.rows
        if self.unknown_rows:
            rows = np.maximum(constant[:, base], 2 * noise + 1)
        vectors, values = _floored(squares, 0.5 * noise * math.sqrt(p))
        inverse = _product(vectors / values[:, None, :], vectors)
        # From coordinates relative to the intervals of terms to those of the basis.
        back = point.near.local.copy()
        shift = _times(np.swapaxes(back, 1, 2), point.near.middle)
        back[:, base] -= shift * (np.arange(p) != base)
        width, location = point.near.width[:, None], point.near.location
        if self.family == "gaussian":
            theta = _times(inverse, products)
            left = (both[:, -1, -1] - np.sum(theta * products, axis=1)) / rows
            total = np.maximum(both[:, -1, -1] / rows, 0.02)
            spread = np.maximum(left, 0.2 * total) * point.near.width**2
            if p == 1:  # the moments clip values far from most, the bins of the response do not
                spread = np.maximum(spread, point.spread)
            theta, slope, start = theta * width, np.ones(len(rows)), location
        else:
            mean, slope, start = self._around(constant[:, -1] / rows * point.near.width + location)
            products = products * width - (mean - location)[:, None] * constant[:, own]
            theta, spread = _times(inverse, products) / slope[:, None], slope
            moved = np.sqrt(
                np.maximum(np.sum(theta * _times(squares, theta), axis=1) / rows, 1e-12)
            )
            # Least squares about the mean is right only where predictors hardly differ.
            theta *= np.minimum(1.0, MOST_STEP / moved)[:, None]
        theta = _times(back, theta)
        if self.terms.constant is not None:
            theta[:, base] += start
        white = back @ _product(vectors / np.sqrt(values)[:, None, :], vectors)
        white = white * np.sqrt(rows)[:, None, None]
        radius = np.full(len(rows), self.rough_radius)
        found = {"theta": theta, "white": white, "spread": spread, "slope": slope}
        unsure = noise[:, None] * noise_share(self.terms.basis[0] @ back, inverse)
        doubts = replace(point.doubts, unsure=unsure)
        return replace(point, rows=rows, radius=radius, doubts=doubts, **found)

    def _around(self, mean: Floats) -> tuple[Floats, Floats, Floats]:
        """A possible mean response (t,) of a curved model, its derivative and the linear predictor."""
        if self.family == "binomial":
            mean = np.clip(mean, 0.02, 0.98)
            return mean, mean * (1 - mean), np.log(mean / (1 - mean))
        mean = np.maximum(mean, 0.02)
        return mean, mean, np.log(mean)

    def _after_rough(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        point = self._stepped(point, parts)
        curvature, noise = parts["curvature"]
        per_row = _matrices(curvature, self.terms.size) / point.rows[:, None, None]
        least = np.maximum(noise / point.rows * math.sqrt(self.terms.size), 0.02)
        vectors, values = _floored(per_row, least)
        inverse_root = _product(vectors / np.sqrt(values)[:, None, :], vectors)
        radius = point.radius
        if self.weighed:
            radius = np.full(len(radius), self.radii["shortest"])
        white = point.white @ inverse_root
        return replace(point, white=white, radius=radius, squeeze=self._squeeze(point, white))

    def _squeeze(self, point: ScorePoint, white: Floats) -> Floats:
        """Q' (t, p, p) for the next ``white``: for each amount, it squeezes the direction of the value
        in its interval that is farthest from the mean record.  The identity if scores are shortened."""
        found = np.tile(np.eye(self.terms.size), (len(white), 1, 1))
        for first in self.located if self.weighed and self.terms.constant is not None else ():
            far = self.terms.farthest(first, white, point.near.middle, point.near.local)
            length = np.maximum(np.linalg.norm(far, axis=1), 1e-300)[:, None, None]
            powers = len(self.terms.tables[first][0]) > 1
            most = SQUEEZED[powers] * math.sqrt(self.terms.size)
            less = 1 - np.sqrt(np.clip(most / length, MOST_SQUEEZED**2, 1.0))
            found -= found @ (less / length**2 * far[:, :, None] * far[:, None, :])
        return found

    def _after_middle(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        point = self._stepped(point, parts)
        p, (numbers, noise) = self.terms.size, parts["squares"]
        meat = _matrices(numbers, p)
        if self.design.steps and p > 1:
            lacking = self.lacking_by_weights(*parts["counts"])
            meat += lacking[:, None, None] * np.eye(p)
        # The mean over directions is known best; each direction differs as far as noise cannot explain.
        typical = np.trace(meat, axis1=1, axis2=2) / p
        apart = meat - typical[:, None, None] * np.eye(p)
        by_noise = noise**2 * (p + p * (p - 1) / 2)
        kept = 1 - by_noise / np.maximum(np.sum(apart**2, axis=(1, 2)), by_noise)
        # A variance that is too small makes intervals fail; one that is too large only widens them.
        if p == 1:
            typical = typical + noise
        least = 0.2 * point.rows
        if self.design.clusters and p > 1:  # noise hides a variance below half of its own
            least = np.maximum(least, noise / (2 * math.sqrt(p)))
        typical = np.maximum(typical, least)
        radius, tail, lacking, trusted = self.clipped_at(point, parts.get("counts"), typical)
        typical = typical + lacking
        meat = typical[:, None, None] * np.eye(p) + kept[:, None, None] * apart
        if self.design.strata:
            meat = self._within(meat, 0.2 * typical, parts)
        vectors, values = _floored(meat, 0.2 * typical)
        meat = _product(vectors * values[:, None, :], vectors)
        doubts = replace(point.doubts, meat=meat, tail=tail, trusted=trusted)
        return replace(point, radius=radius, doubts=doubts)

    def _within(self, meat: Floats, least: Floats, parts: Measured) -> Floats:
        """The variance (t, p, p) of scores within strata.

        The variance between strata is subtracted as far as noise leaves it certain, but no direction
        loses more than ``MOST_BETWEEN``.
        """
        strata, p = self.design.sizes[0], self.terms.size
        clusters = self.design.clusters_in_survey
        (sums, noise), (sizes, of_sizes) = parts["strata"], parts["sizes"]
        sums, noise = sums.reshape(-1, strata, p), noise[:, None]
        sizes = np.maximum(sizes, np.maximum(2 * of_sizes, 2.0)[:, None])
        drawn = sizes.sum(axis=1)
        if clusters:
            sizes = sizes * np.minimum(clusters / drawn, 1.0)[:, None]
            drawn = np.minimum(drawn, clusters)
        scaled = sums / np.sqrt(sizes)[:, :, None]
        between = np.swapaxes(scaled, 1, 2) @ scaled
        by_noise = np.sum(noise**2 / sizes, axis=1)
        between -= by_noise[:, None, None] * np.eye(p)
        error = 2 * p * np.sum(noise**4 / sizes**2, axis=1)
        error += 4 * np.sum(noise**2 / sizes * np.sum(scaled**2, axis=2), axis=1)
        size = np.trace(between, axis1=1, axis2=2)
        kept = (1 - error / np.maximum(size**2, error)) * (size > 0)
        vectors, values = _floored(between, 0.0 * size)
        between = _product(vectors * (values * kept[:, None])[:, None, :], vectors)
        vectors, values = _floored(meat, least)
        root = _product(vectors / np.sqrt(values)[:, None, :], vectors)
        # Not all of it, because the squares are of shortened scores.
        most = np.linalg.eigvalsh(root @ between @ root)[:, -1]
        between *= np.minimum(1.0, MOST_BETWEEN / np.maximum(most, 1e-300))[:, None, None]
        # The noisy number of units may lie near or below the number of strata.
        drawn = np.maximum(drawn, 2.0 * strata)
        return np.asarray((meat - between) * (drawn / (drawn - strata))[:, None, None])

    def _after_last(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        (scores, noise), last = parts["scores"], point.last
        flatter = self._flatter(point)[:, None]
        inverse = last.inverse / flatter[:, :, None]
        # Slopes grow if steps never end; this can be seen only with a constant and other terms.
        sloped = (
            self.family == "binomial" and self.terms.constant is not None and len(scores[0]) > 1
        )
        if sloped:
            inverse = inverse_after_growth(self.terms, point, inverse)
        moved = _times(inverse, scores)
        # The rest of the step to the solution, according to the middle round.
        left = last.aimed / flatter - last.moved / np.sqrt(flatter)
        trusted = point.doubts.trusted[:, None]
        step = trusted * moved + (1 - trusted) * left
        flat, astray = np.ones_like(scores), point.doubts.astray
        if self.family != "gaussian":
            flat, astray = subsets_solved(self.terms, self.family, point, scores, noise)
            flat = np.minimum(flat / flatter, 1.0)
        if sloped:
            endless = growing(self.terms, point, inverse, step, noise)
            endless |= steep(self.terms, point, inverse, step)
            astray = astray | endless[:, None]
        doubts = replace(point.doubts, flat=flat, astray=astray)
        return self._moved_by(replace(point, doubts=doubts), step, replace(last, inverse=inverse))

    def _flatter(self, point: ScorePoint) -> Floats:
        """The approximate factor (t,) by which the curvature changed over the step before the last; it
        is not measured again after that step.

        The logarithm of a record's curvature changes with its predictor by 1 (Poisson), or by 1 - 2 mu
        for the mean mu (binomial).  The predictor changed by d'Hc/c'Hc on average over the curvature H,
        for the step d and the constant c.  Without this factor, steps towards rare responses are too
        short.
        """
        if self.family == "gaussian" or self.terms.constant is None:
            return np.ones(len(point.rows))
        constant = np.zeros((len(point.rows), self.terms.size, 1))
        constant[:, self.terms.constant] = 1.0
        own = np.linalg.solve(point.white, constant)[:, :, 0]
        curved = np.linalg.solve(point.last.inverse, own[:, :, None])[:, :, 0]
        part = np.sum(point.last.moved * curved, axis=1) / np.sum(own * curved, axis=1)
        changed = part * np.sqrt(point.spread) / point.slope
        if self.family == "binomial":
            changed = changed * uneven(point)
        return np.asarray(np.exp(np.clip(changed, -1.0, 1.0)))

    def _stepped(self, point: ScorePoint, parts: Measured) -> ScorePoint:
        """A Newton step towards the solution, shrunken by the part that noise explains (James & Stein
        1961); it moves predictors of a curved model by at most ``MOST_STEP``."""
        curvature, noise = parts["curvature"]
        p = self.terms.size
        vectors, values = _floored(_matrices(curvature, p), LEAST * noise * math.sqrt(p))
        inverse = _product(vectors / values[:, None, :], vectors)
        scores, by_noise = parts["scores"]
        moved = _times(inverse, scores)
        size = np.maximum(np.linalg.norm(moved, axis=1), 1e-300)
        squared = np.sum(np.linalg.solve(point.squeeze, inverse) ** 2, axis=(1, 2))
        far = np.maximum(1 - (by_noise / size) ** 2 * squared, 0.0)
        if self.family != "gaussian":
            far = np.minimum(far, MOST_STEP / (size * point.unit))
        step = moved * far[:, None]
        return self._moved_by(point, step, NewtonStep(inverse, noise, moved, by_noise, step))

    def _moved_by(self, point: ScorePoint, step: Floats, last: NewtonStep) -> ScorePoint:
        theta = point.theta + _times(point.white, step) * point.unit[:, None]
        return replace(point, theta=theta, last=replace(last, moved=step))


def noise_share(back: Floats, inverse: Floats) -> Floats:
    """The fractions (t, p) of the information on coefficients that may be noise, if each number of the
    information has noise 1.

    ``inverse``: (t, p, p) of the information; ``back``: (p, p) from its basis to the formula's.
    """
    out = back @ inverse
    return np.asarray(np.sum(out**2, axis=2) / np.maximum(np.sum(out * back, axis=2), 1e-300))


def _matrices(numbers: Floats, size: int) -> Floats:
    """The symmetric matrices (t, p, p) whose numbers (t, p (p + 1) / 2) ``_squares`` lists."""
    first, second = np.triu_indices(size)
    found = np.zeros((len(numbers), size, size))
    found[:, first, second] = numbers / np.where(first == second, 1.0, math.sqrt(2))
    found[:, second, first] = found[:, first, second]
    return found


def _floored(matrices: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Eigenvectors (t, p, p) and eigenvalues (t, p), which are raised to at least ``least`` (t,)."""
    values, vectors = np.linalg.eigh(matrices)
    floor = np.maximum(least, np.finfo(float).tiny ** 0.25)
    return vectors, np.maximum(values, floor[:, None])


def _product(one: Floats, other: Floats) -> Floats:
    """The product (t, p, p) of one matrix and the transpose of the other."""
    return np.asarray(one @ np.swapaxes(other, 1, 2))


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """The products (t, p) of matrices (t, p, p) and vectors (t, p)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
