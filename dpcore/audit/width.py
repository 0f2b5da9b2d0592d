"""Is the noise as wide as stated?  An upper confidence bound for its width, from outputs.

The tables of an audit are made up, so the exact statistic is known, and a mechanism states how likely
outputs would be if its noise were c times as wide as stated (``Round.logs``).  Width is the scale of
Laplace, K-norm or exponential mechanisms, the standard deviation of Gaussian noise, or the prior of an
urn.  With l(c) the log chance of all outputs,

    E(c) = mean over narrower c' of exp(l(c') - l(c))

has a mean of 1 if the noise is c times as wide, whatever the number of outputs, so that
P(E(c) >= 1/error) <= error (Markov; Ville 1939).  Every c with a smaller E is possible; the largest
possible c is the bound.  If c = 1 is not possible, the noise is narrower than stated.

The bound is exact for independent outputs that have the stated law at some width.  If a mechanism has
several rounds, half of the error is for bounds of single rounds, half for all rounds together.
Other audits check sensitivities and noise shared by rounds.

>>> outputs = np.random.default_rng(1).laplace(0, 1, 2_000)
>>> def passes(stated):  # noise of scale 1, of which ``stated`` is claimed
...     scales = stated * FACTORS
...     logs = -np.abs(outputs).sum() / scales - len(outputs) * np.log(2 * scales)
...     return bound_width(logs, len(outputs), error=1e-6).passed
>>> passes(1.0), passes(0.8), passes(1.25)
(True, True, False)
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from dpcore.arrays import Floats
from dpcore.audit.chosen import Frequencies, Hits
from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.fresh import Freshness, Signs
from dpcore.errors import AuditError
from dpcore.sampling.source import RandomSource

FACTORS = np.unique(np.r_[0.05 * 1.08 ** np.arange(39), 1.0, 1.08 ** np.arange(1, 19)])
"""Widths that are compared, from a twentieth of the stated width to four times it."""

PILOT = 64
"""Draws of each table that are used to choose the most informative one."""

NEARLY = 0.5
"""A table is as informative as another if its variance is at least this fraction of the other's."""


@dataclass(frozen=True)
class WidthBound:
    """A bound on width; ``estimate``: the likeliest width, relative to the stated one; ``at_most``: an
    upper confidence bound, infinite if outputs contain no information; ``draws``: how many outputs."""

    estimate: float
    at_most: float
    draws: int
    passed: bool


def bound_width(logs: Floats, draws: int, error: float) -> WidthBound:
    """The bound from the log chances (FACTORS,) of all outputs; it fails with probability ``error``."""
    # The difference between two infinite log chances would be NaN.
    logs = np.nan_to_num(logs, neginf=-1e300)
    narrower = np.logaddexp.accumulate(logs)[:-1] - np.log(np.arange(1, len(logs)))
    evidence = np.r_[-math.inf, narrower - logs[1:]]
    possible = evidence < math.log(1 / error)
    widest = int(np.flatnonzero(possible).max())
    stated = int(np.searchsorted(FACTORS, 1.0))
    return WidthBound(
        float(FACTORS[int(np.argmax(logs))]),
        math.inf if widest == len(FACTORS) - 1 else float(FACTORS[widest]),
        draws,
        bool(possible[stated]),
    )


def audit_noise(
    tables: Sequence[ReleaseDraws],
    draws: int,
    error: float,
    source: RandomSource,
    seconds: float = math.inf,
) -> tuple[WidthBound | None, Freshness | None, Frequencies | None]:
    """Bound the width of a release's noise; test whether it is fresh and whether choices are as stated.

    For each round, the tests use a table whose outputs are (nearly) most informative about the width of
    its noise.  Outputs are drawn until there are ``draws`` of them or ``seconds`` of CPU are spent.
    None if no table is informative: the mechanism has no such law, or its outputs are too long.  The
    error is split evenly between all tests.
    """
    start, done, signs, hits = time.process_time(), 0, Signs(), Hits()
    telling = _most_telling(tables, min(PILOT, max(draws, 2)), source)
    if not telling:
        return None, None, None
    sums: Floats = np.zeros((1, len(FACTORS)))
    while done < draws and (done < len(telling) or time.process_time() - start < seconds):
        # Doubling the number of draws reads the clock early and needs few calls.
        size = min(draws - done, max(PILOT, done))
        for i, table in enumerate(telling):
            share = (size + i) // len(telling)
            for outputs in table.batches(0, share, source):
                rounds = table.rounds_of(outputs, FACTORS)
                # Outputs show how many rounds there are: the first addition broadcasts.
                sums = sums + [r.logs.sum(axis=0) for r in rounds if r.logs is not None]
                signs.add([each.noise for each in rounds if each.noise is not None])
                hits.add([each.choice for each in rounds if each.choice])
        done += size
    error /= 3
    return _bound_rounds(sums, done, error), signs.bound(error), hits.bound(error)


def _bound_rounds(logs: Floats, draws: int, error: float) -> WidthBound:
    """The bound for all rounds (rounds, FACTORS) together, or for a round that fails its test."""
    together = bound_width(logs.sum(axis=0), draws, error / 2)
    each = [bound_width(sums, draws, error / (2 * len(logs))) for sums in logs]
    wrong = [one for one in (together, *each) if not one.passed]
    return min(wrong, key=lambda one: one.at_most) if wrong else together


def _most_telling(
    tables: Sequence[ReleaseDraws], draws: int, source: RandomSource
) -> list[ReleaseDraws]:
    """For each round, a table whose outputs are (nearly) most informative about narrower noise."""
    found: list[list[float]] = []
    for table in tables:
        rounds = table.rounds_of(table.draw(0, draws, source), np.array([0.9, 1.0]))
        logs = [each.logs for each in rounds]
        with np.errstate(invalid="ignore"):  # logs of outputs with chance zero are not finite
            speak = [None if w is None else np.diff(w)[:, 0] for w in logs]
            found.append([0.0 if s is None or np.ptp(s) == 0 else float(np.var(s)) for s in speak])
        if any(s is not None and _never_changes(s) for s in speak):
            raise AuditError(
                "all outputs on a table are the same, which the stated noise makes almost impossible"
            )
        if not math.isfinite(sum(found[-1])):
            raise AuditError(
                "the width of the noise cannot be measured: an output is impossible under the stated"
                " distribution (its likelihood is not finite)"
            )
    chosen = set()
    for by_table in zip_longest(*found, fillvalue=0.0):
        most = max(by_table)
        if most > 0:
            # The first of nearly equal tables, so that few tables serve all rounds.
            chosen.add(next(i for i, each in enumerate(by_table) if each > NEARLY * most))
    return [tables[i] for i in sorted(chosen)]


def _never_changes(speak: Floats) -> bool:
    """Whether all outputs (draws,) are the same, although the stated noise is seldom zero.

    Noise that is nearly always zero gives equal outputs, which are about as likely under all widths.
    Let d be the sum, over coordinates, of the chances that their noise is not zero.  Then ``speak`` is
    at most d x / 9 in size, where x <= 20 is the log-odds of zero, and ``PILOT`` outputs are the same
    with a chance of exp(-d PILOT): below 1e-12 where ``speak`` is above 1.
    """
    return len(speak) >= PILOT and bool(np.ptp(speak) == 0) and abs(float(speak[0])) > 1
