"""A count by a table with the least worst-case loss, pure or (alpha, beta): for few rows only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcore.advice.least import Least, lower_bounds
from dpcore.line.statistic import Noisy
from dpcore.releases.base import ErrorStatement
from dpcore.releases.counts.count import AT_LEAST, PENALTIES, SingleCount
from dpcore.releases.counts.unit import RECORDS
from dpcore.releases.table import ENDS, LEVEL, Published, TableColumn, Uncertainty
from papers.minimax_count.mechanism import TabulatedMechanism
from papers.minimax_count.table import TOTAL, minimax_table, worst_risk


@dataclass(frozen=True)
class MinimaxCount(SingleCount):
    """The least worst-case loss over all counts from 0 to the rows.

    If the number of records is private, a count above the plan's `rows` is answered as if it were equal
    to `rows`; this moves it no farther from its neighbours.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjacency.most > 1:
            raise ValueError(
                "mechanism: the tables are for units of one record, and here a unit may have"
                f" {self.adjacency.most}; use discrete-laplace"
            )

    @cached_property
    def mechanism(self) -> TabulatedMechanism:
        table = minimax_table(self.rows, self.share.pure_alpha, self.share.beta, self.loss)
        rows = tuple(tuple(row) for row in table.tolist())
        return TabulatedMechanism(1, self.share.pure_alpha, self.share.beta, rows)

    @property
    def answer(self) -> str:
        return (
            f"Number of {self.what}: the answer whose expected {PENALTIES[self.loss]} is least in the"
            " worst case over all counts"
        )

    def interval(self, answer: int) -> tuple[int, int]:
        """The counts under which P(answer <= this one) and P(answer >= this one) are both at least 5%.

        They include the exact count with a probability of at least 90%, whatever it is.
        """
        ends = np.cumsum(np.array(self.mechanism.table), axis=1) / TOTAL
        below = ends[:, answer - 1] if answer else np.zeros(len(ends))
        tail = (1 - LEVEL) / 2
        plausible = np.flatnonzero((ends[:, answer] > tail) & (1 - below > tail))
        if not len(plausible):
            return 0, self.most_rows
        # The last row of the table also represents all larger counts.
        last = int(plausible[-1])
        return int(plausible[0]), self.most_rows if last == self.rows else last

    def publish(self, noisy: Noisy) -> Published:
        answer = int(noisy.values[0])
        lower, upper = self.interval(answer)
        columns = [
            TableColumn("count", noisy.values, self.answer),
            *RECORDS.interval(np.array([lower]), np.array([upper])),
        ]
        return self.published(columns, (Uncertainty("count", None, ENDS, "exact", AT_LEAST),))

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        risk = worst_risk(np.array(self.mechanism.table), self.loss)
        return (
            ErrorStatement(f"expected {self.loss} loss, at most", risk, "whatever the exact count"),
        )


@lower_bounds.register
def _(release: MinimaxCount) -> list[Least]:
    """The table's error is the least among mechanisms of the same promise."""
    stated, share = release.expected_error()[0], release.share
    beta = f", beta {float(share.beta):.4g}" if share.beta else ""
    among = f"all mechanisms of alpha {float(share.pure_alpha):.4g}{beta} (linear program)"
    return [Least(stated.quantity, stated.value, stated.value, among)]
