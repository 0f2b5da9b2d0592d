"""SQL that gives publishers and officers their rights in a ledger on PostgreSQL.

The user who made the ledger runs it once, in its database and schema.  A user then becomes a
publisher or an officer with ``GRANT dprelease_publisher TO somebody``.

Locking a dataset (``SELECT ... FOR UPDATE``) needs the right to update; the triggers of
``append_only.py`` refuse every update that this right would allow.
"""

from tasks.ledger import tables

PUBLISHER = "dprelease_publisher"
OFFICER = "dprelease_officer"


def roles_sql() -> str:
    """SQL that makes the two roles and gives each its rights; it may be run again."""
    every = ", ".join(table.name for table in tables.metadata.sorted_tables)
    return f"""\
-- A publisher reserves, commits, publishes and records requests and decisions; it cannot grant
-- a budget, give allowances, void a charge, move a survey to another dataset or change history.
-- An officer grants budgets, gives allowances, voids charges and moves surveys; it cannot reserve or
-- commit.  Both can read everything.
DO $$ BEGIN
    IF to_regrole('{PUBLISHER}') IS NULL THEN CREATE ROLE {PUBLISHER} NOLOGIN; END IF;
    IF to_regrole('{OFFICER}') IS NULL THEN CREATE ROLE {OFFICER} NOLOGIN; END IF;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO {PUBLISHER}, {OFFICER}', current_schema());
END $$;
REVOKE ALL ON {every} FROM PUBLIC, {PUBLISHER}, {OFFICER};
GRANT SELECT ON {every} TO {PUBLISHER}, {OFFICER};
GRANT UPDATE (created_at) ON ledger_dataset TO {PUBLISHER}, {OFFICER};
GRANT INSERT ON ledger_charge, ledger_draw, ledger_note, ledger_bundle, ledger_source TO {PUBLISHER};
GRANT UPDATE (state, committed_at, digest) ON ledger_charge TO {PUBLISHER};
GRANT USAGE ON SEQUENCE ledger_note_id_seq, ledger_bundle_id_seq, ledger_source_id_seq TO {PUBLISHER};
GRANT INSERT ON ledger_dataset, ledger_grant, ledger_note, ledger_source, ledger_allowance
    TO {OFFICER};
GRANT UPDATE (state) ON ledger_charge TO {OFFICER};
GRANT USAGE ON SEQUENCE ledger_grant_id_seq, ledger_note_id_seq, ledger_source_id_seq,
    ledger_allowance_id_seq TO {OFFICER};
-- A charge becomes void only with a note that says so, and only officers may write such a note.
ALTER TABLE ledger_note ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS anybody_reads ON ledger_note;
DROP POLICY IF EXISTS officers_write ON ledger_note;
DROP POLICY IF EXISTS publishers_do_not_void ON ledger_note;
CREATE POLICY anybody_reads ON ledger_note FOR SELECT USING (true);
CREATE POLICY officers_write ON ledger_note FOR INSERT TO {OFFICER} WITH CHECK (true);
CREATE POLICY publishers_do_not_void ON ledger_note FOR INSERT TO {PUBLISHER}
    WITH CHECK (action <> 'void');
-- A publisher records the dataset of a survey that is new; only officers may change it.
ALTER TABLE ledger_source ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS anybody_reads ON ledger_source;
DROP POLICY IF EXISTS officers_assign ON ledger_source;
DROP POLICY IF EXISTS publishers_record_the_first ON ledger_source;
CREATE POLICY anybody_reads ON ledger_source FOR SELECT USING (true);
CREATE POLICY officers_assign ON ledger_source FOR INSERT TO {OFFICER} WITH CHECK (true);
CREATE POLICY publishers_record_the_first ON ledger_source FOR INSERT TO {PUBLISHER}
    WITH CHECK (number = 0);
"""
