"""How much too small the errors of records are, against many releases of one survey."""

import numpy as np
import pytest

from dpcore.estimates.understated import understated
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin

ROWS = 4000
SHARES = np.array([[0.25, 0.15, 0.05], [0.1, 0.15, 0.3]])
SCORES = [np.arange(2.0), np.arange(3.0)]


def slope(counts):
    x, y = np.meshgrid(*SCORES, indexing="ij")
    total = counts.sum()
    x, y = x - (counts * x).sum() / total, y - (counts * y).sum() / total
    return (counts * x * y).sum() / (counts * x * x).sum()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [5.0, 40.0])
def test_the_factor_is_that_of_the_errors(noise):
    generator = np.random.default_rng(1)
    surveys = generator.multinomial(ROWS, SHARES.ravel(), 4000).reshape(-1, 2, 3)
    noisy = surveys + generator.normal(0, noise, surveys.shape)
    sampling = np.std([slope(counts) for counts in surveys])
    both = np.std([slope(counts) for counts in noisy])
    agreement = Agreement((2, 3), [Margin((0, 1), ROWS * SHARES, noise**2)], None)
    found = understated(agreement, SCORES, ROWS)
    assert found == pytest.approx([both / sampling], rel=0.06)


def test_pairs_that_were_not_measured_have_none():
    tables = [
        Margin((0,), ROWS * SHARES.sum(axis=1), 9.0),
        Margin((1,), ROWS * SHARES.sum(axis=0), 9.0),
    ]
    assert len(understated(Agreement((2, 3), tables, float(ROWS)), SCORES, ROWS)) == 0
