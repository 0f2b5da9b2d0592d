"""An audit of all releases of a plan in a few seconds, which precedes every run.

    1  replay            a deterministic test of the change between random neighbours, for each release
    2  all together      a lower bound on the joint loss, on the pair of surveys that moves all columns
    3  each alone        the width of its noise, whether it is fresh in every round, its price, and its
                         loss by the stated log-ratio, watched where the tables differ and at a few
                         more cells

Statistics of the made-up tables are computed once and shared by all three.  For a kernel machine, each
is a training that takes as long as the release's own.  A few draws are timed first to see how many fit
into ``seconds`` of CPU.  This number does not depend on the drawn values, so every bound keeps its
confidence.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dpcore.audit.audit import audit_mechanism
from dpcore.audit.draws import Audited, Joint, ReleaseDraws
from dpcore.audit.neighbours import Pair
from dpcore.audit.releases import (
    at_random,
    claim_of,
    claimed_mu,
    covered,
    surveys_of,
    with_noise_and_price,
)
from dpcore.audit.replay import replay
from dpcore.audit.results import AuditResult
from dpcore.releases.abilities import Prepared, Trained
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SystemSource

SECONDS = 3.0
"""CPU time of a short audit, without the statistics of one pair of tables per release."""

REHEARSAL = 0.7
"""Approximate seconds for the made-up survey, which is cut and counted first."""

PREPARED = 4
"""The number of tables on which the mechanism of each release prepares draws."""

LEAST_DRAWS, MOST_DRAWS, TOGETHER_DRAWS = 40, 4_000, 1_000

FEWEST_DRAWS, LEAST_NUMBERS = 4, 2**20
"""The fewest draws, and the most numbers that they may have together, if a single draw is very long."""

NUMBERS = 2**18
"""The most numbers that are drawn for one release on each side."""

FOR_WIDTH = 4
"""Factor on the draws for the width of noise: a single round may contain little information."""

HANDFULS = (8, 64)
"""How many draws are timed: more if a few take no time, because each call has an overhead."""

WIDTH_TABLES = 3
"""The number of tables on which the width of noise is tested, if it may depend on the table."""


def short_audit(
    releases: Sequence[Release],
    level: float = 0.95,
    source: RandomSource | None = None,
    *,
    seconds: float = SECONDS,
) -> list[AuditResult]:
    """Audit all releases together against the sum of their shares, then each against its own.

    ``level``: the confidence of each result.
    """
    source = SystemSource() if source is None else source
    survey = surveys_of(releases)[0]
    label, part = survey[0].description, seconds / (3 * len(releases))
    timed = [_timed(release, pair) for release, pair in zip(releases, survey, strict=True)]
    sides = [each for each, _ in timed]
    joint = Joint(tuple(sides))
    width = joint.draw(0, 1, source).shape[1]
    most = min(TOGETHER_DRAWS, max(_least(width), NUMBERS // width))
    draws = _affordable(joint, seconds / 3, most, source, width)
    together = audit_mechanism(
        [joint],
        claim_of(releases),
        draws,
        source,
        level=level,
        search_draws=draws,
        descriptions=[label],
    )
    return [
        together,
        *(_alone(each, level, part, source, further=spent < part / 3) for each, spent in timed),
    ]


def duration(releases: Iterable[Release]) -> str:
    """The expected duration of a short audit of these releases, in words, from public facts alone."""
    releases = list(releases)
    trained = [release.name for release in releases if isinstance(release, Trained)]
    seconds = audit_seconds(releases)
    words = f"the short audit before the release takes about {seconds:.0f} s of processor time"
    return words + (f", and two trainings of {' and '.join(trained)}" if trained else "")


def audit_seconds(releases: Iterable[Release]) -> float:
    """The expected seconds of a short audit without trainings."""
    seconds = REHEARSAL + SECONDS
    for release in releases:
        seconds += release.mechanism.audit_seconds
        if isinstance(release, Prepared):
            seconds += PREPARED * release.preparation.seconds
    return seconds


def _alone(
    sides: ReleaseDraws,
    level: float,
    seconds: float,
    source: RandomSource,
    further: bool,
) -> AuditResult:
    """Audit one release; ``further``: also on tables other than ``sides``."""
    release, narrow = sides.release, sides.narrowed()
    others = at_random(release, source) if further else ()
    replayed = replay(release, others, seconds, known=[sides])
    most = max(_least(narrow.width), NUMBERS // narrow.width)
    draws = _affordable(narrow, seconds / 3, min(most, MOST_DRAWS), source, narrow.width)
    result = audit_mechanism(
        [narrow],
        claim_of([release]),
        draws,
        source,
        level=1 - (1 - level) / 3,
        learn=False,
        descriptions=[sides.pair.description],
        gaussian=claimed_mu(release),
    )
    tables = [narrow]
    if further and not release.mechanism.additive:
        tables += [ReleaseDraws(release, pair) for pair in covered(release, WIDTH_TABLES)]
    found = with_noise_and_price(
        result, tables, (FOR_WIDTH * most, draws), level, source, seconds / 3
    )
    return replace(found, replay=replayed)


def _timed(release: Release, pair: Pair) -> tuple[ReleaseDraws, float]:
    """Draws of a release on both tables, and the CPU seconds that the two statistics take."""
    near = release.statistic(pair.near)  # the first one may load libraries
    start = time.process_time()
    far = release.statistic(pair.far)
    seconds = 2 * (time.process_time() - start)
    return ReleaseDraws(release, pair, known=(near, far)), seconds


def _affordable(
    audited: Audited, seconds: float, most: int, source: RandomSource, width: int
) -> int:
    """How many draws per side fit into ``seconds``, both for the search and for the count."""
    if most <= _least(width):
        return most
    each = 0.0
    for size in HANDFULS:
        start = time.process_time()
        audited.draw(0, size, source)
        spent = time.process_time() - start
        each = max(spent / size, 1e-9)
        if HANDFULS[-1] / HANDFULS[0] * spent > seconds / 4:  # too long for the larger handful
            break
    # Each draw is made four times: on two sides, to search and to count.
    return max(_least(width), min(most, int(seconds / (4 * each))))


def _least(width: int) -> int:
    """The fewest draws of this width; a few long outputs are enough to show the width of the noise."""
    return int(np.clip(LEAST_NUMBERS // width, FEWEST_DRAWS, LEAST_DRAWS))
