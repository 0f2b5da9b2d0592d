"""``README.md`` of a bundle: the error of any sum, share or ratio, in the reader's own program.

Its lines name a table of this very bundle, and run as they are in the bundle's folder.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from scipy.special import stdtrit

from dpcore.releases.counts.unit import BEST
from dpcore.releases.table import LEVEL, TABLE
from schemas.bundle.manifest import REPLICATES, Manifest, ReleaseRecord, TableFile
from schemas.numbers import plain
from schemas.plan import Plan
from schemas.survey.columns import CategoricalColumn
from schemas.text import escape

MOST_LISTED = 12
SERIES = ("quantity", "period")
"""Tables of a series hold several quantities: the examples are about this one."""

NUMBERS = "total, total / whole, total / (whole - total)"


def _literal(value: str | bool | float) -> str:
    """A value as Python and R write it."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class RowCondition:
    """Rows of a table: those whose column equals a value, or is at most it."""

    column: str
    value: str | bool | float
    equal: bool = True

    @property
    def sign(self) -> str:
        return "==" if self.equal else "<="

    def pandas(self) -> str:
        return f"table[{_literal(self.column)}] {self.sign} {self.value!r}"

    def r(self) -> str:
        value = _literal(self.value)
        value = value.upper() if isinstance(self.value, bool) else value
        return f"table[[{_literal(self.column)}]] {self.sign} {value}"

    def sql(self) -> str:
        quoted = '"' + self.column.replace('"', '""') + '"'
        value = repr(self.value)
        if isinstance(self.value, str):
            value = "'" + self.value.replace("'", "''") + "'"
        return f"{quoted} {self.sign.replace('==', '=')} {value}"

    def sheet(self, letter: str, rows: int) -> str:
        value = str(self.value).upper() if isinstance(self.value, bool) else str(self.value)
        for special in "~*?":  # the others are wildcards, which it escapes
            value = value.replace(special, f"~{special}")
        wanted = ("=" if self.equal else "<=") + value.replace('"', '""')
        return f'${letter}$2:${letter}${rows + 1},"{wanted}"'


def readme(manifest: Manifest, plan: Plan) -> str:
    """The page as Markdown."""
    have = [file for record in manifest.releases for file in record.files if file.replicates]
    several = [file for record in manifest.releases for file in record.files if file.holds]
    parts = [
        f"# {escape(manifest.title)}",
        "`report.html` describes this release for people, `manifest.json` for programs,"
        " `codebook.csv` its columns. Tables are Parquet files"
        + (", and CSV files beside them." if plan.publication.csv else "."),
        "All errors are of privacy alone: of noise, and of what a density leaves out. Sampling and"
        " non-response come on top."
        + " ".join([" Those of models and moments include sampling.", *plan.assumed])
        * plan.includes_sampling,
    ]
    if manifest.synthesis:
        parts += [
            "## Synthetic records",
            "\n".join(
                f"- `{path}`: {warning}"
                for each in manifest.synthesis
                for path, warning in each.warnings.items()
            ),
        ]
    parts += [_several(file) for file in several]
    if manifest.analyses:
        parts += ["## Conclusions", CONCLUSIONS, "\n".join(_analyses(manifest))]
    if have:
        parts += [*_how(have, plan), "## Which tables have replicates", _listed(have)]
    if without := "\n".join(_without(manifest)):
        parts += ["## Tables without replicates", without]
    return "\n\n".join(parts) + "\n"


def _several(file: TableFile) -> str:
    """How to take one table from a file of many."""
    name = next(iter(file.holds))
    shown = ", ".join(f"`{column}`" for column in file.tables[0].columns)
    chosen = shown.replace("`", '"')
    return (
        f"## Many tables in one file\n\n`{file.path}` holds {len(file.holds):,} tables, one below the"
        f" other: `{TABLE}` names the table of each row, and the columns that a table does not have are"
        f" empty. `{name}` has the columns {shown}. Read one at a time:\n\n"
        f'- pandas: `pd.read_parquet("{file.path}", filters=[("{TABLE}", "==", "{name}")])`, and'
        ' `.dropna(axis=1, how="all")`\n'
        f'- R: `arrow::open_dataset("{file.path}") |> dplyr::filter({TABLE} == "{name}") |>'
        " dplyr::collect()`\n"
        f"- SQL: `SELECT {chosen} FROM '{file.path}' WHERE {TABLE} = '{name}'`"
    )


CONCLUSIONS = (
    "Coefficients of models, for the population from which the survey's units are taken to be drawn:"
    " `sampling_error` is that of the survey itself, `privacy_error` that of the noise, and `lower_95`"
    " to `upper_95` a 95% interval that includes both."
)


def _analyses(manifest: Manifest) -> Iterator[str]:
    for record in manifest.analyses:
        yield f"- `{record.file.path}`: {escape(record.title)} (`{record.formula}`, {record.family})."
        yield from (f"  - {note}" for note in record.notes)


def _how(have: list[TableFile], plan: Plan) -> Iterator[str]:
    file, condition = _example(
        [table for each in have for table in each.tables[:MOST_LISTED]], plan
    )
    again = file.replicates
    assert again is not None
    yield "## The error of any number"
    factor = stdtrit(again.number, (1 + LEVEL) / 2)
    yield (
        f"Tables of counts end with replicates of `{again.column}`. {REPLICATES} A 90% interval is the"
        f" number plus or minus {factor:.2f} errors. The interval of one cell is in its row."
    )
    if any(BEST[0] in each.columns for each in have):
        yield (
            f"`{BEST[0]}` is what all releases of the bundle say of a cell together: use it where a"
            " table has it. Its replicates agree between all tables of all releases."
        )
    where = f"`{file.path}`, rows with `{condition.sql()}`" if condition else f"`{file.path}`"
    where += f" of the table `{file.name}`" if file.filters else ""
    what = ", its share of all and its ratio to the rest, each" if condition else ""
    yield f"The examples compute a sum (of {where}){what} with its error."
    yield f"```python\n{_pandas(file, condition)}\n```"
    whole = next(each for each in have if each.path == file.path)
    yield f"```r\n{_r(file, whole, condition, plan.publication.csv)}\n```"
    yield f"```sql\n{_sql(file, condition)}\n```"
    yield _sheet(file, whole, condition, plan.publication.csv)


def _example(have: list[TableFile], plan: Plan) -> tuple[TableFile, RowCondition | None]:
    """The first table with a column of the survey's own values, else of bins, else any."""
    found = [(file, condition) for file in have for condition in _conditions(file, plan)]
    found.sort(key=lambda each: not each[1].equal)
    return found[0] if found else (have[0], None)


def _conditions(file: TableFile, plan: Plan) -> Iterator[RowCondition]:
    for name, about in file.about.items():
        if name not in file.columns:
            continue
        column = plan.described_columns[about]
        period = plan.series is not None and about == plan.series.column
        if period:
            continue
        if isinstance(column, CategoricalColumn):
            value = next((each for each in column.categories if each != ""), None)
            if name == about and value is not None:  # "" is like null in CSV files
                yield RowCondition(name, value)
        elif name in (about, f"{about}_from"):
            low, high = (float(bound) for bound in column.bounds)
            yield RowCondition(name, float(plain((low + high) / 2)), equal=False)


def _select(file: TableFile) -> list[RowCondition]:
    """The rows that the examples are about."""
    one = [RowCondition(TABLE, file.name)] if file.filters else []
    return one + ([RowCondition(*SERIES)] if SERIES[0] in file.columns else [])


def _pandas(file: TableFile, condition: RowCondition | None) -> str:
    assert file.replicates is not None
    first, of = _select(file), file.replicates.column
    return "\n".join(
        [
            "import pandas as pd",
            f'table = pd.read_parquet("{file.path}")',
            *(f"table = table[{each.pandas()}]" for each in first),
            f"part = table[{condition.pandas()}]" if condition else "part = table",
            f'columns = ["{of}", *(name for name in table if name.startswith("replicate_"))]',
            "total, whole = part[columns].sum(), table[columns].sum()",
            f"for f in ({NUMBERS if condition else 'total,'}):",
            "    print(f.iloc[0], ((f.iloc[1:] - f.iloc[0]) ** 2).mean() ** 0.5)",
        ]
    )


def _r(file: TableFile, whole: TableFile, condition: RowCondition | None, csv: bool) -> str:
    assert file.replicates is not None
    first, of = _select(file), file.replicates.column
    read = f'arrow::read_parquet("{file.path}")'
    if csv:
        options = f"check.names = FALSE, na.strings = character(){_classes(whole)}"
        read = f'read.csv("{file.csv}", {options})'
    return "\n".join(
        [
            f"table <- as.data.frame({read})",
            *(f"table <- table[which({each.r()}), ]" for each in first),
            f"part <- table[which({condition.r()}), ]" if condition else "part <- table",
            f'columns <- c("{of}", grep("^replicate_", names(table), value = TRUE))',
            "total <- colSums(part[columns]); whole <- colSums(table[columns])",
            f"for (f in list({NUMBERS if condition else 'total'}))",
            "  print(c(f[[1]], sqrt(mean((f[-1] - f[[1]])^2))))",
        ]
    )


def _classes(file: TableFile) -> str:
    """The classes that R would guess wrong: codes are no numbers, and text T, F no truth values."""
    kinds = {"string": "character", "bool": "logical"}
    classes = [
        f'{_literal(name)} = "{kinds[kind]}"'
        for name, kind in file.columns.items()
        if kind in kinds
    ]
    return f",\n  colClasses = c({', '.join(classes)})" if classes else ""


def _sql(file: TableFile, condition: RowCondition | None) -> str:
    assert file.replicates is not None
    first, of = _select(file), file.replicates.column
    some = f" FILTER ({condition.sql()})" if condition else ""
    only = f" WHERE {' AND '.join(each.sql() for each in first)}" if first else ""
    number = f"UNPIVOT (FROM '{file.path}'{only}) ON COLUMNS('^({of}|replicate_[0-9]+)$')::DOUBLE"
    near = ",\n  ".join(
        f"any_value(p.{name}) AS {name}, sqrt(avg((r.{name} - p.{name})^2)) AS {name}_error"
        for name in (("total", "share", "ratio") if condition else ("total",))
    )
    return f"""WITH sums AS (SELECT name, sum(value){some} AS total, sum(value) AS whole
  FROM ({number} INTO NAME name VALUE value) GROUP BY name),
numbers AS (SELECT name, total, total / whole AS share, total / (whole - total) AS ratio FROM sums)
SELECT {near}
FROM numbers p JOIN numbers r ON p.name = '{of}' AND r.name <> '{of}';"""


def _sheet(
    file: TableFile, whole_file: TableFile, condition: RowCondition | None, csv: bool
) -> str:
    """Formulas below the table; letters and rows are those of the CSV file."""
    again, names = file.replicates, list(whole_file.all_columns)
    assert again is not None
    letters = {name: letter(i) for i, name in enumerate(names)}
    at, rows, row = letters[again.column], whole_file.rows, whole_file.rows + 3
    spread = f"{letters[again.names[0]]}{{0}}:{letters[again.names[-1]]}{{0}}"
    asked = [*_select(file), *([condition] if condition else [])]
    whole = [each.sheet(letters[each.column], rows) for each in asked if each != condition]
    part = [each.sheet(letters[each.column], rows) for each in asked]
    opened = f"Open `{file.csv}`"
    if not csv:
        command = f"""duckdb -c "COPY (FROM '{file.path}') TO '{file.csv}'\""""
        opened = f"Make `{file.csv}` (`{command}`), open it"

    def summed(conditions: list[str]) -> str:
        cells = f"{at}$2:{at}${rows + 1}"
        return f"SUMIFS({','.join([cells, *conditions])})" if conditions else f"SUM({cells})"

    formulas = [
        f"={summed(part)}",
        f"={summed(whole)}",
        f"={at}{row}/{at}{row + 1}",
        f"={at}{row}/({at}{row + 1}-{at}{row})",
    ]
    if condition is None:
        formulas = formulas[:1]
    lines = [
        f"In a spreadsheet: {opened}, write these into column {at}, and copy each to columns"
        f" {letters[again.names[0]]} to {letters[again.names[-1]]} of its row:",
        *(
            f"- row {row + i} ({words}): `{formula}`"
            for i, (words, formula) in enumerate(
                zip(("sum", "whole", "share", "ratio"), formulas, strict=False)
            )
        ),
        "",
        f"The error of the number in row {row}, and of the others likewise:"
        f" `=SQRT(SUMPRODUCT(({spread.format(row)}-{at}{row})^2)/{again.number})`",
    ]
    return "\n".join([lines[0], "", *lines[1:]])


def letter(position: int) -> str:
    """The letters of a spreadsheet's column: A, B, ..., Z, AA, ..."""
    text = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def _listed(have: list[TableFile]) -> str:
    lines = [
        f"- `{file.path}`: {file.replicates.number} of `{file.replicates.column}`"
        for file in have[:MOST_LISTED]
        if file.replicates
    ]
    if len(have) > MOST_LISTED:
        lines.append(f"- {len(have) - MOST_LISTED} more, which `manifest.json` lists")
    return "\n".join(lines)


def _without(manifest: Manifest) -> Iterator[str]:
    for record in manifest.releases:
        missing = [file for file in record.files if not file.replicates]
        if missing:
            yield f"- `{record.name}` ({record.kind}): {_instead(record, missing)}"


def _instead(record: ReleaseRecord, missing: list[TableFile]) -> str:
    if "threshold" in record.facts:
        return (
            "counts that passed a threshold are too large on average and the others are missing, so"
            " their sums say nothing; use the interval of each cell."
        )
    if any({"estimate", "noisy_count"} & set(file.columns) for file in missing):
        return "use the columns of errors and intervals, and the Python reader for sums."
    return "use the columns of errors and intervals of each table; functions of them have no error."
