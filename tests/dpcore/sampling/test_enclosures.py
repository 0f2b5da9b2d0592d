from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from dpcore.sampling.enclosures import LazyUniform, exp_bounds
from tests.dpcore.sampling.sampling_oracles import DIGITS, ScriptedSource, exp_minus

EXPONENTS = ["0", "1e-30", "1/3", "1/2", "0.51", "1", "7/3", "44", "89.9", "100", "1234567/8"]


@pytest.mark.parametrize("exponent", [Fraction(x) for x in EXPONENTS])
@pytest.mark.parametrize("bits", [1, 24, 64, 128, 320])
def test_exp_bounds_bracket_the_truth_and_are_tight(exponent: Fraction, bits: int) -> None:
    lower, upper = exp_bounds(exponent, bits)
    with localcontext(prec=DIGITS):
        exact = exp_minus(exponent) * Decimal(2) ** bits
        assert lower <= exact <= upper
    assert upper - lower <= 2
    assert lower >= 0


def test_no_more_digits_are_drawn_than_a_comparison_needs() -> None:
    silent = ScriptedSource([])
    assert LazyUniform(4, 4, silent).below(lambda bits: (5 << bits - 4, 5 << bits - 4))
    assert not LazyUniform(5, 4, silent).below(lambda bits: (5 << bits - 4, 5 << bits - 4))


@pytest.mark.parametrize(("word", "below"), [(2**63 - 1, True), (2**63, False)])
def test_a_uniform_draws_digits_until_the_comparison_is_certain(word: int, below: bool) -> None:
    source = ScriptedSource([word])
    p = Fraction(9, 32)  # 0.01001 in binary: its first four digits are those of 0.0100...
    uniform = LazyUniform(0b0100, 4, source)
    assert (
        uniform.below(lambda bits: ((p * 2**bits).__floor__(), (p * 2**bits).__ceil__())) is below
    )
    assert source.used == 1


def test_all_comparisons_see_the_same_number() -> None:
    source = ScriptedSource([2**63])
    uniform = LazyUniform(0, 1, source)  # turns out to be 1/4
    third = lambda bits: ((1 << bits) // 3, (1 << bits) // 3 + 1)  # noqa: E731
    fifth = lambda bits: ((1 << bits) // 5, (1 << bits) // 5 + 1)  # noqa: E731
    assert [uniform.below(p) for p in (third, fifth, third)] == [True, False, True]
    assert source.used == 1


def test_every_finite_uniform_is_right_about_a_dyadic_probability() -> None:
    def heads(p: int) -> int:
        return sum(
            LazyUniform(u, 8, ScriptedSource([])).below(lambda bits: (p << bits - 8,) * 2)
            for u in range(256)
        )

    assert [heads(p) for p in (0, 1, 100, 255, 256)] == [0, 1, 100, 255, 256]
