"""Does a mechanism satisfy its claim?  A statistical audit, from its outputs alone.

    1  neighbouring tables         dpcore.audit.neighbours: those likely to be the worst
    2  a search sample             from every promising pair; it chooses the worst pair and, in each
                                   direction, the outcome that separates the two sides best
    3  fresh draws                 from that pair; the frequencies of the outcomes give a lower bound on
                                   alpha that holds at the stated level, whatever the mechanism is

If Gaussian noise is claimed, half of the error is for a lower bound on mu, which finds faults that the
bound on alpha misses when beta is small.

A lower bound above the claimed alpha proves a violation, except with probability 1 - level.  A lower
bound below it means only that this audit, with its number of draws, found no violation: this is
evidence, as from any test, and sensitivity proofs stay necessary.

The level is for one audit.  Its error is split evenly between the two directions; the choice of pair and
outcome needs no share of it, because fresh draws are counted.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.audit.bounds import loss_estimate, loss_lower_bound, mu_lower_bound
from dpcore.audit.draws import LARGEST_BATCH, Audited
from dpcore.audit.outcomes import Bound, Outcome, Shortlist, choose_outcomes
from dpcore.audit.results import AuditResult, GaussianLoss
from dpcore.audit.scores import Scored
from dpcore.sampling.source import RandomSource

LARGEST_SEARCH = 2**23
"""The most numbers in the search sample of one side."""

USUAL_SEARCH = 2**21
"""The usual limit of the search sample, unless more draws are requested."""

LEAST_SEARCH = 32

ENOUGH = 2**16
"""Search draws of one side, unless more are requested."""

SCREENING = 2**13
"""The fewest search draws used to compare pairs, if there are several."""


def audit_mechanism(
    pairs: Sequence[Audited],
    claim: Budget,
    draws: int,
    source: RandomSource,
    *,
    level: float = 0.95,
    search_draws: int | None = None,
    learn: bool = True,
    descriptions: Sequence[str] | None = None,
    gaussian: tuple[float, float] | None = None,
) -> AuditResult:
    """Audit a mechanism on one or several pairs of neighbouring inputs.

    ``draws``: fresh draws on each side of the worst pair; ``search_draws``: search draws on each side,
    by default half as many, at most 65,536, and fewer if outputs are long; ``learn``: also search for
    effects that the mechanism does not state; ``gaussian``: the claimed mu of Gaussian noise, and
    ``apart`` of ``mu_lower_bound``.
    """
    if not pairs:
        raise ValueError("there is no pair of inputs to audit")
    if draws < 1 or not 0 < level < 1:
        raise ValueError(f"draws must be positive and level in (0, 1), not {draws} and {level}")
    width = pairs[0].draw(0, 1, source).shape[1]
    usual = max(min(LEAST_SEARCH, draws), min(draws // 2, ENOUGH, USUAL_SEARCH // width))
    beta, search = float(claim.beta), search_draws or usual
    labels = descriptions or [f"pair {i + 1} of {len(pairs)}" for i in range(len(pairs))]

    choose = partial(choose_outcomes, beta=beta, learn=learn, gaussian=gaussian is not None)
    worst, chosen, searched = _worst_pair(pairs, search, choose, source)
    outcomes = chosen.outcomes
    fresh = [_fresh_scores(pairs[worst], side, draws, outcomes, source) for side in (0, 1)]
    counted = [
        _Counted(outcome, (int(outcome.among(near).sum()), int(outcome.among(far).sum())), draws)
        for outcome, near, far in zip(outcomes, *fresh, strict=True)
    ]
    of_alpha = len(outcomes) - len(chosen.of_mu)
    error = (1 - level) / (2 if gaussian else 1)
    bounds = [
        each.by(loss_lower_bound, beta=beta, error=error / of_alpha) for each in counted[:of_alpha]
    ]
    best = counted[int(np.argmax(bounds))]
    deviations = None
    if gaussian:
        mu, apart = gaussian
        of_mu = [
            each.by(mu_lower_bound, apart=apart, error=error / len(chosen.of_mu))
            for each in counted[of_alpha:]
        ]
        deviations = GaussianLoss(max(0.0, *of_mu), mu)
    return AuditResult(
        pairs[worst].name,
        best.by(loss_estimate, beta=beta),
        max(0.0, *bounds),
        level,
        draws,
        searched,
        labels[worst],
        str(best.outcome),
        best.hits,
        claim,
        str(outcomes[0].score),
        deviations,
    )


def _worst_pair(
    pairs: Sequence[Audited], size: int, choose: Callable[..., Shortlist], source: RandomSource
) -> tuple[int, Shortlist, int]:
    """The pair with the best outcome, its outcomes, and the number of draws that chose them.

    Each round keeps the best third of the pairs, with more draws.  Comparing all pairs takes about twice
    as many draws as the final search.
    """
    left, draws = list(range(len(pairs))), max(SCREENING, 2 * size // len(pairs))
    while True:
        draws = size if len(left) == 1 else min(size, draws)
        tried = {i: _search(pairs[i], draws, choose, source) for i in left}
        left.sort(key=lambda i: -tried[i][0].cautious)
        if draws == size:
            return left[0], *tried[left[0]]
        left, draws = left[: -(-len(left) // 3)], 4 * draws


def _search(
    pair: Audited, size: int, choose: Callable[..., Shortlist], source: RandomSource
) -> tuple[Shortlist, int]:
    """The best outcomes of one pair, and the size of the search sample that chose them."""
    width = pair.draw(0, 1, source).shape[1]
    size = max(min(LEAST_SEARCH, size), min(size, LARGEST_SEARCH // width))
    near, far = (pair.draw(side, size, source) for side in (0, 1))
    return choose(near, far, stated=pair.scores()), size


def _fresh_scores(
    pair: Audited, side: int, draws: int, outcomes: Sequence[Outcome], source: RandomSource
) -> list[Floats]:
    """The scores (draws,) of each outcome on fresh draws, made in batches."""
    width = pair.draw(side, 1, source).shape[1]
    batch = max(1, LARGEST_BATCH // width)
    scores: list[list[Floats]] = [[] for _ in outcomes]
    for start in range(0, draws, batch):
        scored = Scored(pair.draw(side, min(batch, draws - start), source))
        for outcome, parts in zip(outcomes, scores, strict=True):
            parts.append(scored.by(outcome.score))
    return [np.concatenate(parts) for parts in scores]


@dataclass(frozen=True)
class _Counted:
    """An outcome, and how many of the fresh ``draws`` of each side are in it."""

    outcome: Outcome
    hits: tuple[int, int]
    draws: int

    def by(self, bound: Bound, **rest: float) -> float:
        """A bound or an estimate in the direction of the outcome (``bounds``)."""
        this = self.outcome.favoured
        return float(bound(self.hits[this], self.draws, self.hits[1 - this], self.draws, **rest))
