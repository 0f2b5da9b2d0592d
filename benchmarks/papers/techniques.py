"""The basic techniques and what each promises (Hall 2012, table 1.1), and the two that it conjectures.

The thesis suggests that the exponential and the K-norm mechanism become (alpha, beta)-DP, like the
Gaussian one, with the square of the metric in place of the metric.  With the scale of Gaussian noise of
the same sensitivity, what they lose is computed here:

    exponential  P(i) ~ exp(-s_i^2/(2 v)): scores are 0 and, of m candidates, S; a neighbour has 1 and
                 S - 1.  Then beta = P(0) - e^alpha P'(0)
    K-norm       density ~ exp(-|x|_K^2/(2 v)), K the cube of d dimensions; a neighbour is (1, ..., 1)
                 away.  |x|^2/v has a chi-square law with d degrees of freedom, and x is uniform on the
                 surface of its cube
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded
from dpcore.accounting.budget import Budget
from dpcore.accounting.gaussian import gaussian_variance
from dpcore.audit.audit import audit_mechanism
from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.releases import covered
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity

SIDES, LINE = Domain((Categories("side", ("a", "b")),)), Domain((Grid("x", 0.0, 1.0, 64),))
PURE, BOTH, ROWS = Budget.of("1"), Budget.of("1", "1e-6"), 100
RELEASES: dict[str, Release] = {
    "Laplace": Histogram("h", SIDES, ROWS, PURE),
    "gamma": GammaDensity("g", LINE, ROWS, PURE, (0.3,)),
    "Gaussian": MarginTables("m", SIDES, ROWS, BOTH, ((0,),), "discrete-gaussian"),
    "K-norm": BodyDensity("k", LINE, ROWS, PURE, (0.3,)),
    "exponential": ColumnQuantiles("q", LINE, ROWS, PURE, (Fraction(1, 2),)),
}
CANDIDATES, DIMENSIONS = (10**8, 10**16, 10**32), (16, 64, 256)


def measure(trials: int) -> Measured:
    """``trials``: draws of each side of a pair of tables."""
    lines: list[Line] = []
    for name, release in RELEASES.items():
        audited = [ReleaseDraws(release, pair) for pair in covered(release, 1)]
        found = audit_mechanism(audited, release.share, trials, SeededSource(43), level=0.95)
        lines.append({"technique": name, "lower_bound": rounded(found.lower_bound)})
    variance = float(gaussian_variance(Fraction(1), BOTH.alpha, BOTH.beta))
    lines += [
        {
            "squared": "exponential",
            "size": f"{m:.0e}",
            "beta": rounded(exponential_beta(m, variance)),
        }
        for m in CANDIDATES
    ]
    lines += [
        {"squared": "K-norm", "size": d, "beta": rounded(cube_beta(d, variance, 20 * trials))}
        for d in DIMENSIONS
    ]
    return Measured(lines, lambda figure: _draw(lines, figure))


def exponential_beta(candidates: int, variance: float) -> float:
    """The largest over S of the beta at alpha = 1."""
    far = np.linspace(1, 40 * math.sqrt(variance), 4000)
    many = math.log(candidates)
    first, again = (
        1 / (1 + np.exp(many - (s**2 - t**2) / (2 * variance))) for s, t in ((far, 0), (far - 1, 1))
    )
    return float((first - math.e * again).max())


def cube_beta(dimensions: int, variance: float, draws: int) -> float:
    """The beta at alpha = 1 of noise with a cube, by simulation."""
    generator = np.random.default_rng(47)
    radius = np.sqrt(variance * generator.chisquare(dimensions, draws))
    noise = generator.uniform(-1, 1, (draws, dimensions))
    side = generator.integers(0, dimensions, draws)
    noise[np.arange(draws), side] = generator.choice([-1.0, 1.0], draws)
    noise *= radius[:, None]
    loss = (np.abs(noise + 1).max(axis=1) ** 2 - radius**2) / (2 * variance)
    return float(np.maximum(1 - np.exp(1 - loss), 0).mean())


def _draw(lines: list[Line], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    audited = [line for line in lines if "technique" in line]
    left.bar([x["technique"] for x in audited], [x["lower_bound"] for x in audited])
    left.axhline(1, color="k", linestyle="--")
    left.tick_params(axis="x", rotation=30)
    left.set(ylabel="lower bound of alpha", title="the five techniques")
    for name in ("exponential", "K-norm"):
        mine = [line for line in lines if line.get("squared") == name]
        right.semilogy(range(len(mine)), [max(x["beta"], 1e-8) for x in mine], "o-", label=name)
    right.axhline(float(BOTH.beta), color="k", linestyle="--")
    right.set(ylabel="beta at alpha = 1", xlabel="larger and larger problems", title="squared")
    right.legend()


def _beside(lines: list[Line]) -> list[Row]:
    audited = {line["technique"]: line["lower_bound"] for line in lines if "technique" in line}
    of = {"exponential": "candidates", "K-norm": "dimensions"}
    return [
        (
            f"audits' lower bounds of alpha = 1 ({', '.join(audited)})",
            "",
            ", ".join(f"{bound:.3g}" for bound in audited.values()),
        ),
        *(
            (
                f"beta of the squared {name}, {', '.join(str(x['size']) for x in mine)} {of[name]}",
                "1e-6",
                ", ".join(f"{x['beta']:.2g}" for x in mine),
            )
            for name in of
            for mine in [[line for line in lines if line.get("squared") == name]]
        ),
    ]


EXPERIMENTS = (
    Experiment(
        "hall-table-1.1",
        "The basic techniques, and squared norms",
        "Hall 2012, table 1.1",
        "The thesis calls it plausible that squared metrics give (alpha, beta)-DP. At the scale of"
        " Gaussian noise this is false.",
        20_000,
        measure,
        _beside,
    ),
)
