"""Noisy counts, shrunken towards a model of them, cell by cell.

    denoised = model + r (noisy - model),     r = s^2 / (s^2 + noise variance),     s^2 = t model^e

The variance s^2 of the truth around the model is estimated from the table itself: the scale t and the
exponent e (1: as for counts; 2: proportional errors) maximise the likelihood of the noisy cells, which
are normal with variance s^2 + noise variance about the model.  This is empirical Bayes shrinkage
(Efron & Morris 1973) towards a regression.  Where the noise is small, or the model wrong, r is near
one and the noisy table hardly changes; where a table is pure noise, r is near zero.

>>> import numpy as np
>>> model, noisy = np.array([[40.0, 10.0], [10.0, 40.0]]), np.array([[44.0, 8.0], [3.0, 45.0]])
>>> shrink(model, noisy, 1e6).round(2).tolist(), shrink(model, noisy, 1e-6).round(2).tolist()
([[40.0, 10.0], [10.0, 40.0]], [[44.0, 8.0], [3.0, 45.0]])
"""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Floats

EXPONENTS = (1.0, 1.5, 2.0)
SCALES = tuple(10.0 ** (quarter / 4) for quarter in range(-24, 17))
"""Candidates for t, and for e; t is near zero if the model fits perfectly."""

NO_NOISE = 4.0
"""A deviation of this many standard deviations of the noise is not noise."""


def shrink(
    model: Floats, noisy: Floats, variance: float | Floats, evidence: Floats | None = None
) -> Floats:
    """A table between the model and the noisy table; all three have the same shape.

    ``model``: positive counts; ``variance``: of the noise in each cell; ``evidence``: the log
    likelihood of each candidate for e and t, by default from this table only.
    """
    if evidence is None:
        evidence = log_likelihoods(model, noisy, variance)
    spread = _spread(model, evidence)
    return np.asarray(model + spread / (spread + variance) * (noisy - model))


def kept_beside(model: Floats, noisy: Floats, variance: float) -> Floats:
    """The fraction of its deviation from the model that each cell (k,) of a noisy table keeps.

    It is 1 if the deviation cannot be noise, for example at a value that many people have; the
    fractions of the other cells are then estimated without these cells.
    """
    outside = (noisy - model) ** 2 > (NO_NOISE**2) * variance
    spread = _spread(model, log_likelihoods(model[~outside], noisy[~outside], variance))
    return np.where(outside, 1.0, spread / (spread + variance))


def _spread(model: Floats, evidence: Floats) -> Floats:
    """The variance of the truth about each cell of the model."""
    exponent, scale = np.unravel_index(int(evidence.argmax()), evidence.shape)
    return np.asarray(SCALES[scale] * np.maximum(model, 1e-9) ** EXPONENTS[exponent])


def log_likelihoods(model: Floats, noisy: Floats, variance: float | Floats) -> Floats:
    """The log likelihood (exponents, scales) of the noisy table given the model, up to a constant."""
    base = np.maximum(model.ravel(), 1e-9)
    variance = np.ravel(variance)
    squares = (noisy - model).ravel() ** 2
    result = np.empty((len(EXPONENTS), len(SCALES)))
    for i, exponent in enumerate(EXPONENTS):
        power = base**exponent
        for j, scale in enumerate(SCALES):
            both = scale * power + variance
            result[i, j] = -float(np.sum(np.log(both / variance) + squares / both)) / 2
    return result
