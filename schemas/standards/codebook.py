"""``codebook.csv``: one row for every category or level of the survey's columns, one for
any other column."""

import csv
import io

from schemas.bundle import Manifest
from schemas.columns import CategoricalColumn
from schemas.plan import Plan

HEADER = (
    "column",
    "type",
    "description",
    "unit",
    "category",
    "label",
    "smallest",
    "largest",
    "nullable",
)

TYPES = {"whole": "integer", "number": "continuous", "truth": "categorical", "text": "categorical"}
"""The type of a column that a formula gives, as a plan calls it."""


def codebook(manifest: Manifest, plan: Plan) -> str:
    """The codebook as CSV, its columns as in ``HEADER``; empty where they do not apply."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for name, column in plan.described_columns.items():
        start, null = (name, column.type, column.description), str(column.nullable).lower()
        if isinstance(column, CategoricalColumn):
            for category in column.categories:
                label = column.labels.get(str(category), "")
                writer.writerow((*start, "", category, label, "", "", null))
        else:
            for level in ("",) if column.levels is None else column.levels:
                writer.writerow((*start, column.unit, level, "", *column.bounds, null))
    for table in plan.synthesis:
        for derived in table.deriving(plan.built[table.from_].domain, plan.described_columns):
            if derived.formula is not None and derived.name not in plan.columns:
                kind = TYPES[derived.formula.kind]
                writer.writerow((derived.name, kind, derived.words, *[""] * 5, "true"))
    return text.getvalue()
