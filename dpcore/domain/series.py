"""Series of releases: what each run measures, and the sensitivity of all runs together to one unit.

Run t of a series, t = 1, ..., T, counts the records of the periods 1..t, each with a public weight
that depends on its age alone, and adds fresh noise z:

    y_t = w_0 x_t + w_1 x_(t-1) + ... + w_(t-1) x_1 + z_t          x_s: the counts of period s

    weights     period 1     2      3
    run 1          1
    run 2         1/2        1
    run 3         3/8       1/2     1

No noise has to be stored: as w_0 = 1, the table can be inverted, and the estimate of any sum over
periods is a weighted sum of the published y (``post.series``).

    1, 1/2, 3/8, 5/16, ...    w_k = C(2k, k)/4^k, the coefficients of 1/sqrt(1 - z): the table is the
                              square root of that of totals to date, whose error grows with log T only
    1, 0, 0, ...              each period alone: the error of totals to date grows with sqrt(T)
    1, 1, 1, ...              each total to date anew

**Rounding.**  Weights are whole multiples of 1/1024, so that a statistic is an exact vector of whole
steps.  They are rounded to the nearest; as rounding is monotone, they do not rise.  Sensitivities,
estimates and errors all follow from the rounded weights: rounding costs no privacy and no bias, and
changes errors by less than 0.01%.

**Lemma.**  Let one unit have records in at most k periods, the same ones in every run, and in each run
at most m records in each of them.  Let W_u = w_(u-1) + w_(u-2) + ..., min(k, u) terms: the weights of
periods 1..k in run u.  The unit's contribution to the statistics of runs 1..t together has

    L1 norm at most m (W_1 + ... + W_t),     squared L2 norm at most m^2 (W_1^2 + ... + W_t^2).

These are the sensitivities where a unit is added or removed.  Where one replaces another, the L1
sensitivity and the square of the L2 sensitivity are at most twice as large.

*Proof.*  Let c_s be the column of period s: its weights in runs 1..t, none negative.  If the unit is in
the periods s_1 < ... < s_k, all that it adds to run u has an L1 norm, and so an L2 norm, of at most m
times coordinate u of c = c_(s_1) + ... + c_(s_k).  So both norms of all runs are at most m times those
of c.  The L1 norm of c_s is w_0 + ... + w_(t-s), which falls with s.  The squared L2 norm of c is the
sum of <c_r, c_s> over pairs of periods, where <c_r, c_s> = sum over v = 0..t-s of w_v w_(v+s-r) for r
<= s falls with s and, as weights do not rise, with s - r.  As s_j >= j and s_j - s_i >= j - i, no
choice exceeds the periods 1..k, for which c = (W_1, ..., W_t).  Two units' vectors a, b are not
negative, so |a - b|^2 <= |a|^2 + |b|^2.  QED

The bounds are attained by m records in one cell in each of periods 1..k, replaced by as many in another.

**The price of a run.**  So the runs together cost no more, at every t, than if run u alone had the
sensitivity of m W_u steps: prices that add up by W_u^2 (concentrated, Gaussian noise) or by W_u (pure,
Laplace noise) may be charged run by run.  This holds where the noise of later runs is not narrower
(<c_r, c_s> with the runs' weights 1/variance then falls with s as well), and for a T that is not fixed.
Each run is private given all earlier ones, whatever was chosen in view of them (Denisov, McMahan, Rush,
Smith & Thakurta 2022, Theorem 2.1, for Gaussian noise; basic composition for Laplace noise).

Precondition.  Between runs no unit enters or leaves a past period.  Its records there may be corrected:
the lemma holds, but estimates mix old and new records.

Source.  Li, Miklau, Hay, McGregor & Rastogi 2015; Fichtenberger, Henzinger & Upadhyay 2023.

>>> factor = square_root(3)
>>> factor.run(3)
(384, 512, 1024)
>>> factor.l2_sensitivity_squared(3, 1, Adjacency("add-remove")) / 1024**2
Fraction(89, 64)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from dpcore.arrays import Floats
from dpcore.domain.adjacency import Adjacency

STEPS = 1024
"""The number of steps in a weight of 1."""

MOST_PERIODS = 1200


@dataclass(frozen=True)
class Factor:
    """The public weights of a series by age, as integers: ``steps[k]`` is 1024 w_k, rounded."""

    steps: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.periods <= MOST_PERIODS:
            raise ValueError(f"periods: must lie between 1 and {MOST_PERIODS}, not {self.periods}")
        falls = all(older <= newer for newer, older in pairwise(self.steps))
        if self.steps[0] != STEPS or not falls or self.steps[-1] < 0:
            raise ValueError("weights: must begin with 1, never rise and never be negative")

    @property
    def periods(self) -> int:
        """The largest number of periods in the series, T."""
        return len(self.steps)

    def run(self, run: int) -> tuple[int, ...]:
        """The weights (run,), in steps, of records of periods 1..run in one run."""
        return self.steps[: self._checked(run)][::-1]

    def matrix(self, runs: int) -> Floats:
        """The weights (runs, runs): one row for each run, one column for each period."""
        table = np.zeros((runs, runs))
        for row in range(self._checked(runs)):
            table[row, : row + 1] = np.array(self.run(row + 1)) / STEPS
        return table

    def moved(self, run: int, in_periods: int) -> int:
        """The sum W of the lemma, in steps, for a unit in k = ``in_periods`` periods."""
        if in_periods < 1:
            raise ValueError(f"in_periods: must be positive, not {in_periods}")
        return sum(self.run(run)[:in_periods])

    def l1_sensitivity(self, runs: int, in_periods: int, adjacency: Adjacency) -> Fraction:
        """The L1 sensitivity, in steps, of the count statistics of runs 1..``runs`` together.

        ``adjacency.most``: the most records of one unit in one period.
        """
        moved = sum(self.moved(run, in_periods) for run in range(1, runs + 1))
        return moved * adjacency.sensitivity(moved=Fraction(2), present=Fraction(1))

    def l2_sensitivity_squared(self, runs: int, in_periods: int, adjacency: Adjacency) -> Fraction:
        """The squared L2 sensitivity, in steps; arguments as for ``l1_sensitivity``."""
        moved = sum(self.moved(run, in_periods) ** 2 for run in range(1, runs + 1))
        return moved * adjacency.squared(moved=Fraction(2), present=Fraction(1))

    def _checked(self, run: int) -> int:
        if not 1 <= run <= self.periods:
            raise ValueError(f"period: must lie between 1 and {self.periods}, not {run}")
        return run


def square_root(periods: int) -> Factor:
    """The weights 1, 1/2, 3/8, 5/16, ...: for totals to date, and sums over any number of periods."""
    ratios = (Fraction(2 * age - 1, 2 * age) for age in range(1, periods))
    exact = accumulate(ratios, lambda weight, ratio: weight * ratio, initial=Fraction(1))
    return Factor(tuple(round(STEPS * weight) for weight in exact)[:periods])


def each_alone(periods: int) -> Factor:
    """The weights 1, 0, 0, ...: every period is measured alone."""
    return Factor((STEPS, *(0,) * (periods - 1)))


def totals(periods: int) -> Factor:
    """The weights 1, 1, 1, ...: every total to date is measured anew."""
    return Factor((STEPS,) * periods)
