from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from dpcore.sampling import discrete_gaussian, discrete_laplace
from dpcore.sampling.enclosures import Bounds
from dpcore.sampling.inversion import InversionTable
from tests.dpcore.sampling.sampling_oracles import (
    ScriptedSource,
    gaussian_magnitude_cuts,
    geometric_cuts,
    laplace_magnitude_cuts,
    leading_digits,
    scaled,
)

LAST_WORD = 2**64 - 1
F = Fraction
LAWS: dict[str, tuple[Callable[[int], Iterator[Bounds]], list[Decimal]]] = {
    "laplace 1/50": (
        partial(discrete_laplace._cuts, F(1, 50), True),
        laplace_magnitude_cuts(F(1, 50), 3),
    ),
    "laplace 2": (partial(discrete_laplace._cuts, F(2), True), laplace_magnitude_cuts(F(2), 60)),
    "laplace 200/7": (
        partial(discrete_laplace._cuts, F(200, 7), True),
        laplace_magnitude_cuts(F(200, 7), 300),
    ),
    "geometric 1/3": (partial(discrete_laplace._cuts, F(1, 3), False), geometric_cuts(F(1, 3), 20)),
    "geometric 20": (partial(discrete_laplace._cuts, F(20), False), geometric_cuts(F(20), 300)),
    "gaussian 1/400": (
        partial(discrete_gaussian._cuts, F(1, 400), True),
        gaussian_magnitude_cuts(F(1, 400), 1),
    ),
    "gaussian 1": (partial(discrete_gaussian._cuts, F(1), True), gaussian_magnitude_cuts(F(1), 12)),
    "gaussian 300.7": (
        partial(discrete_gaussian._cuts, F("300.7"), True),
        gaussian_magnitude_cuts(F("300.7"), 150),
    ),
    "half gaussian 30": (
        partial(discrete_gaussian._cuts, F(30), False),
        gaussian_magnitude_cuts(F(30), 60, False),
    ),
}


@pytest.fixture(params=LAWS)
def law(request: pytest.FixtureRequest) -> tuple[Callable[[int], Iterator[Bounds]], list[Decimal]]:
    return LAWS[request.param]


def test_the_stored_words_are_the_leading_digits_of_the_cuts(law) -> None:
    cuts, exact = law
    table = InversionTable(cuts, len(exact))
    assert table._words.tolist() == [leading_digits(cut, 64) for cut in exact] + [LAST_WORD]


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_cuts_bracket_the_truth_at_every_precision(law, bits: int) -> None:
    cuts, exact = law
    for k, (cut, (lower, upper)) in enumerate(zip(exact, cuts(bits), strict=False), start=1):
        assert lower <= scaled(cut, bits) <= upper, k
        assert upper - lower <= 3 or upper == 1 << bits


def test_a_word_on_a_cut_is_decided_by_further_words(law) -> None:
    cuts, exact = law
    table = InversionTable(cuts, len(exact))
    for i in (0, len(exact) // 2, len(exact) - 1):
        first, second, third = (leading_digits(exact[i], 64 * n) & LAST_WORD for n in (1, 2, 3))
        if first == LAST_WORD:
            continue  # cuts closer to 1 than that have their own test below
        for more, value in (
            ([second - 1], i),
            ([second + 1], i + 1),
            ([second, third - 1], i),
            ([second, third + 1], i + 1),
        ):
            source = ScriptedSource([first, *more])
            assert table.draw(1, source).tolist() == [value]
            assert source.used == 1 + len(more)


def test_words_next_to_a_cut_need_no_further_words() -> None:
    table = InversionTable(*[LAWS["gaussian 300.7"][0], 150])
    words = [w + d for w in table._words[20:60].tolist() for d in (-1, 1)]
    values = table.draw(len(words), ScriptedSource(words))
    assert values.tolist() == [v for k in range(20, 60) for v in (k, k + 1)]


@pytest.mark.slow
def test_the_length_of_the_table_does_not_change_the_law(law) -> None:
    cuts, exact = law
    words = np.linspace(0, 2**64 - 2**12, 200, dtype=np.uint64).tolist()
    # Whatever lies beyond a table of one entry is found by comparing with one cut after another.
    expected = InversionTable(cuts, len(exact)).draw(200, ScriptedSource(words))
    assert InversionTable(cuts, 1).draw(200, ScriptedSource(words)).tolist() == expected.tolist()


def test_the_law_is_exact_over_all_words_of_few_bits() -> None:
    pmf = [3, 0, 1, 100, 152]  # in 256ths: every leading byte, each followed by zeros

    def cuts(bits: int) -> Iterator[Bounds]:
        for cut in np.cumsum(pmf).tolist():
            yield cut << bits - 8, cut << bits - 8
        while True:
            yield 1 << bits, 1 << bits

    for length in (1, 3, 5):
        # A word that equals a dyadic cut needs one more word to see that it is not below it.
        script = [i << 56 for i in range(256)] + [0] * 16
        values = InversionTable(cuts, length).draw(256, ScriptedSource(script))
        assert np.bincount(values, minlength=5).tolist() == pmf


def test_a_long_tail_is_not_truncated() -> None:
    scale = Fraction(
        1, 50
    )  # P(|Z| >= 1) is less than 2**-64, so that the first word cannot show it
    cut = laplace_magnitude_cuts(scale, 1)[0]
    second = leading_digits(cut, 128) & LAST_WORD
    table = discrete_laplace._table(scale, True)
    assert table.draw(1, ScriptedSource([LAST_WORD, second - 1])).tolist() == [0]
    assert table.draw(1, ScriptedSource([LAST_WORD, second + 1])).tolist() == [1]
    assert table.draw(1, ScriptedSource([LAST_WORD, LAST_WORD, 0])).tolist() == [1]
    assert table.draw(1, ScriptedSource([LAST_WORD] * 3 + [0])).tolist() == [2]
