"""Outcomes: which outputs to count, chosen on a search sample.

Scores are learned on one half of the search sample (``dpcore.audit.learn``).  On the other half every
score is compared with many cuts, from above and below and for both sides, and the cuts with the largest
lower bound are chosen.  Fresh draws then give the bounds that count.

>>> generator = np.random.default_rng(1)
>>> near, far = (np.rint(centre + generator.laplace(0, 9, (4000, 1))) for centre in (0, 9))
>>> print(choose_outcomes(near, far).outcomes[0])
number 0 < 0, likelier on side 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.audit.bounds import loss_lower_bound, mu_lower_bound
from dpcore.audit.learn import propose, refined
from dpcore.audit.scores import Score, Scored
from dpcore.line.mechanism import Outputs

SORTED = 2**14
"""The number of draws of each side from which cuts are chosen."""

Bound = Callable[..., Floats]
"""A lower bound from hits, draws, other hits, other draws and an error (``bounds``)."""

CAUTIOUS, BOLD = 0.01, 0.3
"""Errors of the bounds by which outcomes are compared.  Among many outcomes a rare one may look best by
chance, so a small error prefers common ones.  But rare outcomes may separate the sides best."""

KINDS = tuple(product((CAUTIOUS, BOLD), (0, 1)))
"""The kinds of outcomes: the best one for each error and each direction."""

SHORTLIST = 4
"""How many scores of each kind are tried on all of a large search sample."""

_TAIL = np.geomspace(1, 200, 16).astype(int) / 20_000
_LEVELS = np.unique(np.r_[0, _TAIL, np.linspace(0.01, 0.99, 150), 1 - _TAIL, 1])


@dataclass(frozen=True, eq=False)
class Outcome:
    """ "score >= cut" (``above``) or "score < cut"; ``favoured``: the side where it is likelier."""

    score: Score
    cut: float
    above: bool
    favoured: int

    def holds(self, outputs: Outputs) -> Booleans:
        """Whether (size,) each output (size, d) is in the outcome."""
        return self.among(self.score(outputs))

    def among(self, values: Floats) -> Booleans:
        """Whether (size,) outputs with these scores are in the outcome; an absent score is low."""
        at_least = np.asarray(values >= self.cut)
        return at_least if self.above else ~at_least

    def __str__(self) -> str:
        sign = ">=" if self.above else "<"
        return f"{self.score} {sign} {self.cut + 0.0:.6g}, likelier on side {self.favoured}"


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Outcomes to count on fresh draws; the outcome with the best cautious bound is first.

    ``cautious``: the best bound on the draws that chose them, for comparisons only; it bounds mu if the
    mechanism claims a mu.  ``of_mu``: the outcomes that are chosen to bound mu.
    """

    outcomes: tuple[Outcome, ...]
    cautious: float
    of_mu: tuple[Outcome, ...] = ()


def choose_outcomes(
    near: Outputs,
    far: Outputs,
    beta: float = 0.0,
    stated: Sequence[Score] = (),
    learn: bool = True,
    gaussian: bool = False,
) -> Shortlist:
    """In each direction, the outcomes with the best cautious and the best bold bound: two to four.

    ``gaussian``: add two outcomes, with the best cautious bound of mu.
    ``near``, ``far``: (n, d) search draws of the two sides; ``stated``: scores known beforehand;
    ``learn``: also try learned scores.
    """
    half = min(len(near), len(far)) // 2 if learn or not stated else 0
    scores = list(stated)
    if half:
        learned = propose(near[:half], far[:half])
        scores = refined([*stated, *learned], near[:half], far[:half])
    near, far = near[half:], far[half:]
    of_alpha = partial(loss_lower_bound, beta=beta)
    if len(near) > 2 * SORTED:
        ranked = _ranked(scores, (Scored(near[:SORTED]), Scored(far[:SORTED])), of_alpha)
        short = [outcome.score for kind in KINDS for _, outcome in ranked[kind][:SHORTLIST]]
        # By identity: scores with arrays cannot be compared.
        scores = list({id(score): score for score in short}.values())
    sides = Scored(near), Scored(far)
    ranked = _ranked(scores, sides, of_alpha)
    best = sorted((ranked[kind][0] for kind in KINDS[:2]), key=lambda pair: -pair[0])
    best += [ranked[kind][0] for kind in KINDS[2:]]
    outcomes = {(id(e.score), e.cut, e.above, e.favoured): e for _, e in best}
    if not gaussian:
        return Shortlist(tuple(outcomes.values()), best[0][0])
    promising = {id(s): s for s in (*stated, *(e.score for e in outcomes.values()))}
    by_mu = _ranked(list(promising.values()), sides, mu_lower_bound)
    of_mu = [by_mu[kind][0] for kind in KINDS[:2]]
    return Shortlist(
        (*outcomes.values(), *(outcome for _, outcome in of_mu)),
        max(bound for bound, _ in of_mu),
        tuple(outcome for _, outcome in of_mu),
    )


def _ranked(
    scores: Sequence[Score], sides: tuple[Scored, Scored], lower_bound: Bound
) -> dict[tuple[float, int], list[tuple[float, Outcome]]]:
    """For each kind of outcome, the best bound and outcome of every score, in descending order."""
    ranked: dict[tuple[float, int], list[tuple[float, Outcome]]] = {kind: [] for kind in KINDS}
    sizes = [len(side.outputs) for side in sides]
    for score in scores:
        values = [np.nan_to_num(side.by(score), nan=-np.inf) for side in sides]
        cuts = _cuts(values)
        below = [_below(cuts, each) for each in values]
        for kind in KINDS:
            bound, cut, above = _best_cut(cuts, below, sizes, lower_bound, *kind)
            ranked[kind].append((bound, Outcome(score, cut, above, favoured=kind[1])))
    for tried in ranked.values():
        tried.sort(key=lambda pair: -pair[0])
    return ranked


def _cuts(sides: Sequence[Floats]) -> Floats:
    """Cuts of a score: its values, or quantiles that are denser in the tails."""
    together = np.sort(np.concatenate([side[:SORTED] for side in sides]))
    cuts = np.unique(together)
    if len(cuts) > len(_LEVELS):
        cuts = np.unique(together[np.rint(_LEVELS * (len(together) - 1)).astype(int)])
    cuts = cuts[np.isfinite(cuts)]
    return cuts if len(cuts) else np.zeros(1)


def _below(cuts: Floats, values: Floats) -> Integers:
    """How many (cuts,) values lie below each of the ascending cuts."""
    places = np.searchsorted(cuts, values, side="right")
    return np.cumsum(np.bincount(places, minlength=len(cuts) + 1))[:-1]


def _best_cut(
    cuts: Floats,
    below: Sequence[Integers],
    sizes: Sequence[int],
    lower_bound: Bound,
    error: float,
    favoured: int,
) -> tuple[float, float, bool]:
    """The best bound, its cut, and whether the outcome lies above the cut."""
    choices = []
    this, other = favoured, 1 - favoured
    for above in (True, False):
        hits = [n - low if above else low for n, low in zip(sizes, below, strict=True)]
        bounds = lower_bound(hits[this], sizes[this], hits[other], sizes[other], error=error)
        i = int(np.argmax(bounds))
        choices.append((float(bounds[i]), float(cuts[i]), above))
    return max(choices)
