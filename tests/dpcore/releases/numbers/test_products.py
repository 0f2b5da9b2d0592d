"""Products of columns: the length that the lemma states, exact sums, and points that determine them."""

from itertools import product

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.releases.numbers.products import BITS, MOST_PRODUCTS, Products, corners

X, Y = Grid("x", 0.0, 5.0, 5, integer=True), Grid("y", -1.0, 1.0, 4)
SIZE = Categories("size", (1, 2.5, 9), ordered=True)
SEX, PLACE = Categories("sex", ("F", "M")), Categories("place", ("a", "b", "c", "d"))


def phi(products: Products, codes: tuple[int, ...]) -> np.ndarray:
    """The vector of one record, by definition."""
    found = []
    for row, weight in zip(products.exponents, products.weights, strict=True):
        term = weight
        for axis, code, i in zip(products.axes, codes, row, strict=True):
            if axis in (SEX, PLACE):
                term *= corners(axis.size)[code, i - 1] if i else 1.0
            else:
                term *= products.scaled(axis)[code] ** i
        found.append(term)
    return np.array(found)


@pytest.mark.slow
def test_of_numbers_the_inner_product_is_that_of_the_lemma():
    products = Products((X, Y, SIZE))
    h, every = float(products.fourth), [*product(range(5), range(4), range(3))]
    for one, other in zip(every, reversed(every), strict=True):
        t = sum(
            products.scaled(axis)[i] * products.scaled(axis)[j]
            for axis, i, j in zip(products.axes, one, other, strict=True)
        )
        stated = (1 + t) ** 2 + h * (1 + t) ** 4
        assert phi(products, one) @ phi(products, other) == pytest.approx(stated)


@pytest.mark.parametrize("axes", [(X,), (SEX, PLACE), (X, SEX), (Y, PLACE, SIZE), (X, Y, SEX)])
def test_no_record_is_longer_than_the_lemma_says_and_no_two_lie_farther_apart(axes):
    products, domain = Products(axes), Domain(axes)
    codes = domain.unpack(np.arange(domain.size))
    whole = np.array(
        [products.sums(Tally.of(domain, np.array([cell]))) for cell in range(domain.size)]
    )
    exact = np.array([phi(products, tuple(row)) for row in codes])
    assert np.abs(whole - exact * 2**BITS).max() <= 0.5 + 1e-6
    lengths = (whole.astype(float) ** 2).sum(axis=1)
    apart = ((whole[:, None] - whole[None]).astype(float) ** 2).sum(axis=2)
    assert lengths.max() <= products.steps_squared(differences=False)
    assert apart.max() <= products.steps_squared(differences=True)
    assert apart.max() >= 0.6 * products.steps_squared(differences=True)
    assert np.abs(whole).max() <= products.largest


def test_corners_are_a_regular_simplex():
    for size in (2, 3, 7):
        inner = corners(size) @ corners(size).T
        assert np.allclose(inner, np.where(np.eye(size), 1, -1 / (size - 1)))
    assert corners(1).shape == (1, 0)


def test_sums_are_exact_however_many_records_there_are():
    products, domain = Products((X, PLACE)), Domain((X, PLACE))
    cells, counts = np.array([1, 7, 19]), np.array([2**60, 3, 2**61], dtype=np.int64)
    ones = [products.sums(Tally.of(domain, np.array([cell]))) for cell in cells]
    expected = [
        sum(n * s for n, s in zip(counts.tolist(), each, strict=True))
        for each in zip(*ones, strict=True)
    ]
    assert products.sums(Tally(domain, cells, counts)) == expected


def test_the_number_of_products_is_known_before_they_are_listed():
    for axes in [(X,), (X, Y, SIZE), (PLACE, SEX, X), (PLACE, SEX)]:
        products = Products(axes)
        assert products.size == products._count() == len({*map(tuple, products.exponents.tolist())})
    numbers = tuple(Grid(f"x{i}", 0.0, 1.0, 4) for i in range(20))
    with pytest.raises(ValueError, match=rf"columns: make 10,626 .* at most {MOST_PRODUCTS:,}"):
        Products(numbers)


def test_every_polynomial_of_the_products_is_determined_at_the_points():
    products = Products((X, PLACE, Y))
    assert np.linalg.cond(products.features()) < 1e6
    places = products.places()
    assert {*places["place"]} == {*"abcd"}
    assert set(places["x"]) == {0.0, 1.0, 2.0, 3.0, 4.0}


@pytest.mark.parametrize(
    ("axis", "says"),
    [
        (Bins("b", (0.0, 1.0, 2.0)), "columns: b is binned"),
        (Categories("c", ("a",), nullable=True), "columns: c may be null"),
    ],
)
def test_columns_without_a_place_are_refused(axis, says):
    with pytest.raises(ValueError, match=says):
        Products((axis,))
