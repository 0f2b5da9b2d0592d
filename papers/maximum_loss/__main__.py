"""The largest privacy loss of every release of a plan, as Askin, Kutta & Dette (2022) estimate it.

    python -m papers.maximum_loss plan.yaml

No survey is opened: releases run on made-up neighbouring tables.  An output of many numbers becomes one
by the log-ratio that its mechanism states, which can only hide loss.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.releases import covered
from dpcore.audit.scores import Outputs, Score
from dpcore.errors import DPReleaseError
from dpcore.releases.base import Release
from dpcore.sampling.source import RandomSource, SystemSource
from papers.maximum_loss.maximum_loss import MaximumLoss, maximum_loss
from schemas.plan import load_plan

PAIRS = 6
"""Pairs of tables that are tried."""

SEARCH, DRAWS = 20_000, 50_000


@dataclass(frozen=True)
class Scored:
    """A release on two tables, whose outputs are turned into single numbers."""

    draws: ReleaseDraws

    @property
    def name(self) -> str:
        return self.draws.name

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        outputs = self.draws.draw(side, size, source)
        (score, *_) = [*self.draws.scores(), _first_number]
        return np.asarray(score(outputs))[:, None]

    def scores(self) -> Sequence[Score]:
        return ()


def _first_number(outputs: Outputs) -> np.ndarray:
    return np.asarray(outputs[:, 0], dtype=np.float64)


def largest_loss(release: Release, source: RandomSource) -> tuple[MaximumLoss, str]:
    """Of a release, with the pair of tables that has it."""
    pairs = covered(release, PAIRS)
    audited = [Scored(ReleaseDraws(release, pair.near, pair.far)) for pair in pairs]
    found = maximum_loss(audited, SEARCH, DRAWS, source)
    return found, pairs[found.pair].description


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each release of a plan."""
    parser = argparse.ArgumentParser(prog="python -m papers.maximum_loss", description=__doc__)
    parser.add_argument("plan", help="the release plan, a YAML file")
    options = parser.parse_args(arguments)
    try:
        releases = load_plan(options.plan).built
    except DPReleaseError as error:
        parser.exit(error.exit_code, f"{error}\n")
    print(f"{'release':20} {'alpha':>8} {'estimate':>9} {'at least':>9}  tables")
    for name, release in releases.items():
        found, tables = largest_loss(release, SystemSource())
        pure = release.event.pure_alpha
        claim = "none" if pure is None else f"{float(pure):.3g}"
        print(f"{name:20} {claim:>8} {found.estimate:9.3g} {found.lower_bound:9.3g}  {tables}")
    print(
        "The bound is asymptotic, at 95%. alpha: the loss that no output exceeds; none where beta"
        " allows more. `dprelease audit` has bounds that hold for every number of draws."
    )


if __name__ == "__main__":
    main()
