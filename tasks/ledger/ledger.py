"""``Ledger``: grant, check, reserve, commit, void, and what the ledger remembers.

Every method is one transaction.  A method that writes takes the lock of its dataset first, reads
what it decides on under that lock, and decides before it writes.  Where there is no dataset to
lock it goes by that alone: what it read next could be another process's newest word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from dpcore.budget import Budget, total
from dpcore.errors import InputError, LedgerError
from dpcore.statistic import Noisy
from tasks.ledger import check, notes, queries, rules
from tasks.ledger.database import Database
from tasks.ledger.postgresql import PostgreSQLDatabase
from tasks.ledger.records import (
    Action,
    Charge,
    ChargeRecord,
    Fault,
    HistoryRecord,
    State,
    require_text,
)
from tasks.ledger.sqlite import SQLiteDatabase

# What one value may weigh in SQLite as it is usually built, and in PostgreSQL.
MAX_PAYLOAD_BYTES = 1_000_000_000


class Ledger:
    """The privacy ledger at ``url``: ``sqlite:///ledger.db`` or ``postgresql://host/database``.

    ``lock_seconds`` is how long to wait for another writer before giving up with ``LedgerError``.
    With ``create=False`` a ledger that is not there is an error instead of a new, empty one.
    """

    def __init__(self, url: str, lock_seconds: float = 30, *, create: bool = True) -> None:
        if not 0 < lock_seconds <= 86_400:
            raise ValueError(f"lock_seconds must be above 0 and at most a day, not {lock_seconds}")
        self._database = _open(url, lock_seconds, create)
        with self._database.transaction(write=False):
            pass  # a ledger that is damaged or of another layout is refused before any work

    def __repr__(self) -> str:
        return f"<ledger {self._database.shown}>"

    def grant(self, dataset: str, budget: Budget, who: str, why: str) -> None:
        """Add ``budget`` to what the dataset was granted; grants are never taken back."""
        require_text(dataset=dataset, who=who, why=why)
        with self._database.transaction(write=True) as connection:
            queries.insert_dataset(connection, dataset)
            queries.lock(connection, dataset)
            queries.insert_grant(connection, dataset, budget, who, why)

    def first_grant(self, dataset: str, budget: Budget, who: str, why: str) -> bool:
        """Grant ``budget`` if the ledger has never heard of the dataset; tell whether it did."""
        require_text(dataset=dataset, who=who, why=why)
        with self._database.transaction(write=True) as connection:
            # Looked for first: a user who may publish, but not grant, may not even try to insert.
            if queries.granted(connection, dataset) is not None:
                return False
            if not queries.insert_dataset(connection, dataset):
                return False
            queries.insert_grant(connection, dataset, budget, who, why)
            return True

    def datasets(self) -> list[str]:
        """Every dataset that was ever granted anything, by name."""
        with self._database.transaction(write=False) as connection:
            return queries.datasets(connection)

    def granted(self, dataset: str) -> Budget | None:
        """The sum of all grants; None for a dataset that the ledger does not know."""
        with self._database.transaction(write=False) as connection:
            return queries.granted(connection, dataset)

    def spent(self, dataset: str) -> Budget:
        """The sum of all charges, reserved and committed."""
        with self._database.transaction(write=False) as connection:
            return queries.spent(connection, dataset)

    def remaining(self, dataset: str) -> Budget:
        """What is granted and not spent; nothing for a dataset that the ledger does not know."""
        with self._database.transaction(write=False) as connection:
            granted = queries.granted(connection, dataset) or Budget()
            return rules.remaining(dataset, granted, queries.spent(connection, dataset))

    def check(
        self, dataset: str, release_id: str, plan_digest: str, charges: Mapping[str, Charge]
    ) -> None:
        """Raise what ``reserve`` would raise now, and write nothing.

        For use before any private value is read.  It promises nothing about later: another
        process may reserve in between, and only ``reserve`` decides.
        """
        _require_charges(dataset, release_id, plan_digest, charges)
        with self._database.transaction(write=False) as connection:
            _allowed(connection, dataset, release_id, plan_digest, charges)

    def check_promise(self, dataset: str, events: Iterable[Mapping[str, Any]]) -> None:
        """Raise ``BudgetError`` where the dataset's budget is about another unit or relation."""
        with self._database.transaction(write=False) as connection:
            _require_same_promise(connection, dataset, events)

    def reserve(
        self, dataset: str, release_id: str, plan_digest: str, charges: Mapping[str, Charge]
    ) -> list[str]:
        """Charge a whole release, or raise and charge nothing; return the names newly charged.

        A charge that exists with the same plan, price and event is kept and not charged again.
        Raises ``BudgetError`` where the new charges would overspend the grant or are about another
        unit or relation, and ``LedgerError`` where an existing charge says otherwise or is void.
        Afterwards every named charge counts.
        """
        _require_charges(dataset, release_id, plan_digest, charges)
        with self._database.transaction(write=True) as connection:
            if not queries.lock(connection, dataset):
                rules.require_known(dataset, None)
            new = _allowed(connection, dataset, release_id, plan_digest, charges)
            if new:
                queries.insert_charges(connection, dataset, release_id, plan_digest, new)
            return list(new)

    def commit(self, dataset: str, release_id: str, release_name: str, noisy: Noisy) -> Noisy:
        """Store a draw with its charge, once, and return the draw to be used from now on.

        The draw that is committed first stays.  A later caller gets that one back and must forget
        its own: to publish both would be to spend the charge twice.
        """
        payload = noisy.to_bytes()
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise LedgerError(
                f"the noisy statistic of {release_name!r} has {len(payload)} bytes, and the "
                f"ledger keeps at most {MAX_PAYLOAD_BYTES}: publish fewer cells"
            )
        with self._database.transaction(write=True) as connection:
            charge = _locked_charge(connection, dataset, release_id, release_name)
            if charge is not None and charge.state is State.COMMITTED:
                return queries.read_draw(connection, charge)
            charge = rules.require_reserved(charge, release_name, "its draw cannot be committed")
            queries.insert_draw(connection, charge, payload)
        # As a retry would read it, so that the two go on from the same arrays.
        return Noisy.from_bytes(payload)

    def committed(self, dataset: str, release_id: str, release_name: str) -> Noisy | None:
        """The committed draw, checked against its digest; None where there is none (yet)."""
        with self._database.transaction(write=False) as connection:
            charge = queries.find_charge(connection, dataset, release_id, release_name)
            if charge is None or charge.state is not State.COMMITTED:
                return None
            return queries.read_draw(connection, charge)

    def void(self, dataset: str, release_id: str, release_name: str, who: str, why: str) -> None:
        """Give back a reservation that has no draw, on an operator's word, for good.

        Only a person can know that nothing of a lost draw was seen; the record says who and why.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            charge = _locked_charge(connection, dataset, release_id, release_name)
            charge = rules.require_reserved(charge, release_name, "it cannot be voided")
            queries.insert_void(connection, charge, who, why)

    def seal(self, dataset: str, release_id: str, digest: str) -> None:
        """Record the digest of a bundle that is about to be published.

        A run that dies after this leaves a digest without a bundle, and the next run another one;
        a bundle whose digest was never recorded is forged.
        """
        require_text(digest=digest)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            rules.require_drawn(
                dataset, release_id, queries.charges(connection, dataset, release_id)
            )
            if digest not in queries.seals(connection, dataset, release_id):
                queries.insert_seal(connection, dataset, release_id, digest)

    def seals(self, dataset: str, release_id: str) -> set[str]:
        """The digests that the bundle of a release may have."""
        with self._database.transaction(write=False) as connection:
            return queries.seals(connection, dataset, release_id)

    def request(self, dataset: str, release_id: str, who: str, why: str) -> None:
        """Record who asked for a release and for what; the first record stays."""
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            if not notes.find(connection, charges, Action.REQUEST):
                notes.add(connection, charges, Action.REQUEST, who, why)

    def decide(
        self, dataset: str, release_id: str, approved: bool, who: str, why: str
    ) -> notes.Decision:
        """Record a disclosure officer's decision on the committed draws of a release, for good.

        The same decision again changes nothing.  Raises ``LedgerError`` where something is not drawn
        yet, or where the other decision was recorded before.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            rules.require_drawn(dataset, release_id, charges)
            known = notes.decision(connection, charges)
            if known is None:
                action = Action.APPROVE if approved else Action.REJECT
                notes.add(connection, charges, action, who, why)
            elif known.approved != approved:
                raise LedgerError(
                    f"release {release_id!r} was {known} before, and a decision is final"
                )
            decided = notes.decision(connection, charges)
        assert decided is not None
        return decided

    def decision(self, dataset: str, release_id: str) -> notes.Decision | None:
        """The decision on a release; None where there is none (yet)."""
        with self._database.transaction(write=False) as connection:
            return notes.decision(connection, queries.charges(connection, dataset, release_id))

    def release(self, dataset: str, release_id: str) -> dict[str, ChargeRecord]:
        """The charges of one release by name; empty for a release that the ledger does not know."""
        with self._database.transaction(write=False) as connection:
            return queries.charges(connection, dataset, release_id)

    def releases(self, dataset: str) -> dict[str, dict[str, ChargeRecord]]:
        """The charges of every release of the dataset, by release id and name."""
        with self._database.transaction(write=False) as connection:
            return queries.releases(connection, dataset)

    def faults(self, dataset: str) -> list[Fault]:
        """Whatever does not add up in what the ledger holds on the dataset; repairs nothing."""
        with self._database.transaction(write=False) as connection:
            return check.faults(connection, dataset)

    def history(self, dataset: str | None = None) -> list[HistoryRecord]:
        """Every grant, reservation, commit and void in order of time, of one dataset or of all."""
        with self._database.transaction(write=False) as connection:
            return queries.history(connection, dataset)


def upgrade(url: str, lock_seconds: float = 30) -> bool:
    """Bring an older ledger up to this program's layout; False if there was nothing to do."""
    return _open(url, lock_seconds, create=False).upgrade()


def _open(url: str, lock_seconds: float, create: bool) -> Database:
    # The URL is quoted in no message: it may hold a password.
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
        return PostgreSQLDatabase(parsed, lock_seconds, create)
    raise InputError("a ledger lives in SQLite (sqlite:///...) or PostgreSQL (postgresql://...)")


def _locked_charge(
    connection: Connection, dataset: str, release_id: str, release_name: str
) -> ChargeRecord | None:
    if not queries.lock(connection, dataset):
        return None
    return queries.find_charge(connection, dataset, release_id, release_name)


def _require_charges(
    dataset: str, release_id: str, plan_digest: str, charges: Mapping[str, Charge]
) -> None:
    require_text(dataset=dataset, release_id=release_id, plan_digest=plan_digest)
    for name, charge in charges.items():
        require_text(release_name=name)
        charge.event_text()


def _require_same_promise(
    connection: Connection, dataset: str, events: Iterable[Mapping[str, Any]]
) -> None:
    charged = {rules.promise(event) for event in queries.events(connection, dataset)}
    rules.require_same_promise(dataset, charged, {rules.promise(event) for event in events})


def _allowed(
    connection: Connection,
    dataset: str,
    release_id: str,
    plan_digest: str,
    charges: Mapping[str, Charge],
) -> dict[str, Charge]:
    """The charges still to be made, all of which may be; raises for the first reason not to."""
    granted = rules.require_known(dataset, queries.granted(connection, dataset))
    existing = queries.charges(connection, dataset, release_id)
    new = rules.new_charges(release_id, plan_digest, charges, existing)
    if new:
        _require_same_promise(connection, dataset, (charge.event for charge in new.values()))
        asked = total(charge.budget for charge in new.values())
        spent = queries.spent(connection, dataset)
        rules.require_affordable(dataset, release_id, granted, spent, asked)
    return new
