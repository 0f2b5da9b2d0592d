"""One estimate from tables in different cells, against least squares written out in full."""

import numpy as np
import pytest

from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin, Residual
from dpcore.post.tables.refined import Refined, differ, refinement

SEX, PLACE = Categories("sex", ("F", "M")), Categories("place", ("a", "b", "c"))
SIX = Bins("age", (0.0, 10, 20, 30, 40, 60, 80), integer=True, nullable=True)
FOUR = Bins("age", (0.0, 15, 30, 60, 80), integer=True, nullable=True)
FINE = refinement((SIX,), [(FOUR,)]).axes[0]
ROWS = 500


def measured(total: float | None, generator: np.random.Generator):
    """Three draws: two tables over four bins, one over six, and a table and a residual."""
    counts = generator.multinomial(ROWS, np.full(2 * 3 * FINE.size, 1 / (6 * FINE.size)))
    counts = counts.reshape(2, 3, FINE.size).astype(float)
    four, six = counts @ _sums(FOUR).T, counts @ _sums(SIX).T

    def margin(attributes, table, variance):
        return Margin(attributes, table + generator.normal(0, variance**0.5, table.shape), variance)

    def residual(table, variance):
        noise = generator.normal(0, variance**0.5, table.shape)
        centred = table + noise - (table + noise).mean()
        return Residual((0,), centred, variance)

    first = [margin((0, 2), four.sum(1), 4.0), margin((1, 2), four.sum(0), 9.0)]
    second = [margin((0, 1), six.sum(1).T, 2.0)]
    third = [margin((0, 1), counts.sum(2), 3.0), residual(counts.sum((1, 2)), 5.0)]
    parts = [
        (Agreement((2, 3, FOUR.size), first, total), (SEX, PLACE, FOUR)),
        (Agreement((SIX.size, 2), second, total), (SIX, SEX)),
        (Agreement((2, 3), third, total), (SEX, PLACE)),
    ]
    return counts, parts


def _sums(axis):
    lower = np.asarray(FINE.edges[:-1])
    inside = [(lower >= a) & (lower < b) for a, b in zip(axis.edges, axis.edges[1:], strict=False)]
    whole = np.zeros((axis.size, FINE.size))
    whole[:-1, :-1], whole[-1, -1] = np.array(inside), 1
    return whole


def in_full(parts, total, wanted):
    """The least squares estimate of ``wanted`` @ all refined counts, and its covariance."""
    cells = np.eye(6 * FINE.size).reshape(-1, 2, 3, FINE.size)
    rows, values, precisions = [], [], []
    for agreement, axes in parts:
        for each in agreement.measured:
            names = [axes[a].name for a in each.attributes]
            letters = {"sex": "s", "place": "p", "age": "g"}
            age = next((axes[a] for a in each.attributes if axes[a].name == "age"), None)
            table = cells if age is None else cells @ _sums(age).T
            table = np.einsum(f"xspg->x{''.join(letters[n] for n in names)}", table)
            if isinstance(each, Residual):
                table = table - table.mean(axis=1, keepdims=True)
            rows.append(table.reshape(len(cells), -1).T)
            values.append(each.table.ravel())
            precisions.append(np.full(each.table.size, 1 / each.variance))
    design, value, weight = np.vstack(rows), np.concatenate(values), np.concatenate(precisions)
    if total is not None:
        design = np.vstack([design, np.ones(design.shape[1])])
        value, weight = np.append(value, total), np.append(weight, 1e7)
    inverse = np.linalg.pinv(design.T * weight @ design, rcond=1e-13, hermitian=True)
    return wanted @ inverse @ (design.T @ (weight * value)), wanted @ inverse @ wanted.T


@pytest.mark.parametrize("total", [None, float(ROWS)])
@pytest.mark.parametrize(
    ("names", "age"),
    [
        (("sex", "age"), SIX),
        (("sex", "age"), FOUR),
        (("age",), SIX),
        (("age",), FOUR),
        (("place", "age"), FOUR),
    ],
)
def test_it_is_least_squares_over_all_refined_cells(total, age, names):
    _, parts = measured(total, np.random.default_rng(1))
    axes = tuple({"sex": SEX, "place": PLACE, "age": age}[name] for name in names)
    both = Refined(axes, parts)
    found = both.estimate([agreement for agreement, _ in parts])
    cells = np.eye(6 * FINE.size).reshape(-1, 2, 3, FINE.size) @ _sums(age).T
    left = "".join({"sex": "s", "place": "p", "age": "g"}[name] for name in names)
    wanted = np.einsum(f"xspg->x{left}", cells).reshape(6 * FINE.size, -1).T
    estimate, covariance = in_full(parts, total, wanted)
    np.testing.assert_allclose(found, estimate, atol=2e-3)
    np.testing.assert_allclose(both.covariance, covariance, atol=2e-3)
    np.testing.assert_allclose(both.variances, covariance.diagonal(), atol=2e-3)
    weights = np.arange(len(wanted)) - 1.0
    assert both.variance_of(weights) == pytest.approx(weights @ covariance @ weights, rel=1e-3)
    if total is not None:
        assert found.sum() == pytest.approx(total)


def test_which_cells_can_be_refined():
    ages = Grid("age", 0.0, 80.0, 80, nullable=True, integer=True)
    assert differ((SIX,), (SEX, FOUR))
    assert differ((SIX,), (ages,))
    assert refinement((SIX,), [(ages,)]).size == 81
    assert refinement((SEX, SIX), [(FOUR, SEX)]) == Domain((SEX, FINE))
    elsewhere = [
        Bins("age", (0.0, 40, 90), integer=True, nullable=True),  # another range
        Bins("age", (0.0, 40, 80), integer=True),  # no cell for null
        Bins("years", (0.0, 40, 80), integer=True, nullable=True),
        SIX,
    ]
    assert not any(differ((SIX,), (axis,)) for axis in elsewhere)


def test_totals_that_differ_are_refused():
    _, parts = measured(float(ROWS), np.random.default_rng(1))
    _, others = measured(ROWS + 1.0, np.random.default_rng(1))
    with pytest.raises(ValueError, match=r"different numbers of records .*: combine"):
        Refined((SIX,), [parts[0], others[1]])


def test_point_masses_stay_cells_of_their_own():
    """Two releases of an amount with a zero and a top code, in other bins."""
    two = Bins("pay", (0.0, 0.0, 4.0, 9.0, 9.0), nullable=True)
    three = Bins("pay", (0.0, 0.0, 2.0, 6.0, 9.0, 9.0), nullable=True)
    plain = Bins("pay", (0.0, 6.0, 9.0), nullable=True)
    fine = refinement((two,), [(three,), (plain,)]).axes[0]
    assert fine.edges == (0, 0, 2, 4, 6, 9, 9)
    exact = {  # of the fine cells: 0, three of the six between, the top code, and null
        two: [1, 2 + 3, 4 + 5, 6, 7],
        three: [1, 2, 3 + 4, 5, 6, 7],
        plain: [1 + 2 + 3 + 4, 5 + 6, 7],
    }
    parts = [
        (Agreement((axis.size,), [Margin((0,), np.array(counts, float), 1.0)], 28.0), (axis,))
        for axis, counts in exact.items()
    ]
    for axis, counts in exact.items():
        found = Refined((axis,), parts).estimate([agreement for agreement, _ in parts])
        np.testing.assert_allclose(found.ravel(), counts)
