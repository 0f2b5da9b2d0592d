"""What an agency was promised, counted at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.budget.reconcile import reconcile
from tasks.ledger import Action, State
from tests.flows.search import occurrences
from tests.soak.agency import AMOUNT, SECRET, UNENDED, Agency, Due

ONCE = ("the budget is low", "waits for a disclosure officer", "is paused", "was due", "are late")
"""Words of notices that are given once for an event."""


@dataclass(frozen=True)
class Row:
    """A promise, what was counted, and what it should be; None: whatever it is."""

    what: str
    count: int
    wanted: int | None
    where: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        return self.wanted in (None, self.count)


def promises(agency: Agency, due: Sequence[Due]) -> Iterator[Row]:
    """One row for each promise."""
    ledger, states = agency.ledger, [agency.state(each) for each in due]
    missing = [
        f"{each.plan.dataset}/{each.release_id}"
        for each, state in zip(due, states, strict=True)
        if state is None
    ]
    twice: dict[Action, list[str]] = {Action.RESERVE: [], Action.COMMIT: []}
    overspent, apart = [], []
    unended = [f"{run['name']}: {run['state']['name']}" for run in agency.runs(*UNENDED)]
    for dataset in ledger.datasets():
        lines = ledger.history(dataset)
        for action, found in twice.items():
            seen = Counter(
                (line.release_id, line.release_name) for line in lines if line.action is action
            )
            found += [f"{dataset}/{key[0]}/{key[1]}" for key, times in seen.items() if times > 1]
        if not ledger.promised(dataset).covers(ledger.spent(dataset)):
            overspent.append(dataset)
    for fault in reconcile(ledger, agency.out):
        apart.append(f"{fault.dataset}/{fault.release_id}: {fault.what}")
    charges = [
        charge
        for dataset in ledger.datasets()
        for release in ledger.releases(dataset).values()
        for charge in release.values()
    ]
    hidden = [str(p) for p in agency.out.glob("*/.*.staging")]
    private = [str(p) for p in agency.folder.glob("*/home/private/[!.]*")]
    secret = [
        found
        for folder in agency.kept()
        if folder.is_dir()
        for found in occurrences(folder, [SECRET, AMOUNT])
    ]
    said = Counter(line for line in agency.notices if any(words in line for words in ONCE))
    yield Row("releases due", len(due), None)
    yield Row("published", states.count("published"), None)
    yield Row("refused: rejected by an officer, or no budget left", states.count("refused"), None)
    yield Row("given up, as an old ledger had drawn them", states.count("given up"), None)
    yield Row("due, and none of these", len(missing), 0, (*missing,))
    yield Row("runs that have not ended", len(unended), 0, (*unended,))
    yield Row("bundles in all", len([*agency.out.glob("*/*/manifest.json")]), None)
    yield Row("draws in the ledger", sum(c.state is State.COMMITTED for c in charges), None)
    yield Row("charged twice", len(twice[Action.RESERVE]), 0, (*twice[Action.RESERVE],))
    yield Row("drawn twice", len(twice[Action.COMMIT]), 0, (*twice[Action.COMMIT],))
    yield Row("datasets overspent", len(overspent), 0, (*overspent,))
    yield Row("bundles partial, or other than the ledger says", len(apart), 0, (*apart,))
    yield Row("unfinished folders left", len(hidden), 0, (*hidden,))
    yield Row("private folders left", len(private), 0, (*private,))
    yield Row("files with a secret", len(secret), 0, (*secret,))
    yield Row("notices", len(agency.notices), None)
    again = [f"{times} times: {line}" for line, times in said.items() if times > 1]
    yield Row("events told more than once", len(again), 0, (*again,))
