"""The cells of numeric columns: bins stated in the plan, or many bins that suit the column."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt

from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.suggestion import suggestion
from schemas.document import inside
from schemas.releases.base import Columns, declared, domain_of
from schemas.survey.cells import Numbers
from schemas.survey.columns import CategoricalColumn, Column, ContinuousColumn, IntegerColumn

MOST_BINS = 2**16

FINE = "fine"

Edges = list[float] | StrictInt | Literal["fine"]


def _no_other_word(bins: Any) -> Any:
    """Refuse any other word with a clear message; Pydantic would only report that it is no list."""
    if isinstance(bins, str) and bins != FINE:
        raise ValueError(
            f"must be a number of bins, such as 10, a list of edges, or `{FINE}`"
            f"{suggestion(bins, [FINE])}"
        )
    return bins


Bins = Annotated[
    dict[str, Annotated[Edges, BeforeValidator(_no_other_word, json_schema_input_type=Edges)]],
    Field(
        default_factory=dict,
        description=(
            "For numeric columns: a number of equal bins, ascending edges, or `fine`: many bins that"
            " suit the bounds, step and unit of the column. Up to 1,024 values get a bin each."
        ),
    ),
]


def binned_domain(columns: Columns, names: list[str], bins: Mapping[str, Any]) -> Domain:
    # Checked first: for a misspelt name, the message would otherwise be about missing bins.
    named = [(name, declared(columns, name)) for name in names]
    unknown = sorted(set(bins) - set(names))
    if unknown:
        raise ValueError(f"bins: {unknown} are not among the columns of the release")
    return domain_of([_binned_axis(column, name, bins.get(name)) for name, column in named])


def _binned_axis(column: Column, name: str, edges: list[float] | int | str | None) -> Axis:
    if isinstance(column, CategoricalColumn) or column.listed is not None:
        if edges is not None:
            what = "categorical column" if column.type == "categorical" else "column of levels"
            raise ValueError(f"bins.{name}: a {what} has no bins")
        return column.axis(name)
    if edges is None:
        if isinstance(column, ContinuousColumn):
            raise ValueError(f"bins.{name}: missing; to count a continuous column, state its bins")
        return column.axis(name)
    if isinstance(edges, str):
        if (fine := _fine_edges(column)) is None:
            return column.axis(name)
        edges = fine
    if isinstance(edges, int):
        edges = _equal_edges(column, edges, name)
    with inside(f"bins.{name}: "):
        return column.bins(name, edges)


def _fine_edges(column: IntegerColumn | ContinuousColumn) -> list[float] | None:
    """The edges for `fine`; None if each whole number has a cell."""
    (lower, upper), step = column.bounds, column.step
    points = [Decimal(str(point)) for point in column.point_masses]
    numbers = Numbers(
        Decimal(str(lower)),
        Decimal(str(upper)),
        None if step is None else Decimal(str(step)),
        isinstance(column, IntegerColumn),
        points,
        column.unit,
    )
    return numbers.for_records(column.point_masses).edges


def _equal_edges(column: IntegerColumn | ContinuousColumn, count: int, name: str) -> list[float]:
    lower, upper = column.bounds[0], column.bounds[1] + isinstance(column, IntegerColumn)
    if not 1 <= count <= MOST_BINS:
        raise ValueError(f"bins.{name}: must be a number of bins from 1 to {MOST_BINS}")
    if isinstance(column, IntegerColumn) and (upper - lower) % count:
        values = int(upper - lower)
        whole = [n for n in range(2, min(values, MOST_BINS) + 1) if values % n == 0]
        near = sorted(sorted(whole, key=lambda n: abs(n - count))[:2])
        would = f"write {' or '.join(map(str, near))}, or " if near else ""
        raise ValueError(
            f"bins.{name}: {values} whole numbers cannot be divided into {count} equal bins; {would}list"
            " edges"
        )
    # The last edge is exactly the bound, which the sum may miss by a rounding error.
    return [lower + (upper - lower) * i / count for i in range(count)] + [upper]
