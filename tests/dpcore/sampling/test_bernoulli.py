from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from dpcore.sampling import bernoulli
from dpcore.sampling.bernoulli import bernoulli_exp
from dpcore.sampling.source import SeededSource
from tests.dpcore.sampling.sampling_oracles import DIGITS, ScriptedSource, exp_minus, leading_digits

LAST_WORD = 2**64 - 1


def flip(exponents: list[Fraction], digits: np.ndarray, bits: int, source) -> np.ndarray:
    floats = np.array([float(x) for x in exponents])
    return bernoulli_exp(floats, exponents.__getitem__, digits, bits, source)


def test_the_float_exponential_keeps_its_promised_error() -> None:
    x = np.concatenate(
        [
            np.linspace(0, 45, 2000),
            np.arange(2817) / 64,
            np.nextafter(np.arange(1, 2817) / 64, 0),
            [1e-300, 1e-17, 1e-5, 60.0, 1e4, 1e300],
        ]
    )
    computed = bernoulli._exp_minus(x)
    with localcontext(prec=40):
        errors = [
            abs(Decimal(float(p)) - (-Decimal(float(v))).exp())
            for p, v in zip(computed, x, strict=True)
        ]
    assert max(errors) < bernoulli._EXP_ERROR
    assert max(errors) > bernoulli._EXP_ERROR / 4, (
        "the bound is far from sharp: is it the right one?"
    )


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(1), Fraction(10, 3), Fraction(70)])
@pytest.mark.parametrize("bits", [64, 24, 1])
def test_a_coin_within_the_margin_is_decided_by_further_words(
    exponent: Fraction, bits: int
) -> None:
    with localcontext(prec=DIGITS):
        p = exp_minus(exponent)
    digits = np.array([leading_digits(p, bits)], dtype=np.uint64)
    edge = leading_digits(p, bits + 64) & LAST_WORD
    beyond = leading_digits(p, bits + 128) & LAST_WORD
    for more, heads in (
        ([edge - 1], True),
        ([edge + 1], False),
        ([edge, beyond - 1], True),
        ([edge, beyond + 1], False),
    ):
        if more[0] < 0:
            continue
        source = ScriptedSource(more)
        assert flip([exponent], digits, bits, source).tolist() == [heads]
        assert source.used == len(more)


def test_a_coin_outside_the_margin_needs_no_further_words() -> None:
    p = int(2**64 * np.exp(-0.5))
    digits = np.array([p - 2**29, p + 2**29], dtype=np.uint64)
    assert flip([Fraction(1, 2)] * 2, digits, 64, ScriptedSource([])).tolist() == [True, False]


def test_floating_point_and_integers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    exponents = [Fraction(i, 400) for i in range(1500)]
    digits = SeededSource(1).words(1500)
    fast = flip(exponents, digits, 64, ScriptedSource([]))
    monkeypatch.setattr(bernoulli, "_EXP_ERROR", 2.0)
    slow = flip(exponents, digits, 64, ScriptedSource([]))
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("bits", [64, 30, 3])
@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 100), Fraction(2, 3), Fraction(9, 2)]
)
def test_heads_come_with_the_stated_probability(exponent: Fraction, bits: int) -> None:
    n = 4000 if bits == 3 else 200_000  # three digits leave most coins in doubt
    source = SeededSource(bits)
    heads = flip([exponent] * n, source.words(n) >> np.uint64(64 - bits), bits, source).mean()
    p = float(np.exp(-float(exponent)))
    assert abs(heads - p) <= 4.5 * np.sqrt(p * (1 - p) / n)
    for wrong in (2 / 3, 3 / 2):
        q = float(np.exp(-float(exponent) * wrong))
        if abs(p - q) > 10 * np.sqrt(p / n):
            assert abs(heads - q) > 4.5 * np.sqrt(q * (1 - q) / n)
