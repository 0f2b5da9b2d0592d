"""Audits of releases: one alone, several together on one survey, or all of a plan in seconds.

    audit_release     one: its loss on the worst tables, the width of its noise, what neighbours change
    audit_releases    the joint loss of several
    short_audit       both in a few seconds for a whole plan (``dpcore.audit.short``)

The error of a release is split evenly between the loss, the noise and the price; replay has no error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from dpcore.accounting.budget import Budget, total
from dpcore.audit.audit import audit_mechanism
from dpcore.audit.draws import Joint, ReleaseDraws
from dpcore.audit.fuzz import fuzzed_pairs
from dpcore.audit.neighbours import Pair, neighbouring_pairs, survey_pairs
from dpcore.audit.price import audit_price
from dpcore.audit.rehearsal import fast_generator
from dpcore.audit.replay import replay
from dpcore.audit.results import AuditResult
from dpcore.audit.width import audit_noise
from dpcore.line.mechanism import promise_together
from dpcore.releases.abilities import CountsUnits, promised
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SystemSource

PROMISING = 4
"""How many pairs of tables of a release are searched: those whose statistics differ most."""

NEARLY = 0.9
"""A pair is promising if its distance is at least this fraction of the largest distance."""

LARGEST_READING = 2**24
"""The most numbers in the statistics of all compared pairs; further pairs are not tried."""

WIDTH_TABLES = 8
"""The number of tables on which the width of noise is tested."""

WIDTH_DRAWS, WIDTH_NUMBERS = 8, 2**20
"""Draws for the width of noise for each draw for the loss, which costs more; and the most numbers."""

CLAIMED_BETA = Fraction(1, 10**6)
"""The beta at which a share of rho is audited, in addition to the chance that a mechanism fails."""

WIDTH_SECONDS, REPLAY_SECONDS = 10.0, 5.0


def audit_release(
    release: Release,
    draws: int = 100_000,
    level: float = 0.95,
    source: RandomSource | None = None,
    *,
    pairs: int | None = None,
) -> AuditResult:
    """Audit a release against the promise of its share, on made-up neighbouring tables.

    The real ``perturb`` draws with the release's own mechanism; no survey is opened, and the draws
    cannot be published.

    Args:
        release: what to audit; public.
        draws: fresh draws on each side of the worst pair of tables.
        level: the confidence at which all bounds hold together.
        source: randomness; the operating system's if None.
        pairs: try only the first ``pairs`` of ``dpcore.audit.neighbours``.

    Returns:
        Lower bounds on alpha, and on mu of Gaussian noise; an upper bound on the width of the noise; and
        the largest change between neighbours.  One that contradicts its claim proves a fault.

    Raises:
        ValueError: the release promises nothing about any pair of tables.
        PrivacyLineError: the mechanism has no price within its share.

    Examples:
        >>> from dpcore.domain.axes import Categories
        >>> from dpcore.domain.domain import Domain
        >>> from dpcore.releases.counts.histogram import Histogram
        >>> from dpcore.sampling.source import SeededSource
        >>> sexes = Domain((Categories("sex", ("F", "M")),))
        >>> release = Histogram("sexes", sexes, 100, Budget.of("1"))
        >>> audit_release(release, draws=2_000, source=SeededSource(1)).passed
        True
    """
    source = SystemSource() if source is None else source
    audited = [ReleaseDraws(release, pair) for pair in covered(release, pairs)]
    audited = audited[: max(PROMISING, LARGEST_READING // max(1, release.mechanism.size))]
    promising = _farthest(audited)
    error = (1 - level) / 3
    result = audit_mechanism(
        [audited[i] for i in promising],
        claim_of([release]),
        draws,
        source,
        level=1 - error,
        descriptions=[audited[i].pair.description for i in promising],
        gaussian=claimed_mu(release),
    )
    most = max(1, WIDTH_NUMBERS // audited[0].width)
    width_draws = min(WIDTH_DRAWS * draws, most)
    tables = audited[:WIDTH_TABLES]
    found = with_noise_and_price(
        result, tables, (width_draws, min(draws, most)), level, source, WIDTH_SECONDS
    )
    others = at_random(release, source)
    return replace(found, replay=replay(release, others, REPLAY_SECONDS, known=audited))


def audit_releases(
    releases: Sequence[Release],
    budget: Budget | None = None,
    draws: int = 100_000,
    level: float = 0.95,
    source: RandomSource | None = None,
    *,
    surveys: int | None = None,
) -> AuditResult:
    """Audit several releases of one survey together against ``budget`` (None: their joint promise).

    All are run on the same pairs of surveys, in which one unit moves from the first value of some
    columns to the last, or is added there.  Only the first ``surveys`` pairs are tried, which move all
    columns.
    """
    pairs = surveys_of(releases)[:surveys]
    return audit_mechanism(
        [Joint(tuple(map(ReleaseDraws, releases, survey))) for survey in pairs],
        claim_of(releases) if budget is None else budget,
        draws,
        SystemSource() if source is None else source,
        level=level,
        descriptions=[survey[0].description for survey in pairs],
    )


def with_noise_and_price(
    loss: AuditResult,
    tables: Sequence[ReleaseDraws],
    draws: tuple[int, int],
    level: float,
    source: RandomSource,
    seconds: float,
) -> AuditResult:
    """Audit a release's noise and price, and add the results to ``loss``; each has a third of the error.

    ``draws``: for the noise, within ``seconds`` of CPU, and for the price.
    """
    error = (1 - level) / 3
    width, fresh, chosen = audit_noise(tables, draws[0], error, source, seconds)
    price = audit_price(tables, draws[1], error, source)
    return replace(loss, level=level, width=width, fresh=fresh, chosen=chosen, price=price)


def at_random(release: Release, source: RandomSource) -> Iterator[Pair]:
    """Random pairs of neighbouring tables for a release, without end."""
    generator = fast_generator(source)
    return fuzzed_pairs(release.domain, release.rows, release.adjacency, generator)


def surveys_of(releases: Sequence[Release]) -> list[tuple[Pair, ...]]:
    """Pairs of surveys that the promises of all releases cover, one pair of tables per release."""
    adjacencies = [release.adjacency for release in releases]
    neighbours = {(each.relation, each.unit) for each in adjacencies}
    facts = {
        (each.rows, each.adjacency)
        for each in releases
        # A search uses one record of each unit, and a model of units takes a unit as one record.
        if not each.adjacency.weighted and not isinstance(each, CountsUnits)
    }
    if len(neighbours) != 1 or len(facts) > 1:
        found = "; ".join(f"{each.name}: {each.rows} rows, {each.adjacency}" for each in releases)
        raise ValueError(
            "releases of one survey must have the same number of rows and the same neighbours; audit"
            f" these separately: {found}"
        )
    rows = [release.rows for release in releases]
    return [
        survey
        for survey in survey_pairs([release.domain for release in releases], rows, adjacencies)
        if all(
            promised(release, pair.near, pair.far)
            for release, pair in zip(releases, survey, strict=True)
        )
    ]


def claim_of(releases: Sequence[Release]) -> Budget:
    """The (alpha, beta, gamma) that releases of one plan promise together."""
    spent = total(release.share for release in releases)
    return promise_together([each.event for each in releases], spent, spent.beta + CLAIMED_BETA)


def claimed_mu(release: Release) -> tuple[float, float] | None:
    """The claimed mu of Gaussian noise, and how far its law may be from a rounded normal law."""
    inherited = release.mechanism.event.inherited_gaussian
    if inherited is None:
        return None
    squared, apart = inherited
    return float(squared) ** 0.5 * (1 + 1e-12), float(apart)


def covered(release: Release, most: int | None) -> list[Pair]:
    """The first pairs of neighbours that the release's promise covers."""
    pairs = neighbouring_pairs(
        release.domain, release.rows, release.adjacency, release.worst_tables()
    )
    found = [pair for pair in pairs if promised(release, pair.near, pair.far)][:most]
    if not found:
        raise ValueError(
            f"{release.name}: its promise covers none of the pairs of tables that an audit tries"
        )
    return found


def _farthest(audited: Sequence[ReleaseDraws]) -> list[int]:
    """Positions of the promising pairs: those whose exact statistics differ most come first."""
    # Equal distances keep the order of the list, in spite of rounding.
    distances = [round(pair.distance(), 6) for pair in audited]
    order = sorted(range(len(audited)), key=lambda i: (-distances[i], i))
    return [i for i in order[:PROMISING] if distances[i] >= NEARLY * distances[order[0]]]
