"""``README.md`` of a bundle shows how to open a table in pandas, R or SQL, and
``replicates/README.md`` how to compute the error of any sum, share or ratio.

The texts are ``readme.md.jinja`` and ``replicates.md.jinja``.  Their code uses a table of this bundle,
and runs unchanged in the bundle's folder; this module chooses the table and writes values in each
language.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import jinja2
from scipy.special import stdtrit

from dpcore.releases.counts.unit import BEST
from dpcore.releases.table import LEVEL, TABLE, UNBIASED
from schemas.bundle.grades import graded
from schemas.bundle.manifest import REPLICATES, Manifest, ReleaseRecord
from schemas.bundle.table_file import ReplicatesRecord, TableFile
from schemas.bundle.verdicts import judged
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn
from schemas.text import escape

MOST_LISTED = 12
SERIES = ("quantity", "period")
"""Tables of a series contain several quantities; the examples use this one."""


def _literal(value: str | bool | float) -> str:
    """A value as Python and R write it."""
    return json.dumps(value, ensure_ascii=False)


def _named(column: str) -> str:
    """A column as SQL writes it."""
    return '"' + column.replace('"', '""') + '"'


@dataclass(frozen=True)
class RowCondition:
    """A condition on rows of a table: a column equals a value, or is at most the value."""

    column: str
    value: str | bool | float
    equal: bool = True

    @property
    def sign(self) -> str:
        return "==" if self.equal else "<="

    def pandas(self) -> str:
        return f"(table[{_literal(self.column)}] {self.sign} {self.value!r})"

    def r(self) -> str:
        value = _literal(self.value)
        value = value.upper() if isinstance(self.value, bool) else value
        return f"table[[{_literal(self.column)}]] {self.sign} {value}"

    def sql(self) -> str:
        value = repr(self.value)
        if isinstance(self.value, str):
            value = "'" + self.value.replace("'", "''") + "'"
        return f"{_named(self.column)} {self.sign.replace('==', '=')} {value}"


@dataclass(frozen=True)
class Example:
    """A table of the bundle, and a condition on its rows; ``whole``: the file with the table."""

    file: TableFile
    whole: TableFile
    condition: RowCondition | None

    @property
    def csv(self) -> str:
        return self.whole.csv

    @property
    def again(self) -> ReplicatesRecord:
        assert self.file.replicates is not None
        return self.file.replicates

    @property
    def factor(self) -> float:
        """Half the width of a 90% interval, in standard errors."""
        return float(stdtrit(self.again.number, (1 + LEVEL) / 2))

    @property
    def first(self) -> list[RowCondition]:
        """The rows that all examples are about: one table, and one quantity of it."""
        one = [RowCondition(TABLE, self.file.name)] if self.file.filters else []
        return one + ([RowCondition(*SERIES)] if SERIES[0] in self.file.columns else [])

    @property
    def rows(self) -> list[RowCondition]:
        """The conditions that select the rows of the example."""
        return [*self.first, *([self.condition] if self.condition else [])]

    @property
    def shown(self) -> list[str]:
        """The columns that describe a cell, its number and the ends of its interval."""
        number = next(name for name in UNBIASED if name in self.file.columns)
        known = [each for each in self.file.uncertainty if each.column == number and each.interval]
        ends = known[0].interval if known and known[0].interval else ()
        return [*(name for name in self.file.columns if name in self.file.about), number, *ends]

    @property
    def both_in_r(self) -> list[str]:
        """R code that reads the table and its replicates."""
        if not self.again.csv_sha256:
            return [f'arrow::read_parquet("{each}")' for each in (self.file.path, self.again.path)]
        return [self.read_in_r, f'read.csv("{self.again.csv}")']

    @property
    def read_in_r(self) -> str:
        """R code to read the table, with classes where R would guess wrong: codes of digits, T and F."""
        if not self.whole.csv_sha256:
            return f'arrow::read_parquet("{self.file.path}")'
        kinds = {"string": "character", "bool": "logical"}
        columns = self.whole.columns.items()
        classes = [f'{_literal(name)} = "{kinds[kind]}"' for name, kind in columns if kind in kinds]
        more = f",\n  colClasses = c({', '.join(classes)})" if classes else ""
        return f'read.csv("{self.csv}", check.names = FALSE, na.strings = character(){more})'


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("schemas", "documents"),
    autoescape=False,  # it is Markdown: the title and other texts of the plan are escaped for that
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "escaped": escape,
    "literal": _literal,
    "named": _named,
    "pandas": RowCondition.pandas,
    "r": RowCondition.r,
    "sql": RowCondition.sql,
}


def readme(manifest: Manifest, plan: Plan) -> str:
    """The page as Markdown."""
    files = [file for record in manifest.releases for file in record.files]
    have = [file for file in files if file.replicates]
    page = TEMPLATES.get_template("readme.md.jinja").render(
        title=escape(manifest.title),
        requester=escape(plan.publication.requester) if plan.publication.requester else "",
        example=_example(have, plan) if have else None,
        csv=plan.publication.csv,
        sampling=plan.includes_sampling,
        assumed=plan.assumed if plan.includes_sampling else (),
        warnings={p: words for each in manifest.synthesis for p, words in each.warnings.items()},
        records=_about_records(manifest, plan),
        judged=judged(manifest),
        several=[file for file in files if file.holds],
        analyses=manifest.analyses,
        without=[
            (record.name, record.kind, _instead(record, plan, missing))
            for record in manifest.releases
            if (missing := [file for file in record.files if not file.replicates])
        ],
        TABLE=TABLE,
    )
    return page.rstrip("\n") + "\n"


def _about_records(manifest: Manifest, plan: Plan) -> dict[str, list[str]]:
    """For the path of each table of synthetic records, what is known about them."""
    tables = {table.name: table for table in plan.synthesis}
    return {
        record.file.path: [
            f"Of {sum(record.pairs.values()):,} pairs of columns, {graded(record.pairs)}"
            f" (`{record.support.path}`, with a `grade` for each column and set of columns)."
            if record.pairs
            else f"`{record.support.path}` has a `grade` for each column and set of columns.",
            *(
                f"{note}: {escape(', '.join(columns))}."
                for note, columns in tables[record.name].notes(plan.of_period).items()
            ),
        ]
        for record in manifest.synthesis
    }


def replicates_readme(manifest: Manifest, plan: Plan) -> str:
    """``replicates/README.md`` as Markdown; empty if there are no replicates."""
    files = [file for record in manifest.releases for file in record.files]
    have = [file for file in files if file.replicates]
    if not have:
        return ""
    page = TEMPLATES.get_template("replicates.md.jinja").render(
        have=have,
        example=_example(have, plan),
        best=BEST[0] if any(BEST[0] in each.columns for each in have) else "",
        REPLICATES=REPLICATES,
        MOST_LISTED=MOST_LISTED,
    )
    return page.rstrip("\n") + "\n"


def _example(have: list[TableFile], plan: Plan) -> Example:
    """An example: the first table with a column of survey values, else with bins, else any table."""
    tables = [table for each in have for table in each.tables[:MOST_LISTED]]
    found = [(file, condition) for file in tables for condition in _conditions(file, plan)]
    found.sort(key=lambda each: not each[1].equal)
    file, condition = found[0] if found else (tables[0], None)
    whole = next(each for each in have if each.path == file.path)
    return Example(file, whole, condition)


def _conditions(file: TableFile, plan: Plan) -> Iterator[RowCondition]:
    for name, about in file.about.items():
        if name not in file.columns:
            continue
        column = plan.described_columns[about]
        if plan.series is not None and about == plan.series.column:
            continue  # all rows of the table have the same period
        if isinstance(column, CategoricalColumn):
            value = next((each for each in column.categories if each != ""), None)
            if name == about and value is not None:  # "" is like null in CSV files
                yield RowCondition(name, value)
        elif name in (about, f"{about}_to"):
            low, high = (float(bound) for bound in column.bounds)
            yield RowCondition(name, float(plain((low + high) / 2)), equal=False)


def _instead(record: ReleaseRecord, plan: Plan, missing: list[TableFile]) -> str:
    if said := plan.section(record.name).without_replicates:
        return said
    if "threshold" in record.facts:
        return (
            "counts that passed a threshold are too large on average and the others are missing, so do"
            " not add them up; use the interval of each cell."
        )
    if any({"estimate", "noisy_count"} & set(file.columns) for file in missing):
        return "use the columns of errors and intervals, and the Python reader for sums."
    return (
        "use the columns of errors and intervals where a table has them. No error is stated for sums or"
        " ratios of its numbers."
    )
