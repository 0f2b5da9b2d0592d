"""The survey's columns on the page: what they mean, and the values that the plan allows."""

from schemas.columns import CategoricalColumn, Column
from schemas.numbers import plain
from schemas.plan import Plan
from tasks.report.cells import category_text
from tasks.report.parts import DataTable

MOST_CATEGORIES = 12


def columns_table(plan: Plan) -> DataTable:
    """One row for each column, in the plan's order."""
    return DataTable(
        "Columns of the survey; everything here is public, and none of it was read from the records",
        ("Column", "Meaning", "Values"),
        [(name, column.description, values(column)) for name, column in plan.columns.items()],
    )


def values(column: Column) -> str:
    """The categories with their labels, or the bounds with their unit; null where it may occur."""
    if isinstance(column, CategoricalColumn):
        shown = [category_text(c, column) for c in column.categories[:MOST_CATEGORIES]]
        more = len(column.categories) - len(shown)
        text = "; ".join([*shown, f"{more} more in codebook.csv"] if more else shown)
    else:
        kind = "whole numbers" if column.type == "integer" else "numbers"
        low, high = (plain(float(bound)) for bound in column.bounds)
        text = f"{kind} from {low} to {high} {column.unit}".rstrip()
    return f"{text}; or null" if column.nullable else text
