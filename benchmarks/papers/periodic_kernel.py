"""The periodic approximation to the Gaussian kernel (Hall 2012, figure 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded
from dpcore.arrays import Floats
from dpcore.releases.densities.waves import Waves

SIGMA, CELLS = 0.1, 1000
X = (np.arange(CELLS) + 0.5) / CELLS


def wrapped(centre: float) -> Floats:
    """The periodic kernel of a record near the centre, from the coefficients that a release keeps."""
    basis = Waves((CELLS,), (SIGMA,), (CELLS,))
    weights = np.zeros(CELLS)
    weights[round(centre * CELLS)] = 1.0
    return basis.density(basis.lambdas * basis.means(weights))


def measure(trials: int) -> Measured:
    """Errors for records at 0.2 and 0.3; nothing here is random."""
    lines = []
    for centre in (0.2, 0.3):
        kernel = norm.pdf(X, X[round(centre * CELLS)], SIGMA)
        gap = np.abs(wrapped(centre) - kernel)
        images = norm.pdf(X, X[round(centre * CELLS)] + 1, SIGMA)
        lines.append(
            {
                "centre": centre,
                "largest_error": rounded(gap.max()),
                "at": rounded(X[gap.argmax()]),
                "next_image_there": rounded(images[gap.argmax()]),
                "height_with_printed_eigenvalues": rounded(
                    float(1 + 2 * np.exp(-2 * (SIGMA * np.arange(1, 100)) ** 2).sum())
                ),
                "height": rounded(kernel.max()),
                "relative_l2_error": rounded(float(np.sqrt((gap**2).sum() / (kernel**2).sum()))),
            }
        )
    return Measured(lines, _draw)


def _draw(figure: Any) -> None:
    for axes, centre in zip(figure.subplots(1, 2, sharey=True), (0.2, 0.3), strict=True):
        axes.plot(X, norm.pdf(X, centre, SIGMA), "k-", label="Gaussian")
        axes.plot(X, wrapped(centre), "C0--", label="periodic")
        axes.set(title=f"centre {centre}", xlabel="x")
    axes.legend()


def _beside(lines: list[Line]) -> list[Row]:
    return [
        (
            f"largest error, centres {' and '.join(str(line['centre']) for line in lines)}",
            "noticeable, reduced",
            ", ".join(f"{line['largest_error']:.2g}" for line in lines),
        ),
        (
            "height of the kernel",
            f"{lines[0]['height_with_printed_eigenvalues']:.3g} with the printed eigenvalues",
            f"{lines[0]['height']:.3g}",
        ),
    ]


EXPERIMENTS = (
    Experiment(
        "hall-4.1",
        "The periodic approximation to the Gaussian kernel",
        "Hall 2012, figure 4.1",
        "The thesis prints the eigenvalues exp(-2 pi^2 j^2 sigma^2) without pi^2, which makes the kernel"
        " pi times narrower.",
        1,
        measure,
        _beside,
    ),
)
