"""Two passes over a tree give what dense generalised least squares gives, and its exact variances."""

import numpy as np
import pytest

from dpcore.arrays import Booleans, Floats
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.regions import Regions
from dpcore.post.tables.tree import TreeSquares

PLACES = Domain(
    (Categories("a", (1, 2, 3)), Categories("b", (1, 2, 3)), Categories("c", tuple(range(4))))
)
REGIONS = Regions(PLACES, np.array([0, 1, 2, 7, 13, 14, 25, 33, 34, 35]))
"""Three states: of two counties, of one with two tracts, and of two."""

SPREAD = 2.5


def dense(
    cells: int, first: int, possible: Booleans | None, known: int | None, unknown: Booleans | None
) -> tuple[list[Floats], Floats, Floats, Floats, Floats]:
    """(sums of leaves at each level, gain, offset per total, covariance) over (leaf, cell) flattened."""
    size = REGIONS.sizes[-1]
    ups = [np.eye(size)]
    for level in range(REGIONS.depth, 0, -1):
        ups.insert(0, REGIONS.gathered(level, ups[0]))
    wide = [np.kron(up, np.eye(cells)) for up in ups]
    free = np.ones(size * cells, dtype=bool) if possible is None else possible.ravel()
    measured = np.concatenate(wide[first:])[:, free]
    bread = np.linalg.pinv(measured.T @ measured / SPREAD)
    gain, offset = bread @ measured.T / SPREAD, np.zeros((free.sum(), 1))
    if known is not None:
        of_totals = np.kron(ups[known], np.ones(cells))[:, free]
        if unknown is not None:
            of_totals[unknown] = 0
        lean = bread @ of_totals.T @ np.linalg.pinv(of_totals @ bread @ of_totals.T, rcond=1e-9)
        keep = np.eye(free.sum()) - lean @ of_totals
        gain, offset, bread = keep @ gain, lean, keep @ bread
    place = np.eye(size * cells)[:, free]
    return wide, place @ gain, place @ offset, place @ bread @ place.T, free


HOLES = np.random.default_rng(1).random((REGIONS.sizes[-1], 3)) < 0.7
HOLES[3] = False
HOLES[6, 0] = True


@pytest.mark.parametrize("partly", [False, True], ids=["all known", "one not"])
@pytest.mark.parametrize("known", [None, 0, 2])
@pytest.mark.parametrize(
    ("cells", "possible"), [(1, None), (3, None), (3, HOLES)], ids=["one cell", "three", "holes"]
)
def test_both_passes_give_generalised_least_squares(
    cells: int, possible: Booleans | None, known: int | None, partly: bool
):
    first = 0 if cells > 1 or known is None else known + 1
    if first > REGIONS.depth:
        return
    unknown = None
    if partly and known is not None and cells > 1:
        unknown = np.arange(REGIONS.sizes[known]) == REGIONS.sizes[known] - 1
    generator = np.random.default_rng(7)
    noisy = [generator.normal(0, 9, (size, cells)) for size in REGIONS.sizes[first:]]
    fit = TreeSquares(REGIONS, cells, SPREAD, first, possible, known, unknown)
    wide, gain, offset, covariance, _ = dense(cells, first, possible, known, unknown)
    totals = None
    leaves = gain @ np.concatenate([y.ravel() for y in noisy])
    if known is not None:
        totals = generator.normal(20, 5, REGIONS.sizes[known])
        if possible is not None:  # where nobody can be, nobody is
            up = possible.astype(float)
            for level in range(REGIONS.depth, known, -1):
                up = REGIONS.gathered(level, up)
            totals *= up.any(axis=1)
        leaves += offset @ totals
    found = fit.estimates(noisy, totals)
    for level, h in enumerate(found):
        np.testing.assert_allclose(h.ravel(), wide[level] @ leaves, atol=1e-9)
        exact = np.diagonal(wide[level] @ covariance @ wide[level].T)
        stated = np.broadcast_to(fit.variances[level], h.shape).ravel()
        np.testing.assert_allclose(stated, exact, atol=1e-9)
    if possible is not None:
        assert not found[-1][~possible].any()
    for levels in ([0], [1], [3], [0, 3], [1, 2], [0, 1, 2, 3]):
        weights = {k: generator.normal(size=(REGIONS.sizes[k], cells)) for k in levels}
        total = np.sum([w.ravel() @ wide[k] for k, w in weights.items()], axis=0)
        exact = total @ covariance @ total
        assert fit.sum_variance(weights) == pytest.approx(exact, abs=1e-9)


def test_records_outside_all_regions_have_a_node_of_their_own():
    assert REGIONS.outside
    assert REGIONS.sizes == (1, 4, 6, 11)
    assert [p.tolist()[-1] for p in REGIONS.parents] == [0, 0, 3, 5]
    cells = np.arange(PLACES.size)
    leaf = REGIONS.leaf_of(cells)
    assert np.flatnonzero(leaf < len(REGIONS.leaves)).tolist() == REGIONS.leaves.tolist()
    everything = Regions(PLACES, cells)
    assert not everything.outside
    assert everything.sizes == (1, 3, 9, 36)
