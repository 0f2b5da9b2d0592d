"""Families of models, each by the mean of the response and its slope in the linear predictor.

All links are canonical, so the score of a record with design z and response y is z (y - mean(z beta)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Floats

STEEPEST = 30.0
"""Predictors of logistic and Poisson models are cut at this size, which no survey supports."""


class Family(NamedTuple):
    """``mean``: of the response at linear predictors (rows,); ``slope``: its derivative."""

    name: str
    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]


def _logistic(predictor: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(predictor, -STEEPEST, STEEPEST))))


def _exponential(predictor: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(predictor, STEEPEST)))


FAMILIES = {
    "gaussian": Family("gaussian", np.asarray, np.ones_like),
    "binomial": Family(
        "binomial", _logistic, lambda predictor: _logistic(predictor) * (1 - _logistic(predictor))
    ),
    "poisson": Family("poisson", _exponential, _exponential),
}
