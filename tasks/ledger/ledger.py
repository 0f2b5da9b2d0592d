"""``Ledger``: grants, charges, draws and decisions, each read or written in one transaction.

A method that writes first locks its dataset, then reads, decides and writes under that lock.  For
an unknown dataset there is no row to lock; the method then refuses without reading further, because
another process may be writing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from pathlib import Path

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from dpcore.accounting.budget import Budget, total
from dpcore.accounting.concentrated import Composition, caps
from dpcore.errors import InputError, LedgerError
from dpcore.line.statistic import Noisy
from tasks.ledger import check, notes, queries, rules
from tasks.ledger.database import Database
from tasks.ledger.postgresql import PostgreSQLDatabase
from tasks.ledger.records import (
    Account,
    Action,
    Charge,
    ChargeRecord,
    Fault,
    HistoryRecord,
    Releases,
    State,
    require_text,
)
from tasks.ledger.roles import roles_sql
from tasks.ledger.sqlite import SQLiteDatabase

# The limit of one value in SQLite as it is usually built, and in PostgreSQL.
MAX_PAYLOAD_BYTES = 1_000_000_000


class Ledger:
    """The privacy ledger at ``url``: ``sqlite:///ledger.db`` or ``postgresql://host/database``.

    ``lock_seconds`` is how long to wait for another writer before giving up with ``LedgerError``.
    With ``create=False`` a missing ledger is an error; otherwise a new, empty one is made.
    """

    def __init__(self, url: str, lock_seconds: float = 30, *, create: bool = True) -> None:
        if not 0 < lock_seconds <= 86_400:
            raise ValueError(f"lock_seconds must be above 0 and at most a day, not {lock_seconds}")
        self._database = _open(url, lock_seconds, create)
        if self._database.is_older():
            self._database.upgrade()
        with self._database.transaction(write=False):
            pass  # opening a transaction refuses a ledger that is damaged or of another layout

    def __repr__(self) -> str:
        return f"<ledger {self._database.shown}>"

    def require_whole(self) -> None:
        """Raise ``LedgerError`` if the database's own check finds damage; reads all of it."""
        with self._database.transaction(write=False) as connection:
            self._database.require_whole(connection)

    def copy_to(self, path: Path) -> None:
        """Write one consistent state of an SQLite ledger to a new file, whoever writes meanwhile.

        Raises ``InputError`` if the file exists, or for a ledger in PostgreSQL, which has tools of its
        own.
        """
        if not isinstance(self._database, SQLiteDatabase):
            raise InputError(
                "a ledger in PostgreSQL is copied with its own tools: pg_dump and pg_restore"
            )
        self.require_whole()
        self._database.copy_to(path)

    def make_roles(self) -> None:
        """Run ``roles_sql`` as the user who made the ledger; raises ``InputError`` on SQLite."""
        if not isinstance(self._database, PostgreSQLDatabase):
            raise InputError("roles are of a ledger in PostgreSQL: name one with --ledger")
        with self._database.transaction(write=True) as connection:
            # Without parameters, or the driver would take the SQL's own % for a place of one.
            plain = connection.execution_options(no_parameters=True)
            plain.exec_driver_sql(roles_sql())

    def grant(
        self,
        dataset: str,
        budget: Budget,
        who: str,
        why: str,
        composition: Composition = "basic",
    ) -> None:
        """Grant (alpha, beta, gamma) to a dataset; grants are never taken back.

        A basic grant adds to those before.  A concentrated one opens an account of its own: what was
        left before can no longer be spent.  Raises ``BudgetError`` for a basic one after that, and
        ``ValueError`` for a concentrated one without beta.
        """
        require_text(dataset=dataset, who=who, why=why)
        kept = caps(composition, budget)
        with self._database.transaction(write=True) as connection:
            queries.insert_dataset(connection, dataset)
            queries.lock(connection, dataset)
            rules.require_composition_kept(
                dataset, queries.account(connection, dataset), composition
            )
            queries.insert_grant(connection, dataset, composition, budget, kept, who, why)

    def first_grant(
        self,
        dataset: str,
        budget: Budget,
        who: str,
        why: str,
        composition: Composition = "basic",
    ) -> bool:
        """Grant ``budget`` if the ledger does not know the dataset; return whether it did.

        Never in a ledger that is ``shared``: whoever may run a plan there is not who grants.
        """
        require_text(dataset=dataset, who=who, why=why)
        kept = caps(composition, budget)
        with self._database.transaction(write=True) as connection:
            # Read first: a user who may publish, but not grant, has no right to try the insert.
            if queries.accounts(connection, dataset) or self._is_shared(connection):
                return False
            if not queries.insert_dataset(connection, dataset):
                return False
            queries.insert_grant(connection, dataset, composition, budget, kept, who, why)
            return True

    @property
    def shared(self) -> bool:
        """Whether others use it: it is in PostgreSQL, or runs of a server were charged to it."""
        with self._database.transaction(write=False) as connection:
            return self._is_shared(connection)

    def share(self) -> None:
        """Mark the ledger, for good, as one that a server's runs use."""
        if not self.shared:
            with self._database.transaction(write=True) as connection:
                queries.mark_served(connection)

    def _is_shared(self, connection: Connection) -> bool:
        return self._database.several or queries.is_served(connection)

    def sources(self) -> dict[str, str]:
        """The dataset of every source that the ledger knows, by the source's name."""
        with self._database.transaction(write=False) as connection:
            return queries.sources(connection)

    def require_own(self, dataset: str, sources: Collection[str]) -> None:
        """Raise ``BudgetError`` if one of a survey's names belongs to another dataset."""
        rules.require_own(dataset, sources, self.sources())

    def assign(self, sources: Collection[str], dataset: str, who: str, why: str) -> None:
        """Record a person's decision: these sources hold the survey of this dataset from now on.

        Raises ``BudgetError`` for a dataset without a grant.
        """
        require_text(dataset=dataset, who=who, why=why)
        with self._database.transaction(write=True) as connection:
            if not queries.lock(connection, dataset):
                rules.require_known(dataset, None)
            for source in sources:
                number = max(1, queries.times_recorded(connection, source))
                queries.insert_source(connection, source, dataset, who, why, number)

    def datasets(self) -> list[str]:
        """Every dataset that was ever granted anything, by name."""
        with self._database.transaction(write=False) as connection:
            return queries.datasets(connection)

    def account(self, dataset: str) -> Account | None:
        """What new charges count against; None for a dataset that the ledger does not know."""
        with self._database.transaction(write=False) as connection:
            return queries.account(connection, dataset)

    def promised(self, dataset: str) -> Budget:
        """(alpha, beta, gamma) of everything that was and can be charged: the sum of all grants."""
        with self._database.transaction(write=False) as connection:
            return total(each.promise for each in queries.accounts(connection, dataset))

    def granted(self, dataset: str) -> Budget | None:
        """The caps of the account; None for a dataset that the ledger does not know."""
        account = self.account(dataset)
        return None if account is None else account.caps

    def spent(self, dataset: str) -> Budget:
        """The sum of all charges to the account, reserved and committed."""
        with self._database.transaction(write=False) as connection:
            account = queries.account(connection, dataset)
            return Budget() if account is None else _spent(connection, dataset, account)

    def remaining(self, dataset: str) -> Budget:
        """What the account has left; nothing for a dataset that the ledger does not know."""
        with self._database.transaction(write=False) as connection:
            account = queries.account(connection, dataset)
            if account is None:
                return Budget()
            return rules.remaining(dataset, account.caps, _spent(connection, dataset, account))

    def check(
        self,
        dataset: str,
        release_id: str,
        plan_digest: str,
        charges: Mapping[str, Charge],
        part: Fraction | None = None,
    ) -> None:
        """Raise what ``reserve`` would raise now, and write nothing.

        For use before any private value is read.  Another process may reserve in between, so only
        ``reserve`` decides.
        """
        _require_charges(dataset, release_id, plan_digest, charges)
        with self._database.transaction(write=False) as connection:
            _new_charges(connection, dataset, release_id, plan_digest, charges, part)

    def check_addable(self, dataset: str, plan_digest: str, charges: Mapping[str, Charge]) -> None:
        """Raise ``BudgetError`` if these charges cannot be added to the earlier ones.

        They cannot if they are about another unit or relation, or in another coordinate than the grant;
        if they spend gamma and their plan was not fixed before the dataset's first release; or if
        earlier runs of their series are not charged.
        """
        with self._database.transaction(write=False) as connection:
            _require_addable(connection, dataset, plan_digest, charges)

    def reserve(
        self,
        dataset: str,
        release_id: str,
        plan_digest: str,
        charges: Mapping[str, Charge],
        beside: Callable[[Releases], None] = lambda _: None,
        sources: Collection[str] = (),
        part: Fraction | None = None,
    ) -> list[str]:
        """Charge a whole release, or raise and charge nothing; return the names newly charged.

        A charge that exists with the same plan, price and event is kept and not charged again.
        Raises ``BudgetError`` if the new charges would overspend the grant or cannot be added to
        the earlier ones (``check_addable``), ``LedgerError`` if an existing charge differs or is void.
        ``sources``: the names of the survey that is to be read; raises ``BudgetError`` if one belongs to
        another dataset.  ``part``: the part of the grant that all requests may spend together, if this
        release was requested; raises ``BudgetError`` if they would spend more.
        ``beside`` may raise in view of all releases of the dataset, which no other writer changes
        meanwhile.  Afterwards every named charge counts.
        """
        _require_charges(dataset, release_id, plan_digest, charges)
        with self._database.transaction(write=True) as connection:
            self._database.require_whole(connection)
            if not queries.lock(connection, dataset):
                rules.require_known(dataset, None)
            names = dataset, release_id, plan_digest
            new, account = _new_charges(connection, *names, charges, part)
            if new:
                beside(queries.releases(connection, dataset))
                queries.insert_charges(connection, *names, account.number, new, part)
            for source in sources:
                queries.insert_source(connection, source, dataset, "release plan", release_id)
            # Read after the insert, which waits for another dataset's that is not committed yet.
            rules.require_own(dataset, sources, queries.sources(connection))
            return list(new)

    def commit(self, dataset: str, release_id: str, release_name: str, noisy: Noisy) -> Noisy:
        """Store a draw with its charge, once, and return the draw to be used from now on.

        The first draw to be committed stays.  A later caller gets that one back and must discard
        its own: publishing both would spend the charge twice.
        """
        payload = noisy.to_bytes()
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise LedgerError(
                f"the noisy statistic of {release_name!r} has {len(payload)} bytes, and the "
                f"ledger stores at most {MAX_PAYLOAD_BYTES}: publish fewer cells"
            )
        with self._database.transaction(write=True) as connection:
            charge = _locked_charge(connection, dataset, release_id, release_name)
            if charge is not None and charge.state is State.COMMITTED:
                return queries.read_draw(connection, charge)
            charge = rules.require_reserved(charge, release_name, "its draw cannot be committed")
            queries.insert_draw(connection, charge, payload)
        # Decoded as a retry would read it, so that both continue from the same arrays.
        return Noisy.from_bytes(payload)

    def committed(self, dataset: str, release_id: str, release_name: str) -> Noisy | None:
        """The committed draw, checked against its digest; None where there is none (yet)."""
        with self._database.transaction(write=False) as connection:
            charge = queries.find_charge(connection, dataset, release_id, release_name)
            if charge is None or charge.state is not State.COMMITTED:
                return None
            return queries.read_draw(connection, charge)

    def void(self, dataset: str, release_id: str, release_name: str, who: str, why: str) -> None:
        """Give back, for good, a reservation that has no draw; ``who`` and ``why`` are recorded.

        Only a person can know that nobody has seen a lost draw, so an operator must decide.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            charge = _locked_charge(connection, dataset, release_id, release_name)
            charge = rules.require_reserved(charge, release_name, "it cannot be voided")
            rules.require_run_whole(queries.counted(connection, dataset), charge)
            queries.insert_void(connection, charge, who, why)

    def seal(self, dataset: str, release_id: str, digest: str) -> None:
        """Record the digest of a bundle that is about to be published.

        A run that dies after this leaves a digest without a bundle, and the next run records
        another; a bundle whose digest was never recorded is forged.
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
        """Record who asked for a release and why; the first record stays."""
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

        Repeating the same decision changes nothing.  Raises ``InputError`` if the ledger does not
        know the release, and ``LedgerError`` if it is not drawn yet, or if the opposite decision was
        recorded before.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            if not charges:
                raise InputError(f"the ledger knows no release {release_id!r} of {dataset}")
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

    def find_faults(self, dataset: str) -> list[Fault]:
        """The contradictions in the ledger's rows on the dataset; repairs nothing."""
        with self._database.transaction(write=False) as connection:
            return check.find_faults(connection, dataset)

    def history(self, dataset: str | None = None) -> list[HistoryRecord]:
        """Every grant, charge, void, request and decision in order of time, of one dataset or all."""
        with self._database.transaction(write=False) as connection:
            return queries.history(connection, dataset)


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
        # What follows an @ in a password is taken for the host and the database.
        if "@" in f"{parsed.host}{parsed.database}":
            raise InputError(
                "the ledger's URL: has an @ after the one before the host; in a password write @ as %40,"
                " / as %2F and : as %3A"
            )
        return PostgreSQLDatabase(parsed, lock_seconds, create)
    raise InputError(
        "a ledger is kept in SQLite or PostgreSQL: its URL must begin with sqlite:/// or"
        " postgresql://"
    )


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


def _require_addable(
    connection: Connection, dataset: str, plan_digest: str, asked: Mapping[str, Charge]
) -> None:
    counted, charges = queries.counted(connection, dataset), asked.values()
    promises = [{rules.promise_of(each.event) for each in some} for some in (counted, charges)]
    account = queries.account(connection, dataset)
    rules.require_same_promise(dataset, *promises)
    rules.require_same_composition(dataset, account, charges)
    rules.require_fixed_plan(dataset, plan_digest, counted, charges)
    rules.require_runs_before(dataset, account.number if account else 0, counted, asked)


def _new_charges(
    connection: Connection,
    dataset: str,
    release_id: str,
    plan_digest: str,
    charges: Mapping[str, Charge],
    part: Fraction | None,
) -> tuple[dict[str, Charge], Account]:
    """The charges still to be made, and to which account; raises for the first reason against it."""
    account = rules.require_known(dataset, queries.account(connection, dataset))
    existing = queries.charges(connection, dataset, release_id)
    new = rules.new_charges(release_id, plan_digest, charges, existing)
    if new:
        _require_addable(connection, dataset, plan_digest, new)
        asked = total(charge.budget for charge in new.values())
        spent = _spent(connection, dataset, account)
        rules.require_affordable(dataset, release_id, account.caps, spent, asked)
        if part is not None:
            spent = queries.spent(connection, dataset, account.number, by_requests=True)
            rules.require_opened(dataset, release_id, account.caps * part, spent, asked)
    return new, account


def _spent(connection: Connection, dataset: str, account: Account) -> Budget:
    return queries.spent(connection, dataset, account.number)
