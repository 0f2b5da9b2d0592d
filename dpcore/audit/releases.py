"""Audits of releases: alone, all of a survey together, or only whether noise has its scale."""

from __future__ import annotations

from collections.abc import Sequence

from dpcore.audit.audit import AuditResult, audit_mechanism
from dpcore.audit.draws import Joint, NarrowDraws, ReleaseDraws, too_long
from dpcore.audit.neighbours import Pair, neighbouring_pairs, survey_pairs
from dpcore.budget import Budget, total
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SystemSource

PROMISING = 4
"""Pairs of tables of a release that are searched: those that its statistic sets farthest apart."""

NEARLY = 0.9
"""Pairs that lie less far apart than this part of the farthest are not promising."""

LARGEST_READING = 2**24
"""Numbers in the statistics of all pairs that are compared; more pairs than that are not tried."""

SCALE_PAIRS = 2
"""Pairs of tables for a look at the scale: all columns end to end, in two kinds of company."""

SCALE_NUMBERS = 2**19
"""Numbers drawn for a look at the scale, on each side, within the numbers of draws below."""

LEAST_DRAWS = 200
"""Draws in a short audit of outputs that take long to make, and tell next to nothing of the noise."""

LEAST_SCALE_DRAWS, MOST_SCALE_DRAWS = 1_000, 20_000


def audit_release(
    release: Release,
    budget: Budget | None = None,
    draws: int = 100_000,
    level: float = 0.95,
    source: RandomSource | None = None,
    *,
    pairs: int | None = None,
    search_draws: int | None = None,
) -> AuditResult:
    """Audit a release against ``budget`` (its share if None), on made-up neighbouring tables.

    The real ``perturb`` draws with the release's own mechanism; the source is the operating
    system's if None.  Only the first ``pairs`` of ``dpcore.audit.neighbours`` are tried, if given.
    """
    candidates = _covered(release, pairs)
    audited = [ReleaseDraws(release, pair.near, pair.far) for pair in candidates]
    promising = _farthest(audited)
    return audit_mechanism(
        [audited[i] for i in promising],
        release.share if budget is None else budget,
        draws,
        SystemSource() if source is None else source,
        level=level,
        search_draws=search_draws,
        descriptions=[candidates[i].description for i in promising],
    )


def audit_scale(
    release: Release, level: float = 0.95, source: RandomSource | None = None
) -> AuditResult:
    """A quick audit of a release against its share: is its noise of the scale that it states?

    Outputs are told apart by the stated log-ratio alone, and drawn only where two tables differ; so
    many draws cost little.  Other faults may go unseen.
    """
    source = SystemSource() if source is None else source
    candidates = _covered(release, SCALE_PAIRS)
    audited = [NarrowDraws(release, pair.near, pair.far) for pair in candidates]
    draws = SCALE_NUMBERS // audited[0].width
    return audit_mechanism(
        audited,
        release.share,
        short(min(max(draws, LEAST_SCALE_DRAWS), MOST_SCALE_DRAWS), [release]),
        source,
        level=level,
        learn=False,
        descriptions=[pair.description for pair in candidates],
    )


def short(draws: int, releases: Sequence[Release]) -> int:
    """So many draws, or the fewest where outputs of a release take long to make."""
    return LEAST_DRAWS if any(map(too_long, releases)) else draws


def audit_releases(
    releases: Sequence[Release],
    budget: Budget | None = None,
    draws: int = 100_000,
    level: float = 0.95,
    source: RandomSource | None = None,
    *,
    search_draws: int | None = None,
    surveys: int | None = None,
) -> AuditResult:
    """Audit several releases of one survey together against ``budget`` (the sum of shares if None).

    All are run on the same pair of surveys, in which one unit moves from the first value of some
    columns to the last, or is added there; only the first ``surveys`` pairs are tried, those that
    move all columns.
    """
    adjacencies = [release.adjacency for release in releases]
    neighbours = {(each.relation, each.unit) for each in adjacencies}
    facts = {(each.rows, each.adjacency) for each in releases if not each.adjacency.weighted}
    if len(neighbours) != 1 or len(facts) > 1:
        raise ValueError(
            f"releases of one survey have the same rows and neighbours, not {facts or neighbours}"
        )
    rows = [release.rows for release in releases]
    surveys_made = survey_pairs([release.domain for release in releases], rows, adjacencies)
    pairs = [
        survey
        for survey in surveys_made
        if all(
            release.promises(pair.near, pair.far)
            for release, pair in zip(releases, survey, strict=True)
        )
    ][:surveys]
    audited = [
        Joint(
            tuple(
                ReleaseDraws(release, pair.near, pair.far)
                for release, pair in zip(releases, survey, strict=True)
            )
        )
        for survey in pairs
    ]
    return audit_mechanism(
        audited,
        total(release.share for release in releases) if budget is None else budget,
        draws,
        SystemSource() if source is None else source,
        level=level,
        search_draws=search_draws,
        descriptions=[survey[0].description for survey in pairs],
    )


def _covered(release: Release, most: int | None) -> list[Pair]:
    """The first pairs of neighbours that the release's promise is about."""
    pairs = neighbouring_pairs(release.domain, release.rows, release.adjacency)
    covered = [pair for pair in pairs if release.promises(pair.near, pair.far)][:most]
    if not covered:
        raise ValueError(
            f"{release.name}: no pair of neighbours to audit is covered by its promise"
        )
    return covered


def _farthest(audited: Sequence[ReleaseDraws]) -> list[int]:
    """The pairs whose exact statistics lie farthest apart in units of the noise, in order."""
    width = max(1, min(audited[0].release.mechanism.size, LARGEST_READING))
    few = audited[: max(PROMISING, LARGEST_READING // width)]
    # Equal distances keep the order of the list, in spite of rounding.
    distances = [round(pair.distance(), 6) for pair in few]
    order = sorted(range(len(few)), key=lambda i: (-distances[i], i))
    return [i for i in order[:PROMISING] if distances[i] >= NEARLY * distances[order[0]]]
