"""Is the noise as wide as stated?  An upper confidence bound for its width, from outputs.

The tables of an audit are made up, so the exact statistic is known, and a mechanism says how likely
outputs are if its noise were c times as wide as it states (``Mechanism.widths``): a scale of Laplace,
K-norm or exponential mechanisms, the standard deviation of Gaussian noise, the prior of an urn.  With
l(c) the log chance of all outputs,

    E(c) = mean over narrower c' of exp(l(c') - l(c))

has a mean of 1 where the noise is c times as wide, whatever the number of outputs, so that
P(E(c) >= 1/error) <= error (Markov; Ville 1939).  Every c with a smaller E is possible; the largest of
them is the bound.  Noise is narrower than stated where c = 1 is not possible.

The bound is exact for outputs that are independent and of the stated law at some width.  It looks
at each release alone: sensitivities, and noise that two releases share, are for other bounds.

>>> outputs = np.random.default_rng(1).laplace(0, 1, 2_000)
>>> def logs(scale): return -np.abs(outputs).sum() / scale - len(outputs) * np.log(2 * scale)
>>> bound = bound_width(logs, len(outputs), error=1e-6)
>>> bound.passed, bound_width(lambda c: logs(0.8 * c), 2_000, error=1e-6).passed  # of scale 1, not 1/0.8
(True, True)
>>> bound_width(lambda c: logs(c / 0.8), 2_000, error=1e-6).passed  # 0.8 times as wide as stated
False
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.scores import Outputs
from dpcore.errors import AuditError
from dpcore.mechanism import Widths
from dpcore.sampling.source import RandomSource

FACTORS = np.unique(np.r_[0.05 * 1.08 ** np.arange(39), 1.0, 1.08 ** np.arange(1, 19)])
"""Widths that are compared, from a twentieth to four times the stated one."""

PILOT = 64
"""Draws of each table by which the most telling one is chosen."""


@dataclass(frozen=True)
class WidthBound:
    """``estimate``: the likeliest width of the noise over the stated one; ``at_most``: the upper
    confidence bound, infinite where outputs say nothing; ``draws``: outputs behind it."""

    estimate: float
    at_most: float
    draws: int
    passed: bool


def bound_width(log_chance: Callable[[float], float], draws: int, error: float) -> WidthBound:
    """The bound from the log chance of all outputs together; it fails with probability ``error``."""
    logs = np.nan_to_num([log_chance(float(factor)) for factor in FACTORS], neginf=-1e300)
    evidence = [
        float(logsumexp(logs[:i]) - math.log(i) - logs[i]) if i else -math.inf
        for i in range(len(logs))
    ]
    possible = np.array(evidence) < math.log(1 / error)
    widest = int(np.flatnonzero(possible).max())
    stated = int(np.searchsorted(FACTORS, 1.0))
    return WidthBound(
        float(FACTORS[int(np.argmax(logs))]),
        math.inf if widest == len(FACTORS) - 1 else float(FACTORS[widest]),
        draws,
        bool(possible[stated]),
    )


def audit_width(
    tables: Sequence[ReleaseDraws],
    draws: int,
    error: float,
    source: RandomSource,
    seconds: float = math.inf,
) -> WidthBound | None:
    """Bound the width of a release's noise on the table that says most about it.

    Outputs are drawn until there are ``draws`` of them or ``seconds`` of CPU are over.  None where no
    table says anything: a mechanism without such a law, or outputs too long for it.
    """
    start, done = time.process_time(), 0
    table = _most_telling(tables, min(PILOT, max(draws, 2)), source)
    if table is None:
        return None
    sums = np.zeros(len(FACTORS))
    while done < draws and (not done or time.process_time() - start < seconds):
        size = min(draws - done, max(PILOT, done))
        for outputs in table.batches(0, size, source):
            widths = widths_of(table, outputs)
            sums += [math.fsum(float(each(c).sum()) for each in widths) for c in FACTORS]
        done += size
    known = dict(zip(FACTORS.tolist(), sums.tolist(), strict=True))
    return bound_width(known.__getitem__, done, error)


def widths_of(table: ReleaseDraws, outputs: Outputs) -> list[Widths]:
    """How likely outputs of the first side are by how wide the noise of each part is."""
    mechanism, found = table.release.mechanism, []
    parts = list(mechanism.parts(outputs))
    for release, own in parts:
        whole = max(table.wide, own.shape[1])  # a part's outputs have all of its numbers
        found += widths_of(ReleaseDraws(release, table.near, table.far, whole), own)
    if not parts:
        widths = mechanism.widths(outputs, *table.centres[:2])
        found += [] if widths is None else [widths]
    return found


def _most_telling(
    tables: Sequence[ReleaseDraws], draws: int, source: RandomSource
) -> ReleaseDraws | None:
    """The table whose outputs vary most in how they speak for a width slightly below the stated one."""
    best, most = None, 0.0
    for table in tables:
        widths = widths_of(table, table.draw(0, draws, source))
        telling = sum(float(np.var(each(1.0) - each(0.9))) for each in widths)
        if not math.isfinite(telling):
            raise AuditError(
                "the width of the noise cannot be measured: a likelihood is not finite"
            )
        if telling > most:
            best, most = table, telling
    return best
