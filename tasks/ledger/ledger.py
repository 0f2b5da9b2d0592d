"""``Ledger``: writes grants, charges, draws and decisions, each in one transaction.

A method that writes first locks its dataset, then reads, decides and writes under that lock.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection

from sqlalchemy import Connection

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import Composition, caps
from dpcore.errors import InputError, LedgerError
from dpcore.line.statistic import Noisy
from schemas.text import look_alikes, may_be_listed, told_apart
from tasks.ledger import notes, queries, rules
from tasks.ledger.postgresql import PostgreSQLDatabase
from tasks.ledger.reading import LedgerReader, chargeable
from tasks.ledger.records import (
    Account,
    Action,
    Charge,
    ChargeRecord,
    ChargeRequest,
    State,
    key_of,
    require_text,
)
from tasks.ledger.roles import roles_sql
from tasks.workplace.home import ledger_exists, ledger_url

# The limit of one value in SQLite as it is usually built, and in PostgreSQL.
MAX_PAYLOAD_BYTES = 1_000_000_000

LONGEST_NAME = 200
"""The most characters in an analyst's name, as in Prefect's form."""


class Ledger(LedgerReader):
    """The privacy ledger at ``url``: ``sqlite:///ledger.db`` or ``postgresql://host/database``.

    ``lock_seconds`` is how long to wait for another writer before giving up with ``LedgerError``.
    With ``create=False`` a missing ledger is an error; otherwise a new, empty one is made.
    """

    def make_roles(self) -> None:
        """Run ``roles_sql`` as the user who made the ledger; raises ``InputError`` on SQLite."""
        if not isinstance(self._database, PostgreSQLDatabase):
            raise InputError("only a ledger in PostgreSQL has roles: name one with --ledger")
        with self._database.transaction(write=True) as connection:
            # Without parameters, because the driver would otherwise read % in the SQL as a placeholder.
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

        A basic grant adds to earlier ones.  A concentrated grant opens a new account, and the rest of
        the old one can no longer be spent.  Raises ``BudgetError`` for a basic grant after a
        concentrated one, and ``ValueError`` for a concentrated grant without beta.
        """
        require_text(dataset=dataset, who=who, why=why)
        kept = caps(composition, budget)
        with self._database.transaction(write=True) as connection:
            queries.insert_dataset(connection, dataset)  # so that there is a row to lock
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
        """Grant ``budget`` if the dataset is not in the ledger yet; return whether it was granted.

        Never grants in a ``shared`` ledger, where people who run plans may not grant.
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

    def mark_served(self) -> None:
        """Mark the ledger permanently as used by runs of a server."""
        # A ledger in PostgreSQL is always shared, and a publisher has no right to write the mark.
        if not self.shared:
            with self._database.transaction(write=True) as connection:
                queries.mark_served(connection)

    def assign(self, sources: Collection[str], dataset: str, who: str, why: str) -> None:
        """Record a person's decision: these sources hold the survey of this dataset from now on.

        Raises ``BudgetError`` for a dataset without a grant.
        """
        require_text(dataset=dataset, who=who, why=why)
        with self._database.transaction(write=True) as connection:
            _lock_known(connection, dataset)
            for source in sources:
                number = 1 + queries.last_number(connection, source)
                queries.insert_source(connection, source, dataset, who, why, number)

    def allow(self, dataset: str, analyst: str, promise: Budget, who: str, why: str) -> str:
        """Let an analyst spend (alpha, beta) more of a dataset's grant; returns the analyst's new token.

        From then on, each request on the dataset is charged to the allowance of an analyst.
        Allowances are never taken back. Only an analyst's newest token is valid, so an allowance of
        zero revokes the earlier token.  Raises ``BudgetError`` if this analyst's allowances together
        exceed the grant.
        """
        require_text(analyst=analyst, who=who, why=why)
        if analyst != analyst.strip() or len(analyst) > LONGEST_NAME or not may_be_listed(analyst):
            raise InputError(
                f"the analyst's name must have at most {LONGEST_NAME} characters, begin with a letter,"
                " and have no spaces around it"
            )
        token = secrets.token_hex(16)
        with self._database.transaction(write=True) as connection:
            account = _lock_known(connection, dataset)
            known = queries.allowances(connection, dataset)
            # A request names its analyst in text: a name that looks like another's would mislead people.
            if analyst not in known and (alike := look_alikes([*known, analyst])):
                raise InputError(f"the analyst's name: {told_apart(*alike)}")
            before = known[analyst].allowed if analyst in known else Budget()
            amounts = rules.allowed_amounts(dataset, account, promise, before)
            names = dataset, account.number, analyst
            queries.insert_allowance(connection, *names, amounts, key_of(token), who, why)
        return token

    def reserve(self, request: ChargeRequest, sources: Collection[str] = ()) -> list[str]:
        """Charge a whole release, or raise and charge nothing; return the names newly charged.

        A charge that exists with the same plan, price and event is kept and not charged again.
        Afterwards every charge of the request counts.  ``sources``: the names of the survey to be read.

        Raises:
            BudgetError: The new charges would overspend the grant, the fraction of it that is open to
                requests, or the analyst's allowance; they cannot be added to the earlier ones
                (``check_addable``); or one of ``sources`` belongs to another dataset.
            LedgerError: An existing charge differs or is void, or another release of the plan has the
                request's ``ending``.
        """
        dataset = request.dataset
        with self._database.transaction(write=True) as connection:
            # Before any sum: budget of charges that damage hides would be spent a second time.
            self._database.require_sound(connection, dataset)
            _lock_known(connection, dataset)
            new, account = chargeable(connection, request)
            if new.charges:
                queries.insert_charges(connection, new, account.number)
            for source in sources:
                queries.insert_source(
                    connection, source, dataset, "release plan", request.release_id
                )
            # Read after the insert, which waits for uncommitted inserts of the same source.
            rules.require_own(dataset, sources, queries.sources(connection))
            return list(new.charges)

    def commit(self, dataset: str, release_id: str, release_name: str, noisy: Noisy) -> Noisy:
        """Store a draw with its charge, once; returns the draw to be used from now on.

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

    def void(
        self,
        dataset: str,
        release_id: str,
        release_name: str,
        who: str,
        why: str,
        *,
        forgotten: bool = False,
    ) -> None:
        """Give up a reservation without a draw, which frees its budget; records ``who`` and ``why``.

        Only a person can know that nobody has seen a lost draw, so an operator must decide.
        ``forgotten``: accept a reservation that the ledger lacks; its name is then never drawn again.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            names = dataset, release_id, release_name
            charge = _locked_charge(connection, *names)
            if charge is None and forgotten:
                rules.require_account(dataset, queries.account(connection, dataset))
                others = queries.charges(connection, dataset, release_id).values()
                # Another plan's digest would bar the release's other charges from being drawn.
                digest = next((each.plan_digest for each in others), "forgotten")
                nothing = {release_name: Charge(Budget())}
                free = ChargeRequest(dataset, release_id, digest, nothing)
                queries.insert_charges(connection, free, account=0)
                charge = queries.find_charge(connection, *names)
            charge = rules.require_reserved(charge, release_name, "it cannot be voided")
            rules.require_run_whole(queries.counted(connection, dataset), charge)
            queries.insert_void(connection, charge, who, why)

    def seal(self, dataset: str, release_id: str, digest: str) -> None:
        """Record the digest of a bundle that is about to be published.

        If the run dies after this, the digest has no bundle, and the next run records another
        digest. A bundle whose digest was never recorded is forged.  Raises ``ApprovalError`` for a
        release that was rejected.
        """
        require_text(digest=digest)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            rules.require_drawn(dataset, release_id, charges)
            # A rejection needs the same lock, so a rejected release is never sealed.
            notes.require_not_rejected(dataset, release_id, notes.decision(connection, charges))
            if digest not in queries.seals(connection, dataset, release_id):
                queries.insert_seal(connection, dataset, release_id, digest)

    def record_request(self, dataset: str, release_id: str, who: str, why: str) -> None:
        """Record who asked for a release and why; the first record stays."""
        require_text(who=who, why=why)
        self._note(dataset, release_id, Action.REQUEST, who, why)

    def ask_approval(self, dataset: str, release_id: str) -> None:
        """Record that the plan of a release requires a decision."""
        if not self.asks_approval(dataset, release_id):
            self._note(dataset, release_id, Action.ASK, "release plan", "publication.approval")

    def record_recovery(self, dataset: str, release_id: str, who: str, why: str) -> None:
        """Record who entered a lost release again, and why."""
        require_text(who=who, why=why)
        self._note(dataset, release_id, Action.RECOVER, who, why)

    def _note(self, dataset: str, release_id: str, action: Action, who: str, why: str) -> None:
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            if not notes.find(connection, charges, action):
                notes.add(connection, charges, action, who, why)

    def decide(
        self,
        dataset: str,
        release_id: str,
        approved: bool,
        who: str,
        why: str,
        at: str | None = None,
    ) -> notes.Decision:
        """Record a disclosure officer's final decision on the committed draws of a release.

        ``at``: the time of the decision, if it is recovered; by default now.

        Repeating the same decision changes nothing.  Raises ``InputError`` if the ledger does not
        know the release, and ``LedgerError`` if it is not drawn yet, or if the opposite decision was
        recorded before.
        """
        require_text(who=who, why=why)
        with self._database.transaction(write=True) as connection:
            queries.lock(connection, dataset)
            charges = queries.charges(connection, dataset, release_id)
            if not charges:
                raise InputError(f"the ledger has no release {release_id!r} of {dataset}")
            rules.require_drawn(dataset, release_id, charges)
            known = notes.decision(connection, charges)
            if known is None:
                action = Action.APPROVE if approved else Action.REJECT
                notes.add(connection, charges, action, who, why, at)
            elif known.approved != approved:
                raise LedgerError(
                    f"release {release_id!r} was {known} before, and a decision is final"
                )
            decided = notes.decision(connection, charges)
        assert decided is not None
        return decided


def ledger_if_any() -> Ledger | None:
    """The ledger that the environment names; None if its file is missing, which is not made."""
    return Ledger(ledger_url()) if ledger_exists() else None


def _lock_known(connection: Connection, dataset: str) -> Account:
    """Lock a dataset and return its account; raises ``BudgetError`` if it has no grant."""
    if not queries.lock(connection, dataset):
        # There is no row to lock, so another process may be writing: nothing more is read.
        rules.require_account(dataset, None)
    return rules.require_account(dataset, queries.account(connection, dataset))


def _locked_charge(
    connection: Connection, dataset: str, release_id: str, release_name: str
) -> ChargeRecord | None:
    if not queries.lock(connection, dataset):
        return None
    return queries.find_charge(connection, dataset, release_id, release_name)
