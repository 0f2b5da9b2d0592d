"""``LedgerReader``: reads a ledger, each answer in one transaction, and changes nothing.

``check`` is the rule for new charges, which ``Ledger.reserve`` applies again under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from dpcore.accounting.budget import Budget, total
from dpcore.errors import InputError
from dpcore.line.statistic import Noisy
from tasks.ledger import faults, history, notes, queries, rules
from tasks.ledger.database import Database
from tasks.ledger.postgresql import PostgreSQLDatabase
from tasks.ledger.records import (
    Account,
    Action,
    Allowance,
    Charge,
    ChargeRecord,
    ChargeRequest,
    Fault,
    HistoryRecord,
    State,
)
from tasks.ledger.sqlite import SQLiteDatabase

P = ParamSpec("P")
R = TypeVar("R")


class LedgerReader:
    """Reads a ledger; ``Ledger`` adds methods that write."""

    def __init__(self, url: str, lock_seconds: float = 30, *, create: bool = True) -> None:
        if not 0 < lock_seconds <= 86_400:
            raise ValueError(f"lock_seconds must be above 0 and at most a day, not {lock_seconds}")
        self._database = _open(url, lock_seconds, create)
        self._database.find()

    def __repr__(self) -> str:
        return f"<ledger {self._database.shown}>"

    def _read(
        self, query: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The answer of a query, in a separate transaction that changes nothing."""
        with self._database.transaction(write=False) as connection:
            return query(connection, *args, **kwargs)

    def require_whole(self) -> None:
        """Raise ``LedgerError`` if the database's own check finds damage; reads all of it."""
        self._read(self._database.require_whole)

    def require_sound(self, dataset: str) -> None:
        """Raise ``LedgerError`` if damage to the database hides charges of a dataset."""
        self._read(self._database.require_sound, dataset)

    def copy_to(self, path: Path) -> None:
        """Write one consistent state of an SQLite ledger to a new file, even while others write.

        Raises ``InputError`` if the file exists, or for a ledger in PostgreSQL, which has tools of its
        own.
        """
        if not isinstance(self._database, SQLiteDatabase):
            raise InputError(
                "a ledger in PostgreSQL is copied with its own tools: pg_dump and pg_restore"
            )
        self.require_whole()
        self._database.copy_to(path)

    @property
    def shared(self) -> bool:
        """Whether others use it: it is in PostgreSQL, or runs of a server are charged to it."""
        return self._read(self._is_shared)

    def _is_shared(self, connection: Connection) -> bool:
        return self._database.several or queries.is_served(connection)

    def datasets(self) -> list[str]:
        """Every dataset that was ever granted anything, by name."""
        return self._read(queries.datasets)

    def account(self, dataset: str) -> Account | None:
        """The account that new charges count against; None for an unknown dataset."""
        return self._read(queries.account, dataset)

    def promised(self, dataset: str) -> Budget:
        """(alpha, beta, gamma) of everything that was and can be charged: the sum of all grants."""
        with self._database.transaction(write=False) as connection:
            return total(each.promise for each in queries.accounts(connection, dataset))

    def granted(self, dataset: str) -> Budget | None:
        """The caps of the account; None for an unknown dataset."""
        account = self.account(dataset)
        return None if account is None else account.caps

    def spent(self, dataset: str) -> Budget:
        """The sum of all charges to the account, reserved and committed."""
        with self._database.transaction(write=False) as connection:
            account = queries.account(connection, dataset)
            return Budget() if account is None else _spent(connection, dataset, account)

    def remaining(self, dataset: str) -> Budget:
        """The amounts that the account has left; zero for an unknown dataset."""
        with self._database.transaction(write=False) as connection:
            account = queries.account(connection, dataset)
            if account is None:
                return Budget()
            return rules.remaining(dataset, account.caps, _spent(connection, dataset, account))

    def check(self, request: ChargeRequest) -> None:
        """Raise the error that ``reserve`` would raise now, and write nothing.

        For use before any private value is read.  Another process may reserve in between, so only
        ``reserve`` decides.
        """
        self._read(chargeable, request)

    def check_addable(self, dataset: str, plan_digest: str, charges: Mapping[str, Charge]) -> None:
        """Raise ``BudgetError`` if these charges cannot be added to the earlier ones.

        Reasons: another unit, relation or coordinate; gamma for a plan that was not fixed before the
        dataset's first release; or earlier runs of the series that are not charged.
        """
        self._read(_require_addable, dataset, plan_digest, charges)

    def allowances(self, dataset: str) -> dict[str, Allowance]:
        """The allowances by name of every analyst who ever had one."""
        return self._read(queries.allowances, dataset)

    def allowance(self, dataset: str, analyst: str) -> Allowance:
        """An analyst's allowance; raises ``BudgetError`` if there is none."""
        return rules.require_known_analyst(dataset, analyst, self.allowances(dataset))

    def sources(self) -> dict[str, str]:
        """The dataset of every source in the ledger, by the source's name."""
        return self._read(queries.sources)

    def source_recorded(self, dataset: str) -> str:
        """The time when a run or a person last recorded a source of the dataset; '' without one."""
        return self._read(queries.source_recorded, dataset)

    def require_own(self, dataset: str, sources: Collection[str]) -> None:
        """Raise ``BudgetError`` if one of a survey's names belongs to another dataset."""
        rules.require_own(dataset, sources, self.sources())

    def release(self, dataset: str, release_id: str) -> dict[str, ChargeRecord]:
        """The charges of one release by name; empty for an unknown release."""
        return self._read(queries.charges, dataset, release_id)

    def releases(self, dataset: str) -> dict[str, dict[str, ChargeRecord]]:
        """The charges of every release of the dataset, by release id and name."""
        return self._read(queries.releases, dataset)

    def ids_of_plan(self, dataset: str, plan_digest: str) -> list[str]:
        """The ids of releases that were charged for a plan."""
        return self._read(queries.ids_ending, dataset, plan_digest)

    def committed(self, dataset: str, release_id: str, release_name: str) -> Noisy | None:
        """The committed draw, checked against its digest; None if there is none (yet)."""
        found = self.charged_draw(dataset, release_id, release_name)
        return None if found is None else found[1]

    def charged_draw(
        self, dataset: str, release_id: str, release_name: str
    ) -> tuple[ChargeRecord, Noisy] | None:
        """The committed draw with its charge."""
        with self._database.transaction(write=False) as connection:
            charge = queries.find_charge(connection, dataset, release_id, release_name)
            if charge is None or charge.state is not State.COMMITTED:
                return None
            return charge, queries.read_draw(connection, charge)

    def drawn(self) -> list[tuple[str, str, str, str | None]]:
        """Dataset, release id, name and digest of every draw; a draw that was given up has no digest."""
        return self._read(queries.drawn)

    def seals(self, dataset: str, release_id: str) -> set[str]:
        """The digests that the bundle of a release may have."""
        return self._read(queries.seals, dataset, release_id)

    def decision(self, dataset: str, release_id: str) -> notes.Decision | None:
        """The decision on a release; None if there is none (yet)."""
        with self._database.transaction(write=False) as connection:
            return notes.decision(connection, queries.charges(connection, dataset, release_id))

    def asks_approval(self, dataset: str, release_id: str) -> bool:
        """Whether a run of the release requires a decision."""
        with self._database.transaction(write=False) as connection:
            charges = queries.charges(connection, dataset, release_id)
            return bool(notes.find(connection, charges, Action.ASK))

    def history(self, dataset: str | None = None) -> list[HistoryRecord]:
        """Every grant, charge, void, request and decision in order of time, of one dataset or all."""
        return self._read(history.history, dataset)

    def find_faults(self, dataset: str) -> list[Fault]:
        """The contradictions in the ledger's rows on the dataset; repairs nothing."""
        return self._read(faults.find_faults, dataset)


def _open(url: str, lock_seconds: float, create: bool) -> Database:
    # No message quotes the URL: it may hold a password.
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InputError(
            "the ledger's URL cannot be read; write it like sqlite:///ledger.db or "
            "postgresql://user@host/database"
        ) from None
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        return SQLiteDatabase(parsed, lock_seconds, create)
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        # The parser takes the text after an @ in a password for the host and the database.
        if "@" in f"{parsed.host}{parsed.database}":
            raise InputError(
                "the ledger's URL has more than one @: in a password write @ as %40,"
                " / as %2F and : as %3A"
            )
        return PostgreSQLDatabase(parsed, lock_seconds, create)
    raise InputError(
        "a ledger is kept in SQLite or PostgreSQL: its URL must begin with sqlite:/// or"
        " postgresql://"
    )


def _require_addable(
    connection: Connection, dataset: str, plan_digest: str, asked: Mapping[str, Charge]
) -> None:
    charges = asked.values()
    # All earlier charges protect the same unit and relation, so one of them is enough. The rules on
    # gamma and on series need all of them.
    every = any(charge.budget.gamma or charge.series for charge in charges)
    counted = queries.counted(connection, dataset, None if every else 1)
    promises = [{rules.promise_of(each.event) for each in some} for some in (counted, charges)]
    account = queries.account(connection, dataset)
    rules.require_same_promise(dataset, *promises)
    rules.require_same_composition(dataset, account, charges)
    rules.require_fixed_plan(dataset, plan_digest, counted, charges)
    rules.require_runs_before(dataset, account.number if account else 0, counted, asked)


def chargeable(connection: Connection, request: ChargeRequest) -> tuple[ChargeRequest, Account]:
    """The request with only the charges still to be made, and the account that they count against.

    In the returned request, ``analyst`` is the analyst whose allowance is charged, '' for none.  Raises
    the error of the first rule that forbids the charges.
    """
    dataset, release_id = request.dataset, request.release_id
    account = rules.require_account(dataset, queries.account(connection, dataset))
    existing = queries.charges(connection, dataset, release_id)
    new = rules.new_charges(request, existing)
    charged = ""
    if new:
        _require_addable(connection, dataset, request.plan_digest, new)
        asked = total(charge.budget for charge in new.values())
        spent = _spent(connection, dataset, account)
        rules.require_affordable(dataset, release_id, account.caps, spent, asked)
        if request.open_fraction is not None:
            spent = queries.spent(connection, dataset, account.number, by_requests=True)
            opened = account.caps * request.open_fraction
            rules.require_opened(dataset, release_id, opened, spent, asked)
            if request.analyst is not None:
                known = queries.allowances(connection, dataset)
                charged = rules.require_allowed(dataset, release_id, request.analyst, known, asked)
        if request.ending:
            made = queries.ids_ending(connection, dataset, request.plan_digest, request.ending)
            rules.require_same_id(release_id, made)
    return replace(request, charges=new, analyst=charged), account


def _spent(connection: Connection, dataset: str, account: Account) -> Budget:
    return queries.spent(connection, dataset, account.number)
