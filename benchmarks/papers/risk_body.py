"""The risk body of a count of one record (Hall 2012, figure 2.1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded
from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from papers.minimax_count.release import MinimaxCount

ALPHAS = ("0.05", "0.5", "1", "5")
DOMAIN = Domain((Categories("answer", ("no", "yes")),))


def measure(trials: int) -> Measured:
    """``trials``: directions in which the farthest point of the body is looked for."""
    lines = []
    for alpha in ALPHAS:
        release = MinimaxCount("count", DOMAIN, 1, Budget.of(alpha), counted=(1,))
        corners = body(float(alpha), trials)
        lines.append(
            {
                "alpha": float(alpha),
                "corners": [[rounded(x) for x in corner] for corner in corners],
                "area": rounded(_area(corners)),
                "release": rounded(release.expected_error()[0].value, 6),
                "1/(1+e^alpha)": rounded(1 / (1 + math.exp(float(alpha))), 6),
            }
        )
    return Measured(lines, lambda figure: _draw(lines, figure))


def body(alpha: float, directions: int) -> list[tuple[float, float]]:
    """Its corners, in order.  The risks are x, the chance of 1 for the count 0, and y, of 0 for 1.

    x <= e^alpha (1 - y), 1 - y <= e^alpha x, and the same with both exchanged.
    """
    e = math.exp(alpha)
    above = np.array([[1.0, e], [-e, -1.0], [e, 1.0], [-1.0, -e]])
    most = np.array([e, -1.0, e, -1.0])
    found = []
    for turn in np.linspace(0, 2 * np.pi, directions, endpoint=False) + 0.01:
        far = linprog([-math.cos(turn), -math.sin(turn)], above, most, bounds=[(0, 1)] * 2).x
        corner = tuple(np.round(far, 9).tolist())
        if corner not in found:
            found.append(corner)
    return found


def _area(corners: list[tuple[float, float]]) -> float:
    x, y = np.array(corners).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def _draw(lines: list[Line], figure: Any) -> None:
    for axis, line in zip(figure.subplots(1, len(lines), sharey=True), lines, strict=True):
        axis.fill(*np.array(line["corners"]).T, alpha=0.4)
        axis.plot(line["release"], line["release"], "C3o", markersize=4)
        axis.set(title=f"alpha = {line['alpha']:g}", xlabel="risk for 0", xlim=(0, 1), ylim=(0, 1))
        axis.set_aspect("equal")
    figure.axes[0].set_ylabel("risk for 1")


def _beside(lines: list[Line]) -> list[Row]:
    alphas = ", ".join(f"{line['alpha']:g}" for line in lines)
    return [
        (
            f"least worst-case risk at alpha = {alphas}",
            "",
            ", ".join(f"{line['release']:.4g}" for line in lines),
        )
    ]


EXPERIMENTS = (
    Experiment(
        "hall-2.1",
        "The risk body of a count of one record",
        "Hall 2012, figure 2.1",
        "The shapes agree. The dot is the release `count: minimax-table`, whose risk is 1/(1 +"
        " e^alpha).",
        64,
        measure,
        _beside,
    ),
)
