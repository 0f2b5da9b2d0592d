"""The cells to which a model rounds numbers: the cells of the plan, if there are not too many.

Terms are computed in all cells of their columns, so the columns of one term have at most ``MOST_CELLS``
cells together. If they have more, numbers are rounded to fewer cells.  Larger amounts get wider cells,
so that small amounts and their logarithms stay precise:

    0 to 20,000,000 euros      0, 1, 2, ..., 200, ..., 10,000, 10,050, ...      4,096 cells

Values that many people share stay exact: point masses, zero, the lower bound and numbers in conditions,
because ``{debt > 0}`` needs them.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpcore.domain.axes import Axis, Bins, Grid
from dpcore.errors import InputError
from dpcore.releases.models.terms import MOST_CELLS
from schemas.releases.formulas import columns_together
from schemas.survey.cells import Numbers
from schemas.survey.columns import CategoricalColumn, Column, ContinuousColumn, IntegerColumn

MOST_ALONE, MOST_TOGETHER = 4096, 2**18
"""The most cells of one rounded column, and of rounded columns together."""

FEWEST = 128
"""With fewer cells, rounding would bias the model by more than the noise."""

MOST_EQUAL = 65536
"""Equal cells are precise enough if this many cells are each at most 1 wide."""

NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
COMPARED = re.compile(rf"[<>=]\s*-?\s*{NUMBER}|{NUMBER}\s*[<>=!]")
"""A number that a formula compares with something."""


def axes_of(formula: str, columns: Mapping[str, Column]) -> list[Axis]:
    """The axes of a formula's columns, in the order of ``columns``.

    Raises ``ValueError`` if the formula cannot be read, or combines too many columns of many values.
    """
    exact = {name: _exact(name, column) for name, column in columns.items()}
    coarse = {name for name, column in columns.items() if _coarse(column, exact[name])}
    if not coarse and math.prod(_size(axis) for axis in exact.values()) <= MOST_CELLS:
        return [*exact.values()]
    try:
        together = columns_together(formula, [*exact.values()])
    except InputError as error:
        raise ValueError(f"formula: {error}") from None
    most = {name: MOST_ALONE if name in coarse else MOST_CELLS for name in columns}
    for names in together:
        sizes = {name: min(_size(exact[name]), most[name]) for name in names}
        if math.prod(sizes.values()) > MOST_CELLS:
            _round_together(formula, sizes, [n for n in names if isinstance(exact[n], Grid)], most)
    said = {float(one or other) for one, other in COMPARED.findall(formula)}
    return [_rounded(column, exact[n], most[n], said) for n, column in columns.items()]


def _round_together(
    formula: str, sizes: Mapping[str, int], numbers: Collection[str], most: dict[str, int]
) -> None:
    """Lower the ``most`` cells of columns of numbers that one term combines with others."""
    wide = sorted(numbers, key=lambda name: sizes[name])
    left = MOST_TOGETHER / math.prod(n for name, n in sizes.items() if name not in wide)
    for place, name in enumerate(wide):  # columns with few values keep all
        each = math.floor(max(left, 0.0) ** (1 / (len(wide) - place)) + 1e-9)
        if each < min(FEWEST, sizes[name]):
            raise ValueError(
                f"formula: {formula}: a term combines {', '.join(sizes)}, which have too many values"
                " together; leave a column out of the product or condition"
            )
        most[name] = min(most[name], max(each, 2))
        left /= min(sizes[name], each)


def _size(axis: Axis) -> int:
    return axis.size - axis.nullable


def _exact(name: str, column: Column) -> Axis:
    """The cells that the plan states. Each point mass has a separate cell."""
    axis = column.axis(name)
    if isinstance(column, ContinuousColumn) and isinstance(axis, Grid):
        return replace(axis, points=tuple(map(float, column.point_masses)))
    return axis


def _coarse(column: Column, axis: Axis) -> bool:
    """Whether cells of a column contain several values and are too wide for small values."""
    if not isinstance(axis, Grid) or isinstance(column, CategoricalColumn):
        return False
    if isinstance(column, IntegerColumn):
        return axis.cells > MOST_CELLS
    width = (axis.upper - axis.lower) / axis.cells
    # Zero must be exact for any bounds that a search may find.
    return width > float(axis.step or 0) and (_grows(column) or column.open)


def _grows(column: IntegerColumn | ContinuousColumn) -> bool:
    """Whether wider cells for larger amounts suit a column: a wide range whose ends differ in size."""
    lower, upper = (Decimal(str(bound)) for bound in column.bounds)
    alike = Numbers(lower, upper, None, isinstance(column, IntegerColumn)).alike
    return upper - lower > MOST_EQUAL and not alike


def _rounded(column: Column, axis: Axis, most: int, said: Collection[float]) -> Axis:
    """Round an axis of numbers to at most ``most`` cells; any other axis stays as it is. ``said``: the
    numbers in conditions, which stay exact."""
    if not isinstance(axis, Grid) or not isinstance(column, IntegerColumn | ContinuousColumn):
        return axis
    if _size(axis) <= most and not _coarse(column, axis):
        return axis
    lower, upper = map(float, column.bounds)
    masses = {float(point) for point in column.point_masses}
    alone = {*masses, 0.0, lower, *said, *(-each for each in said)}
    alone = {point for point in alone if lower <= point <= upper}
    # Each of these values adds two edges, its own and the next.
    number = max(most - 2 * len(alone), 2)
    inner = (_growing if _grows(column) else _equal)(lower, upper, number)
    of_type = _whole_cells if isinstance(column, IntegerColumn) else _real_cells
    return of_type(axis, inner, alone, masses)


def _whole_cells(axis: Grid, inner: list[float], alone: set[float], masses: set[float]) -> Axis:
    """Cells of whole numbers between ``inner`` edges; values ``alone`` and both bounds get their own."""
    first, end = float(axis.lower), float(axis.upper)
    own = {point for point in alone if point == int(point)} | {end - 1}
    edges = {float(round(edge)) for edge in inner} | {e for p in own for e in (p, p + 1)}
    edges = {edge for edge in edges if first <= edge <= end} | {first, end}
    step = axis.step or Fraction(1)
    return Bins(axis.name, tuple(sorted(edges)), axis.nullable, True, step, tuple(sorted(masses)))


def _real_cells(axis: Grid, inner: list[float], alone: set[float], masses: set[float]) -> Axis:
    """Cells of real numbers between ``inner`` edges; the values ``alone`` are points, or cells of one
    step."""
    step = float(axis.step or 0)
    points = {p for p in alone if p in masses or not step}
    singles = {_written(e) for p in alone - points for e in (p, p + step)}
    edges = {_written(edge) for edge in inner} | singles | {axis.lower, axis.upper}
    kept = {edge for edge in edges if axis.lower <= edge <= axis.upper} - points
    return Bins(axis.name, tuple(sorted([*kept, *points, *points])), axis.nullable, step=axis.step)


def _written(edge: float) -> float:
    return float(f"{edge:.12g}")


def _equal(lower: float, upper: float, number: int) -> list[float]:
    return [float(edge) for edge in np.linspace(lower, upper, number + 1)]


def _growing(lower: float, upper: float, number: int) -> list[float]:
    """Edges s sinh(u) for equally spaced u: about 1 apart near zero, and wider for larger amounts."""
    # A fixed point, because the range of u depends on the scale, and the scale on this range.
    scale = 1.0
    for _ in range(50):
        start, end = math.asinh(lower / scale), math.asinh(upper / scale)
        scale = max(1.0, number / (end - start))
    return [float(edge) for edge in scale * np.sinh(np.linspace(start, end, number + 1))]
