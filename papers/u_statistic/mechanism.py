"""A sum over all pairs of records under random differential privacy.

Claim.  Input: the counts of n = ``rows`` records over codes 0, ..., K - 1, and a symmetric kernel g of
two codes, 0 <= g <= B (``kernels``).  Neighbours: n + 1 independent draws of one population, the last of
which replaces the last but one.  Output: the sum T of g over all pairs of records with discrete Laplace
noise of scale 2 S_L/alpha, and the level L with such noise too.  It is (alpha + level_alpha,
beta, gamma)-random DP with gamma = 4 (a + 1)/n, a + 1 being ``trimmed``, and the beta of
``SmoothLaplace``.  With V_i the sum of g over the pairs of record i, and v_(j) the ordered V_i (0 below,
(n - 1) B above),

    U_k = v_(n - a + k) - v_(a + 1 - k) + (2 k + 1) B,  at most (n - 1) B        k = 0, 1, ...
    L   = max_k (level(U_k) - k)                        level(U): the first j with S_j >= U

over a public table B = S_0 < S_1 < ... whose steps grow by at most ``growth``.

Preconditions.  n^2 B < 2^61 (the release checks it: ``largest_statistic``); the others are those of
``SmoothLaplace``.

Proof.  Replacing a record moves all other V_i by at most B and its own by anything, so every v_(j) moves
by at most one position and B: U_k(X) <= U_(k+1)(X'), and L moves by at most one.  Let w_i be the sum of
g over the pairs of record i in all n + 1 draws.  The pairs of the other n - 1 records are common to both
tables, and the pair of the record with its replacement is in neither, so T moves by |w_n - w_(n+1)|
exactly.  The w_i are exchangeable, so except with probability 4 (a + 1)/(n + 1) neither of the two is
among the a + 1 smallest or the a + 1 largest of them.  Then a + 1 others are at most as large as both,
and a + 1 others at least as large.  These are in both tables, where V_i is w_i less one value of g.  So
both w lie between v_(a+1) and v_(n-a) + B of either table, and T moves by at most U_0 <= S_L.  U_k may
be capped at (n - 1) B because T never moves by more.  The rest is the proof of ``SmoothLaplace``.

Ranges.  As for ``SmoothLaplace``.  For k beyond a + 1, U_k is (n - 1) B and adds nothing to L.

Source.  Hall, Rinaldo & Wasserman 2011, section 6, in the limit of many records; here for every n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Integers
from dpcore.mechanisms.smooth_laplace import SmoothLaplace
from papers.u_statistic.kernels import KernelName, largest, of_each, of_pairs


@dataclass(frozen=True)
class PairLaplace(SmoothLaplace):
    """The sum of a kernel over pairs with discrete Laplace noise of scale 2 S_L/alpha, and L with noise
    of its own: (alpha + level_alpha, beta, 4 trimmed/rows)-random DP.

    The statistic is the number of records at each of ``codes`` codes.
    """

    kernel: KernelName = "variance"

    @property
    def width_range(self) -> tuple[int, int]:
        each = largest(self.kernel, self.codes)
        return each, (self.rows - 1) * each

    def total(self, counts: Integers, codes: Integers) -> int:
        return of_pairs(self.kernel, counts, codes)

    def widths(self, counts: Integers, codes: Integers) -> Integers:
        sums = of_each(self.kernel, counts, codes)
        order = np.argsort(sums)
        each, most = self.width_range
        apart = self._between(counts[order], sums[order])
        return np.asarray(np.minimum(apart + (2 * np.arange(len(apart)) + 1) * each, most))
