"""Draws for an audit: many independent outputs for each of two neighbouring inputs.

    side 0   the mechanism run on a table D
    side 1   the mechanism run on a neighbouring table D'

An audit that wants a million outputs cannot run a release a million times.  ``ReleaseDraws`` runs the
real privacy line ``perturb`` once per batch, on the release's own mechanism in ``Repeated``; tests
compare it with one call of ``perturb`` for each output.

``ReleaseDraws`` opens no exact statistic, and its draws are marked as not fit for publication: the
tables of an audit are made up, and no budget is charged.

>>> import numpy as np
>>> from dpcore.sampling.source import SeededSource
>>> coin = Simulated("coin", (0.25, 0.75), lambda p, size, generator: generator.random(size) < p)
>>> coin.draw(1, 1000, SeededSource(1)).mean().round(2)
np.float64(0.74)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.audit.neighbours import Pair
from dpcore.audit.rehearsal import Rehearsal, fast_generator
from dpcore.audit.scores import Score, Slice, StatedRatio, SumOfScores
from dpcore.domain.words import LARGEST_WORD
from dpcore.errors import AuditError
from dpcore.line.mechanism import Mechanism, Outputs, Round
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import ABSENT, Exact, Noisy, Statistic
from dpcore.mechanisms import DiscreteLaplace
from dpcore.mechanisms.repeated import Repeated
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SeededSource

Input = TypeVar("Input")

LARGEST_BATCH = 2**20
"""The most numbers that are drawn at a time."""

READING = Budget.of(4096)
"""The alpha paid for reading the statistic of a made-up table without noise."""

WIDE, NARROW = 256, 16
"""If a statistic has more cells than the first number, about the second number of cells are watched."""


class Audited(Protocol):
    """A mechanism and two neighbouring inputs."""

    @property
    def name(self) -> str: ...

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        """Draw (size, d) independent outputs for input 0 or 1: int64, or float64 with NaN for absent."""
        ...

    def scores(self) -> Sequence[Score]:
        """Scores that separate the two sides best if the mechanism has its stated law; may be empty."""
        ...


@dataclass(frozen=True)
class Simulated(Generic[Input]):
    """A mechanism given as a function (input, size, generator) -> (size,) or (size, d) outputs."""

    name: str
    inputs: tuple[Input, Input]
    run: Callable[[Input, int, np.random.Generator], NDArray[Any]]

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return as_outputs(self.run(self.inputs[side], size, fast_generator(source)))

    def scores(self) -> Sequence[Score]:
        return ()


@dataclass(frozen=True)
class Joint:
    """Several mechanisms, run independently on the same pair of surveys: outputs are concatenated."""

    parts: tuple[Audited, ...]

    @property
    def name(self) -> str:
        return " and ".join(part.name for part in self.parts)

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return np.concatenate([part.draw(side, size, source) for part in self.parts], axis=1)

    def scores(self) -> Sequence[Score]:
        """The sum of the parts' log-ratios, and each log-ratio."""
        widths = [part.draw(0, 1, SeededSource(0)).shape[1] for part in self.parts]
        starts = np.cumsum([0, *widths])
        own = [
            Slice(score, int(start), int(start + width))
            for part, start, width in zip(self.parts, starts[:-1], widths, strict=True)
            for score in list(part.scores())[:1]
        ]
        return [SumOfScores(tuple(own)), *own] if len(own) > 1 else own


@dataclass(frozen=True, eq=False)
class ReleaseDraws:
    """A release on two made-up neighbouring tables; whole batches cross the privacy line.

    An output is the noisy statistic on the watched cells: all cells, or for a wide statistic those that
    differ between the tables and a few more.  For a sparse statistic the occupied cells of both tables
    are watched (NaN if absent), and the last number is how many other cells were kept.
    """

    release: Release
    pair: Pair
    wide: int = WIDE
    known: tuple[Exact, Exact] | None = None
    """The statistics of both tables, if they are computed already."""

    @property
    def name(self) -> str:
        return self.release.name

    def narrowed(self) -> ReleaseDraws:
        """The same draws, with fewer watched cells: where the tables differ, and a few more."""
        return replace(self, wide=NARROW, known=self._exact)

    @cached_property
    def _exact(self) -> tuple[Exact, Exact]:
        near, far = self.pair.near, self.pair.far
        return self.known or (self.release.statistic(near), self.release.statistic(far))

    @cached_property
    def readings(self) -> tuple[Statistic, Statistic]:
        """Both exact statistics on the watched cells, drawn at an alpha so large that the noise is zero.

        They cross the privacy line like every other draw, and pay: alpha = 4096 for each unit that a
        statistic moves.  Noise other than zero has a chance of exp(-4096) per cell.
        """
        mechanism = self.release.mechanism
        reading = _Reading(mechanism.size, Fraction(1), 1 / READING.alpha, mechanism)
        readings = [perturb(exact, reading, READING, SeededSource(1)) for exact in self._exact]
        sides = [noisy.cells for noisy in readings if noisy.cells is not None]
        if sides:
            cells = np.unique(np.concatenate(sides), axis=0)
            values = [_at(noisy, cells) for noisy in readings]
        else:
            values = [noisy.values for noisy in readings]
            cells = np.arange(len(values[0]))
        near, far = values
        kept = np.arange(len(cells))
        if mechanism.cell_by_cell and len(cells) > self.wide:
            # Also cells where the tables agree: faulty noise may depend on the data there.
            kept = np.union1d(kept[near != far], kept[:: -(-len(cells) // (self.wide // 2))])
        return Statistic(near[kept], cells[kept]), Statistic(far[kept], cells[kept])

    @property
    def watched(self) -> Integers:
        """The watched cells."""
        cells = self.readings[0].cells
        assert cells is not None
        return cells

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return np.concatenate(list(self.batches(side, size, source)))

    def batches(self, side: int, size: int, source: RandomSource) -> Iterator[Outputs]:
        """The outputs of ``draw`` in batches small enough for memory."""
        mechanism = self.release.mechanism
        for times in self._batches(size):
            narrow = mechanism.cell_by_cell and not mechanism.sparse
            repeated = Repeated.of(mechanism, times, self.watched if narrow else None)
            share, rehearsal = self.release.share, Rehearsal(source)
            yield self._arranged(perturb(self._exact[side], repeated, share, rehearsal), times)

    @property
    def width(self) -> int:
        """The approximate number of values in an output."""
        return self.release.mechanism.output_width(len(self.watched))

    def _batches(self, size: int) -> Iterator[int]:
        """How many copies of the statistic each batch contains."""
        mechanism = self.release.mechanism
        most = max(1, LARGEST_BATCH // self.width)
        if mechanism.sparse and len(mechanism.words) == 1:
            # The cells of all copies are numbered together, in one word.
            most = max(1, min(most, LARGEST_WORD // mechanism.size))
        while size > 0:
            yield min(size, most)
            size -= most

    def _arranged(self, noisy: Noisy, times: int) -> Outputs:
        watched = self.watched
        if noisy.cells is None:
            absent = noisy.values == ABSENT  # not measured
            outputs = np.where(absent, np.nan, noisy.values) if absent.any() else noisy.values
            return outputs.reshape(times, -1)
        if len(np.unique(noisy.cells, axis=0)) < len(noisy.cells):
            raise AuditError(f"{self.name}: a cell is published twice; this is a fault: report it")
        if noisy.cells.ndim == 1:
            copy, cell = np.divmod(noisy.cells, self.release.mechanism.size)
            place = np.minimum(np.searchsorted(watched, cell), len(watched) - 1)
            known = watched[place] == cell
        else:
            copy, cell = noisy.cells[:, 0], noisy.cells[:, 1:]
            place = np.full(len(cell), -1)
            for i, words in enumerate(watched):
                place[(cell == words).all(axis=1)] = i
            known = place >= 0
        outputs = np.full((times, len(watched) + 1), np.nan)
        outputs[copy[known], place[known]] = noisy.values[known]
        outputs[:, -1] = np.bincount(copy[~known], minlength=times)
        return outputs

    def scores(self) -> Sequence[Score]:
        """The mechanism's stated log-ratio between the two exact statistics."""
        ratio = self.release.mechanism.log_ratio(*self.readings)
        return [] if ratio is None else [StatedRatio(ratio)]

    def rounds_of(self, outputs: Outputs, factors: Floats) -> list[Round]:
        """The rounds that produced outputs of the first side."""
        return self.release.mechanism.rounds_of(outputs, self.readings[0], factors)

    def distance(self) -> float:
        """The distance of the two statistics, to rank pairs."""
        return self.release.mechanism.distance(*self.readings)


@dataclass(frozen=True)
class _Reading(DiscreteLaplace):
    """Negligible noise on a statistic for mechanism ``of``; if sparse, only on its occupied cells."""

    of: Mechanism

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return self.of.sparse

    @property
    def words(self) -> tuple[int, ...]:
        return self.of.words

    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        noise = DiscreteLaplace(len(statistic.values), self.l1_sensitivity, self.scale)
        return replace(noise.draw(statistic, source), cells=statistic.cells)


def _at(noisy: Noisy, cells: Integers) -> Integers:
    """The values of a sparse noisy statistic at ``cells``, which include all its own cells."""
    assert noisy.cells is not None
    both = np.concatenate([cells, noisy.cells])
    places = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    values = np.zeros(len(cells), dtype=np.int64)
    values[places[len(cells) :]] = noisy.values
    return values


def as_outputs(raw: NDArray[Any]) -> Outputs:
    """Convert (size,) or (size, d) numbers of any type to (size, d) int64 or float64."""
    raw = raw.reshape(len(raw), -1)
    kind = np.float64 if raw.dtype.kind == "f" else np.int64
    return raw.astype(kind, copy=False)
