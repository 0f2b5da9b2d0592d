"""Where outputs leak: loss functions of three mechanisms (Askin, Kutta & Dette 2022, figure 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded, tally_of
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.audit import Pair, ReleaseDraws
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.releases.base import Release
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from papers.maximum_loss.densities import LossCurve, pair_loss
from papers.minimax_count.release import MinimaxCount

YES = Domain((Categories("yes", (False, True)),))
ALPHA = "0.2"
FEWEST = 20_000
RELEASES: dict[str, Release] = {
    "randomised response": MinimaxCount("count", YES, 1, Budget.of(ALPHA), counted=(1,)),
    "Laplace": Mean("mean", Domain((Grid("x", 0.0, 1.0, 1024),)), 1, Budget.of(ALPHA)),
    "Gaussian": MarginTables("g", YES, 1, Budget.of(ALPHA, "0.01"), ((0,),), "discrete-gaussian"),
}


def curve(release: Release, draws: int, source: SeededSource) -> tuple[LossCurve, list[Floats]]:
    """Of a record in the first cell against one in the last."""
    last = release.domain.size - 1
    pair = Pair("", *(tally_of(release.domain, np.array([cell])) for cell in (0, last)))
    sides = [ReleaseDraws(release, pair).draw(side, draws, source)[:, 0] for side in (0, 1)]
    numbers = [side.astype(np.float64) for side in sides]
    return pair_loss(*numbers), numbers


def measure(trials: int) -> Measured:
    """``trials``: draws of each side, of which a logarithm of a density needs thousands."""
    lines, source = [], SeededSource(41)
    for name, release in RELEASES.items():
        found, sides = curve(release, max(trials, FEWEST), source)
        known = np.isfinite(found.losses)
        points, losses = found.points[known], found.losses[known]
        middle = float(np.mean(np.concatenate(sides)))
        spread = float(np.std(np.concatenate(sides)))
        outside = np.abs(points - middle) > spread
        line: Line = {"mechanism": name, "largest": rounded(losses.max())}
        line |= {"far": rounded(losses[outside].mean()) if outside.any() else None}
        line |= {"near": rounded(losses[~outside].mean()) if (~outside).any() else None}
        line |= {"points": np.round(points, 2).tolist(), "losses": np.round(losses, 4).tolist()}
        lines.append(line)
    return Measured(lines, lambda figure: _draw(lines, figure))


def _draw(lines: list[Line], figure: Any) -> None:
    for axis, line in zip(figure.subplots(1, len(lines)), lines, strict=True):
        axis.plot(line["points"], line["losses"], "o" if len(line["points"]) < 9 else "-")
        axis.axhline(float(ALPHA), color="k", linestyle="--", linewidth=0.8)
        axis.set(title=line["mechanism"], xlabel="output", ylim=(0, None))
    figure.axes[0].set_ylabel("estimated loss")


def _beside(lines: list[Line]) -> list[Row]:
    said = {
        "randomised response": "two outputs have all of it",
        "Laplace": "the same but between the modes",
        "Gaussian": "grows without limit",
    }
    return [
        (
            line["mechanism"],
            said[line["mechanism"]],
            f"{line['largest']:.3g}; "
            + ", ".join("-" if line[k] is None else f"{line[k]:.3g}" for k in ("near", "far")),
        )
        for line in lines
    ]


EXPERIMENTS = (
    Experiment(
        "akd-2",
        "Where outputs leak",
        "AKD 2022, figure 2",
        "Largest loss; then mean loss within and beyond one standard deviation. Here"
        f" alpha = {ALPHA}; our copy of the paper does not state it. `python -m"
        " papers.maximum_loss` measures every release of a plan.",
        500_000,
        measure,
        _beside,
    ),
)
