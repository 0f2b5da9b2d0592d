"""Private values stay where they are; noisy ones are stored without loss."""

import copy
import json
import logging
import pickle

import cloudpickle
import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy

SECRET = 27182818
CELLS, COUNTS = np.array([1]), np.array([SECRET])
PRIVATE = [
    Exact(COUNTS, CELLS),
    Exact(COUNTS),
    Tally(Domain((Categories("a", ("x", "y")),)), CELLS, COUNTS),
]
DENSE = Noisy(np.array([-3, 0, 2**60]))
SPARSE = Noisy(np.array([5, -7]), np.array([0, 2**61]), reproducible=True)

every_private = pytest.mark.parametrize("private", PRIVATE, ids=["sparse", "dense", "tally"])


@every_private
@pytest.mark.parametrize(
    "leave",
    [pickle.dumps, cloudpickle.dumps, copy.deepcopy, json.dumps],
    ids=["pickle", "cloudpickle", "deepcopy", "json"],
)
def test_private_values_do_not_leave_the_process(private: object, leave):
    for thing in (private, [private], {"result": private}):
        with pytest.raises(TypeError) as refusal:
            leave(thing)
        assert str(SECRET) not in str(refusal.value)


@every_private
def test_every_pickle_protocol_is_refused(private: object):
    with pytest.raises(TypeError, match="does not leave the process"):
        copy.copy(private)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="does not leave the process"):
            pickle.dumps(private, protocol=protocol)


@every_private
def test_private_values_do_not_print(private: object, caplog: pytest.LogCaptureFixture):
    logging.getLogger("test").warning("%s %r", private, [private])
    text = f"{private} {private!r} {private:} {[private]} {caplog.text}"
    assert str(SECRET) not in text
    assert text.count("withheld") == 6


def test_private_values_do_not_compare():
    """Equality of contents would be an answer about the data."""
    assert Exact(COUNTS) != Exact(COUNTS)
    assert Tally(PRIVATE[2].domain, CELLS, COUNTS) != PRIVATE[2]


@pytest.mark.parametrize("noisy", [DENSE, SPARSE, Noisy(np.array([], dtype=np.int64))])
def test_a_noisy_statistic_is_read_back_as_it_was_written(noisy: Noisy):
    again = Noisy.from_bytes(noisy.to_bytes())
    np.testing.assert_array_equal(again.values, noisy.values)
    assert (again.cells is None) == (noisy.cells is None)
    if noisy.cells is not None:
        np.testing.assert_array_equal(again.cells, noisy.cells)
    assert again.reproducible == noisy.reproducible
    assert again.to_bytes() == noisy.to_bytes()
    assert again.digest() == noisy.digest()


def test_any_difference_changes_the_digest():
    values, cells = np.array([5, -7]), np.array([0, 2])
    variants = [
        Noisy(values, cells),
        Noisy(values),
        Noisy(values, cells, reproducible=True),
        Noisy(values + 1, cells),
        Noisy(values, cells + 1),
        Noisy(cells, values),
    ]
    assert len({noisy.digest() for noisy in variants}) == len(variants)
    assert Noisy(values.astype(">i8")).digest() == Noisy(values).digest()


def test_anything_else_is_not_read_as_a_noisy_statistic():
    for data in (b"", b"dprelease-noisy-2\n\x00\x00", pickle.dumps([1]), DENSE.to_bytes()[:40]):
        with pytest.raises(ValueError):  # noqa: PT011 - numpy words some of them
            Noisy.from_bytes(data)
