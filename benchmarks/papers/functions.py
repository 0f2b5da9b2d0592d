"""A kernel density with Gaussian-process noise (Hall, Rinaldo & Wasserman 2013, figures 1 and 2)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded, tally_of
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.kernels import KernelName
from dpcore.sampling.source import SeededSource

ROWS, BANDWIDTH, POINTS = 100, 0.1, 1000
SHARE = Budget.of(1, "0.1")
X = (np.arange(POINTS) + 0.5) / POINTS
PRINTED = {"gaussian": math.sqrt(2 / (2 * math.pi)), "exponential": 2 / (2 * math.pi) ** 0.25}
"""The papers' sensitivities, times n h."""


def measure(kernel: KernelName, trials: int) -> Measured:
    """One sample of 100 points, released ``trials`` times."""
    domain, generator = Domain((Grid("x", 0.0, 1.0, POINTS),)), np.random.default_rng(3)
    points = np.concatenate([generator.normal(m, 0.1, ROWS // 2) for m in (0.3, 0.7)])
    tally = tally_of(domain, np.clip(points * POINTS, 0, POINTS - 1).astype(np.int64))
    release = SmoothFunction("f", domain, ROWS, SHARE, kernel, (BANDWIDTH,), (POINTS,))
    exact = np.exp(-0.5 * ((X[:, None] - X[tally.cells]) / BANDWIDTH) ** 2) @ tally.counts
    exact *= 1 / (ROWS * BANDWIDTH * math.sqrt(2 * math.pi))
    statistic, source = release.statistic(tally), SeededSource(5)
    released = [
        release.on_grid(perturb(statistic, release.mechanism, SHARE, source)) for _ in range(trials)
    ]
    noise = np.array(released) - exact
    line = {
        "kernel": kernel,
        "trials": trials,
        "stated_stddev": rounded(release.stddev),
        "measured_stddev": rounded(float(np.sqrt((noise**2).mean()))),
        "relative_l2_error": rounded(float(np.sqrt((noise**2).mean() / (exact**2).mean()))),
        "both_peaks": rounded(float(np.mean([two_peaks(exact, path) for path in released]))),
        "roughness": rounded(float(np.abs(np.diff(noise, axis=1)).mean() * POINTS)),
    } | printed(kernel)
    return Measured([line], lambda figure: _draw(exact, released, figure))


def two_peaks(exact: Floats, path: Floats) -> bool:
    """Whether the path is higher at both peaks of the estimate than in the valley between them."""
    half = POINTS // 2
    left, right = int(exact[:half].argmax()), half + int(exact[half:].argmax())
    valley = left + int(exact[left:right].argmin())
    return bool(min(path[left], path[right]) > path[valley])


def printed(kernel: KernelName) -> Line:
    """The standard deviation that the paper's text means, and the one that its formula says."""
    c = math.sqrt(2 * math.log(2 / float(SHARE.beta)))
    scale = c * PRINTED[kernel] / (ROWS * BANDWIDTH) / float(SHARE.alpha)
    return {"paper_stddev": rounded(scale), "as_printed_stddev": rounded(math.sqrt(scale))}


def _draw(exact: Floats, released: list[Floats], figure: Any) -> None:
    axes = figure.subplots()
    for path in released[1:4]:
        axes.plot(X, path, color="C0", linewidth=0.5, alpha=0.5)
    axes.plot(X, exact, "k-", label="kernel density")
    axes.plot(X, released[0], "C0--", label="released (three more in pale)")
    axes.set(xlabel="x", ylabel="density")
    axes.legend()


def _beside(look: str, lines: list[Line]) -> list[Row]:
    (line,) = lines
    return [
        (
            "standard deviation of the noise",
            f"{line['paper_stddev']:.3g}; {line['as_printed_stddev']:.3g} with the printed covariance",
            f"{line['stated_stddev']:.3g} stated, {line['measured_stddev']:.3g} measured",
        ),
        ("slope of the noise", look, f"{line['roughness']:.3g}"),
    ]


EXPERIMENTS = (
    Experiment(
        "hrw-1",
        "A kernel density, noise with the Gaussian kernel",
        "HRW 2013, figure 1 (thesis, figure 3.2)",
        "100 points around 0.3 and 0.7, h = 0.1, alpha = 1, beta = 0.1. The analytic calibration more"
        " than halves the noise.",
        200,
        partial(measure, "gaussian"),
        partial(_beside, "smooth"),
    ),
    Experiment(
        "hrw-2",
        "A kernel density, noise with the exponential kernel",
        "HRW 2013, figure 2 (thesis, figure 3.3)",
        "The same data. The sharp sensitivity is 0.668/(n h); the paper's is 1.263/(n h).",
        200,
        partial(measure, "exponential"),
        partial(_beside, "rough"),
    ),
)
