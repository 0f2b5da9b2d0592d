"""Truncated expansions of a smooth function (Hall 2012, figure 3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded, tally_of
from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.releases.densities.spectral_density import SpectralDensity

CELLS, ROWS, BANDWIDTH = 1024, 100, 0.05
SHARE = Budget.of(1, "1e-6")
TERMS = (5, 10, 15)


def measure(trials: int) -> Measured:
    """Error, sensitivity and noise of 5, 10 and 15 terms; ``trials``: random functions."""
    domain = Domain((Grid("x", 0.0, 1.0, CELLS),))
    generator = np.random.default_rng(31)
    whole = SpectralDensity("d", domain, ROWS, SHARE, bandwidths=(BANDWIDTH,))
    curves, errors = {}, {terms: [] for terms in TERMS}
    for _ in range(trials):
        points = np.concatenate([generator.normal(0.3, 0.1, 50), generator.normal(0.7, 0.1, 50)])
        cells = np.clip(points * CELLS, 0, CELLS - 1).astype(np.int64)
        weights = tally_of(domain, cells).dense() / ROWS
        curves[None] = whole.basis.density(whole.basis.lambdas * whole.basis.means(weights))
        for terms in TERMS:
            basis = SpectralDensity("d", domain, ROWS, SHARE, (BANDWIDTH,), terms=terms).basis
            curves[terms] = basis.density(basis.lambdas * basis.means(weights))
            gap = curves[terms] - curves[None]
            errors[terms].append(np.sqrt((gap**2).mean() / (curves[None] ** 2).mean()))
    lines = []
    for terms in (*TERMS, None):
        release = SpectralDensity("d", domain, ROWS, SHARE, (BANDWIDTH,), terms=terms)
        lines.append(
            {
                "terms": terms or whole.basis.size,
                "relative_l2_error": rounded(float(np.mean(errors[terms]))) if terms else 0.0,
                "farthest_over_whole": rounded(farthest(release) / farthest(whole)),
                "noise_ise": rounded(float(release.coefficient_variances.sum())),
            }
        )
    return Measured(lines, lambda figure: _draw(curves, figure))


def farthest(release: SpectralDensity) -> float:
    """The largest distance of two records in the whitened coefficients that are kept."""
    records = [release.basis.means(one) for one in np.eye(CELLS)[:: CELLS // 128]]
    records.append(release.basis.means(np.eye(CELLS)[-1]))
    whitened = np.array(records) * np.sqrt(release.basis.lambdas)
    return float(pdist(whitened).max())


def _draw(curves: dict[int | None, Any], figure: Any) -> None:
    x = (np.arange(CELLS) + 0.5) / CELLS
    for axes, terms in zip(figure.subplots(1, 3, sharey=True), TERMS, strict=True):
        axes.plot(x, curves[None], "k-")
        axes.plot(x, curves[terms], "C0--")
        axes.set(title=f"{terms} terms", xlabel="x")


def _beside(lines: list[Line]) -> list[Row]:
    *truncated, _ = lines
    terms = ", ".join(str(line["terms"]) for line in truncated)
    return [
        (
            f"relative L2 error of {terms} terms",
            "",
            ", ".join(f"{line['relative_l2_error']:.2g}" for line in truncated),
        ),
        (
            "their sensitivity over the full one",
            "at most 1",
            ", ".join(f"{line['farthest_over_whole']:.3f}" for line in truncated),
        ),
    ]


EXPERIMENTS = (
    Experiment(
        "hall-3.1",
        "Truncated expansions of a function",
        "Hall 2012, figure 3.1",
        f"The thesis does not state its function. Here it is a kernel density with h = {BANDWIDTH}.",
        50,
        measure,
        _beside,
    ),
)
