"""Which run of its series a release is, by the ledger."""

from __future__ import annotations

from schemas.plan import Plan
from tasks.ledger.ledger import Ledger
from tasks.ledger.records import State


def runs_charged(plan: Plan, ledger: Ledger) -> dict[str, int]:
    """The release ids of the plan's series that count, and the run of each."""
    return {
        charge.release_id: charge.run
        for charges in ledger.releases(plan.dataset).values()
        for charge in charges.values()
        if charge.series == plan.series_id and charge.state is not State.VOID
    }


def at_its_run(plan: Plan, release_id: str, ledger: Ledger) -> Plan:
    """The plan at the run that a release was charged for, or else at the first without a release.

    A plan that states the number of its run stays as it is.  Raises ``InputError`` if all periods of the
    series were released.
    """
    if plan.series is None or "run" in plan.series.model_fields_set:
        return plan
    charged = runs_charged(plan, ledger)
    run = charged.get(release_id) or 1 + max(charged.values(), default=0)
    return plan.changed(series=plan.series.at(run))
