"""Privacy events: what was done, as data whose meaning never changes.

The ledger stores the event of every draw, and accountants interpret it (``dpcore.accounting``):
one when the draw is charged, others when the whole history is priced again.  Sensitivities are for
the neighbours that the event names.

>>> event = LaplaceEvent(Fraction(2), Fraction(5, 2))
>>> read_event(event.to_dict()) == event
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar

from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.sampling.k_norm import Norm


@dataclass(frozen=True)
class Event:
    """Base of all events; ``kind`` names the event in its JSON form.

    ``adjacency``: the neighbours that sensitivities are for; a release states its own.
    """

    kind: ClassVar[str]

    adjacency: Adjacency = field(default=REPLACE_ONE, kw_only=True)

    def to_dict(self) -> dict[str, str]:
        """JSON form; ``read_event`` reads it."""
        values = {name: str(getattr(self, name)) for name in _numbers(type(self))}
        return {"event": self.kind, **self.adjacency.to_dict(), **values}


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """Discrete Laplace noise P(z) proportional to exp(-|z|/scale) on an integer vector.

    ``l1_sensitivity``: the most by which neighbours differ, summed over coordinates.
    """

    kind = "discrete-laplace"

    l1_sensitivity: Fraction
    scale: Fraction


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Discrete Gaussian noise P(z) proportional to exp(-z^2/(2 variance)) on an integer vector.

    ``l2_sensitivity_squared``: the most by which neighbours differ, squared and summed.
    """

    kind = "discrete-gaussian"

    l2_sensitivity_squared: Fraction
    variance: Fraction


@dataclass(frozen=True)
class ExponentialEvent(Event):
    """Choices i from finite sets, P(i) proportional to exp(-score_i/scale), ``selections`` of them.

    ``sensitivity``: the most by which a neighbour changes any score.
    """

    kind = "exponential"

    sensitivity: Fraction
    scale: Fraction
    selections: int


@dataclass(frozen=True)
class TableEvent(Event):
    """An answer drawn from a table of chances, one row for each true count.

    Neighbours are in the same row or in adjacent ones, and all adjacent rows were proved to be
    (alpha, beta)-indistinguishable in exact arithmetic; ``sha256`` names the table.
    """

    kind = "table"

    alpha: Fraction
    beta: Fraction
    sha256: str


@dataclass(frozen=True)
class SampledEvent(Event):
    """``draws`` records drawn from an urn of the histogram with ``prior`` balls for each cell."""

    urn: str
    draws: int
    prior: Fraction

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.urn

    def to_dict(self) -> dict[str, str]:
        values = super().to_dict()
        del values["urn"]
        return values


@dataclass(frozen=True)
class RandomLaplaceEvent(Event):
    """Discrete Laplace noise on counts, but for low ones, which are told exactly.

    ``exposure``: the chance that a random record and its random replacement are not protected by
    the noise, which is what the event costs in gamma.
    """

    kind = "random-discrete-laplace"

    l1_sensitivity: Fraction
    scale: Fraction
    exposure: Fraction


@dataclass(frozen=True)
class SmoothLaplaceEvent(Event):
    """A sum with discrete Laplace noise, whose scale follows the data by steps of ``growth``.

    ``alpha`` protects the sum, ``level_alpha`` the scale; ``exposure`` is the cost in gamma.
    """

    kind = "smooth-discrete-laplace"

    alpha: Fraction
    level_alpha: Fraction
    growth: Fraction
    exposure: Fraction


@dataclass(frozen=True)
class StabilityEvent(Event):
    """Discrete Laplace noise on the occupied cells of a histogram, shown above ``threshold`` only.

    ``l1_sensitivity``: the most by which neighbours differ, summed over cells; it is that
    of one record, which is in one cell, so that it empties and newly occupies one at most.
    """

    kind = "stability-laplace"

    l1_sensitivity: Fraction
    scale: Fraction
    threshold: int


@dataclass(frozen=True)
class KNormEvent(Event):
    """Noise P(z) proportional to exp(-||z||/scale) on integer vectors of ``dimension`` numbers.

    ``norm``: l2 (Euclidean, rounded up), cube (the largest coordinate) or discs (the largest pair,
    Euclidean, rounded up); ``sensitivity``: the most by which neighbours differ, in that norm.
    """

    kind = "discrete-k-norm"

    norm: Norm
    dimension: int
    sensitivity: int
    scale: Fraction


@dataclass(frozen=True)
class BodyEvent(Event):
    """Noise P(z) proportional to exp(-||z||/scale) by a body around all differences of records.

    ``sensitivity``: the most by which neighbours differ, in the body's norm; ``sha256`` names the body,
    which follows from the plan.
    """

    kind = "difference-body"

    dimension: int
    sha256: str
    sensitivity: Fraction
    scale: Fraction


@dataclass(frozen=True)
class NearRecordsEvent(Event):
    """``draws`` synthetic records z, P(z) proportional to exp(-T(z)/scale), T as ``sampling.paths``
    defines it: the Kolmogorov-Smirnov distance in records, which a neighbour changes by one at most.
    """

    kind = "ks-exponential"

    draws: int
    scale: Fraction


@dataclass(frozen=True)
class AdaptiveMarginsEvent(Event):
    """Noise on count tables, and fresh noise on some of them, which the first noisy ones chose.

    ``noise``: discrete-laplace, with L1 sensitivities and scales, or discrete-gaussian, with squared
    L2 sensitivities and variances; ``again_``: of the second round, for any tables chosen.
    """

    kind = "adaptive-margins"

    noise: str
    sensitivity: Fraction
    scale: Fraction
    again_sensitivity: Fraction
    again_scale: Fraction


@dataclass(frozen=True)
class CompressedMarginsEvent(AdaptiveMarginsEvent):
    """Noise on tables of single columns, and fresh noise on tables over groups of their cells, which
    the first noisy ones chose: priced as two rounds; ``again_``: for any groups.
    """

    kind = "compressed-margins"


@dataclass(frozen=True)
class NearMeansEvent(Event):
    """``draws`` synthetic records z, P(z) proportional to exp(-|S/rows - S(z)/draws|^2/scale), S the
    sum of whole features of the records: a neighbour moves S, and a mean, by at most
    ``l2_sensitivity_squared`` squared, and so a square by 2 l2_sensitivity_squared/rows.
    """

    kind = "series-exponential"

    draws: int
    rows: int
    l2_sensitivity_squared: Fraction
    scale: Fraction


@dataclass(frozen=True)
class ProposeTestReleaseEvent(Event):
    """Two tests whether a distance, which a record changes by one, is above ``threshold`` with discrete
    Laplace noise of ``test_scale``; then, where one was passed, noise of ``scale`` on a number that a
    neighbour in the same cell of the test changes by ``sensitivity`` at most.
    """

    kind = "propose-test-release"

    test_scale: Fraction
    threshold: int
    sensitivity: Fraction
    scale: Fraction


@dataclass(frozen=True)
class StagedEvent(Event):
    """A choice, then a mechanism that depends on it; the privacy line held each to its own share.

    ``choice``: the kind of the first event; the second one is (alpha, beta)-DP whatever was chosen.
    """

    kind = "staged"

    choice: str
    choice_alpha: Fraction
    choice_beta: Fraction
    alpha: Fraction
    beta: Fraction


ScaledEvent = LaplaceEvent | ExponentialEvent | RandomLaplaceEvent | StabilityEvent | KNormEvent
"""Events whose noise or choices have one public ``scale``."""

_KINDS: dict[str, type[Event]] = {
    **{kind.kind: kind for kind in Event.__subclasses__() if kind is not SampledEvent},
    CompressedMarginsEvent.kind: CompressedMarginsEvent,
    **dict.fromkeys(("smoothed-histogram", "dirichlet-multinomial"), SampledEvent),
}
_READERS: dict[Any, Callable[[str], Any]] = {"Fraction": Fraction, "int": int}


def _numbers(kind: type[Event]) -> dict[str, Any]:
    """What an event of a kind is made of, and of which type each is."""
    return {each.name: each.type for each in fields(kind) if each.name != "adjacency"}


def read_event(document: Mapping[str, Any]) -> Event:
    """The event that ``to_dict`` wrote; raises ``ValueError`` on anything else."""
    name = str(document.get("event"))
    if name not in _KINDS:
        raise ValueError(f"a privacy event of an unknown kind: {name!r}")
    values = {"urn": name, **document}
    try:
        event = _KINDS[name](
            **{
                number: _READERS.get(kind, str)(values[number])
                for number, kind in _numbers(_KINDS[name]).items()
            },
            adjacency=Adjacency.from_dict(document),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        event = None
    if event is None or event.to_dict() != document:
        raise ValueError(f"a privacy event {name!r} in a form that this version does not know")
    return event
