"""The largest privacy loss of every release of a plan, as Askin, Kutta & Dette (2022) estimate it.

    python -m papers.maximum_loss plan.yaml

No survey is opened: releases run on made-up neighbouring tables.  The time that this takes is estimated
from a few draws and printed first.  An output of many numbers is reduced to one number, which can only
hide loss: the log-ratio that its mechanism states, or a linear score learned from some draws.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.releases import covered
from dpcore.audit.scores import Linear, Score
from dpcore.errors import DPReleaseError
from dpcore.line.mechanism import Outputs
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SystemSource
from papers.maximum_loss.maximum_loss import MaximumLoss, maximum_loss
from schemas.plan import load_plan

PAIRS = 6
"""The number of pairs of tables that are tried."""

SEARCH, DRAWS = 20_000, 50_000
"""Draws of each side: to find the point of largest loss, and to measure the loss there."""

NUMBERS = 2**24
"""The largest number of values in all draws of a side."""

PACE = 500
"""Draws from which the total time is predicted."""

LEARNED = 1_000
"""Draws of each side from which a score is learned if the mechanism states none."""


@dataclass(frozen=True)
class ScoredTables:
    """A release on two tables, with outputs reduced to single numbers."""

    draws: ReleaseDraws
    score: Score

    @classmethod
    def of(cls, draws: ReleaseDraws, source: RandomSource) -> ScoredTables:
        """Reduce outputs by the stated score, or by a learned one."""
        stated = draws.scores()
        return cls(draws, stated[0] if stated else _learned(draws, source))

    @property
    def name(self) -> str:
        return self.draws.name

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        return np.asarray(self.score(self.draws.draw(side, size, source)))[:, None]

    def scores(self) -> Sequence[Score]:
        return ()


def _learned(draws: ReleaseDraws, source: RandomSource) -> Score:
    """A linear score that is larger on one side, with weights of mean difference over variance."""
    sides = [np.nan_to_num(draws.draw(side, LEARNED, source).astype(float)) for side in (0, 1)]
    spread = np.maximum(sum(side.var(axis=0) for side in sides), 1e-9)
    weights = (sides[0].mean(axis=0) - sides[1].mean(axis=0)) / spread
    return Linear(weights, np.zeros(len(weights)), "mean difference")


@dataclass(frozen=True)
class Search:
    """A release on pairs of tables, with the number of draws of each side for search and measurement."""

    release: Release
    tables: tuple[str, ...]
    audited: tuple[ScoredTables, ...]
    search: int
    draws: int

    @classmethod
    def of(cls, release: Release, source: RandomSource) -> Search:
        """A search on the tables that an audit tries first."""
        pairs = covered(release, PAIRS)
        draws = [ReleaseDraws(release, pair) for pair in pairs]
        most = NUMBERS // draws[0].width
        audited = tuple(ScoredTables.of(each, source) for each in draws)
        tables = tuple(pair.description for pair in pairs)
        return cls(release, tables, audited, min(SEARCH, most), min(DRAWS, most))

    def seconds(self, source: RandomSource) -> float:
        """The approximate time of ``largest_loss``, extrapolated from a few draws."""
        first, few = self.audited[0], min(PACE, self.search)
        first.draw(0, few, source)  # untimed, because it computes what later draws reuse
        begun = time.perf_counter()
        first.draw(0, few, source)
        of_one = (time.perf_counter() - begun) / few
        return 2 * of_one * (len(self.audited) * self.search + self.draws)

    def largest_loss(self, source: RandomSource) -> tuple[MaximumLoss, str]:
        """The largest loss, with the name of the pair of tables that has it."""
        found = maximum_loss(self.audited, self.search, self.draws, source)
        return found, self.tables[found.pair]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each release of a plan."""
    parser = argparse.ArgumentParser(prog="python -m papers.maximum_loss", description=__doc__)
    parser.add_argument("plan", help="the release plan, a YAML file")
    options = parser.parse_args(arguments)
    try:
        releases = load_plan(options.plan).built
    except DPReleaseError as error:
        parser.exit(error.exit_code, f"{error}\n")
    source = SystemSource()
    searches = {name: Search.of(release, source) for name, release in releases.items()}
    seconds = sum(each.seconds(source) for each in searches.values())
    took = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    print(f"this takes about {took}", file=sys.stderr, flush=True)
    print(f"{'release':20} {'alpha':>8} {'estimate':>9} {'at least':>9}  tables")
    for name, search in searches.items():
        found, tables = search.largest_loss(source)
        pure = search.release.event.pure_alpha
        claim = "none" if pure is None else f"{float(pure):.3g}"
        print(f"{name:20} {claim:>8} {found.estimate:9.3g} {found.lower_bound:9.3g}  {tables}")
    print(
        "The bound is asymptotic, at 95%. alpha: the claimed bound on the loss; none if beta allows"
        " more. The bounds of `dprelease audit` hold for every number of draws."
    )


if __name__ == "__main__":
    main()
