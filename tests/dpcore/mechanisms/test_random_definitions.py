"""What random differential privacy promises, and what the two stronger definitions of the thesis would.

Laws are enumerated on tables so small that every claim of the page on random differential privacy can
be computed; numbers that the page prints are compared with it.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.mechanisms import RandomLaplace, SmoothLaplace
from dpcore.mechanisms.random_laplace import chance_of_exposure

PAGE = (
    Path(__file__).parents[3] / "docs" / "pages" / "explanation" / "random-differential-privacy.md"
).read_text()
LOW = RandomLaplace.within(Budget.of("1", gamma="0.6"), 2, Fraction(2), 6, 1)
POPULATIONS = [(i / 40, 1 - i / 40) for i in range(41)]

Table = tuple[int, ...]


def laplace(scale: float, reach: int) -> np.ndarray:
    law = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return law / law.sum()


def law(counts: Table, mechanism: RandomLaplace, reach: int = 80) -> np.ndarray:
    """Chances of the noisy counts of two cells, from -reach on."""
    noise, joint = laplace(float(mechanism.scale), reach), np.ones(1)
    for count in counts:
        cell = np.zeros(2 * reach + 41)
        if count < mechanism.exact_below:
            cell[reach + count] = 1
        else:
            cell[count : count + 2 * reach + 1] = noise
        joint = np.outer(joint, cell).ravel()
    return joint


def least_beta(near: np.ndarray, far: np.ndarray, alpha: float) -> float:
    """In both directions."""
    return float(
        max(np.maximum(a - math.exp(alpha) * b, 0).sum() for a, b in ((near, far), (far, near)))
    )


def moved(counts: Table, of: int, to: int) -> Table:
    return tuple(c - (i == of) + (i == to) for i, c in enumerate(counts))


def protected(counts: Table, of: int, to: int, mechanism: RandomLaplace) -> bool:
    """Whether (alpha, 0) holds where a record of cell ``of`` is replaced by one in ``to``."""
    laws = [law(table, mechanism) for table in (counts, moved(counts, of, to))]
    return least_beta(*laws, float(mechanism.l1_sensitivity / mechanism.scale)) < 1e-9


def tables(rows: int, chance: float) -> Iterator[tuple[Table, float]]:
    """Counts of two cells, and how likely they are."""
    for first in range(rows + 1):
        yield (
            (first, rows - first),
            math.comb(rows, first) * chance**first * (1 - chance) ** (rows - first),
        )


def known_cells() -> dict[tuple[Table, int, int], bool]:
    """Whether each replacement in a table of six records is protected."""
    return {
        (counts, of, to): protected(counts, of, to, LOW)
        for counts, _ in tables(6, 0.5)
        for of, to in product(range(2), repeat=2)
        if counts[of]
    }


SAFE = known_cells()


def test_random_differential_privacy_holds_for_every_population():
    """Six records and a replacement, over two cells of every size."""
    worst = max(
        sum(
            chance * population[of] * population[to] * (not SAFE[moved(rest, -1, of), of, to])
            for rest, chance in tables(5, population[0])
            for of, to in product(range(2), repeat=2)
        )
        for population in POPULATIONS
    )
    gamma = LOW.exposure
    assert gamma == Fraction(2 * 11, 42)
    assert 0 < worst <= gamma


def predictive_failure(rows: int, chance: float, safe: dict) -> float:
    """How often a new draw is outside the largest set that predictive privacy allows."""
    outside = 0.0
    for counts, likely in tables(rows, chance):
        for to, part in enumerate((chance, 1 - chance)):
            if not all(safe[counts, of, to] for of in range(2) if counts[of]):
                outside += likely * part
    return outside


def test_low_counts_are_not_predictively_private_at_any_small_gamma():
    """One expected record in a cell: with a chance of (1 - 1/n)^n its loss would show.

    With probability (1 - 1/n)^(n - 1) the cell contains exactly one record.  A table where a record of
    another cell replaces this one shows 0 for certain, so a prediction set contains at most this cell,
    and the next draw is outside it with total probability (1 - 1/n)^n.
    """
    assert predictive_failure(6, 1 / 6, SAFE) >= (1 - 1 / 6) ** 6 - 1e-12
    for rows in (20, 100, 1000):
        alone = rows * (1 / rows) * (1 - 1 / rows) ** (rows - 1)
        fails = alone * (1 - 1 / rows)
        assert fails == pytest.approx((1 - 1 / rows) ** rows)
        assert fails > 0.35 > 1.8 * chance_of_exposure(2, rows, 1)


@pytest.mark.parametrize("candidates", [1, 2, 3])
def test_an_adversary_with_all_but_one_record_gains_gamma_for_each_candidate(candidates: int):
    """The overlap is n - 1; the other points of the adversary's own sample are the candidates."""
    for population in POPULATIONS[::4]:
        fails = 0.0
        for rest, chance in tables(5, population[0]):
            for of in range(2):
                counts = moved(rest, -1, of)
                unsafe = sum(population[to] * (not SAFE[counts, of, to]) for to in range(2))
                fails += chance * population[of] * (1 - (1 - unsafe) ** candidates)
        assert fails <= candidates * LOW.exposure + 1e-12


@pytest.mark.parametrize("overlap", [0, 2, 4, 5])
def test_an_adversary_with_a_smaller_overlap_faces_a_mixture(overlap: int):
    """Its least beta, averaged over what the adversary knows, is gamma at most."""
    alpha = float(LOW.l1_sensitivity / LOW.scale)
    laws = {counts: law(counts, LOW) for counts, _ in tables(6, 0.5)}
    for chance in (0.05, 1 / 6, 0.5):
        average = 0.0
        for known, likely in tables(overlap, chance):
            mixed = [np.zeros(len(laws[6, 0])) for _ in range(2)]
            for hidden, part in tables(5 - overlap, chance):
                rest = tuple(k + h for k, h in zip(known, hidden, strict=True))
                for cell in range(2):
                    mixed[cell] += part * laws[moved(rest, -1, cell)]
            average += likely * 2 * chance * (1 - chance) * least_beta(*mixed, alpha)
        assert average <= LOW.exposure


def smooth_law(counts: Table, mechanism: SmoothLaplace) -> np.ndarray:
    """Chances of the noisy sum (from -150 on) and the noisy level (from -40 on)."""
    values = np.array(counts)
    occupied = np.flatnonzero(values)
    level = mechanism.level(values[occupied], occupied)
    total = int(values @ np.arange(len(values)))
    sums, levels = np.zeros(301 + 60), np.zeros(81 + 40)
    sums[total : total + 301] = laplace(float(mechanism.scale(level)), 150)
    levels[level + 20 : level + 101] = laplace(float(1 / mechanism.level_alpha), 40)
    return np.outer(sums, levels).ravel()


def plain_alpha(mechanism: SmoothLaplace) -> float:
    """What the smooth sum promises to everybody, without gamma: the page's formula.

    With k = trimmed the width U_k covers all codes, so L >= level(K - 1) - trimmed, and S_L is at least
    the whole range over growth^trimmed.  A sum that moves by the whole range costs
    alpha growth^trimmed / 2 instead of alpha/2; all other steps of the proof of ``smooth_laplace`` hold
    for every pair.
    """
    part = float(mechanism.alpha) / 2
    return part * (1 + float(mechanism.growth) ** mechanism.trimmed) + float(mechanism.level_alpha)


@pytest.mark.parametrize(("rows", "gamma"), [(7, "0.6"), (9, "0.9")])
def test_a_smooth_sum_promises_a_weaker_alpha_to_everybody(rows: int, gamma: str):
    """All tables over four codes, and all neighbours."""
    mechanism = SmoothLaplace.within(Budget.of("4", "0.05", gamma), 4, rows)
    alpha, beta = plain_alpha(mechanism), 0.05
    everything = [t for t in product(range(rows + 1), repeat=4) if sum(t) == rows]
    laws = {table: smooth_law(table, mechanism) for table in everything}
    for table in everything:
        for of, to in product(range(4), repeat=2):
            if table[of] and of < to:
                assert least_beta(laws[table], laws[moved(table, of, to)], alpha) <= beta


def test_a_smooth_sum_is_not_predictively_private_at_its_own_alpha():
    """One record far from all others, replaced by one of theirs: any prediction set contains them."""
    share = Budget.of("4", "0.05", "0.5")
    mechanism = SmoothLaplace.within(share, 16, 80)
    assert mechanism.trimmed == 10
    table = (79, *(0,) * 14, 1)
    laws = [smooth_law(each, mechanism) for each in (table, moved(table, 15, 0))]
    assert least_beta(*laws, 4.0) > 0.3 > share.beta
    assert least_beta(*laws, plain_alpha(mechanism)) <= share.beta


def test_gamma_does_not_add_up_for_bins_that_were_chosen_in_view_of_a_histogram():
    """100 records over 400 equally likely cells; a histogram at alpha 8; then five of the cells that
    show 1, and all others as a sixth bin, by low counts."""
    rows, fine, bins, alpha = 100, 400, 6, 8.0
    gamma = float(chance_of_exposure(bins, rows, 1))
    a, second = math.exp(-alpha / 2), math.exp(-1 / 2)
    stays, up = (1 - a) / (1 + a), a * (1 - a) / (1 + a)
    alone = (1 - 1 / fine) ** (rows - 1)

    def chosen(singles: int, others: int) -> float:
        """The chance that one cell with one record is among the five: others may show 1 as well."""
        shows = np.ones(1)
        for chance, cells in ((stays, singles - 1), (up, others)):
            for _ in range(cells):
                shows = np.convolve(shows, [1 - chance, chance])
        return stays * float(shows @ np.minimum(1, (bins - 1) / (1 + np.arange(len(shows)))))

    # With fewer records alone in their cell the chance is larger; empty cells show 1 at most as often.
    least = chosen(rows, fine - rows) * (1 - second * (1 - second) / (1 + second))
    assert least > 0.04
    assert alone > 6 * gamma
    assert f"{100 * alone:.0f}%" in PAGE
    assert f"{gamma:.3f}" in PAGE
    assert "at least 4%" in PAGE
