"""The privacy line opens exact values, alone, and refuses before it draws."""

import ast
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Integers
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import LARGEST_VALUE, perturb
from dpcore.line.statistic import Exact
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, ThresholdedLaplace
from dpcore.sampling.source import SeededSource, SystemSource
from tests.dpcore.releases.contract import CASES, LAWS, Case, opened, tally_of

ROOT = Path(__file__).parents[3]
SECRET = 27182818
SHARE = Budget.of("1", "1e-6")
LAPLACE = DiscreteLaplace.within(SHARE, 3, Fraction(2))
GAUSSIAN = DiscreteGaussian.within(SHARE, 3, Fraction(2))
THRESHOLDED = ThresholdedLaplace.within(SHARE, 10, Fraction(2))


class NoRandomness:
    """Fails the test that asks it for anything."""

    reproducible = False

    def words(self, size: int) -> NDArray[np.uint64]:
        raise AssertionError("randomness was drawn")


def counts(*values: int) -> Integers:
    return np.array(values, dtype=np.int64)


def refused(exact: Exact, mechanism: Mechanism, share: Budget = SHARE) -> str:
    """The whole text of the refusal, which comes before any randomness."""
    with pytest.raises(PrivacyLineError) as refusal:
        perturb(exact, mechanism, share, NoRandomness())
    text = "".join(traceback.format_exception(refusal.value))
    assert str(SECRET) not in text
    return text


dense_mechanisms = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=type)
all_mechanisms = pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, THRESHOLDED], ids=type)


def fitting(mechanism: Mechanism) -> Exact:
    """A statistic of the right form."""
    return Exact(counts(SECRET, 1, 0), counts(0, 4, 9) if mechanism.sparse else None)


@all_mechanisms
def test_a_statistic_of_the_right_form_is_drawn(mechanism: Mechanism):
    noisy = perturb(fitting(mechanism), mechanism, SHARE, SeededSource(1))
    assert noisy.reproducible
    assert not perturb(fitting(mechanism), mechanism, SHARE, SystemSource()).reproducible
    assert abs(int(noisy.values[0]) - SECRET) < 200


def test_a_mechanism_without_a_known_event_is_refused():
    class Unpriced(DiscreteLaplace):
        event = "free of charge"

    assert "no price" in refused(fitting(LAPLACE), Unpriced(3, Fraction(2), Fraction(2)))


@dense_mechanisms
def test_a_dense_statistic_of_the_wrong_form_is_refused(mechanism: Mechanism):
    for values in (counts(SECRET), counts(SECRET, 0, 0, 0), np.full((3, 1), SECRET), counts()):
        assert "one value per public cell" in refused(Exact(values), mechanism)
    assert "one value per" in refused(Exact(counts(SECRET, 0, 0), counts(0, 1, 2)), mechanism)


@all_mechanisms
@pytest.mark.parametrize("kind", [np.int32, np.uint64, np.float64, np.float32, bool, object])
def test_anything_but_64_bit_integers_is_refused(mechanism: Mechanism, kind: type):
    values, cells = fitting(mechanism)._statistic
    assert "64-bit integers" in refused(Exact(values.astype(kind), cells), mechanism)
    if mechanism.sparse:
        assert "64-bit integers" in refused(Exact(values, cells.astype(kind)), mechanism)


@all_mechanisms
@pytest.mark.parametrize("value", [LARGEST_VALUE, -LARGEST_VALUE, 2**63 - 1, -(2**63)])
def test_numbers_that_could_overflow_are_refused(mechanism: Mechanism, value: int):
    text = refused(Exact(counts(0, value, SECRET), fitting(mechanism)._statistic.cells), mechanism)
    assert "too large" in text
    assert str(abs(value)) not in text


@pytest.mark.parametrize(
    "cells",
    [
        None,
        counts(4, 0, 9),
        counts(0, 4, 4),
        counts(-1, 4, 9),
        counts(0, 4, 10),
        counts(0, 4),
    ],
)
def test_a_sparse_statistic_must_list_ascending_public_cells(cells: Integers | None):
    assert "ascending public cells" in refused(Exact(counts(SECRET, 1, 0), cells), THRESHOLDED)


def test_an_empty_sparse_statistic_is_drawn_like_any_other():
    noisy = perturb(Exact(counts(), counts()), THRESHOLDED, SHARE, SeededSource(2))
    assert noisy.cells is not None
    assert noisy.values.shape == noisy.cells.shape


@pytest.mark.parametrize("case", LAWS.values(), ids=LAWS)
def test_every_law_of_noise_is_stopped_at_the_line_by_the_same_faults(case: Case):
    release, mechanism = case.release, case.release.mechanism
    exact, share = release.statistic(tally_of(release.domain, case.near)), release.share
    values, cells = exact._statistic
    refused(Exact(np.append(values, 0), cells), mechanism, share)
    refused(Exact(values.astype(float), cells), mechanism, share)
    refused(Exact(np.full_like(values, LARGEST_VALUE), cells), mechanism, share)
    refused(exact, mechanism, Budget(share.alpha / 2, share.beta))


def house() -> list[Path]:
    """The program's files, without the tests that the papers' package keeps beside them."""
    folders = ("dpcore", "papers", "tasks", "schemas", "flows")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [path for path in files if not path.name.startswith("test_")]


@pytest.mark.slow
def test_only_the_privacy_line_opens_exact_values():
    """No other module of the house touches the private attributes, by name or by getattr."""
    openers, files = set(), 0
    for path in house():
        files += 1
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", None) or getattr(node, "value", None)
            if name == "_statistic" and isinstance(node, ast.Attribute | ast.Constant):
                openers.add(path.relative_to(ROOT).as_posix())
    assert files > 40
    assert openers == {"dpcore/line/privacy_line.py", "dpcore/line/statistic.py"}


@pytest.mark.slow
def test_only_mechanisms_and_the_privacy_line_write_draws_of_noise():
    """`draw` of a mechanism is called in one place of the house."""
    callers = set()
    for path in house():
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "draw"
                and getattr(node.func.value, "id", "") == "mechanism"
            ):
                callers.add(path.relative_to(ROOT).as_posix())
    assert callers == {"dpcore/line/privacy_line.py"}


@pytest.mark.slow
def test_the_statistic_is_not_changed_by_the_draw():
    for case in CASES.values():
        release = case.release
        tally = tally_of(release.domain, case.near)
        before, exact = opened(release, tally), release.statistic(tally)
        perturb(exact, release.mechanism, release.share, SeededSource(3))
        np.testing.assert_array_equal(opened(release, tally), before)
        for one, other in zip(exact._statistic, release.statistic(tally)._statistic, strict=True):
            np.testing.assert_array_equal(one, other)
