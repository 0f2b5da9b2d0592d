"""How often a right program may fail a statistical test: less than one in a million, each test.

Most tests draw from a fixed seed, so that they fail always or never.  The rate holds for a change that
draws other words of the seed, and for the few that draw from the operating system.
"""

import numpy as np
from scipy import stats

from dpcore.arrays import Floats

FALSE_ALARM = 1e-7
"""Of one comparison: a test that makes up to ten of them stays below one in a million."""


def most_failures(trials: int, chance: float) -> int:
    """The most failures of so many independent trials, each with at most this chance to fail."""
    return int(stats.binom.isf(FALSE_ALARM, trials, chance))


def shares(trials: int, chance: float) -> tuple[float, float]:
    """The least and the largest share of so many independent trials that succeed with this chance."""
    least, most = stats.binom.ppf((FALSE_ALARM, 1 - FALSE_ALARM), trials, chance) / trials
    return float(least), float(most)


def mean_squares(runs: int) -> tuple[float, float]:
    """The least and the largest mean square of so many independent standard normal numbers."""
    least, most = stats.chi2.ppf((FALSE_ALARM, 1 - FALSE_ALARM), runs) / runs
    return float(least), float(most)


def reach(runs: Floats) -> float:
    """How far the mean of many independent runs may be from what it is on average, by their spread."""
    deviations = stats.norm.isf(FALSE_ALARM / 2)
    return float(deviations * np.std(runs, ddof=1) / len(runs) ** 0.5)
