r"""The least worst-case error of counts under pure differential privacy, whatever the mechanism.

**One count.**  Let a count in 0..m be estimated by any alpha-DP mechanism, r = exp(-alpha), and let the
prior be uniform.  No mechanism has less expected loss than geometric noise, P(z | i) = c r^|z - i| with
c = (1 - r)/(1 + r), followed by the best answer to z (Ghosh, Roughgarden & Sundararajan 2012).  Given
z in 0..m, drop all counts i but those with |z - i| <= t = min(z, m - z).  The remaining distribution is
symmetric about z, so z is the best answer, and for a loss l that grows with the error

    worst-case loss >= mean loss >= 1/(m + 1) sum over z of 2 c (l(1) r + ... + l(t) r^t).

With few counts it is better to find the best answers.  The right-hand side grows to 2 c sum of l(d) r^d,
the loss of the geometric noise itself: 1/sinh(alpha) for the absolute loss.  If a unit can change the
count by k, the multiples of k are counts of units.

**A table.**  Where one record replaces another, p cells form p/2 pairs, and inside a pair records move
one by one.  With independent uniform priors for the pairs, each pair is a count of its own, and both
cells of a pair have the error of this count.  Where records are added and removed, each cell is a count
by itself.  (Hall 2012, Proposition 2.4.2, has the same rate, p/alpha, with an unknown constant;
Proposition 2.3.1 has exp(-2)/alpha for one count and alpha < 2, where n >= 6/alpha.)

**On every table.**  An answer that ignores the data is exact on one table, but such a mechanism has a
large worst case.  A mechanism with worst-case loss w errs on every table: let k m be a change of the
count that m units can make.  If two counts i, j differ by this, an answer x to j has mean |x - i| >= k
m - w, and is at most exp(alpha m) times as likely as an answer to i, so the expected error at i is at
least

    exp(-alpha m) (k m - w),

and exp(-alpha m) (k m - sqrt(w))^2 for the squared loss, by the triangle inequality of the L2 norm.
From every count in 0..n there is one k m away, up or down, if 2 k m <= n.  (Hall 2012, Proposition
2.3.2, and Hall, Rinaldo & Wasserman 2011, Proposition 3.2, use Markov's inequality instead: for w =
1/alpha the bound is .135 w here, and .03 w there.)  In a table the bound holds cell by cell.

**A sparse table.**  Split the cells into q blocks of b, and put e records into one cell of each, each
cell equally likely.  The correct cell is the only one within L1 distance e of the table, and a
mechanism finds it with probability at most exp(alpha e)/(b - 1 + exp(alpha e)), as the e records of one
table must be replaced to make another.  If it does not, it errs by e: the risk is at least
q e (1 - exp(alpha e)/(b - 1 + exp(alpha e))), of the order q log(b)/alpha (Hall 2012, Proposition
2.4.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from dpcore.arrays import Floats

POWERS = {"absolute": 1, "squared": 2, "zero-one": 0}
"""The power of the error that is the loss; with power 0 the loss is 0 without error and 1 otherwise."""

FINE = 0.01
"""Counts are taken in multiples for which alpha is at least this, so that few terms are summed."""

FEW = 256
"""Up to this many counts the best answer to every z is computed; beyond, the formula is as good."""

MOST = 2**20


def count_risk(alpha: float, records: int, loss: str = "absolute", most: int = 1) -> float:
    """A lower bound of the worst-case expected loss for a count between 0 and ``records``.

    ``most``: the number of records by which one unit may change the count.
    """
    power = POWERS[loss]
    multiple = max(1, int(FINE / alpha)) if power else 1
    alpha, units = alpha * multiple, records // (most * multiple)
    if units < 1:
        return 0.0
    best = _mean_loss(alpha, min(units, FEW), power)
    if units > FEW:
        best = max(best, _mean_loss_in_windows(alpha, units, power))
    return best * float(most * multiple) ** power


def _mean_loss_in_windows(alpha: float, units: int, power: int) -> float:
    """The lower bound of the module's formula; t is at most ``length``."""
    length = min(units // 2, math.ceil(60 / alpha), MOST)
    distances = np.arange(1, length + 1)
    weights = (
        2 * math.tanh(alpha / 2) * np.exp(-alpha * distances) * distances.astype(float) ** power
    )
    inner: Floats = np.concatenate([[0.0], np.cumsum(weights)])  # by t
    whole = inner[-1] * (units + 1 - 2 * length) + 2 * inner[:-1].sum()
    return float(whole / (units + 1))


def _mean_loss(alpha: float, units: int, power: int) -> float:
    """The mean loss of the best answers to geometric noise for a uniform prior on 0..``units``."""
    counts = np.arange(units + 1)
    ratio, distances = math.exp(-alpha), np.abs(counts[:, None] - counts)
    chances = math.tanh(alpha / 2) * ratio**distances  # of z given the count, by z and count
    chances[[0, -1]] /= 1 - ratio  # geometric noise beyond the range ends in the outermost z
    if power == 2:  # the best answer is the mean
        weights = chances.sum(axis=1)
        means = chances @ counts / weights
        return float(((means[:, None] - counts) ** 2 * chances).sum() / (units + 1))
    losses = np.where(distances, distances.astype(float) ** power, 0)
    return float((chances @ losses).min(axis=1).sum() / (units + 1))


def uniform_risk(
    alpha: float, records: int, worst: float, loss: str = "absolute", most: int = 1
) -> float:
    """A lower bound of the expected loss at every count, if the worst-case loss is at most ``worst``."""
    power = POWERS[loss]
    if not power:
        return max(0.0, (1 - worst) * math.exp(-alpha)) if records >= 2 * most else 0.0
    error = worst ** (1 / power)
    best = error / most + power / alpha
    units = {max(1, min(int(best) + i, records // (2 * most))) for i in (0, 1)}
    found = (math.exp(-alpha * m) * max(0.0, most * m - error) ** power for m in units)
    return max(found) if records >= 2 * most else 0.0


def table_risk(alpha: float, cells: int, records: int, pairs: bool, most: int = 1) -> float:
    """A lower bound of the worst-case expected L1 error of a table.

    ``pairs``: True if records are replaced, False if they are added or removed.
    """
    counts = cells // 2 if pairs else cells
    each = 2 if pairs else 1
    # With few records it is better to use some of the cells only.
    used = {math.ceil(counts / 2**k) for k in range(counts.bit_length())}
    return max(
        (u * each * count_risk(alpha, records // u, most=most) for u in used if u), default=0.0
    )


def sparse_risk(alpha: float, cells: int, records: int, replaced: bool, most: int = 1) -> float:
    """A lower bound of the worst-case expected L1 error per occupied cell, over all tables.

    ``replaced``: the number of records is fixed, so records outside all blocks are in one further cell.
    Otherwise tables are compared with the empty table, and the chance is exp(alpha e)/b.
    """
    blocks = records if replaced else 1
    found = _block_risks(alpha, cells, records, replaced, most, blocks)
    return max((q * risk / (q + replaced) for q, risk in found), default=0.0)


def sparse_table_risk(
    alpha: float, cells: int, records: int, replaced: bool, most: int, occupied: int
) -> float:
    """The bound of ``sparse_risk`` for all cells together, if at most ``occupied`` have records."""
    blocks = min(records, occupied - 1) if replaced else 1
    found = _block_risks(alpha, cells, records, replaced, most, blocks)
    return max((q * risk for q, risk in found), default=0.0)


def _block_risks(
    alpha: float, cells: int, records: int, replaced: bool, most: int, blocks: int
) -> Iterator[tuple[int, float]]:
    """Possible numbers q of blocks, at most ``blocks``, each with the risk per block."""
    for q in _doublings(blocks):
        block = (cells - replaced) // q
        if block < 2:
            break
        largest = min(records // (q * most), math.ceil(math.log(block) / alpha) + 1)
        units = (
            np.unique(np.linspace(1, largest, 1000).astype(np.int64)) if largest else np.empty(0)
        )
        ratio = np.exp(np.minimum(alpha * units, 700))
        found = ratio / (block - 1 + ratio) if replaced else np.minimum(ratio / block, 1)
        yield q, float((units * most * (1 - found)).max(initial=0))


def _doublings(most: int) -> Iterable[int]:
    return (2**k for k in range(most.bit_length()))
