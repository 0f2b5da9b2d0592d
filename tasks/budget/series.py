"""Which run of its series a release is."""

from __future__ import annotations

from schemas.plan import Plan
from tasks.ledger import Ledger, State
from tasks.workplace.home import ledger_url


def at_its_run(plan: Plan, release_id: str) -> Plan:
    """The plan at the run that a release was charged for, or else at the first without a release.

    A plan that states the number of its run stays as it is.  Raises ``InputError`` if all periods of the
    series were released.
    """
    if plan.series is None or "run" in plan.series.model_fields_set:
        return plan
    counted = [
        charge
        for charges in Ledger(ledger_url()).releases(plan.dataset).values()
        for charge in charges.values()
        if charge.series == plan.series_id and charge.state is not State.VOID
    ]
    own = [charge.run for charge in counted if charge.release_id == release_id]
    run = own[0] if own else 1 + max((charge.run for charge in counted), default=0)
    return plan.changed(series=plan.series.at(run))
