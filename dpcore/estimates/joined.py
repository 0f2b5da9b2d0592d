"""The counts of several releases as one set of estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.line.statistic import Noisy
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.consistency import Agreement, side_by_side
from dpcore.post.tables.joined import joined
from dpcore.post.tables.refined import MOST_REFINED, Refined, differ, places, refinement
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import BEST, TableOfCounts, tables_of_counts
from dpcore.releases.replicates import MOST_AT_ONCE, agreed_again, replicate_generator
from dpcore.releases.table import (
    MOST_FILES,
    ONE_SIDED,
    TWO_SIDED,
    Published,
    Table,
    TableColumn,
    Uncertainty,
)


@dataclass(frozen=True, eq=False)
class DrawnRelease:
    """One release, its draw, the draw's digest, and its agreement."""

    name: str
    release: TableOfCounts
    agreement: Agreement
    noisy: Noisy
    draw: str

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The columns of each of its tables."""
        return self.release.domains


@dataclass(frozen=True, eq=False)
class Joined:
    """The best estimate of a table over ``axes`` from several releases.

    ``estimate``, ``variances``: (cells,), before scaling to the unit; ``variance_of``: the variance of a
    sum of cells with weights (cells,).  ``release``: the one that publishes the table; ``sources``: all
    releases that it was estimated from, ``draws``: their digests.
    """

    axes: tuple[Axis, ...]
    estimate: Floats
    variances: Floats
    variance_of: Callable[[Floats], float]
    release: TableOfCounts
    sources: tuple[str, ...]
    draws: frozenset[str]

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(cells,) each: estimates, standard errors and both ends of 90% intervals."""
        unit, errors, most = self.release.unit, self.variances**0.5, self.release.most_rows
        ends = bounded_interval(self.estimate, TWO_SIDED * errors, ONE_SIDED * errors, most)
        estimate, errors, lower, upper = map(unit.scaled, (self.estimate, errors, *ends))
        return estimate, errors, lower, upper

    def sum(self, factors: Floats) -> tuple[float, float]:
        """A weighted sum of cells (cells,), and its exact variance."""
        step = float(self.release.step)
        return float(factors @ self.estimate) * step, self.variance_of(factors) * step**2


def join(
    place: str, domain: Domain, release: TableOfCounts, counted: list[DrawnRelease]
) -> Joined | None:
    """The table over ``domain`` from all releases that inform it; None if its release is not among them.

    A release informs the table if it counts the same things, records or weights in the same steps, and
    has one of its columns.  If its bins differ, both are combined in cells between the edges of both.
    """
    if not any(each.release is release for each in counted):
        return None
    informing, refined = _informing(domain, release, counted)
    try:
        if refined:
            both = Refined(domain.axes, _measured(informing))
            variance_of = both.variance_of
            found = both.estimate([each.agreement for each in informing]), both.variances
        else:
            together, numbered = _together(tuple(informing))
            attributes = [numbered[axis] for axis in domain.axes]
            order, margin = np.argsort(attributes), together.margin(sorted(attributes))
            table = _table_of(together, attributes)
            found = table.ravel(), np.full(table.size, margin.variance)

            def variance_of(factors: Floats) -> float:
                weights = np.transpose(factors.reshape(table.shape), order)
                return together.combination_variance({margin.attributes: weights})

    except ValueError as error:
        raise InputError(f"{place}{error}") from None
    names = [each.name for each in informing]
    draws = frozenset(each.draw for each in informing)
    return Joined(domain.axes, *found, variance_of, release, tuple(names), draws)


@lru_cache(maxsize=2)
def _together(informing: tuple[DrawnRelease, ...]) -> tuple[Agreement, dict[Axis, int]]:
    """The agreement of all releases, and the attribute of each axis; computed once for all tables."""
    axes = _axes_of(informing)
    return joined(_measured(informing), axes), {axis: i for i, axis in enumerate(axes)}


def _axes_of(counted: Iterable[DrawnRelease]) -> list[Axis]:
    """All different axes of several releases."""
    return list(dict.fromkeys(axis for each in counted for axis in each.release.domain.axes))


def _measured(counted: Iterable[DrawnRelease]) -> list[tuple[Agreement, tuple[Axis, ...]]]:
    return [(each.agreement, each.release.domain.axes) for each in counted]


def _informing(
    domain: Domain, release: TableOfCounts, counted: list[DrawnRelease]
) -> tuple[list[DrawnRelease], bool]:
    """The releases that inform a table, and whether they are combined in refined cells."""
    alike, axes = _alike(release, counted), domain.axes
    others = [each.release.domain.axes for each in alike]
    refined = any(differ(axes, its) for its in others) and (
        refinement(axes, others).size <= MOST_REFINED
    )
    if release.adjacency.public_rows:  # otherwise all tables inform the number of records
        informs = places if refined else lambda axes, its: set(axes) & set(its)
        alike = [each for each, its in zip(alike, others, strict=True) if informs(axes, its)]
    return alike, refined


def counted_releases(
    built: Mapping[str, Release], draws: Mapping[str, Noisy]
) -> list[DrawnRelease]:
    """The releases that can be combined, with their measurements."""
    found = []
    for name, release in tables_of_counts(built).items():
        noisy = draws[name]
        if (agreement := release.agreement(noisy)) is not None:
            found.append(DrawnRelease(name, release, agreement, noisy, noisy.digest()))
    return found


def with_best(
    published: Published, release: TableOfCounts, counted: list[DrawnRelease]
) -> Published:
    """The tables of a release, with best estimates if other releases inform them too, or if the
    published numbers do not use the public number of records."""
    own = next((each for each in counted if each.release is release), None)
    if own is None:
        return published
    domains = {release.table_name(domain): domain for domain in own.domains}
    known: list[Joined] = []
    wanted = []
    for table in published.tables:
        found = join(f"{table.name}: ", domains[table.name], release, counted)
        assert found is not None
        known.append(found)
        more = release.adjacency.public_rows and table.unbiased == "noisy_count"
        wanted.append(more or len(found.sources) > 1)
    if len(wanted) > MOST_FILES:  # they share a file, so all or none have best estimates
        wanted = [any(wanted)] * len(wanted)
    tables = [
        _with_columns(table, found) if want else table
        for table, found, want in zip(published.tables, known, wanted, strict=True)
    ]
    return Published(tuple(tables), published.facts)


def replicates_of_best(
    release: TableOfCounts, counted: list[DrawnRelease], number: int
) -> dict[str, NDArray[np.float32]]:
    """For each table of a release, (number, rows) new draws of the noise in its best estimates.

    The noise of every release is drawn once for all tables, so within a replicate the tables of all
    releases agree.
    """
    alike = tuple(_alike(release, counted))
    generators = [replicate_generator(each.noisy) for each in alike]
    order = _axes_of(alike)
    # Draws that fit into memory together are made once for all releases.
    few = number * sum(domain.size for each in alike for domain in each.domains) <= MOST_AT_ONCE
    by_table: list[tuple[Domain, list[DrawnRelease], Refined | None]] = []
    domains = next(each for each in counted if each.release is release).domains
    for domain in domains:
        informing, refined = _informing(domain, release, counted)
        measured = Refined(domain.axes, _measured(informing)) if refined else None
        by_table.append((domain, informing, measured))

    def noise(several: int) -> list[Floats]:
        if few and several == number:
            again, found = _noise_together(alike, number)
        else:
            again, found = _drawn_together(alike, generators, several)
        tables = [
            _table_of(found, [order.index(a) for a in domain.axes])
            if refined is None
            else refined.estimate([again[alike.index(each)] for each in informing])
            for domain, informing, refined in by_table
        ]
        return [release.unit.scaled(table) for table in tables]

    names = [release.table_name(domain) for domain in domains]
    found = agreed_again(noise, [domain.size for domain in domains], number)
    return dict(zip(names, found, strict=True))


@lru_cache(maxsize=1)
def _noise_together(
    alike: tuple[DrawnRelease, ...], number: int
) -> tuple[list[Agreement], Agreement]:
    """``number`` draws of each release's noise, and of the joined noise; once for all releases."""
    return _drawn_together(alike, [replicate_generator(each.noisy) for each in alike], number)


def _drawn_together(
    alike: tuple[DrawnRelease, ...], generators: list[np.random.Generator], several: int
) -> tuple[list[Agreement], Agreement]:
    again = [
        noise_of(each, generator, several)
        for each, generator in zip(alike, generators, strict=True)
    ]
    axes = [each.release.domain.axes for each in alike]
    return again, joined(list(zip(again, axes, strict=True)), _axes_of(alike))


def noise_of(one: DrawnRelease, generator: np.random.Generator, several: int) -> Agreement:
    """``several`` new draws of a release's noise, side by side."""
    again = []
    for _ in range(several):
        drawn = one.release.agreement(one.release.noise_alone(generator))
        assert drawn is not None
        again.append(replace(drawn, total=None if drawn.total is None else 0.0))
    return side_by_side(again)


def _alike(release: TableOfCounts, counted: list[DrawnRelease]) -> list[DrawnRelease]:
    """The releases that count the same things."""
    return [each for each in counted if each.release.unit == release.unit]


def _table_of(agreement: Agreement, attributes: list[int]) -> Floats:
    """The table of some attributes, its axes in this order."""
    ascending = sorted(attributes)
    table = agreement.margin(ascending).table
    order = [ascending.index(a) for a in attributes]
    return np.transpose(table, [*order, *range(len(order), table.ndim)])


def _with_columns(table: Table, found: Joined) -> Table:
    number, sources = found.release.unit.number, " and ".join(found.sources)
    known = " and the public number of records" * found.release.adjacency.public_rows
    descriptions = (
        f"Best unbiased estimate of the {number} from all releases ({sources}{known}); may be"
        " negative. `count` is from this release only",
        "Standard deviation of the noise in best_estimate",
        f"Lower end of a 90% interval for the exact {number}, around best_estimate (normal)",
        f"Upper end of a 90% interval for the exact {number}, around best_estimate (normal)",
    )
    columns = [
        TableColumn(name, values, description)
        for name, values, description in zip(BEST, found.columns, descriptions, strict=True)
    ]
    stated = Uncertainty(
        BEST[0],
        BEST[1],
        (BEST[2], BEST[3]),
        "normal",
        "The variance is exact. It follows from the noise of all releases that count columns of this"
        f" table ({sources}{known}).",
    )
    return Table(table.folder, table.name, [*table.parts, *columns], (*table.uncertainty, stated))
