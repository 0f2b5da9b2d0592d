"""What an audit asks of a mechanism: many independent outputs for either of two neighbouring inputs.

    side 0   the mechanism run on a table D
    side 1   the mechanism run on a neighbouring table D'

An audit that wants a million outputs cannot run a release a million times.  ``ReleaseDraws`` runs
``perturb`` itself, the real privacy line, once per batch: it hands it the exact statistic and a
mechanism that lays the statistic out ``times`` times and draws the noise of all copies at once.
That has the law of ``times`` separate draws because the noise of these mechanisms is independent
from cell to cell, or from block to block; ``LoopedDraws`` calls ``perturb`` for one output at a
time, and tests hold the two against each other.  A mechanism that is known to do neither is looped.

Neither opens an exact statistic, and what either draws is marked as not fit for publication: the
tables of an audit are made up, and nobody is charged for it.

>>> import numpy as np
>>> from dpcore.sampling.k_norm import lattice_norm
from dpcore.sampling.source import SeededSource
>>> coin = Simulated("coin", (0.25, 0.75), lambda p, size, generator: generator.random(size) < p)
>>> coin.draw(1, 1000, SeededSource(1)).mean().round(2)
np.float64(0.74)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcore.audit.compressed import CompressedRatio
from dpcore.audit.scores import Floats, Outputs, Part, Score, Sum, stated_ratio
from dpcore.budget import Budget
from dpcore.domain import LARGEST_DOMAIN, Tally
from dpcore.errors import PrivacyLineError
from dpcore.events import (
    Event,
    ExponentialEvent,
    GaussianEvent,
    KNormEvent,
    ScaledEvent,
)
from dpcore.mechanisms import (
    AdaptiveMargins,
    CompressedMargins,
    DifferenceBody,
    DiscreteGaussian,
    DiscreteKNorm,
    DiscreteLaplace,
    ExponentialMechanism,
    Mechanism,
    NearMeansMechanism,
    NearRecordsMechanism,
    ProposeTestRelease,
    RandomLaplace,
    Sampled,
    SmoothLaplace,
    StabilityLaplace,
    Staged,
    TabulatedMechanism,
    ThresholdedLaplace,
)
from dpcore.privacy_line import perturb
from dpcore.releases.base import Release
from dpcore.sampling.k_norm import lattice_norm
from dpcore.sampling.source import RandomSource
from dpcore.statistic import ABSENT, Exact, Noisy

Integers = NDArray[np.int64]
Input = TypeVar("Input")

LARGEST_BATCH = 2**22
"""Numbers drawn at a time."""


class Audited(Protocol):
    """A mechanism and two neighbouring inputs."""

    @property
    def name(self) -> str: ...

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        """(size, d) independent outputs for input 0 or 1: int64, or float64 with NaN for absent."""
        ...

    def scores(self) -> Sequence[Score]:
        """Scores that tell the sides apart if the mechanism is what it says; may be none."""
        ...


@dataclass(frozen=True)
class Simulated(Generic[Input]):
    """A mechanism given as a function (input, size, generator) -> (size,) or (size, d) outputs."""

    name: str
    inputs: tuple[Input, Input]
    run: Callable[[Input, int, np.random.Generator], NDArray[Any]]

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return as_outputs(self.run(self.inputs[side], size, generator(source)))

    def scores(self) -> Sequence[Score]:
        return ()


@dataclass(frozen=True)
class Joint:
    """Several mechanisms run on the same pair of surveys, independently: outputs side by side."""

    parts: tuple[Audited, ...]

    @property
    def name(self) -> str:
        return " and ".join(part.name for part in self.parts)

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return np.concatenate([part.draw(side, size, source) for part in self.parts], axis=1)

    def scores(self) -> Sequence[Score]:
        """The sum of the parts' own log-ratios, and each of them."""
        widths = [part.draw(0, 1, _Words(0)).shape[1] for part in self.parts]
        starts = np.cumsum([0, *widths])
        own = [
            Part(score, int(start), int(start + width))
            for part, start, width in zip(self.parts, starts[:-1], widths, strict=True)
            for score in list(part.scores())[:1]
        ]
        return [Sum(tuple(own)), *own] if len(own) > 1 else own


class _Centres(NamedTuple):
    """The exact statistics of both made-up tables on the watched cells: (cells,) each."""

    watched: Integers
    near: Floats
    far: Floats


@dataclass(frozen=True, eq=False)
class ReleaseDraws:
    """A release on two made-up neighbouring tables: whole batches across the privacy line.

    An output is the noisy statistic on the watched cells: all of them, or of a wide statistic those
    that differ between the tables and some more.  Of a sparse one the occupied cells of either table
    are watched (NaN where absent), and the last number says how many other cells were kept.
    """

    release: Release
    near: Tally
    far: Tally

    @property
    def name(self) -> str:
        return self.release.name

    @cached_property
    def _exact(self) -> tuple[Exact, Exact]:
        return self.release.statistic(self.near), self.release.statistic(self.far)

    @cached_property
    def centres(self) -> _Centres:
        """The statistics, drawn at an alpha so large that the noise is zero, and what to watch.

        They cross the privacy line like every other draw, and pay: alpha = 4096 for each unit that
        a statistic moves.  Noise other than zero has a chance of exp(-4096) per cell.
        """
        readings = [self._reading(exact) for exact in self._exact]
        if self.release.mechanism.sparse:
            cells = np.union1d(self.near.cells, self.far.cells)
            values = [_at(noisy, cells) for noisy in readings]
        else:
            values = [noisy.values for noisy in readings]
            cells = np.arange(len(values[0]))
        near, far = values
        kept = np.arange(len(cells))
        if isinstance(self.release.mechanism, CELL_BY_CELL):
            kept = self._watched(near != far)
        return _Centres(cells[kept], near[kept].astype(np.float64), far[kept].astype(np.float64))

    def _watched(self, differ: NDArray[np.bool_]) -> Integers:
        """Which cells are watched; ``differ`` (cells,): whether the tables differ there."""
        cells = np.arange(len(differ))
        if len(cells) <= WIDE:
            return cells
        return np.union1d(cells[differ], cells[:: -(-len(cells) // (WIDE // 2))])

    def _reading(self, exact: Exact) -> Noisy:
        size, scale = self.release.mechanism.size, 1 / READING.alpha
        reading: Mechanism = DiscreteLaplace(size, Fraction(1), scale)
        if self.release.mechanism.sparse:
            reading = ThresholdedLaplace(size, Fraction(1), scale, threshold=0)
        return perturb(exact, reading, READING, Rehearsal(_Words(1)))

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        rows, mechanism, watched = [], self.release.mechanism, self.centres.watched
        for times in self._batches(size):
            cell_by_cell = isinstance(mechanism, CELL_BY_CELL) and not mechanism.sparse
            repeated = Repeated(mechanism, times, watched if cell_by_cell else None)
            share, rehearsal = self.release.share, Rehearsal(source)
            rows.append(
                self._arranged(perturb(self._exact[side], repeated, share, rehearsal), times)
            )
        return np.concatenate(rows)

    @property
    def width(self) -> int:
        """About how many numbers an output has."""
        mechanism = self.release.mechanism
        if isinstance(mechanism, CompressedMargins):
            return mechanism.numbers
        return len(self.centres.watched)

    def _batches(self, size: int) -> Iterator[int]:
        """How often the statistic is laid out, batch by batch."""
        mechanism = self.release.mechanism
        most = max(1, LARGEST_BATCH // self.width)
        if mechanism.sparse:
            most = max(1, min(most, LARGEST_DOMAIN // mechanism.size))
        if not isinstance(mechanism, CELL_BY_CELL + IN_BLOCKS):
            most = 1
        while size > 0:
            yield min(size, most)
            size -= most

    def _arranged(self, noisy: Noisy, times: int) -> Outputs:
        watched = self.centres.watched
        if noisy.cells is None:
            return _with_gaps(noisy.values).reshape(times, -1)
        copy, cell = np.divmod(noisy.cells, self.release.mechanism.size)
        place = np.minimum(np.searchsorted(watched, cell), len(watched) - 1)
        known = watched[place] == cell
        outputs = np.full((times, len(watched) + 1), np.nan)
        outputs[copy[known], place[known]] = noisy.values[known]
        outputs[:, -1] = np.bincount(copy[~known], minlength=times)
        return outputs

    def scores(self) -> Sequence[Score]:
        """The log-ratio that the mechanism states, between the two exact statistics."""
        if isinstance(self.release.mechanism, CompressedMargins):
            if too_long(self.release):
                return []
            return [CompressedRatio(self.release.mechanism, self.near, self.far)]
        _, near, far = self.centres
        threshold = float(getattr(self.release.mechanism, "threshold", np.nan))
        return stated_ratio(self.release.mechanism.event, near, far, threshold)

    def distance(self) -> float:
        """How far apart the statistics lie, in units of the noise: in the norm of the mechanism."""
        event = self.release.mechanism.event
        moved = self.centres.near - self.centres.far
        if isinstance(event, GaussianEvent):
            return float(np.linalg.norm(moved)) / math.sqrt(event.variance)
        if isinstance(event, ExponentialEvent):
            moved = np.ptp(moved.reshape(event.selections, -1), axis=1)
        if not isinstance(event, ScaledEvent):
            return float(np.abs(moved).max())
        if isinstance(event, KNormEvent):
            moved = lattice_norm(event.norm, moved.astype(np.int64)[None]).astype(np.float64)
        return float(np.abs(moved).sum()) / float(event.scale)


@dataclass(frozen=True, eq=False)
class NarrowDraws(ReleaseDraws):
    """The same, seen only where the tables differ: that is all that the stated log-ratio looks at."""

    def _watched(self, differ: NDArray[np.bool_]) -> Integers:
        return np.union1d(np.flatnonzero(differ), [0])


@dataclass(frozen=True, eq=False)
class LoopedDraws(ReleaseDraws):
    """The same, with one call of ``perturb`` for each output: slow, and nothing to argue about."""

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        release, rows = self.release, []
        for _ in range(size):
            noisy = perturb(self._exact[side], release.mechanism, release.share, Rehearsal(source))
            if isinstance(release.mechanism, CELL_BY_CELL) and noisy.cells is None:
                noisy = replace(noisy, values=noisy.values[self.centres.watched])
            rows.append(self._arranged(noisy, 1))
        return np.concatenate(rows)


def _with_gaps(values: Integers) -> Outputs:
    """Numbers that were not measured as NaN."""
    absent = values == ABSENT
    return np.where(absent, np.nan, values) if absent.any() else values


def _at(noisy: Noisy, cells: Integers) -> Integers:
    """The values of a sparse noisy statistic at some cells that hold all of its own."""
    assert noisy.cells is not None
    values = np.zeros(len(cells), dtype=np.int64)
    values[np.searchsorted(cells, noisy.cells)] = noisy.values
    return values


CELL_BY_CELL = (
    DiscreteLaplace,
    DiscreteGaussian,
    RandomLaplace,
    ThresholdedLaplace,
    StabilityLaplace,
    TabulatedMechanism,
)
"""Mechanisms that treat every cell alike and on its own, so that tables may be laid side by side."""

IN_BLOCKS = (
    AdaptiveMargins,
    CompressedMargins,
    ExponentialMechanism,
    Sampled,
    SmoothLaplace,
    DiscreteKNorm,
    DifferenceBody,
    NearMeansMechanism,
    NearRecordsMechanism,
    ProposeTestRelease,
    Staged,
)
"""Mechanisms that treat a statistic of several times their size as so many statistics, one by one."""

READING = Budget.of(4096)
"""What it costs to see a made-up statistic as it is."""

REGROUPED = 2**11
"""Outputs of more numbers are not grouped again for their stated score: it would take minutes."""


def too_long(release: Release) -> bool:
    """Whether outputs hold so many groups that few can be drawn, and none grouped again."""
    mechanism = release.mechanism
    return isinstance(mechanism, CompressedMargins) and mechanism.numbers > REGROUPED


WIDE = 256
"""Statistics with more cells than this are watched in part."""


@dataclass(frozen=True)
class Repeated:
    """``times`` independent draws of one mechanism at once, for audits: never for publication.

    The privacy line hands it one statistic; its result holds ``times`` of them one after the other,
    copy i of cell c being cell ``i * size + c``; of a dense one only the ``watched`` cells (cells,)
    are drawn.  It states the event of a single draw, which is
    what an audit is about, and so it takes only a source whose draws cannot be published.
    """

    once: Mechanism
    times: int
    watched: Integers | None = None

    @property
    def size(self) -> int:
        return self.once.size

    @property
    def sparse(self) -> bool:
        return self.once.sparse

    @property
    def event(self) -> Event:
        return self.once.event

    def draw(self, values: Integers, cells: Integers | None, source: RandomSource) -> Noisy:
        if not source.reproducible:
            raise PrivacyLineError("draws are repeated in a rehearsal only")
        if not isinstance(self.once, CELL_BY_CELL + IN_BLOCKS):
            if self.times > 1:
                raise PrivacyLineError(f"{type(self.once).__name__} is not drawn cell by cell")
            return self.once.draw(values, cells, source)
        if isinstance(self.once, Staged):
            assert cells is not None  # the privacy line checks the layout
            return _in_stages(self.once, Tally(self.once.domain, cells, values), self.times, source)
        if isinstance(self.once, CompressedMargins):
            assert cells is not None
            return self.once.draws(Tally(self.once.domain, cells, values), self.times, source)
        if self.watched is not None:
            values = values[self.watched]
        size = self.size if cells is not None else len(values)
        wide = replace(self.once, size=size * self.times)
        if cells is not None:
            cells = np.add.outer(size * np.arange(self.times), cells).ravel()
        return wide.draw(np.tile(values, self.times), cells, source)


def _in_stages(once: Staged, tally: Tally, times: int, source: RandomSource) -> Noisy:
    """``times`` choices at once, then the second steps of all that chose alike."""
    steps, first = once.steps, once.steps.choice
    many = perturb(
        first.statistic(tally), Repeated(first.mechanism, times), first.share, source
    ).values.reshape(times, -1)
    result = np.zeros((times, once.chosen + once.longest), dtype=np.int64)
    result[:, : once.chosen] = many
    choices, which = np.unique(many, axis=0, return_inverse=True)
    for i, choice in enumerate(choices):
        second, alike = steps.after(Noisy(choice)), np.flatnonzero(which.ravel() == i)
        repeated = Repeated(second.mechanism, len(alike))
        drawn = perturb(second.statistic(tally), repeated, steps.rest, source).values
        own = slice(once.chosen, once.chosen + second.mechanism.size)
        result[alike, own] = drawn.reshape(len(alike), -1)
    return Noisy(result.ravel(), reproducible=source.reproducible)


class Rehearsal:
    """The words of any source, marked as not fit for publication."""

    reproducible = True

    def __init__(self, source: RandomSource) -> None:
        self._source = source

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._source.words(size)


class _Words(Rehearsal):
    """A fixed stream, where the law of a result does not depend on it."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, size: int) -> NDArray[np.uint64]:
        return self._bits.random_raw(size).astype(np.uint64, copy=False)


def generator(source: RandomSource) -> np.random.Generator:
    """A fast generator seeded from the source, for simulated mechanisms."""
    return np.random.Generator(np.random.SFC64(source.words(4).tolist()))


def as_outputs(raw: NDArray[Any]) -> Outputs:
    """(size,) or (size, d) numbers of any kind to (size, d) int64 or float64."""
    raw = raw.reshape(len(raw), -1)
    kind = np.float64 if raw.dtype.kind == "f" else np.int64
    return raw.astype(kind, copy=False)
