"""A bandwidth by the exponential mechanism, beside the rule of thumb (HRW, section 4.1.2).

The score of a bandwidth h is the squared error of records left out, up to a constant:

    J(h) = integral of f_h^2 - (2/n) sum_i f_h(x_i without record i)
         = (1/n^2) sum_ij K'(x_i - x_j) - 2/(n (n-1)) sum_(i != j) K(x_i - x_j)

with the kernel K of h on the circle, and K' = K * K.  Replacing a record changes J by the mean over the
n - 1 others of g(x_new - x_j) - g(x_old - x_j), g = 2 (n-1)/n^2 K' - (4/n) K, so by at most
max g - min g, which is about 1.08/(n h).  The range of the smallest h is the sensitivity of all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.mechanisms import ExponentialMechanism
from dpcore.releases.densities.bandwidth import Bandwidth
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.sampling.source import RandomSource, SeededSource

CELLS, STEP = 2048, 2.0**-40
CHOICE, REST = Budget.of("0.2"), Budget.of("0.8")
LADDER = 0.005 * 2 ** (np.arange(40) / 8)
"""The public bandwidths: from 0.005 of the range to 0.147."""

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LAWS = {
    "one normal": ((0.5, 0.12),),
    "two narrow normals": ((0.3, 0.02), (0.7, 0.02)),
}
DOMAIN = Domain((Grid("x", 0.0, 1.0, CELLS),))
WAVES = np.arange(CELLS // 2 + 1)
TWICE = np.where((WAVES == 0) | (CELLS // 2 == WAVES), 1, 2)
"""Each frequency of a real transform stands for two."""

DAMPED = np.exp(-2 * (np.pi * np.outer(LADDER, WAVES)) ** 2)
"""(bandwidths, waves) the transforms of the kernels."""


def scores(counts: Integers) -> Floats:
    """(bandwidths,) J: private."""
    n = counts.sum()
    power = TWICE * np.abs(np.fft.rfft(counts) / n) ** 2
    own = (TWICE * DAMPED).sum(axis=1)  # K(0)
    return DAMPED**2 @ power - 2 / (n - 1) * (n * (DAMPED @ power) - own)


def sensitivity(rows: int) -> float:
    """Of all scores: that of the smallest bandwidth."""
    kernel, twice = (np.fft.irfft(DAMPED[0] ** k, CELLS) * CELLS for k in (1, 2))
    moved = 2 * (rows - 1) / rows**2 * twice - 4 / rows * kernel
    return float(np.ptp(moved))


def chosen(counts: Integers, source: RandomSource) -> int:
    """The number of a bandwidth, by the exponential mechanism."""
    whole = np.round(scores(counts) / STEP).astype(np.int64)
    bound = Fraction(int(np.ceil(sensitivity(int(counts.sum())) / STEP)) + 1)  # rounded scores
    mechanism = ExponentialMechanism.within(CHOICE, 1, len(LADDER), bound)
    return int(perturb(Exact(whole), mechanism, CHOICE, source).values[0])


def by_rule(counts: Integers, source: RandomSource) -> int:
    """The number of the bandwidth that the rule of thumb takes, from private quartiles."""
    release = Bandwidth("b", DOMAIN, int(counts.sum()), CHOICE, smallest=float(LADDER[0]))
    cells = np.flatnonzero(counts)
    statistic = release.statistic(Tally(DOMAIN, cells, counts[cells]))
    (found,) = release.bandwidths(perturb(statistic, release.mechanism, CHOICE, source))
    return int(np.argmin(np.abs(np.log(LADDER / found))))


def measure(trials: int) -> Measured:
    """Integrated squared errors of both ways and of the best bandwidth, with all their sources."""
    lines, source, generator = [], SeededSource(29), np.random.default_rng(29)
    middles = (np.arange(CELLS) + 0.5) / CELLS
    for law, parts in LAWS.items():
        exact = sum(np.exp(-((middles - m) ** 2) / 2 / s**2) / s for m, s in parts)
        exact = exact / exact.sum()
        for rows in SIZES:
            noise = np.array([_noise(rows, h) for h in LADDER])
            found = []
            for _ in range(trials):
                counts = generator.multinomial(rows, exact)
                transforms = np.fft.rfft(counts) / rows, np.fft.rfft(exact)
                error = np.abs(DAMPED * transforms[0] - transforms[1]) ** 2 @ TWICE + noise
                picks = by_rule(counts, source), chosen(counts, source)
                found.append([error.min(), *error[[*picks]]])
            best, rule, choice = np.mean(found, axis=0)
            line: Line = {"law": law, "n": rows, "trials": trials, "best": rounded(best)}
            lines.append(line | {"rule": rounded(rule / best), "choice": rounded(choice / best)})
    return Measured(lines, lambda figure: _draw(lines, figure))


def _noise(rows: int, bandwidth: float) -> float:
    return BinnedDensity("d", DOMAIN, rows, REST, (float(bandwidth),)).expected_error()[0].value


def _draw(lines: list[Line], figure: Any) -> None:
    axes = figure.subplots(1, len(LAWS), sharey=True)
    for axis, law in zip(axes, LAWS, strict=True):
        mine = [line for line in lines if line["law"] == law]
        for way, colour in (("rule", "C3"), ("choice", "C0")):
            axis.plot(SIZES, [line[way] for line in mine], colour, marker="o", label=way)
        axis.set(title=law, xlabel="records", xscale="log", yscale="log")
    axes[0].set(ylabel="squared error over that of the best bandwidth")
    axes[0].legend()


def _beside(lines: list[Line]) -> list[Row]:
    return [
        (
            f"{line['law']}, n = {line['n']:,}: rule of thumb, private choice",
            "proposed, not measured",
            f"{line['rule']:,.3g}, {line['choice']:,.3g}",
        )
        for line in lines
    ]


EXPERIMENTS = (
    Experiment(
        "hrw-4.1.2",
        "A private choice of the bandwidth",
        "Hall, Rinaldo & Wasserman (2013), section 4.1.2",
        "The errors are multiples of the best bandwidth's, noise included: alpha is 0.2 for the"
        " bandwidth and 0.8 for the density. The choice is by the exponential mechanism, from 40"
        " bandwidths of 0.005 to 0.147 of the range, by the squared error of records left out, with a"
        " sensitivity of about 1.08/(n h) at the smallest h. The rule of thumb is better for one normal,"
        " and useless for two narrow ones. Plans have the rule of thumb alone (`private: quantiles`):"
        " if a density may have several peaks, state a bandwidth.",
        50,
        measure,
        _beside,
    ),
)
