"""``codebook.csv``: one row for every category of the survey's columns, one for any other column."""

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
            writer.writerow((*start, column.unit, "", "", *column.bounds, null))
    return text.getvalue()
