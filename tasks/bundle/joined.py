"""The counts of several releases as one set of estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.domain import Axis, Domain
from dpcore.errors import InputError
from dpcore.post.tables.bounded import bounded_interval
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.post.tables.margins import Margin
from dpcore.releases.base import Release
from dpcore.releases.counts.unit import BEST, CountsRelease
from dpcore.releases.replicates import drawn_again, replicate_generator
from dpcore.releases.table import ONE_SIDED, TWO_SIDED, Published, Table, TableColumn, Uncertainty
from dpcore.statistic import Noisy


@dataclass(frozen=True, eq=False)
class Part:
    """One release of a bundle, its draw and the draw's digest, and what it measured."""

    bundle: str
    name: str
    release: CountsRelease
    agreement: Agreement
    noisy: Noisy
    draw: str


@dataclass(frozen=True, eq=False)
class Joined:
    """What several releases say of a table over ``axes``, which come first in the agreement.

    ``release``: whose table it is; ``sources``: all releases that tell of it, ``draws``: their digests.
    """

    axes: tuple[Axis, ...]
    agreement: Agreement
    release: CountsRelease
    sources: tuple[str, ...]
    draws: frozenset[str]

    @cached_property
    def margin(self) -> Margin:
        """The table's best estimate, and the variance of each cell."""
        return self.agreement.margin(range(len(self.axes)))

    @property
    def columns(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(cells,) each: estimates, standard errors and both ends of 90% intervals."""
        unit, estimate = self.release.unit, self.margin.table.ravel()
        error = self.margin.variance**0.5
        ends = bounded_interval(
            estimate, TWO_SIDED * error, ONE_SIDED * error, self.release.most_rows
        )
        errors = np.full(estimate.shape, error)
        estimate, errors, lower, upper = map(unit.scaled, (estimate, errors, *ends))
        return estimate, errors, lower, upper

    def sum(self, factors: Floats) -> tuple[float, float]:
        """A weighted sum of cells (cells,), and its exact variance."""
        table, attributes = self.margin.table, self.margin.attributes
        weights, step = {attributes: factors.reshape(table.shape)}, float(self.release.step)
        variance = self.agreement.combination_variance(weights) * step**2
        return float(factors @ table.ravel()) * step, variance


def join(place: str, domain: Domain, release: CountsRelease, parts: list[Part]) -> Joined | None:
    """All parts that tell of a table over ``domain``; None where its own release is not among them.

    Others tell of it where they count the same things, records or weights in the same steps, and have a
    column of it in the same cells.
    """
    if not any(part.release is release for part in parts):
        return None
    private = not release.adjacency.public_rows
    telling = [
        part
        for part in _alike(release, parts)
        if private or set(part.release.domain.axes) & set(domain.axes)
    ]
    try:
        agreement = joined(
            [(part.agreement, part.release.domain.axes) for part in telling], domain.axes
        )
    except ValueError as error:
        raise InputError(f"{place}{error}; bundles of another table cannot be joined") from None
    names = [
        part.name if part.bundle == telling[0].bundle else f"{part.bundle}/{part.name}"
        for part in telling
    ]
    return Joined(
        domain.axes,
        agreement,
        release,
        tuple(names),
        frozenset(part.draw for part in telling),
    )


def parts_of(bundle: str, built: Mapping[str, Release], draws: Mapping[str, Noisy]) -> list[Part]:
    """The releases that can be combined, as they were measured."""
    found = []
    for name, release in built.items():
        agreement = release.agreement(draws[name])
        if agreement is not None and isinstance(release, CountsRelease):
            noisy = draws[name]
            found.append(Part(bundle, name, release, agreement, noisy, noisy.digest()))
    return found


def with_best(published: Published, release: CountsRelease, parts: list[Part]) -> Published:
    """The tables of a release, with the best estimates where other parts tell of them too."""
    if not any(part.release is release for part in parts):
        return published
    domains = {release.table_name(domain): domain for domain in release.domains}
    tables = []
    for table in published.tables:
        found = join(f"{table.name}: ", domains[table.name], release, parts)
        tables.append(table if found is None or len(found.sources) == 1 else _beside(table, found))
    return Published(tuple(tables), published.facts)


def replicates_of_best(
    release: CountsRelease, parts: list[Part], number: int
) -> dict[str, NDArray[np.float32]]:
    """For each table of a release noise as it is in the best estimates, (number, rows).

    The noise of every part is drawn once for all tables, so they agree in each replicate, also with
    those of other releases.
    """
    telling = _alike(release, parts)
    generators = [replicate_generator(part.noisy) for part in telling]
    order = list(dict.fromkeys(axis for part in telling for axis in part.release.domain.axes))

    def noise() -> Floats:
        again = []
        for part, generator in zip(telling, generators, strict=True):
            drawn = part.release.agreement(part.release.noise_alone(part.noisy, generator))
            assert drawn is not None
            total = None if drawn.total is None else 0.0
            again.append((replace(drawn, total=total), part.release.domain.axes))
        found = joined(again, order)
        tables = [_table_of(found, [order.index(a) for a in d.axes]) for d in release.domains]
        return np.asarray(release.unit.scaled(np.concatenate([t.ravel() for t in tables])))

    ends = np.cumsum([domain.size for domain in release.domains])[:-1]
    names = [release.table_name(domain) for domain in release.domains]
    return dict(zip(names, np.split(drawn_again(noise, number), ends, axis=1), strict=True))


def _alike(release: CountsRelease, parts: list[Part]) -> list[Part]:
    """The parts that count the same things."""
    return [part for part in parts if part.release.unit == release.unit]


def _table_of(agreement: Agreement, attributes: list[int]) -> Floats:
    """The table of some attributes, its axes in this order."""
    ascending = sorted(attributes)
    table = agreement.margin(ascending).table
    return np.transpose(table, [ascending.index(a) for a in attributes])


def _beside(table: Table, found: Joined) -> Table:
    number, sources = found.release.unit.number, " and ".join(found.sources)
    descriptions = (
        f"The {number} as all releases give it together ({sources}): unbiased, may be negative",
        "Standard deviation of the noise left in best_estimate",
        f"Lower end of a 90% interval for the exact {number}, from best_estimate (normal)",
        f"Upper end of a 90% interval for the exact {number}, from best_estimate (normal)",
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
        "The variance is exact: it follows from the noise of all releases that count some of the table's"
        f" columns in the same cells ({sources}). Tables of all releases agree in it.",
    )
    return Table(table.folder, table.name, [*table.parts, *columns], (*table.uncertainty, stated))
