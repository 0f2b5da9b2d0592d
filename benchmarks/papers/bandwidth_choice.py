"""A bandwidth by the error of records left out, beside the rule of thumb (HRW, section 4.1.2).

Both are those of a plan: a density's ``bandwidth: {private: error}`` and ``{private: quantiles}``
(``dpcore.releases.densities.tuned``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded, tally_of
from dpcore.accounting.budget import Budget
from dpcore.arrays import Integers
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.least_error import LeastError
from dpcore.releases.densities.tuned import BandwidthRule, TunedDensity
from dpcore.sampling.source import RandomSource, SeededSource

CELLS, SMALLEST = 2048, 0.005
SHARE, PART = Budget.of("1"), Fraction(1, 5)

SIZES = (1_000, 10_000, 100_000, 1_000_000)
LAWS = {
    "one normal": ((0.5, 0.12),),
    "two narrow normals": ((0.3, 0.02), (0.7, 0.02)),
}
DOMAIN = Domain((Grid("x", 0.0, 1.0, CELLS),))
WAVES = np.arange(CELLS // 2 + 1)
TWICE = np.where((WAVES == 0) | (CELLS // 2 == WAVES), 1, 2)
"""Each frequency of a real transform stands for two."""


def release(rows: int, rule: BandwidthRule) -> TunedDensity:
    """A density of alpha 1, of which the choice has 0.2."""
    smooth = BinnedDensity("d", DOMAIN, rows, SHARE, (SMALLEST,), periodic=True)
    return TunedDensity("d", DOMAIN, rows, SHARE, smooth, PART, rule)


def picked(tuned: TunedDensity, tally: Tally, source: RandomSource) -> float:
    """The bandwidth that is drawn."""
    mechanism, share = tuned.choice.mechanism, tuned.choice.share
    noisy = perturb(Exact(tuned.scores(tally)), mechanism, share, source)
    return tuned.after(noisy.values).bandwidths[0]


def measure(trials: int) -> Measured:
    """Integrated squared errors of both ways and of the best bandwidth, with all their sources."""
    lines, source, generator = [], SeededSource(29), np.random.default_rng(29)
    middles = (np.arange(CELLS) + 0.5) / CELLS
    for law, parts in LAWS.items():
        exact = sum(np.exp(-((middles - m) ** 2) / 2 / s**2) / s for m, s in parts)
        exact = exact / exact.sum()
        for rows in SIZES:
            rule, choice = release(rows, "quantiles"), release(rows, "error")
            assert isinstance(choice.choice, LeastError)
            ladder = choice.choice.ladder
            damped = np.exp(-2 * (np.pi * np.outer(ladder, WAVES)) ** 2)
            found = []
            for _ in range(trials):
                counts: Integers = generator.multinomial(rows, exact)
                transforms = np.fft.rfft(counts) / rows, np.fft.rfft(exact)
                error = (
                    np.abs(damped * transforms[0] - transforms[1]) ** 2 @ TWICE
                    + choice.choice.noise
                )
                tally = tally_of(DOMAIN, np.repeat(np.arange(CELLS), counts))
                drawn = [picked(tuned, tally, source) for tuned in (rule, choice)]
                picks = [int(np.argmin(np.abs(np.log(ladder / h)))) for h in drawn]
                found.append([error.min(), *error[picks]])
            best, by_rule, chosen = np.mean(found, axis=0)
            line: Line = {"law": law, "n": rows, "trials": trials, "best": rounded(best)}
            lines.append(line | {"rule": rounded(by_rule / best), "choice": rounded(chosen / best)})
    return Measured(lines, lambda figure: _draw(lines, figure))


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
    rows: list[Row] = []
    for law in dict.fromkeys(line["law"] for line in lines):
        ends = [line for line in lines if line["law"] == law and line["n"] in (SIZES[0], SIZES[-1])]
        found = (f"{x['rule']:,.3g}, {x['choice']:,.3g} at n = {x['n']:,}" for x in ends)
        rows.append((law, "", "; ".join(found)))
    return rows


EXPERIMENTS = (
    Experiment(
        "hrw-4.1.2",
        "A private choice of the bandwidth",
        "HRW 2013, section 4.1.2",
        "Errors with `private: quantiles` and `private: error`, as multiples of the least error. The"
        " first, a rule of thumb, is useless for two narrow normals. alpha is 1.",
        50,
        measure,
        _beside,
    ),
)
