"""Bands of mean curves, over repeated draws, beside separate means at the same budget.

    python -m benchmarks.curves --rows 10000 --points 48 --alpha 1 --neighbours add-remove --json

Made-up load profiles between 0 and 3 kW: a night, a morning and an evening of their own for each record.
Discrete Gaussian noise, beta 1e-6.  With the largest step stated (``--step`` of the range
between neighbouring points; 0 for none):

    half_width      of the band, averaged over times, as a share of the mean of the curve
    coverage        how often the band holds the mean curve of the records as they are: cut steps and
                    grids count as errors; and its standard error
    cut             share of the records of which a step is cut
    without_step    half_width if no largest step is stated
    means           half_width of as many separate means, with Laplace noise each at alpha/points, whose
                    intervals hold all at once
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency, Relation
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.densities.banded import BAND
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.mean_curve import MeanCurve
from dpcore.releases.table import LEVEL
from dpcore.sampling.source import SeededSource

BETA, HIGHEST, CELLS = "1e-6", 3.0, 1024


def profiles(rows: int, points: int, seed: int) -> Floats:
    """(rows, points) loads in kW through a day."""
    random = np.random.default_rng(seed)
    hours = np.linspace(0, 24, points, endpoint=False)
    base = random.uniform(0.2, 0.9, (rows, 1))
    morning, evening = random.uniform(0, 1.0, (rows, 1)), random.uniform(0.2, 1.6, (rows, 1))
    rise, fall = random.normal(7.5, 1.0, (rows, 1)), random.normal(19.0, 1.2, (rows, 1))
    day = morning * np.exp(-((hours - rise) ** 2) / 4.5)
    night = evening * np.exp(-((hours - fall) ** 2) / 12)
    return np.clip(base + day + night + random.normal(0, 0.03, (rows, points)), 0, HIGHEST)


def release_of(
    rows: int, points: int, alpha: str, step: float, neighbours: Relation = "replace-one"
) -> MeanCurve:
    """The mean of such profiles; ``step``: as a share of the range."""
    domain = Domain(tuple(Grid(f"p{i}", 0.0, HIGHEST, CELLS) for i in range(points)))
    largest = step * HIGHEST if step else None
    times = tuple(np.linspace(0, 24, points, endpoint=False).tolist())
    share = Budget.of(alpha, BETA)
    own = {"times": times, "step_at_most": largest, "adjacency": Adjacency(neighbours)}
    return MeanCurve("load", domain, rows, share, **own)


def measured(
    rows: int, points: int, alpha: str, step: float, neighbours: Relation, draws: int
) -> dict[str, Any]:
    """What the module's docstring lists."""
    release, without = (release_of(rows, points, alpha, each, neighbours) for each in (step, 0.0))
    loads = profiles(rows, points, 1)
    truth, mean = loads.mean(axis=0), float(loads.mean())
    codes = np.minimum((loads / HIGHEST * CELLS).astype(np.int64), CELLS - 1)
    tally = Tally.of(release.domain, release.domain.pack(codes))

    def bands(release: MeanCurve, times: int) -> Floats:
        """(times, 2, points)."""
        exact, found = release.statistic(tally), []
        for seed in range(times):
            noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
            stated = release.stated(noisy)[0]
            found.append([stated[end][0] for end in BAND])
        return np.array(found)

    def half_width(bands: Floats) -> float:
        return float(np.mean(bands[:, 1] - bands[:, 0])) / 2 / mean

    own = bands(release, draws)
    held = np.all((own[:, 0] <= truth) & (truth <= own[:, 1]), axis=1)
    share = Budget.of(Fraction(alpha) / points)
    one = Mean("mean", Domain(release.grids[:1]), rows, share)  # replace-one: rows are public
    at_once = one.mechanism.half_width(1 - (1 - LEVEL) / points) * HIGHEST / CELLS / rows
    cut = np.abs(np.diff(codes, axis=1)).max(axis=1) > release.curves.step if step else np.zeros(1)
    return {
        "half_width": half_width(own),
        "coverage": float(np.mean(held)),
        "coverage_error": float(np.sqrt(LEVEL * (1 - LEVEL) / draws)),
        "cut": float(np.mean(cut)),
        "without_step": half_width(bands(without, 1)),
        "means": at_once / mean,
    }


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=48)
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--neighbours", choices=get_args(Relation), default="replace-one")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = {name: value for name, value in vars(options).items() if name != "json"}
    found = asked | measured(**asked)
    print(json.dumps(found) if options.json else found)


if __name__ == "__main__":
    main()
