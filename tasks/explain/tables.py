"""Rows as text columns, and budgets as rows."""

from collections.abc import Iterable, Sequence

from dpcore.accounting.budget import Budget, decimal_text

COORDINATES = ("alpha", "beta", "gamma")


def text_table(rows: Sequence[dict[str, str]]) -> str:
    """Rows as aligned text columns."""
    if not rows:
        return "  (none)"
    header = list(rows[0])
    widths = [max(len(key), *(len(row[key]) for row in rows)) for key in header]
    lines: Iterable[Iterable[str]] = [header, *([row[key] for key in header] for row in rows)]
    return "\n".join(
        "  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def amounts(label: str, budget: Budget, names: Sequence[str] = COORDINATES) -> dict[str, str]:
    """A row with the coordinates of a budget."""
    return {"": label} | {c: decimal_text(getattr(budget, c)) for c in names}
