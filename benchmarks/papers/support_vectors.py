"""A private kernel support vector machine in the plane (Hall, Rinaldo & Wasserman 2013, figure 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.experiment import Experiment, Line, Measured, Row, rounded, tally_of
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.line.privacy_line import perturb
from dpcore.releases.machines.classifier import Classifier
from dpcore.sampling.source import SeededSource

ROWS, CELLS = 1000, 256
SHARE = Budget.of(1, "1e-6")
DOMAIN = Domain(
    (Grid("x", 0.0, 1.0, CELLS), Grid("y", 0.0, 1.0, CELLS), Categories("label", ("no", "yes")))
)
PLANE = np.stack(np.meshgrid(*[(np.arange(100) + 0.5) / 100] * 2, indexing="ij"), axis=-1).reshape(
    -1, 2
)


def sample(rows: int, generator: np.random.Generator) -> tuple[Floats, Integers]:
    """Points (rows, 2) around two centres of each class, like a chessboard, and labels 0 or 1."""
    centres = np.array([[0.3, 0.3], [0.7, 0.7], [0.3, 0.7], [0.7, 0.3]])
    which = generator.integers(4, size=rows)
    points = np.clip(centres[which] + 0.09 * generator.normal(size=(rows, 2)), 0, 1 - 1e-9)
    return points, (which >= 2).astype(np.int64)


def measure(trials: int) -> Measured:
    """One machine of 1,000 records, released ``trials`` times."""
    generator, source = np.random.default_rng(7), SeededSource(7)
    points, labels = sample(ROWS, generator)
    codes = np.column_stack([(points * CELLS).astype(np.int64), labels])
    release = Classifier("machine", DOMAIN, ROWS, SHARE, (0.15, 0.15), 0.01, 256, signs=(-1, 1))
    tally = tally_of(DOMAIN, DOMAIN.pack(codes))
    trained, _ = release.trained(tally)
    statistic = release.statistic(tally)
    noisy = [perturb(statistic, release.mechanism, SHARE, source) for _ in range(trials)]
    test, truth = sample(4000, generator)
    exact, surface = (release.features.transform(x) @ trained for x in (test, PLANE))
    private = np.array([release.decide(one, test) for one in noisy])
    agree = (np.sign(private) == np.sign(exact)).mean(axis=0)
    order = np.argsort(np.abs(exact))
    line = {
        "alpha": 1,
        "beta": 1e-6,
        "trials": trials,
        "decision_stddev": rounded(release.decision_stddev),
        "exact_accuracy": rounded(float(((exact > 0) == truth).mean())),
        "private_accuracy": rounded(float(((private > 0) == truth).mean())),
        "agree_sure": rounded(float(agree[order[-2000:]].mean())),
        "agree_unsure": rounded(float(agree[order[:400]].mean())),
        "agree_plane": rounded(
            float(np.mean([(release.decide(one, PLANE) > 0) == (surface > 0) for one in noisy]))
        ),
    }
    surfaces = [surface, release.decide(noisy[0], PLANE)]
    return Measured([line], lambda figure: _draw(surfaces, points, labels, figure))


def _draw(surfaces: list[Floats], points: Floats, labels: Integers, figure: Any) -> None:
    titles = ("without noise", "private")
    for axes, surface, title in zip(figure.subplots(1, 2), surfaces, titles, strict=True):
        axes.contourf(
            np.linspace(0, 1, 100),
            np.linspace(0, 1, 100),
            surface.reshape(100, 100).T,
            levels=[-np.inf, 0, np.inf],
            colors=["#f4c7b8", "#bcd3ea"],
        )
        for value, mark in ((0, "x"), (1, ".")):
            axes.plot(*points[labels == value][:150].T, f"k{mark}", markersize=3)
        axes.set(title=title, aspect="equal", xlim=(0, 1), ylim=(0, 1))


def _beside(lines: list[Line]) -> list[Row]:
    (line,) = lines
    return [
        (
            "accuracy without noise, and private",
            "",
            f"{line['exact_accuracy']:.1%}, {line['private_accuracy']:.1%}",
        ),
        (
            "agreement on the surest half, the least sure tenth",
            "not catastrophically decreased, different",
            f"{line['agree_sure']:.1%}, {line['agree_unsure']:.1%}",
        ),
    ]


EXPERIMENTS = (
    Experiment(
        "hrw-3",
        "A private kernel support vector machine",
        "HRW 2013, figure 3 (thesis, figure 3.4)",
        f"The papers do not state points, n, lambda or budget. Here n = {ROWS}, lambda = 0.01, alpha"
        " = 1 and beta = 1e-6.",
        100,
        measure,
        _beside,
    ),
)
