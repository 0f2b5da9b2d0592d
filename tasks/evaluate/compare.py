"""Compares two tables: by margins, by distributions of numbers and by classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpcore.arrays import Floats
from dpcore.estimates.distances import (
    QuantileErrors,
    margin_distances,
    quantile_errors,
    rank_correlations,
)
from dpcore.estimates.shapes import Shape, compared_shapes
from tasks.evaluate.classifiers import (
    Transfer,
    default_label,
    propensity_auc,
    require_classifiers,
    transfer,
)
from tasks.evaluate.tables import TablePair

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Spread:
    """Mean, largest value and number of distances, and the columns with the largest one."""

    mean: float
    worst: float
    worst_at: tuple[str, ...]
    compared: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Distances of a synthetic table from the real one, computed without noise.

    ``left_out``: columns of one table alone; ``empty``: columns without a value in both tables.
    ``margins``: total variation by number of columns; ``distances``: total variation for each column and
    pair; ``propensity_auc``: how well trees separate synthetic from real records (0.5: not at all);
    ``correlations``: absolute differences of rank correlations; ``quantiles``: at ``LEVELS``, and
    ``shapes``: both by numeric column.
    """

    real_records: int
    synthetic_records: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    empty: tuple[str, ...]
    margins: Mapping[int, Spread]
    distances: Mapping[tuple[str, ...], float]
    propensity_auc: float
    classifier: Transfer
    correlations: Spread | None
    quantiles: Mapping[str, QuantileErrors]
    shapes: Mapping[str, Shape]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; infinity becomes null."""
        return {
            "real_records": self.real_records,
            "synthetic_records": self.synthetic_records,
            "columns": list(self.columns),
            "left_out": list(self.left_out),
            "empty": list(self.empty),
            "total_variation": {str(ways): asdict(s) for ways, s in self.margins.items()},
            "propensity_auc": self.propensity_auc,
            "classifier": asdict(self.classifier),
            "rank_correlation": asdict(self.correlations) if self.correlations else None,
            "quantiles": {
                name: {
                    "levels": list(LEVELS),
                    "real": errors.real.tolist(),
                    "synthetic": errors.synthetic.tolist(),
                    "largest": errors.largest if np.isfinite(errors.largest) else None,
                }
                for name, errors in self.quantiles.items()
            },
            "shapes": {name: {"distance": each.distance} for name, each in self.shapes.items()},
        }


def evaluate(pair: TablePair, label: str | None = None) -> Evaluation:
    """Compare the two tables; ``label``: the column that the classifiers learn to predict."""
    require_classifiers()
    label = label or default_label(pair)
    real, synthetic, sizes = pair.codes
    names = pair.columns
    distances = {
        ways: {
            tuple(names[i] for i in chosen): distance
            for chosen, distance in margin_distances(real, synthetic, sizes, ways).items()
        }
        for ways in range(1, min(3, len(names)) + 1)
    }
    numbers = {name: values for name in pair.numeric if all(map(len, values := _known(pair, name)))}
    return Evaluation(
        len(real),
        len(synthetic),
        tuple(names),
        pair.left_out,
        pair.empty,
        {ways: _spread(found) for ways, found in distances.items()},
        distances[1] | distances[2],
        propensity_auc(pair),
        transfer(pair, label),
        _correlations(pair),
        {name: quantile_errors(*values, LEVELS) for name, values in numbers.items()},
        {name: compared_shapes(*values) for name, values in numbers.items()},
    )


def _spread(distances: Mapping[tuple[str, ...], float]) -> Spread:
    worst = max(distances, key=lambda columns: distances[columns])
    mean = float(np.mean(list(distances.values())))
    return Spread(mean, distances[worst], worst, len(distances))


def _known(pair: TablePair, name: str) -> tuple[Floats, Floats]:
    return pair.real[name].dropna().to_numpy(), pair.synthetic[name].dropna().to_numpy()


def _correlations(pair: TablePair) -> Spread | None:
    if len(pair.numeric) < 2:
        return None
    ours, theirs = (
        rank_correlations(frame[pair.numeric].to_numpy()) for frame in (pair.real, pair.synthetic)
    )
    named = combinations(range(len(pair.numeric)), 2)
    return _spread(
        {
            (pair.numeric[i], pair.numeric[j]): abs(float(ours[i, j] - theirs[i, j]))
            for i, j in named
        }
    )
