"""The budget of a dataset, from its start to one release.

Later grants and charges are left out, so that a report made again is the same.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcore.accounting.budget import Budget, decimal_text, total
from tasks.charts.chart import Axis, Panel
from tasks.charts.marks import bars, down
from tasks.charts.svg import figure
from tasks.ledger import Action, HistoryRecord
from tasks.report.parts import DataTable, Figure

MOST_BARS = 20
STATES = {
    Action.COMMIT: "published or ready to be",
    Action.RESERVE: "reserved, not drawn",
    Action.VOID: "void, does not count",
}


@dataclass(frozen=True)
class Spending:
    """The cost of one release, the time of its charge, and the state of the charge."""

    release_id: str
    at: str
    budget: Budget
    state: str


@dataclass(frozen=True)
class History:
    """Grants and charges of a dataset, in order of time."""

    granted: Budget
    spendings: Sequence[Spending]

    @property
    def spent(self) -> Budget:
        return total(s.budget for s in self.spendings)


def history_until(records: Iterable[HistoryRecord], drawn_at: str) -> History:
    """The dataset's account in the ledger at the last draw of a release."""
    known = list(records)
    past = [record for record in known if record.at <= drawn_at]
    grants = [record for record in past if record.caps is not None]
    # The first grant came before every draw, even if a changed clock says otherwise.
    grants = grants or [record for record in known if record.caps is not None][:1]
    account, granted = (grants[-1].account, grants[-1].caps) if grants else (None, None)
    charges: dict[tuple[str, str], HistoryRecord] = {}
    for record in sorted(past, key=lambda r: (r.at, list(Action).index(r.action))):
        if record.release_id is None or record.release_name is None or record.account != account:
            continue
        key = (record.release_id, record.release_name)
        first = charges.setdefault(key, record)
        charges[key] = replace(record, at=first.at)
    return History(granted or Budget(), _spendings(charges))


def _spendings(charges: dict[tuple[str, str], HistoryRecord]) -> list[Spending]:
    """The charges summed by release, and by state if charges of one release differ in state."""
    together: dict[tuple[str, Action], list[HistoryRecord]] = {}
    for (release_id, _), record in charges.items():
        together.setdefault((release_id, record.action), []).append(record)
    spendings = [
        Spending(
            release_id,
            min(record.at for record in records),
            Budget() if action is Action.VOID else total(r.budget for r in records),
            STATES[action],
        )
        for (release_id, action), records in together.items()
    ]
    return sorted(spendings, key=lambda s: (s.at, s.release_id, s.state))


def history_figure(history: History) -> Figure:
    """A figure of the alpha, or rho, that each release spent, in order, compared with the grant."""
    title = "Budget spent over the life of the dataset"
    says = (
        f"Of the dataset's budget, {figure(float(history.spent.loss))} of"
        f" {figure(float(history.granted.loss))} {history.granted.coordinates[0]} is spent"
    )
    return Figure(title, says, [waterfall(history)], history_table(history))


def waterfall(history: History) -> Panel:
    """Bars of spending (at most ``MOST_BARS``), each beginning where the previous bar ends."""
    shown = history.spendings[-MOST_BARS:]
    before = total(s.budget for s in history.spendings[: len(history.spendings) - len(shown)])
    ends = [float(before.loss)]
    for spending in shown:
        before += spending.budget
        ends.append(float(before.loss))
    names = Axis(names=[f"{spending.at[:10]} {spending.release_id}" for spending in shown])
    unit = "rho" if history.granted.rho else "alpha (epsilon)"
    granted = float(history.granted.loss)
    marks = [bars(np.arange(len(shown)) + 0.5, ends[1:], ends[:-1]), down(granted, "limit")]
    x = Axis(f"{unit} spent, of all that was granted", zero=True)
    key = [("bar", "one release"), ("limit", f"granted: {figure(granted)}")]
    return Panel(marks, x, names, key=key)


def history_table(history: History) -> DataTable:
    """Grants and charges as numbers."""
    names = history.granted.coordinates

    def amounts(budget: Budget) -> list[str]:
        return [decimal_text(getattr(budget, name)) for name in names]

    rows = [(s.release_id, s.at[:10], *amounts(s.budget), s.state) for s in history.spendings]
    rows.append(("spent", "", *amounts(history.spent), ""))
    rows.append(("granted", "", *amounts(history.granted), ""))
    return DataTable(
        "Charges of all releases of the dataset, up to this release",
        ("Release", "Charged", *names, "State"),
        rows,
        "the ledger",
    )
