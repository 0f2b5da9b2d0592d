"""The tables of the ledger, the same on SQLite and PostgreSQL.

    ledger_schema    one row: the version of this layout, and whether a server's runs use the ledger
    ledger_dataset   one row per dataset: the row that writers lock
    ledger_grant     append-only: who granted how much, by which rule of composition, and why
    ledger_charge    one row per (dataset, release id, release name), in state
                     RESERVED, COMMITTED or VOID
    ledger_draw      the noisy statistic of each COMMITTED charge, byte for byte
    ledger_note      append-only: who voided which reservation, and why
    ledger_bundle    append-only: SHA-256 of the SHA256SUMS of every bundle that was made ready
    ledger_source    append-only: to which dataset each survey belongs; the last row of a source counts
    ledger_allowance append-only: how much of a grant each analyst may spend, and who allowed it

A grant holds its promise (alpha, beta, gamma).  A concentrated one also holds its caps: ``rho``, and
``failures`` on the sum of beta.  A charge counts against its ``account``: the id of a concentrated
grant, or 0 for all basic ones.  Its ``part`` is empty, or the ``open_fraction`` within which it was
requested; its ``analyst`` is empty, or the analyst whose allowance it counts against.  The
allowances of an analyst add up; only the newest ``key``, the SHA-256 of a token, is valid.

Amounts are texts such as ``1/3``: a database has no exact rational, and sums are made in Python.
The code's rules are also constraints here wherever a constraint can express them, and triggers
(``append_only.py``) where it cannot.
A change of the layout needs a new ``VERSION``; a ledger of another version is refused.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

VERSION = 5

metadata = MetaData()


def _amounts() -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in ("alpha", "beta", "gamma", "rho")]


schema = Table(
    "ledger_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("created_at", Text, nullable=False),
    Column("served_at", Text),
)

dataset = Table(
    "ledger_dataset",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
)

granted = Table(
    "ledger_grant",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset", Text, ForeignKey(dataset.c.dataset), nullable=False, index=True),
    Column("composition", Text, nullable=False),
    *_amounts(),
    Column("failures", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("at", Text, nullable=False),
    CheckConstraint("composition IN ('basic', 'concentrated')", name="known_composition"),
)

charge = Table(
    "ledger_charge",
    metadata,
    Column("charge_id", Text, primary_key=True),
    Column("dataset", Text, ForeignKey(dataset.c.dataset), nullable=False),
    Column("release_id", Text, nullable=False),
    Column("release_name", Text, nullable=False),
    Column("account", Integer, nullable=False),
    Column("plan_digest", Text, nullable=False),
    *_amounts(),
    Column("event", Text, nullable=False),
    Column("series", Text, nullable=False),
    Column("run", Integer, nullable=False),
    Column("part", Text, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reserved_at", Text, nullable=False),
    Column("committed_at", Text),
    Column("digest", Text),
    UniqueConstraint("dataset", "release_id", "release_name"),
    CheckConstraint("state IN ('RESERVED', 'COMMITTED', 'VOID')", name="known_state"),
    CheckConstraint(
        "(state = 'COMMITTED') = (digest IS NOT NULL)"
        " AND (state = 'COMMITTED') = (committed_at IS NOT NULL)",
        name="digest_if_committed",
    ),
)

draw = Table(
    "ledger_draw",
    metadata,
    Column("charge_id", Text, ForeignKey(charge.c.charge_id), primary_key=True),
    Column("payload", LargeBinary, nullable=False),
)

note = Table(
    "ledger_note",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("charge_id", Text, ForeignKey(charge.c.charge_id), nullable=False, index=True),
    Column("action", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("at", Text, nullable=False),
)

bundle = Table(
    "ledger_bundle",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset", Text, ForeignKey(dataset.c.dataset), nullable=False),
    Column("release_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("at", Text, nullable=False),
    UniqueConstraint("dataset", "release_id", "digest"),
)

source = Table(
    "ledger_source",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("dataset", Text, ForeignKey(dataset.c.dataset), nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("at", Text, nullable=False),
    UniqueConstraint("source", "number"),
)
"""``number``: 0 if a run recorded the source, from 1 if a person decided."""

allowance = Table(
    "ledger_allowance",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("dataset", Text, ForeignKey(dataset.c.dataset), nullable=False, index=True),
    Column("account", Integer, nullable=False),
    Column("analyst", Text, nullable=False),
    *_amounts(),
    Column("key", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("at", Text, nullable=False),
)
