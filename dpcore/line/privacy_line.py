"""The privacy line: the one function that turns an exact statistic into a noisy one.

To review the privacy of dprelease is to read this function, the mechanisms that it calls
(``dpcore.mechanisms``) with their samplers (``dpcore.sampling``), and the sensitivity that each
release states (``dpcore.releases``).  It is the only reader of exact values and the only writer of
noisy ones.
"""

from __future__ import annotations

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.domain.words import ascending
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Mechanism, affordable
from dpcore.line.statistic import Exact, Noisy, Statistic
from dpcore.sampling.source import RandomSource

LARGEST_VALUE = 2**62
"""Noise is added to 64-bit integers; larger values could overflow."""


def perturb(exact: Exact, mechanism: Mechanism, share: Budget, source: RandomSource) -> Noisy:
    """Draw the noisy statistic, within a share of the budget that was reserved for it.

    ``exact`` is private; everything else is public.  The result is differentially private at ``share``,
    for the sensitivity that the mechanism states.  Raises ``PrivacyLineError``, before any noise is
    drawn, if the statistic does not have the public form, or if the mechanism has no price or costs
    more than the share.
    """
    if not affordable(mechanism.event, share):
        raise PrivacyLineError(
            f"the mechanism ({type(mechanism).__name__}) has no price within its share ({share})"
        )
    statistic = exact._statistic
    _require_public_form(statistic, mechanism)
    return mechanism.draw(statistic, source)


def _require_public_form(statistic: Statistic, mechanism: Mechanism) -> None:
    """Raise ``PrivacyLineError`` unless the form is right; the message never contains a value."""
    values, cells = statistic
    if values.dtype != np.int64 or (cells is not None and cells.dtype != np.int64):
        raise PrivacyLineError("the statistic is not made of 64-bit integers")
    if len(values) and (values.max() >= LARGEST_VALUE or values.min() <= -LARGEST_VALUE):
        raise PrivacyLineError("the statistic holds a number too large to be perturbed")
    if mechanism.sparse:
        words, shape = mechanism.words, values.shape
        if (
            cells is None
            or cells.shape != (shape if len(words) == 1 else (*shape, len(words)))
            or not ascending(cells)
            or np.any(cells < 0)
            or np.any(cells >= np.array(words))
        ):
            raise PrivacyLineError("the statistic is not a list of ascending public cells")
    elif cells is not None or values.shape != (mechanism.size,):
        raise PrivacyLineError("the statistic does not have one value per public cell")
