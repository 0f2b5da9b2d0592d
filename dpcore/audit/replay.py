"""Does a neighbour change the statistic by more than the mechanism declares?  A deterministic test.

A release is drawn on two neighbouring tables with the same random words, across the real privacy line.
Noise that does not depend on the data is then the same on both sides, and outputs differ by as much as
the statistics; if a mechanism adds no such noise, the exact statistics are compared.  The difference in
the mechanism's own norm is a multiple of the declared sensitivity (``moved_by``).  A multiple above 1
proves a fault of the sensitivity, whatever the noise; there is no false alarm.  Tables without a fault
prove nothing about other tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.neighbours import Pair
from dpcore.line.statistic import Statistic
from dpcore.releases.abilities import promised
from dpcore.releases.base import Release
from dpcore.sampling.source import SeededSource

MOST = 64
"""The most pairs of tables that are replayed."""


@dataclass(frozen=True)
class Replay:
    """The result of replay; ``moved``: the largest change, in declared sensitivities; ``tables``: how
    many pairs were replayed; ``pair``: the pair with the largest change."""

    moved: float
    tables: int
    pair: str
    passed: bool


def replay(
    release: Release,
    pairs: Iterable[Pair],
    seconds: float = np.inf,
    known: Iterable[ReleaseDraws] = (),
) -> Replay:
    """Replay a release on up to ``MOST`` pairs of neighbours, or until ``seconds`` of CPU are spent.

    ``known``: pairs whose statistics are computed already; they are always replayed.
    """
    start, largest, worst, tables = time.process_time(), 0.0, "", 0

    def tried() -> Iterable[ReleaseDraws]:
        yield from known
        for pair in pairs:
            if tables >= MOST or (tables and time.process_time() - start > seconds):
                return
            if promised(release, pair.near, pair.far):
                yield ReleaseDraws(release, pair)

    for sides in tried():
        moved, tables = moved_between(sides, seed=tables), tables + 1
        if moved > largest or not worst:
            largest, worst = moved, sides.pair.description
    return Replay(largest, tables, worst, largest <= 1)


def moved_between(sides: ReleaseDraws, seed: int = 0) -> float:
    """The distance of a release's outputs on two tables, in units of the declared sensitivity."""
    mechanism = sides.release.mechanism
    if not mechanism.additive:
        return mechanism.moved_by(*sides.readings)
    # The same words on both sides: the noise is the same, and only the statistics differ.
    near, far = (
        Statistic(sides.draw(side, 1, SeededSource(seed))[0], sides.watched) for side in (0, 1)
    )
    return mechanism.moved_by(near, far)
