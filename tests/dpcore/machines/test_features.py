"""The public feature map: its norm, its kernel, and that records do not touch each other in it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import qmc
from threadpoolctl import threadpool_limits

from dpcore.arrays import Floats
from dpcore.machines.features import KAPPA, FourierFeatures


def approximation_errors(features: FourierFeatures, pairs: int = 4096) -> Floats:
    """|<Phi(x), Phi(y)> - exp(-||x - y||_h^2 / 2)| for pairs of points in the unit cube.

    The pairs are a Halton set in 2d dimensions, not the set that the frequencies come from.
    """
    dimensions = features.dimensions
    points = qmc.Halton(2 * dimensions, scramble=False).random(pairs)
    left, right = points[:, :dimensions], points[:, dimensions:]
    scaled = (left - right) / np.array(features.bandwidths())
    exact = np.exp(-0.5 * np.sum(scaled**2, axis=1))
    approximate = np.einsum("kd,kd->k", features.transform(left), features.transform(right))
    return np.abs(approximate - exact)


@pytest.mark.parametrize(("dimensions", "frequencies"), [(1, 1), (2, 3), (3, 256), (8, 1024)])
def test_no_point_has_a_norm_above_kappa(dimensions, frequencies):
    features = FourierFeatures(dimensions, 0.05, frequencies)
    points = np.random.default_rng(1).uniform(-1, 2, (200, dimensions))
    for row in features.transform(points)[:: max(1, frequencies // 16)]:
        square = sum(Fraction(value) ** 2 for value in row.tolist())
        assert abs(float(square - 1)) < 1e-13
        assert square <= Fraction(KAPPA) ** 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("dimensions", "frequencies"), [(1, 1), (3, 77), (2, 256)])
def test_features_of_a_record_do_not_depend_on_the_other_records(dimensions, frequencies, threads):
    features = FourierFeatures(dimensions, 0.3, frequencies)
    points = np.random.default_rng(2).random((1000, dimensions))
    with threadpool_limits(threads):
        together = features.transform(points)
        for rows in (1, 2, 3, 7, 64, 1000):
            for start in {0, 1, 501, 1000 - rows}:
                alone = features.transform(points[start : start + rows])
                assert np.array_equal(alone, together[start : start + rows])
        assert np.array_equal(features.transform(points[::-3]), together[::-3])
        assert np.array_equal(features.transform(np.asfortranarray(points)), together)


def test_features_keep_to_their_row_where_rounding_depends_on_the_place_in_an_array(monkeypatch):
    """As vector instructions may: the last numbers of an array, too few for a whole vector, are
    rounded in another way."""
    features = FourierFeatures(2, 0.3, 5)
    points = np.random.default_rng(2).random((100, 2))
    even, right = features.transform(points), np.cos

    def uneven(angles, out):
        flat = right(angles).ravel()
        flat[-(flat.size % 8) or flat.size :] += 1e-16
        out[...] = flat.reshape(angles.shape)
        return out

    monkeypatch.setattr(np, "cos", uneven)
    together = features.transform(points)
    assert not np.array_equal(together, even)
    for start, stop in [(0, 1), (3, 5), (17, 24), (90, 100)]:
        assert np.array_equal(features.transform(points[start:stop]), together[start:stop])


@pytest.mark.parametrize("dimensions", [1, 2, 4, 8])
def test_kernel_is_closer_to_the_gaussian_one_than_random_frequencies_get(dimensions):
    features = FourierFeatures(dimensions, 0.3, 512)
    pairs = np.random.default_rng(3).random((2, 4000, dimensions))
    shift = pairs[0] - pairs[1]
    exact = np.exp(-np.sum(shift**2, axis=1) / (2 * 0.3**2))
    random = np.random.default_rng(4).standard_normal((512, dimensions)) / 0.3
    random_error = np.abs(np.cos(shift @ random.T).mean(axis=1) - exact).mean()
    own = np.sum(features.transform(pairs[0]) * features.transform(pairs[1]), axis=1)
    own_error = np.abs(own - exact).mean()
    assert own_error < random_error
    assert own_error == pytest.approx(approximation_errors(features).mean(), rel=0.15)


def test_kernel_is_that_of_the_transform_and_widths_are_per_column():
    features = FourierFeatures(2, (0.2, 0.8), 1024)
    origin = np.zeros((1, 2))
    along = np.array([[0.2, 0.0], [0.0, 0.8], [0.0, 0.0]])
    expected = [math.exp(-0.5), math.exp(-0.5), 1.0]
    kernel = features.transform(origin) @ features.transform(along).T
    assert kernel[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("frequencies", [1, 2, 3, 100, 1024])
def test_frequencies_are_finite_distinct_and_the_same_each_time(frequencies):
    features = FourierFeatures(4, 1.0, frequencies)
    matrix = features.frequencies_matrix()
    assert matrix.shape == (frequencies, 4)
    assert np.all(np.isfinite(matrix))
    assert len(np.unique(matrix, axis=0)) == frequencies
    assert np.array_equal(matrix, FourierFeatures(4, (1.0,) * 4, frequencies).frequencies_matrix())


def test_frequencies_of_the_first_column_are_half_normal_quantiles():
    matrix = FourierFeatures(1, 2.0, 2).frequencies_matrix()
    assert matrix[:, 0].tolist() == pytest.approx([0.3186393639643752 / 2, 1.1503493803760079 / 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 4), "dimensions"),
        ((2, 1.0, 0), "frequencies"),
        ((2, 1.0, True), "frequencies"),
        ((2, 0.0, 4), "bandwidth"),
        ((2, math.inf, 4), "bandwidth"),
        ((2, (1.0,), 4), "bandwidth"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(*arguments)


def test_points_of_another_dimension_are_refused():
    with pytest.raises(ValueError, match="shape"):
        FourierFeatures(2, 1.0, 4).transform(np.zeros((5, 3)))
