"""The interface of a mechanism: what the privacy line, the ledger, error statements and audits require.

Each file of ``dpcore.mechanisms`` holds one complete mechanism: its theorem, its ``Event`` and its
``Mechanism``.  No other code depends on which kinds exist.  If an event or a mechanism lacks a required
method, the release is refused.

    Event        what was done, as data whose meaning never changes: the ledger stores it, and computes
                 its price when the draw is charged and whenever a history is priced again
    Mechanism    public parameters; ``draw`` turns an exact statistic into a noisy one
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import promise_of
from dpcore.accounting.digits import round_up
from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.line.statistic import Noisy, Statistic
from dpcore.sampling.source import RandomSource

Outputs = NDArray[Any]
"""(n, d) outputs of an audit: int64, or float64 with NaN for absent numbers."""

LogRatio = Callable[[Outputs], Floats]
"""A function from outputs (k, d) to the log-ratios (k,) of their chances on the two sides."""

AUDITED = 0.05
"""Approximate CPU seconds of a short audit of a mechanism with few numbers."""

AS_STATED: Floats = np.ones(1)
"""The factor for noise of the stated width."""

Choice = tuple[Integers, Floats]
"""The chosen candidates' numbers (n,), and the chances (n, candidates) of all candidates."""


class Round(NamedTuple):
    """One of the draws that make up a mechanism, as an audit sees it.

    ``logs``: (n, factors) log chances of outputs if the noise were that factor times as wide as stated,
    up to a term that depends on the outputs only; None if the law has no such form.  ``noise``: (n, k)
    noise values, which are independent and symmetric if the round has its stated law, and NaN where no
    noise was drawn.  ``choice``: the chosen candidate, and the chances of all candidates.
    """

    logs: Floats | None
    noise: Floats | None = None
    choice: Choice | None = None


WorstTable = tuple[str, dict[int, int], int, int]
"""For an audit: a label, the records as {cell: count}, and the cells that a record moves from and to."""


@dataclass(frozen=True)
class Event(ABC):
    """What a mechanism did, for the ledger; ``kind`` is its name in the JSON form.

    ``adjacency``: the neighbouring relation of the sensitivities, as the release states it.
    """

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[Event]]] = {}

    adjacency: Adjacency = field(default=REPLACE_ONE, kw_only=True)

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            cls.kinds[cls.kind] = cls

    @abstractmethod
    def covered_by(self, share: Budget) -> bool:
        """Whether the event costs at most ``share``; True only if this is proved, rounding included."""

    @property
    def pure_alpha(self) -> Fraction | None:
        """The alpha of an event whose beta is 0, exact or rounded up; None for any other event."""
        return None

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """The (rho, beta) for which the event is beta-approximately rho-zCDP, exact or rounded up.

        A pure event of alpha has rho = alpha^2/2 (Bun & Steinke 2016, Proposition 1.4).  The result is
        None if no price is proved.  If gamma > 0, the price holds only for neighbours outside
        exceptional sets, whose probability gamma bounds.
        """
        alpha = self.pure_alpha
        return None if alpha is None else (alpha**2 / 2, Fraction(0))

    @property
    def spent_gamma(self) -> Fraction:
        """The event's price in gamma of random differential privacy."""
        return Fraction(0)

    @property
    def inherited_gaussian(self) -> tuple[Fraction, Fraction] | None:
        """The continuous Gaussian noise that the event inherits from (``accounting.analytic``).

        Returned are squared sensitivity over variance, and the amount added to alpha and ln beta; None
        for other noise.
        """
        return None

    def to_dict(self) -> dict[str, str]:
        """The JSON form, which ``event_from_dict`` reads."""
        # As text, because JSON has no fractions.
        values = {name: str(getattr(self, name)) for name in _numbers(type(self))}
        return {"event": self.kind, **self.adjacency.to_dict(), **values}


def affordable(event: object, share: Budget) -> bool:
    """Whether a share of the budget covers an event; anything that is not an event is refused.

    A share in rho is compared with the event's zCDP price, a share in alpha with its (alpha, beta).
    """
    if not isinstance(event, Event) or (share.alpha and share.rho):
        return False
    if not share.rho:
        return event.covered_by(share)
    try:
        price = event.concentrated
        pure = event.pure_alpha
    except (ArithmeticError, ValueError):  # parameters that no mechanism has
        return False
    if price is None or min(price) < 0 or not event.spent_gamma <= share.gamma < 1:
        return False
    # The price in rho of a pure event follows from its alpha alone; this also checks its parameters.
    if pure is not None and (
        pure < 0 or not event.covered_by(Budget(pure, gamma=event.spent_gamma))
    ):
        return False
    return price[0] <= share.rho and price[1] <= share.beta < 1


def promise_together(events: Sequence[Event], spent: Budget, beta: Fraction) -> Budget:
    """The (alpha, beta, gamma) that events satisfy together, if none was chosen after seeing another.

    ``spent``: the sum of their shares; a sum in alpha is returned unchanged.  A sum in rho becomes the
    (alpha, beta) promise with this total beta, or, if all events are pure and that is less, the sum of
    their alphas.
    """
    if not spent.rho:
        return spent
    promise = promise_of(spent, beta)
    alphas = [event.pure_alpha for event in events]
    pure = sum((alpha for alpha in alphas if alpha is not None), Fraction(0))
    if None in alphas or pure > promise.alpha:
        return promise
    return Budget(round_up(pure), gamma=spent.gamma)


def event_from_dict(document: Mapping[str, Any]) -> Event:
    """The event that ``to_dict`` wrote; ``ValueError`` for other input or a kind not yet imported."""
    name = str(document.get("event"))
    if name not in Event.kinds:
        raise ValueError(f"a privacy event of an unknown kind: {name!r}")
    kind = Event.kinds[name]
    try:
        event = kind(
            **{
                key: _READERS.get(type_, str)(document[key])
                for key, type_ in _numbers(kind).items()
            },
            adjacency=Adjacency.from_dict(document),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        event = None
    # A field that this version does not know may change the price.
    if event is None or event.to_dict() != document:
        raise ValueError(f"a privacy event {name!r} in a form that this version cannot read")
    return event


# With postponed annotations, the type of a field is a string.
_READERS: dict[Any, Callable[[str], Any]] = {"Fraction": Fraction, "int": int}


def _numbers(kind: type[Event]) -> dict[str, Any]:
    """The names and types of the numeric fields of an event class."""
    return {each.name: each.type for each in fields(kind) if each.name != "adjacency"}


@dataclass(frozen=True)
class Mechanism(ABC):
    """Public parameters of a method that turns an exact integer statistic into a noisy one.

    ``size``: the number of public cells.  ``sparse``: the statistic is passed as its occupied cells.
    ``cell_by_cell``: all cells are treated in the same way and separately, so an audit may examine some
    of them.  ``side_by_side``: a statistic of several times the size is treated as several statistics.
    ``additive``: the result is the statistic plus noise that does not depend on it, so equal random
    words give equal noise.  ``comparable``: the stated law gives the ratio of an output's chances under
    two statistics.  ``audit_number``: the approximate seconds of a short audit for each number of an
    output.
    """

    size: int

    sparse: ClassVar[bool] = False
    cell_by_cell: ClassVar[bool] = False
    side_by_side: ClassVar[bool] = False
    additive: ClassVar[bool] = False
    comparable: ClassVar[bool] = False
    audit_number: ClassVar[float] = 2e-7

    @property
    @abstractmethod
    def event(self) -> Event:
        """The event that the ledger records."""

    @property
    def words(self) -> tuple[int, ...]:
        """For a sparse statistic, the number of values of each word of a cell (``domain.words``)."""
        return (self.size,)

    @abstractmethod
    def draw(self, statistic: Statistic, source: RandomSource) -> Noisy:
        """Draw the noisy statistic; only the privacy line calls this."""

    def repeat(self, statistic: Statistic, times: int, source: RandomSource) -> Noisy:
        """``times`` independent draws of one statistic: cell c of draw i is cell ``i * size + c``, or,
        if c has several words, the cell with the words (i, *c)."""
        if not (self.cell_by_cell or self.side_by_side):
            drawn = [self.draw(statistic, source) for _ in range(times)]
            return _one_after_the_other(drawn, self.size)
        values, cells = statistic
        if cells is not None and cells.ndim == 1:
            cells = np.add.outer(self.size * np.arange(times), cells).ravel()
        elif cells is not None:
            draws = np.repeat(np.arange(times), len(cells))
            cells = np.column_stack([draws, np.tile(cells, (times, 1))])
        # One draw of a longer statistic is much faster than many draws.
        wide = replace(self, size=self.size * times)
        return wide.draw(Statistic(np.tile(values, times), cells), source)

    def simulate(self, size: int, generator: np.random.Generator) -> Integers:
        """Draw noise (size,) of the same law from an ordinary generator, for error statements only.

        Raises ``ValueError`` if the mechanism does not add noise of one law.
        """
        raise ValueError(f"the noise of {type(self).__name__} cannot be simulated")

    def log_chances(self, outputs: Outputs, exact: Statistic, factors: Floats) -> Floats | None:
        """Log chances of outputs, as ``Round.logs`` gives them for one round.

        Args:
            outputs: (n, d) outputs; an absent cell is NaN.
            exact: a made-up statistic (k,), in the order of the outputs' columns.
            factors: assumed widths of the noise, as multiples of the stated width.

        Returns:
            (n, factors), or None if the law has no such form: then an audit cannot bound the width.
        """
        return None

    def rounds_of(
        self, outputs: Outputs, exact: Statistic, factors: Floats = AS_STATED
    ) -> list[Round]:
        """Split outputs into the rounds that produced them; arguments as for ``log_chances``."""
        fresh = self.additive and self.cell_by_cell
        logs = self.log_chances(outputs, exact, factors)
        return [Round(logs, outputs - exact.values if fresh else None)]

    def log_ratio(self, near: Statistic, far: Statistic) -> LogRatio | None:
        """The log-ratio of an output's chances under two made-up statistics, by the stated law.

        None if the mechanism is not ``comparable``.
        """
        if not self.comparable:
            return None
        # Independent cells that are equal on both sides carry no information.
        differ = near.values != far.values
        kept = np.flatnonzero(differ) if self.cell_by_cell else slice(None)

        def ratio(outputs: Outputs) -> Floats:
            sides: list[Floats] = []
            for side in (near, far):
                rounds = self.rounds_of(outputs[:, kept], side.at(kept))
                logs = [each.logs[:, 0] for each in rounds if each.logs is not None]
                sides.append(np.sum(logs, axis=0))
            with np.errstate(invalid="ignore"):
                found = sides[0] - sides[1]
            # Equal sums must not differ by rounding; impossible outputs get the log-ratio 0.
            return np.asarray(np.round(np.where(np.isnan(found), 0.0, found), 9))

        return ratio

    @property
    def one_by_one(self) -> Sequence[Event]:
        """The event of each draw by itself, in the order of the draws.  An audit adds their prices up
        and compares the sum with the price of the event."""
        return (self.event,)

    def moved_by(self, near: Statistic, far: Statistic) -> float:
        """The distance of two made-up statistics, as a multiple of the declared sensitivity.

        More than 1 between neighbours is a fault.  ``near``, ``far``: the values in the same cells; in
        all other cells the statistics are equal.
        """
        raise NotImplementedError

    def worst_counts(self, rows: int) -> Iterator[WorstTable]:
        """Tables of ``rows`` records with the largest privacy loss, if the statistic is the tally."""
        return iter(())

    def distance(self, near: Statistic, far: Statistic) -> float:
        """A distance of two made-up statistics in any unit, used to rank pairs."""
        return self.moved_by(near, far)

    def output_width(self, watched: int) -> int:
        """The approximate number of values in an output if ``watched`` of its cells are examined."""
        return watched

    @property
    def audit_seconds(self) -> float:
        """The expected CPU seconds of a short audit of its draws."""
        return AUDITED + self.audit_number * self.output_width(self.size)


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    """Noise that does not depend on the statistic, of the same standard deviation in every cell."""

    additive = True

    @property
    @abstractmethod
    def stddev(self) -> float:
        """The standard deviation of the noise in a cell."""


def one_record_moved(near: Statistic, far: Statistic) -> float:
    """How many records must be replaced to turn one table of counts into the other."""
    moved = near.values - far.values
    return float(max(np.maximum(moved, 0).sum(), np.maximum(-moved, 0).sum()))


def _one_after_the_other(drawn: list[Noisy], size: int) -> Noisy:
    values = np.concatenate([each.values for each in drawn])
    cells = [i * size + each.cells for i, each in enumerate(drawn) if each.cells is not None]
    return Noisy(values, np.concatenate(cells) if cells else None, drawn[0].reproducible)
