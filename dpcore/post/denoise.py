"""Noisy two-way margins, freed of most of their noise: a model of all pairs, corrected by each.

A mixture fitted to all margins (``dpcore.post.mixture``) has little noise but may miss something;
a noisy table misses nothing but is mostly noise.  The better table lies between, cell by cell:

    denoised = model + r (noisy - model),     r = s^2 / (s^2 + noise variance),     s^2 = t model^e

How far the truth strays from the model, s^2, is learnt from the table itself: the scale t and the
exponent e (1: like counts; 2: in proportion) maximise the likelihood of the noisy cells, which are
normal with variance s^2 + noise variance about the model.  This is empirical Bayes shrinkage
(Efron & Morris 1973) towards a regression.  Where the noise is small, or the model wrong, r is near
one and the noisy table stands; where a table tells nothing, r is near zero.

The result is biased, unlike the noisy margins: it is meant for synthetic records, whose error it
halves on tables of many cells.

>>> import numpy as np
>>> model, noisy = np.array([[40.0, 10.0], [10.0, 40.0]]), np.array([[44.0, 8.0], [3.0, 45.0]])
>>> shrunken(model, noisy, 1e6).round(2).tolist(), shrunken(model, noisy, 1e-6).round(2).tolist()
([[40.0, 10.0], [10.0, 40.0]], [[44.0, 8.0], [3.0, 45.0]])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from dpcore.post.margins import Floats, Margin, MarginLike, checked_margins, checked_sizes
from dpcore.post.mixture import fit_mixture

EXPONENTS = (1.0, 1.5, 2.0)
SCALES = tuple(10.0 ** (quarter / 4) for quarter in range(-24, 17))
"""Candidates for e and t; t is near zero where the model is all there is to know."""

COMMON_CELLS = 100.0
"""What all tables say of e and t counts in each like this many cells of its own."""


def denoise(
    sizes: Sequence[int],
    margins: Iterable[MarginLike],
    generator: np.random.Generator,
    *,
    total: float,
    ordered: Collection[int] = (),
    linked: Sequence[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Margin]:
    """The margins, with less noise and some bias; their stated variance stays that of the noise.

    ``margins``: noisy, of two attributes each; ``total``, ``ordered``, ``linked``, ``progress``: as
    for ``fit_mixture``.  Tables may be slightly negative and need not agree.
    """
    sizes = checked_sizes(sizes)
    noisy = checked_margins(sizes, margins)
    if total == 0:
        return noisy
    mixture = fit_mixture(
        sizes, noisy, generator, total=total, ordered=ordered, linked=linked, progress=progress
    )
    models = [total * mixture.shares(margin.attributes) for margin in noisy]
    evidence = [
        _log_likelihoods(model, margin.table, margin.variance)
        for model, margin in zip(models, noisy, strict=True)
    ]
    cells = sum(margin.table.size for margin in noisy)
    common = COMMON_CELLS / cells * np.sum(evidence, axis=0)
    return [
        margin._replace(table=shrunken(model, margin.table, margin.variance, own + common))
        for model, margin, own in zip(models, noisy, evidence, strict=True)
    ]


def shrunken(
    model: Floats, noisy: Floats, variance: float, evidence: Floats | None = None
) -> Floats:
    """A table between the model and the noisy one: all of the same shape.

    ``model``: positive counts; ``variance``: of the noise in each cell; ``evidence``: the log
    likelihood of each candidate, by default what this table says.
    """
    if evidence is None:
        evidence = _log_likelihoods(model, noisy, variance)
    exponent, scale = np.unravel_index(int(evidence.argmax()), evidence.shape)
    spread = SCALES[scale] * np.maximum(model, 1e-9) ** EXPONENTS[exponent]
    return np.asarray(model + spread / (spread + variance) * (noisy - model))


def _log_likelihoods(model: Floats, noisy: Floats, variance: float) -> Floats:
    """(exponents, scales) log likelihood of the noisy table about the model, up to a constant."""
    base = np.maximum(model.ravel(), 1e-9)
    squares = (noisy - model).ravel() ** 2
    result = np.empty((len(EXPONENTS), len(SCALES)))
    for i, exponent in enumerate(EXPONENTS):
        power = base**exponent
        for j, scale in enumerate(SCALES):
            both = scale * power + variance
            result[i, j] = -float(np.sum(np.log(both / variance) + squares / both)) / 2
    return result
