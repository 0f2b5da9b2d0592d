"""The public feature map: its norm, its kernel, and that records do not touch each other in it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpcore.machines.features import KAPPA, FourierFeatures


@pytest.mark.parametrize(("dimensions", "frequencies"), [(1, 1), (2, 3), (3, 256), (8, 1024)])
def test_no_point_has_a_norm_above_kappa(dimensions, frequencies):
    features = FourierFeatures((0.05,) * dimensions, frequencies)
    points = np.random.default_rng(1).uniform(-1, 2, (200, dimensions))
    for row in features.transform(points)[:: max(1, frequencies // 16)]:
        square = sum(Fraction(value) ** 2 for value in row.tolist())
        assert abs(float(square - 1)) < 1e-13
        assert square <= Fraction(KAPPA) ** 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("dimensions", "frequencies"), [(1, 1), (3, 77), (2, 256)])
def test_features_of_a_record_do_not_depend_on_the_other_records(dimensions, frequencies, threads):
    features = FourierFeatures((0.3,) * dimensions, frequencies)
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
    features = FourierFeatures((0.3, 0.3), 5)
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


def test_kernel_is_that_of_the_transform_and_widths_are_per_column():
    features = FourierFeatures((0.2, 0.8), 1024)
    origin = np.zeros((1, 2))
    along = np.array([[0.2, 0.0], [0.0, 0.8], [0.0, 0.0]])
    expected = [math.exp(-0.5), math.exp(-0.5), 1.0]
    kernel = features.transform(origin) @ features.transform(along).T
    assert kernel[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("frequencies", [1, 2, 3, 100, 1024])
def test_frequencies_are_finite_and_distinct(frequencies):
    features = FourierFeatures((1.0,) * 4, frequencies)
    matrix = features.frequencies_matrix()
    assert matrix.shape == (frequencies, 4)
    assert np.all(np.isfinite(matrix))
    assert len(np.unique(matrix, axis=0)) == frequencies
