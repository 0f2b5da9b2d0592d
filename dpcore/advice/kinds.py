"""Which tables to draw: how accurate small tables are under releases of the same share.

A table over a few of k columns is the sum of a histogram of all columns, or comes from tables of all
pairs or triples.  A histogram is one table with little noise in a cell, but sums over many cells;
pairs have few cells, and divide the share among themselves:

    drawn         tables         noise in a drawn cell (Laplace)    a cell of a pair is a sum of
    histogram     1              s                                  all cells / cells of the pair
    pairs         k (k - 1)/2    k (k - 1)/2 s                      1, and agreement helps

So a histogram is better as long as it has few cells.  The measure is the expected distance: half the sum
of all errors in a table as a share of the records (total variation), for unbiased estimates after
agreement with each other and with a public number of records, and 1 at most.  Errors are taken as
normal, which overstates those of Laplace noise that is not summed, by an eighth or, at small scales, a
quarter.

A table that no drawn one covers is not measured: what pairs say of three columns depends on the data.

How near records come is simulated on a made-up table where there are few cells (``records``).  Else a
rule decides: records are drawn from whole counts that are not negative.  Where the noise of a histogram
is larger than most of its counts, these are biased towards empty cells, and tables of the records are
several times as wrong as sums of noisy counts: on made-up tables of 2^6 to 2^16 cells from a distance of
the whole histogram between 0.1 and 0.2 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from dpcore.advice.records import record_distances
from dpcore.mechanisms import DiscreteGaussian
from dpcore.mechanisms.laplace import LaplaceNoise
from dpcore.post.records.nested import roots_of, tied, untied
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.fitted import FittedTables
from dpcore.releases.tables.margins import Margins
from dpcore.releases.tables.microdata import Microdata

WAYS = (1, 2, 3)

MOST_SETS = 600
"""Alternatives of more tables are left out: they would take seconds."""

FEW_SETS = 100
"""Laplace noise, which grows with the number of tables and not with its root, is larger beyond."""

GOOD_RECORDS = 0.1
"""Records follow a histogram well up to this expected distance of its whole table."""

MOST_TABLES = 12
"""At most this many tables represent all over the same number of columns."""

Attributes = tuple[int, ...]
Dense = Histogram | FittedTables
Noise = Literal["discrete-laplace", "discrete-gaussian"]


class Distance(NamedTuple):
    """The mean expected distance over those ``measured`` of the ``tables`` of some number of columns."""

    mean: float
    measured: int
    tables: int


@dataclass(frozen=True)
class Kind:
    """A way to draw tables of the same columns, in words of a plan.

    ``release``: what draws them;
    ``distances``: by number of columns (one, two, three and all), where any table is measured.
    """

    name: str
    planned: bool
    release: Dense
    distances: Mapping[int, Distance]
    columns: int

    @property
    def whole(self) -> Distance | None:
        """That of the table over all columns; None where it is not measured."""
        return self.distances.get(self.columns)

    def of_all(self, ways: int) -> float | None:
        """The mean over all tables of ``ways`` columns; None unless all are measured."""
        found = self.distances.get(ways)
        return found.mean if found and found.measured == found.tables else None


def compared(release: object, records: bool = False) -> list[Kind]:
    """The release and its alternatives of the same share; ``records``: those that records follow.

    None for a release of fewer than three columns, or one that does not publish every cell of its
    tables with the same noise.
    """
    if not isinstance(release, Dense) or release.draws_choose or len(release.domain.axes) < 3:
        return []
    if isinstance(release, Histogram) and release.thresholded:
        return []
    everything = tuple(range(len(release.domain.axes)))
    planned = (everything,) if isinstance(release, Histogram) else release.tables
    found = [_kind(release, release, planned)]
    for sets in _alternatives(release):
        made = [
            (kind.distances[2], _noise(other), kind)
            for other in _drawn(release, sets, records)
            for kind in [_kind(release, other, sets)]
        ]
        _, noise, kind = min(made, default=(None, "", None), key=lambda each: each[0])
        if kind is not None and not (set(sets) == set(planned) and noise == _noise(release)):
            found.append(kind)
    return found


def best(found: Sequence[Kind], ways: int, records: bool = False) -> Kind | None:
    """The kind of least distance for tables over ``ways`` columns; of equals, the planned one.

    ``records``: for tables of synthetic records, by their distances in a simulation; where there is
    none, among those that records follow well.
    """
    if records:
        made = [record_distances(each.release) for each in found]
        simulated = [each[ways] for each in made if each is not None]
        if len(simulated) == len(found):
            return found[int(np.argmin(simulated))] if found else None
    measured = [
        (distance, place)
        for place, each in enumerate(found)
        if (distance := each.of_all(ways)) is not None
        and not (records and each.whole and each.whole.mean > GOOD_RECORDS)
    ]
    return found[min(measured)[1]] if measured else None


def _alternatives(release: Dense) -> list[tuple[Attributes, ...]]:
    """All pairs, all triples and both, and all columns together where none follows from another."""
    columns, nested = range(len(release.domain.axes)), release.nested
    several = {(2,), (3,), (2, 3)} if len(columns) > 3 or nested else {(2,)}
    several |= set() if nested else {(len(columns),)}
    return [
        tuple(a for w in ways for a in combinations(columns, w) if not tied(a, nested))
        for ways in sorted(several)
        if all(_every(release, w) for w in ways)
        if sum(_every(release, w) for w in ways) <= MOST_SETS
    ]


def _every(release: Dense, ways: int) -> int:
    """The number of tables over ``ways`` columns, none of which follows from another."""
    return untied(roots_of(range(len(release.domain.axes)), release.nested), ways)


def _drawn(release: Dense, sets: tuple[Attributes, ...], records: bool) -> Iterator[Dense]:
    """The alternatives that the share buys, by noise; none where there are too many cells."""
    share, usual = release.share, "records" if records else "balanced"
    aim = usual if isinstance(release, Histogram) else release.aim
    kind = Microdata if records or isinstance(release, Microdata) else Margins
    same: dict[str, Any] = {
        "name": release.name,
        "domain": release.domain,
        "rows": release.rows,
        "share": share,
        "adjacency": release.adjacency,
        "step": release.step,
    }
    more: dict[str, Any] = {"sets": sets, "aim": usual if isinstance(aim, tuple) else aim}
    if isinstance(release, Microdata):
        more |= {"rules": release.rules, "nested": release.nested}
    noises: list[Noise] = ["discrete-gaussian"] if share.beta or share.rho else []
    if not noises or len(sets) <= FEW_SETS:
        noises.append("discrete-laplace")
    for noise in noises:
        dense = len(sets) == 1 and noise == "discrete-laplace"
        try:
            other = Histogram(**same) if dense else kind(noise=noise, **same, **more)
            _ = other.mechanism
        except ValueError:
            continue
        yield other


def _kind(planned: Dense, release: Dense, sets: tuple[Attributes, ...]) -> Kind:
    name, columns = _name(planned, release, sets), len(release.domain.axes)
    return Kind(name, release is planned, release, _distances(planned, release, sets), columns)


def _noise(release: Dense) -> Noise:
    return "discrete-laplace" if isinstance(release, Histogram) else release.noise


def _name(planned: Dense, release: Dense, sets: tuple[Attributes, ...]) -> str:
    """In words of a plan; the mechanism only where it is not that of the plan."""
    if isinstance(release, Histogram):
        return "histogram"
    kind = "microdata-margins" if isinstance(release, Microdata) else "margins"
    ways = {len(attrs) for attrs in sets}
    every = sum(_every(planned, w) for w in ways) == len(sets)
    listed = ", ".join(map(str, sorted(ways)))
    drawn = f"ways: {listed if len(ways) == 1 else f'[{listed}]'}" if every else f"{len(sets)} sets"
    return f"{kind}, {drawn}" + (f", {release.noise}" if release.noise != _noise(planned) else "")


def _distances(planned: Dense, release: Dense, sets: tuple[Attributes, ...]) -> dict[int, Distance]:
    """Of the tables over one, two, three and all columns that some drawn table covers."""
    variance = cell_variances(release)
    records = release.rows * float(release.step)

    def distance(attrs: Attributes) -> float:
        cells = math.prod(release.domain.shape[a] for a in attrs)
        return min(cells * math.sqrt(variance(attrs) * 2 / math.pi) / (2 * records), 1.0)

    found, columns = {}, range(len(release.domain.axes))
    for ways in sorted({*WAYS, len(columns)}):
        covered = sorted({table for each in sets for table in combinations(each, ways)})
        if covered:
            mean = _mean(release, covered, distance)
            found[ways] = Distance(mean, len(covered), _every(planned, ways))
    return found


def _mean(
    release: Dense, tables: Sequence[Attributes], distance: Callable[[Attributes], float]
) -> float:
    some = alike(release, tables)
    count = min(len(some), MOST_TABLES)
    chosen = [some[i] for i in np.linspace(0, len(some) - 1, count).round().astype(int)]
    total = sum(len(group) * distance(group[0]) for group in chosen)
    return total / sum(len(group) for group in chosen)


def alike(release: Dense, tables: Sequence[Attributes]) -> list[list[Attributes]]:
    """Tables that are equally wrong, together, the smallest ones first.

    Where all sets of one number of columns are drawn, columns of equal size are interchangeable.
    """
    shape, every = release.domain.shape, True
    if isinstance(release, FittedTables):
        (ways, *others) = {len(attrs) for attrs in release.tables}
        every = not others and len(release.tables) == math.comb(len(shape), ways)
        every = every and not isinstance(release.aim, tuple)
    groups: dict[Attributes, list[Attributes]] = {}
    for attrs in tables:
        key = tuple(sorted(shape[a] for a in attrs)) if every else attrs
        groups.setdefault(key, []).append(attrs)
    return sorted(groups.values(), key=lambda group: math.prod(shape[a] for a in group[0]))


def cell_variances(release: Dense) -> Callable[[Attributes], float]:
    """The variance of each cell of the table over some columns, which a drawn table covers."""
    shape, step, mechanism = release.domain.shape, float(release.step), release.mechanism
    if isinstance(release, FittedTables) and not (
        release.tables == (tuple(range(len(shape))),) and isinstance(mechanism, DiscreteGaussian)
    ):
        margins = release
        return lambda attrs: float(margins.cell_variances([attrs])[0]) * step**2
    assert isinstance(mechanism, DiscreteGaussian | LaplaceNoise)
    drawn, known = (mechanism.stddev * step) ** 2, release.adjacency.public_rows

    def summed(attrs: Attributes) -> float:
        cells = math.prod(shape[a] for a in attrs)
        return drawn * release.domain.size / cells * (1 - known / cells)

    return summed
