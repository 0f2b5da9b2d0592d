"""One run of a series of estimates: a model or moments of one period, and their changes.

Run t measures only the records of period t, like an ordinary release on a table of these records:

    period x age x pay  --those of period t-->  age x pay  --release-->  y_t  --with y_(t-1)-->  tables

**Privacy.**  Run t depends on the records of period t alone, given any earlier runs.  Neighbours differ
in one unit that is added or removed, and so in the periods that it is in.  In all other periods both
tables give run t the same law.  So all runs together cost at most the price of the most expensive run
times the number of periods that a unit can be in (``domain.series``, with weights 1, 0, 0, ...).
(Replacing a unit by one of other periods is a removal in one run and an addition in another, which may
change sums of products by more than a replacement within a run does: only add-remove is proved.)

**Changes.**  The noises of two runs are independent, so the squares of privacy errors add up.  So do
the squares of sampling errors if each unit is in only one period.  Otherwise estimates may be
correlated in either direction, and the error of the change is at most the sum of both (triangle
inequality).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.axes import Axis
from dpcore.domain.domain import Domain
from dpcore.domain.series import Factor, each_alone
from dpcore.domain.tally import Tally
from dpcore.line.mechanism import Mechanism, WorstTable
from dpcore.line.statistic import Exact, Noisy
from dpcore.post.levels import SIGMAS_95
from dpcore.post.series import QUANTITIES, YEAR, counted
from dpcore.releases.abilities import RunOfSeries
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.counts.cells import describe_cells
from dpcore.releases.table import REASON, Published, Table, TableColumn
from dpcore.releases.work import Work

ERRORS = ("sampling_error", "privacy_error")

STATED = (
    " A change is the difference between two runs with independent noise. Its sampling error {}."
)
ONE, SEVERAL = (
    "assumes that the records of both periods were drawn independently",
    "is at most the sum of both, as a unit may be in both periods",
)


@dataclass(frozen=True)
class EstimatesRun(RunOfSeries):
    """Run ``run`` of a series of ``inner``, a release for the records of one period.

    ``domain``: the period, and the columns of ``inner``; without a period if each run's table contains
    only one period.  ``most``: how many periods a unit can be in; ``year``: the periods in a year.
    """

    inner: Release
    periods: int
    run: int
    most: int = 1
    year: int = YEAR

    chart = "estimates"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjacency.relation != "add-remove":
            raise ValueError("kind: models and moments of a series need neighbours: add-remove")
        self.factor.run(self.run)  # raises for a run that the series does not have

    @property
    def factor(self) -> Factor:  # type: ignore[override]
        return each_alone(self.periods)

    @property
    def of_period(self) -> Release:
        return self.inner

    @property
    def mechanism(self) -> Mechanism:
        return self.inner.mechanism

    @property
    def largest_statistic(self) -> int:
        return self.inner.largest_statistic

    @property
    def work(self) -> Work:
        return self.inner.work

    @property
    def period(self) -> tuple[Axis, ...]:
        """The axis of periods, if there is one."""
        return self.domain.axes[: len(self.domain.axes) - len(self.inner.domain.axes)]

    def statistic(self, tally: Tally) -> Exact:
        if self.period:
            here = tally.codes(0) == self.run - 1
            now = Tally(self.domain, tally.cells[here], tally.counts[here])
            tally = now.roll_up(self.inner.domain.names)
        return self.inner.statistic(tally)

    def worst_tables(self) -> Iterator[WorstTable]:
        """Tables of records of this period, because records of other periods do not count."""
        size = self.inner.domain.size
        first = size * (self.run - 1) if self.period else 0
        for label, others in (("like the first", first), ("in the middle", first + size // 2)):
            counts = {others: self.rows - 1}
            yield f"in the period, end to end; others {label}", counts, first, first + size - 1

    def publish(
        self, noisy: Noisy, earlier: Sequence[tuple[EstimatesRun, Noisy]] = ()
    ) -> Published:
        """Tables for this run's period; ``earlier``: runs 1..run-1 and their published draws, in order.

        Without the earlier runs, no changes are published.
        """
        own = self.inner.publish(noisy)
        now, *others = own.tables
        found = {"period": now}
        complete = [each.run for each, _ in earlier] == list(range(1, self.run))
        for change in ("change", "change-on-year"):
            periods = counted(change, self.run, self.year)
            if complete and periods is not None:
                before, drawn = earlier[int(np.flatnonzero(periods)[0])]
                found[change] = self._change(now, before.inner.publish(drawn).tables[0])
        facts = {
            "run": self.run,
            "periods": self.periods,
            "counted_as": [0.0] * (self.run - 1) + [1.0],
        }
        return Published((self._table(found), *others), {**own.facts, **facts})

    def _change(self, now: Table, before: Table) -> Table:
        """The difference in the same rows, with its errors; null if either estimate is null."""
        new, old = (
            {n: _floats(t.columns[n]) for n in ("estimate", *ERRORS)} for t in (now, before)
        )
        add = np.hypot if self.most == 1 else np.add
        found = {
            "estimate": new["estimate"] - old["estimate"],
            "sampling_error": add(new["sampling_error"], old["sampling_error"]),
            "privacy_error": np.hypot(new["privacy_error"], old["privacy_error"]),
        }
        error = np.hypot(found["sampling_error"], found["privacy_error"])
        found["standard_error"] = error
        for name, side in (("lower_95", -SIGMAS_95), ("upper_95", SIGMAS_95)):
            found[name] = found["estimate"] + side * error
        reasons = [np.ma.filled(table.columns[REASON], "") for table in (now, before)]
        reason = np.where(reasons[0] == "", reasons[1], reasons[0])
        values: dict[str, NDArray[np.generic]] = {
            name: np.ma.masked_invalid(each) for name, each in found.items()
        }
        values[REASON] = np.ma.masked_array(reason, mask=reason == "")
        parts = [replace(part, values=values.get(part.name, part.values)) for part in now.parts]
        return replace(now, parts=parts)

    def _table(self, found: dict[str, Table]) -> Table:
        now, size = found["period"], len(found["period"].parts[0].values)
        words = QUANTITIES | {"period": "estimate of the period"}
        meaning = ", ".join(f"{name} ({words[name]})" for name in found)
        periods, tables = Domain(self.period), [*found.values()]
        here = np.full(size * len(found), self.run - 1)
        parts = [
            *describe_cells(periods, here),
            TableColumn("quantity", np.repeat([*found], size), f"What is estimated: {meaning}"),
            *(
                replace(part, values=_one_below_the_other([t.columns[part.name] for t in tables]))
                for part in now.parts
            ),
        ]
        (stated,) = now.uncertainty
        more = STATED.format(ONE if self.most == 1 else SEVERAL)
        return replace(
            now, parts=parts, uncertainty=(replace(stated, statement=stated.statement + more),)
        )

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        return self.inner.expected_error()


def _one_below_the_other(values: Sequence[NDArray[Any]]) -> NDArray[Any]:
    join = np.ma.concatenate if any(map(np.ma.is_masked, values)) else np.concatenate
    return np.asanyarray(join(values))


def _floats(values: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
