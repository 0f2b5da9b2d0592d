"""The least worst-case risk of a count of 70 records, by linear programming (Hall 2012, figure 2.2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded
from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from papers.minimax_count.programs import geometric_table, losses, optimal_table
from papers.minimax_count.release import MinimaxCount

N = 70
DOMAIN = Domain((Categories("answer", ("no", "yes")),))


def measure(trials: int) -> Measured:
    """``trials``: values of alpha from 0.1 to 2; the program itself is solved for every fifth."""
    lines = []
    for i, alpha in enumerate(np.linspace(0.1, 2, trials).round(3)):
        share = Budget(Fraction(str(alpha)))
        release = MinimaxCount("count", DOMAIN, N, share, counted=(1,))
        clamped = (geometric_table(N, alpha) * losses(N, "absolute")).sum(axis=1)
        lines.append(
            {
                "alpha": float(alpha),
                "release": rounded(release.expected_error()[0].value, 6),
                "program": rounded(optimal_table(N, alpha)[1], 6) if i % 5 == 0 else None,
                "clamped_geometric": rounded(clamped.max()),
                "1/alpha": rounded(1 / alpha),
                "1/sinh(alpha)": rounded(1 / math.sinh(alpha)),
            }
        )
    return Measured(lines, lambda figure: _draw(lines, figure))


def _draw(lines: list[Line], figure: Any) -> None:
    axes = figure.subplots()
    alphas = [line["alpha"] for line in lines]
    for key, style, text in (
        ("release", "C0-", "release minimax-table"),
        ("1/alpha", "k--", "1/alpha"),
        ("1/sinh(alpha)", "C1:", "1/sinh(alpha)"),
    ):
        axes.semilogy(alphas, [line[key] for line in lines], style, label=text)
    solved = [line for line in lines if line["program"]]
    axes.plot([x["alpha"] for x in solved], [x["program"] for x in solved], "C0o", label="program")
    axes.set(xlabel="alpha", ylabel="largest expected absolute error")
    axes.legend()


def _beside(lines: list[Line]) -> list[Row]:
    first, last = lines[0], lines[-1]
    return [
        (
            f"risk at alpha = {first['alpha']:g} and {last['alpha']:g}",
            "",
            f"{first['release']:.4g}, {last['release']:.4g}",
        ),
        (
            f"limit for large n at alpha = {first['alpha']:g}",
            "the risk at n = 70",
            f"{first['1/sinh(alpha)']:g}",
        ),
    ]


EXPERIMENTS = (
    Experiment(
        "hall-2.2",
        "Least worst-case risk of a count, n = 70",
        "Hall 2012, figure 2.2",
        "The curve agrees. At small alpha the risk still grows beyond n = 70, contrary to the caption:"
        " its limit is 1/sinh(alpha).",
        39,
        measure,
        _beside,
    ),
)
