"""The counts of several releases as one set of estimates."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpcore.arrays import Floats
from dpcore.domain import Axis, Domain
from dpcore.errors import InputError
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.post.tables.margins import Margin
from dpcore.releases.counts.unit import CountsRelease


@dataclass(frozen=True, eq=False)
class Part:
    """One release of a bundle, what it measured, and the digest of its draw."""

    bundle: str
    name: str
    release: CountsRelease
    agreement: Agreement
    draw: str


@dataclass(frozen=True, eq=False)
class Joined:
    """What several releases say of a table over ``axes``, which come first in the agreement.

    ``step``: the weight of one step of the counts; ``sources``: the releases, ``draws``: their digests.
    """

    axes: tuple[Axis, ...]
    agreement: Agreement
    step: Fraction
    sources: tuple[str, ...]
    draws: frozenset[str]

    @cached_property
    def margin(self) -> Margin:
        """The table's best estimate, and the variance of each cell."""
        return self.agreement.margin(range(len(self.axes)))

    def sum(self, factors: Floats) -> tuple[float, float]:
        """A weighted sum of cells (cells,), and its exact variance."""
        table, attributes = self.margin.table, self.margin.attributes
        weights = {attributes: factors.reshape(table.shape)}
        variance = self.agreement.combination_variance(weights) * float(self.step) ** 2
        return float(factors @ table.ravel()) * float(self.step), variance


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
        for part in parts
        if part.release.unit == release.unit
        and (private or set(part.release.domain.axes) & set(domain.axes))
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
        release.step,
        tuple(names),
        frozenset(part.draw for part in telling),
    )
