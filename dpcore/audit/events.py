"""Events: which outputs to count, chosen on a search sample.

One half of the search sample teaches scores (``dpcore.audit.learn``); on the other half every score
is cut at many places, from above and from below, for either side as the likelier one, and the cuts
with the largest lower bound win.  Fresh draws then say what they are worth.

>>> generator = np.random.default_rng(1)
>>> near, far = (np.rint(centre + generator.laplace(0, 9, (4000, 1))) for centre in (0, 9))
>>> print(choose_events(near, far).events[0])
number 0 < 0, likelier on side 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpcore.audit.bounds import loss_lower_bound
from dpcore.audit.learn import propose, refined
from dpcore.audit.scores import Floats, Outputs, Score

SORTED = 2**14
"""Places to cut are chosen among so many draws of each side."""

CAUTIOUS, BOLD = 0.01, 0.3
"""Errors of the bounds by which events are compared.  Many are compared, and the luckiest of rare
ones looks best: a small error prefers common events.  Rare ones may be the most telling."""

KINDS = tuple(product((CAUTIOUS, BOLD), (0, 1)))
"""The best event is wanted by either bound, and for either side as the likelier one."""

SHORTLIST = 4
"""Scores of each kind that are tried on all of a large search sample."""

_TAIL = np.geomspace(1, 200, 16).astype(int) / 20_000
_LEVELS = np.unique(np.r_[0, _TAIL, np.linspace(0.01, 0.99, 150), 1 - _TAIL, 1])


@dataclass(frozen=True, eq=False)
class Event:
    """ "score >= cut" (``above``) or "score < cut"; ``favoured``: the side where it is likelier."""

    score: Score
    cut: float
    above: bool
    favoured: int

    def holds(self, outputs: Outputs) -> NDArray[np.bool_]:
        """(size,) whether each output (size, d) is in the event."""
        return self.among(self.score(outputs))

    def among(self, values: Floats) -> NDArray[np.bool_]:
        """(size,) whether outputs with these scores are in the event; an absent score is low."""
        at_least = np.asarray(values >= self.cut)
        return at_least if self.above else ~at_least

    def __str__(self) -> str:
        sign = ">=" if self.above else "<"
        return f"{self.score} {sign} {self.cut:.6g}, likelier on side {self.favoured}"


@dataclass(frozen=True, eq=False)
class Choice:
    """Events to count on fresh draws, the one with the best cautious bound first.

    ``cautious`` and ``bold``: the best bounds on the draws that chose them, good for comparing only.
    """

    events: tuple[Event, ...]
    cautious: float
    bold: float


def choose_events(
    near: Outputs,
    far: Outputs,
    beta: float = 0.0,
    stated: Sequence[Score] = (),
    digits: bool = True,
    learn: bool = True,
) -> Choice:
    """For each side as the likelier one the events of best cautious and bold bound: two to four.

    ``near``, ``far``: (n, d) search draws of the two sides; ``stated``: scores known beforehand;
    ``digits``: also try the last digits of numbers; ``learn``: also try scores that are learned.
    """
    half = min(len(near), len(far)) // 2 if learn or not stated else 0
    scores = list(stated)
    if half:
        learned = propose(near[:half], far[:half], digits)
        scores = refined([*stated, *learned], near[:half], far[:half])
    near, far = near[half:], far[half:]
    if len(near) > 2 * SORTED:
        ranked = _ranked(scores, near[:SORTED], far[:SORTED], beta)
        short = [event.score for kind in KINDS for _, event in ranked[kind][:SHORTLIST]]
        scores = list({id(score): score for score in short}.values())
    ranked = _ranked(scores, near, far, beta)
    best = sorted((ranked[kind][0] for kind in KINDS[:2]), key=lambda pair: -pair[0])
    best += [ranked[kind][0] for kind in KINDS[2:]]
    events = {(id(e.score), e.cut, e.above, e.favoured): e for _, e in best}
    return Choice(tuple(events.values()), best[0][0], max(bound for bound, _ in best[2:]))


def _ranked(
    scores: Sequence[Score], near: Outputs, far: Outputs, beta: float
) -> dict[tuple[float, int], list[tuple[float, Event]]]:
    """For each kind of event, the best bound and event of every score, best first."""
    ranked: dict[tuple[float, int], list[tuple[float, Event]]] = {kind: [] for kind in KINDS}
    for score in scores:
        sides = [np.nan_to_num(score(side), nan=-np.inf) for side in (near, far)]
        cuts = _cuts(sides)
        below = [_below(cuts, side) for side in sides]
        for kind in KINDS:
            bound, cut, above = _best_cut(cuts, below, [len(near), len(far)], beta, *kind)
            ranked[kind].append((bound, Event(score, cut, above, favoured=kind[1])))
    for tried in ranked.values():
        tried.sort(key=lambda pair: -pair[0])
    return ranked


def _cuts(sides: Sequence[Floats]) -> Floats:
    """Where to cut a score: its values, or quantiles where they are many, closer in the tails."""
    together = np.sort(np.concatenate([side[:SORTED] for side in sides]))
    cuts = np.unique(together)
    if len(cuts) > len(_LEVELS):
        cuts = np.unique(together[np.rint(_LEVELS * (len(together) - 1)).astype(int)])
    cuts = cuts[np.isfinite(cuts)]
    return cuts if len(cuts) else np.zeros(1)


def _below(cuts: Floats, values: Floats) -> NDArray[np.int64]:
    """(cuts,) how many values lie below each ascending cut."""
    places = np.searchsorted(cuts, values, side="right")
    return np.cumsum(np.bincount(places, minlength=len(cuts) + 1))[:-1]


def _best_cut(
    cuts: Floats,
    below: Sequence[NDArray[np.int64]],
    sizes: Sequence[int],
    beta: float,
    error: float,
    favoured: int,
) -> tuple[float, float, bool]:
    """The best bound, its cut, and whether the event lies above it."""
    choices = []
    this, other = favoured, 1 - favoured
    for above in (True, False):
        hits = [n - low if above else low for n, low in zip(sizes, below, strict=True)]
        bounds = loss_lower_bound(
            hits[this], sizes[this], hits[other], sizes[other], beta=beta, error=error
        )
        i = int(np.argmax(bounds))
        choices.append((float(bounds[i]), float(cuts[i]), above))
    return max(choices)
