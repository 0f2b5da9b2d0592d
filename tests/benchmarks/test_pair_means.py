"""Means over pairs of records: two claims that hold for every table, and that no release uses yet.

The variance, Gini's mean difference and Kendall's tau are means U of a symmetric kernel g over all
pairs of records, 0 <= g <= B. RDP, section 6, bounds their noise in the limit of many records. The
following holds for every n, but no release has it yet.

Let v_i be the mean of g over the pairs that record i is in, v_(1) <= ... <= v_(n) these means in order
(0 below, B above), b = B/(n - 1), and a >= 0. Let

    W_k = v_(n-a+k) - v_(a+1-k),    S = max over k >= 0 of e^(-t k) (W_k + (2 k + 1) b).

- S of neighbours differs by a factor of at most e^t. Replacing a record moves all other v_i by at
  most b, and one by anything, so W_k is at most W_(k+1) + 2 b of the neighbour.
- A random replacement moves U by at most 2 S/n of either table, with probability at least
  1 - 4 (a + 1)/(n + 1). Let w_i be the sum of g over the pairs of record i in all n + 1 draws, over
  n - 1. The sum over the other n - 1 records is common to both tables, so U moves by exactly
  2 (w_n - w_(n+1))/n. The w_i are exchangeable. If neither of these two is among the a + 1 smallest or
  largest, then both lie between v_(a+1) and v_(n-a) + b of either table.

So noise of the law of T9 (random-smooth-laplace), with S as its width, is (alpha, beta, gamma)-random
differentially private with gamma = 4 (a + 1)/(n + 1). Half of alpha pays for the width, so it has less
noise than ordinary Laplace noise of sensitivity 2 B/n only where the bulk of the v_i is narrower than
half of B.
"""

from itertools import permutations

import numpy as np
import pytest

KERNELS = {
    "variance": lambda x, y: (x - y) ** 2 / 2,
    "Gini's mean difference": lambda x, y: np.abs(x - y),
    "Kendall's tau": lambda x, y: ((x // 4 - y // 4) * (x % 4 - y % 4) > 0).astype(float),
}
CODES = 16
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def largest(kernel) -> float:
    codes = np.arange(CODES)
    return float(kernel(codes[:, None], codes).max())


def means(kernel, records: np.ndarray) -> np.ndarray:
    """(n,) the mean of the kernel over the pairs that a record is in."""
    pairs = kernel(records[:, None], records).astype(float)
    np.fill_diagonal(pairs, 0)
    return pairs.sum(axis=1) / (len(records) - 1)


def width(kernel, records: np.ndarray, trimmed: int, rate: float) -> float:
    """S, as above."""
    n, most = len(records), largest(kernel)
    ordered, each = np.sort(means(kernel, records)), most / (n - 1)
    # v_(j) is 0 below the first and the largest value beyond the last.
    padded = np.concatenate([np.zeros(n + 1), ordered, np.full(n + 1, most)])
    k = np.arange(n)
    spans = padded[n + n - trimmed + k + 1] - padded[n + trimmed - k]
    return float((np.exp(-rate * k) * (spans + (2 * k + 1) * each)).max())


@each_kernel
def test_the_width_changes_by_a_factor_of_at_most_e_to_the_rate(kernel):
    generator, ratios = np.random.default_rng(1), []
    for _ in range(300):
        records = generator.integers(CODES, size=generator.integers(4, 12)) // generator.choice(
            [1, 9]
        )
        other = np.append(records[:-1], generator.choice([0, CODES - 1]))
        trimmed, rate = int(generator.integers(1, 3)), float(generator.choice([0.05, 0.3, 1]))
        widths = [width(kernel, table, trimmed, rate) for table in (records, other)]
        ratios.append(abs(np.log(widths[0] / widths[1])) / rate)
    assert 0.1 < max(ratios) <= 1 + 1e-9


@each_kernel
def test_a_random_replacement_moves_the_mean_by_more_than_the_width_at_most_gamma_often(kernel):
    """Given the n + 1 draws, any two of them are as likely to be the record and its replacement."""
    generator, trimmed, worst = np.random.default_rng(2), 1, 0.0
    for _ in range(40):
        draws = (CODES * generator.beta(0.3, 3, size=20)).astype(int)
        draws[0] = CODES - 1
        n, outside = len(draws) - 1, []
        for gone, come in permutations(range(n + 1), 2):
            tables = [np.append(np.delete(draws, [gone, come]), draws[i]) for i in (gone, come)]
            moved = abs(np.subtract(*[means(kernel, table).mean() for table in tables]))
            # Without the maximum over k, whose other terms only make the width larger.
            bulk = min(width(kernel, table, trimmed, 99.0) for table in tables)
            outside.append(moved > 2 / n * bulk * (1 + 1e-12))
        worst = max(worst, float(np.mean(outside)))
    assert worst <= 4 * trimmed / (n + 1)
    if kernel is not KERNELS["Kendall's tau"]:
        assert worst > 0
