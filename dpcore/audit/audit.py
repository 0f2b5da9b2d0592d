"""Does a mechanism keep what it claims?  A statistical audit, from its outputs alone.

    1  neighbouring tables         dpcore.audit.neighbours: those likely to be the worst
    2  a search sample             of every promising pair; the worst pair and, for either side as
                                   the likelier one, the most telling event are chosen on it
    3  fresh draws                 of that pair; how often the events happen gives a lower bound on
                                   alpha that holds at the stated level, whatever the mechanism is

A lower bound above the claimed alpha proves a violation (but for the error 1 - level).  One below
proves nothing but that this audit, with so many draws, found no violation: it is evidence, like any
test, and the sensitivity proofs stay necessary.

The level is for one audit.  Its error is split evenly between the two directions; the choice of
pair and event costs nothing, because the draws that count are fresh.

>>> from dpcore.audit.draws import Simulated
>>> from dpcore.sampling.source import SeededSource
>>> def response(truth, size, generator):  # says the truth with probability 3/4: alpha = ln 3
...     return np.where(generator.random(size) < 0.75, truth, 1 - truth)
>>> coin = Simulated("randomised response", (0, 1), response)
>>> print(audit_mechanism([coin], Budget.of("1.1"), 50_000, SeededSource(1)))
passed: randomised response, alpha at least 1.09 with 95% confidence, claimed 1.1 (50,000 draws)
>>> audit_mechanism([coin], Budget.of("1"), 50_000, SeededSource(1)).passed
False
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np

from dpcore.audit.bounds import loss_estimate, loss_lower_bound
from dpcore.audit.density import VISIBLE, LossCurve, loss_at, pair_loss
from dpcore.audit.draws import LARGEST_BATCH, Audited
from dpcore.audit.events import Choice, Event, choose_events
from dpcore.audit.scores import Floats, Outputs
from dpcore.budget import Budget, decimal_text
from dpcore.sampling.source import RandomSource

LARGEST_SEARCH = 2**23
"""Numbers in the search sample of one side."""

USUAL_SEARCH = 2**21
"""The same, unless more draws are asked for."""

ENOUGH = 2**16
"""Search draws of one side, unless more are asked for."""

SCREENING = 2**13
"""The least search draws by which pairs are compared, where there are several."""


@dataclass(frozen=True)
class DensityLoss:
    """Loss of the chosen pair by the densities of its score: pure alpha, an asymptotic bound."""

    estimate: float
    lower_bound: float
    point: float


@dataclass(frozen=True)
class AuditResult:
    """What an audit found: all of it public.

    ``estimate``: of the loss of the event, without uncertainty; ``lower_bound``: alpha is not below
    it, but with chance 1 - ``level``; ``draws``: fresh ones, of each side; ``passed``: the bound is
    not above the claim; ``density``: only where beta is 0; ``curve``: the loss function of the
    chosen pair over ``score``, on the fresh draws.
    """

    name: str
    estimate: float
    lower_bound: float
    level: float
    draws: int
    search_draws: int
    pair: str
    event: str
    hits: tuple[int, int]
    claim: Budget
    passed: bool
    density: DensityLoss | None
    score: str = field(compare=False)
    curve: LossCurve = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """JSON form; what is infinite or not known is null."""
        curve = {
            "score": [_json_number(float(f"{x:.6g}")) for x in self.curve.points],
            "loss": [_json_number(round(float(y), 4)) for y in self.curve.losses],
            "discrete": self.curve.bandwidth is None,
        }
        values = asdict(self) | {"claim": self.claim.as_strings(), "curve": curve}
        return {key: _json_number(value) for key, value in values.items()}

    def __str__(self) -> str:
        beta = f", beta {decimal_text(self.claim.beta)}" if self.claim.beta else ""
        return (
            f"{'passed' if self.passed else 'FAILED'}: {self.name}, alpha at least"
            f" {self.lower_bound:.3g} with {100 * self.level:.4g}% confidence,"
            f" claimed {decimal_text(self.claim.alpha)}{beta} ({self.draws:,} draws)"
        )


def audit_mechanism(
    pairs: Sequence[Audited],
    claim: Budget,
    draws: int,
    source: RandomSource,
    *,
    level: float = 0.95,
    search_draws: int | None = None,
    digits: bool = True,
    learn: bool = True,
    descriptions: Sequence[str] | None = None,
) -> AuditResult:
    """Audit a mechanism on one or several pairs of neighbouring inputs.

    ``draws``: fresh draws on each side, of the worst pair; ``search_draws``: on each side, by
    default half as many, 65,536 at most, and fewer where outputs are long; ``digits``: also look for
    leaks in the last digits of numbers; ``learn``: also look for what a mechanism does that it does
    not state.
    """
    if not pairs:
        raise ValueError("there is no pair of inputs to audit")
    if draws < 1 or not 0 < level < 1:
        raise ValueError(f"draws must be positive and level in (0, 1), not {draws} and {level}")
    width = pairs[0].draw(0, 1, source).shape[1]
    usual = max(200, min(draws // 2, ENOUGH, USUAL_SEARCH // width))
    beta, search = float(claim.beta), search_draws or usual
    labels = descriptions or [f"pair {i + 1} of {len(pairs)}" for i in range(len(pairs))]

    choose = partial(choose_events, beta=beta, digits=digits, learn=learn)
    worst, chosen = _worst_pair(pairs, search, choose, source)
    events = chosen.choice.events
    fresh = [_fresh_scores(pairs[worst], side, draws, events, source) for side in (0, 1)]
    error = (1 - level) / len(events)
    best = max(
        (
            _count(event, near, far, beta, error)
            for event, near, far in zip(events, *fresh, strict=True)
        ),
        key=lambda c: c.bound,
    )
    density = None
    if beta == 0:
        loss, bound = loss_at(fresh[0][0], fresh[1][0], chosen.curve, level)
        density = DensityLoss(loss, bound, chosen.curve.point)
    bound = max(0.0, best.bound)
    return AuditResult(
        pairs[worst].name,
        best.estimate,
        bound,
        level,
        draws,
        chosen.size,
        labels[worst],
        str(best.event),
        best.hits,
        claim,
        bound <= claim.alpha,
        density,
        str(events[0].score),
        pair_loss(fresh[0][0], fresh[1][0], enough=VISIBLE),
    )


@dataclass(frozen=True, eq=False)
class _Search:
    choice: Choice
    curve: LossCurve
    size: int


def _worst_pair(
    pairs: Sequence[Audited], size: int, choose: Callable[..., Choice], source: RandomSource
) -> tuple[int, _Search]:
    """The pair with the most telling event: a few draws of all, ever more of the best third.

    Comparing all takes about twice as many draws as the final search.
    """
    left, draws = list(range(len(pairs))), max(SCREENING, 2 * size // len(pairs))
    while True:
        draws = size if len(left) == 1 else min(size, draws)
        tried = {i: _search(pairs[i], draws, choose, source) for i in left}
        left.sort(key=lambda i: -tried[i].choice.cautious)
        if draws == size:
            return left[0], tried[left[0]]
        left, draws = left[: -(-len(left) // 3)], 4 * draws


def _search(
    pair: Audited, size: int, choose: Callable[..., Choice], source: RandomSource
) -> _Search:
    """The most telling events of one pair, on a search sample."""
    width = pair.draw(0, 1, source).shape[1]
    size = max(200, min(size, LARGEST_SEARCH // width))
    near, far = (pair.draw(side, size, source) for side in (0, 1))
    choice = choose(near, far, stated=pair.scores())
    score = choice.events[0].score
    return _Search(choice, pair_loss(score(near), score(far)), size)


def _fresh_scores(
    pair: Audited, side: int, draws: int, events: Sequence[Event], source: RandomSource
) -> list[Floats]:
    """(draws,) scores of each event on fresh draws, made in batches."""
    width = pair.draw(side, 1, source).shape[1]
    batch = max(1, LARGEST_BATCH // width)
    scores: list[list[Floats]] = [[] for _ in events]
    for start in range(0, draws, batch):
        outputs: Outputs = pair.draw(side, min(batch, draws - start), source)
        for event, parts in zip(events, scores, strict=True):
            parts.append(event.score(outputs))
    return [np.concatenate(parts) for parts in scores]


@dataclass(frozen=True)
class _Counted:
    bound: float
    estimate: float
    event: Event
    hits: tuple[int, int]


def _count(event: Event, near: Floats, far: Floats, beta: float, error: float) -> _Counted:
    """The lower bound that fresh scores give, in the direction that the event was chosen for."""
    hits = [int(np.count_nonzero(event.among(side))) for side in (near, far)]
    sizes = [len(near), len(far)]
    this, other = event.favoured, 1 - event.favoured
    bound = loss_lower_bound(
        hits[this], sizes[this], hits[other], sizes[other], beta=beta, error=error
    )
    estimate = loss_estimate(hits[this], sizes[this], hits[other], sizes[other], beta)
    return _Counted(float(bound), float(estimate), event, (hits[0], hits[1]))


def _json_number(value: object) -> object:
    """JSON has neither infinities nor NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
