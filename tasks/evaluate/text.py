"""An evaluation as text for the terminal: the tables of its page, except the numbers of charts."""

from tasks.evaluate.compare import Evaluation
from tasks.evaluate.sections import left_out, sections_of, summary
from tasks.explain.tables import text_table
from tasks.report.parts import DataTable


def evaluation_text(evaluation: Evaluation) -> str:
    """The evaluation's results as tables of text."""
    e = evaluation
    said = [
        f"{e.real_records:,} real and {e.synthetic_records:,} synthetic records,"
        f" {len(e.columns)} columns{left_out(e)}",
        _text(summary(e)),
    ]
    said += [_text(table) for section in sections_of(e) for table in section.tables]
    return "\n\n".join(said)


def _text(table: DataTable) -> str:
    rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    return f"{table.caption}\n{text_table(rows)}"
