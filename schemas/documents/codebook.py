"""``codebook.csv``: a row for every category, level and labelled value of a published column, or one row
for a column without these.

For synthetic records, the last column warns about standard errors computed from them.
"""

import csv
import io

from schemas.bundle.manifest import Manifest
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn, meaning

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

WARNING = (
    "Synthetic records are not a survey: if you treat them as one, standard errors are too small (see"
    " README.md)"
)

TYPES = {"whole": "integer", "number": "continuous", "truth": "categorical", "text": "categorical"}
"""The type, as in a plan, of a column that a formula computes."""


def codebook(manifest: Manifest, plan: Plan) -> str:
    """The codebook as CSV, with the columns ``HEADER``; cells are empty if they do not apply."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    made_up = {name for t in plan.synthesis for name in plan.built[t.from_].domain.names}
    if plan.linked:
        made_up |= {*plan.columns}
    writer.writerow((*HEADER, *(["warning"] if made_up else [])))
    warnings = dict.fromkeys(made_up, WARNING)
    for table in plan.synthesis:
        for note, columns in table.notes(plan.of_period).items():
            # Wide records of linked tables have columns such as age.2.
            for name in {n.rpartition(".")[0] if plan.linked else n for n in columns} & made_up:
                warnings[name] += f". {note} ({table.name})"
    for name, column in plan.published_columns.items():
        start, null = (name, column.type, meaning(column)), str(column.nullable).lower()
        end = (null, *([warnings.get(name, "")] if made_up else []))
        if isinstance(column, CategoricalColumn):
            for category in column.categories:
                label = column.labels.get(str(category), "")
                writer.writerow((*start, "", category, label, "", "", *end))
        else:
            levels = [str(level) for level in column.levels or ()]
            for value in levels or ["", *column.labels]:
                label = column.labels.get(value, "")
                writer.writerow((*start, column.unit, value, label, *column.bounds, *end))
    for table in plan.synthesis:
        for derived in table.deriving(table.source(plan.of_period), plan.described_columns):
            if derived.formula is not None and derived.name not in plan.columns:
                kind = TYPES[derived.formula.kind]
                writer.writerow((derived.name, kind, derived.words, *[""] * 5, "true", WARNING))
    return text.getvalue()
