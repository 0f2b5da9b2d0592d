"""How often a right program may fail a statistical test: less than one in a million, each test.

Most tests draw from a fixed seed, so that they fail always or never.  The rate holds for a change that
draws other words of the seed, and for the few that draw from the operating system.
"""

from scipy import stats

FALSE_ALARM = 1e-7
"""Of one comparison: a test that makes up to ten of them stays below one in a million."""


def most_failures(trials: int, chance: float) -> int:
    """The most failures of so many independent trials, each with at most this chance to fail."""
    return int(stats.binom.isf(FALSE_ALARM, trials, chance))
