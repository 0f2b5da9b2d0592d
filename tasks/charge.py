"""What a plan costs, put to the ledger: checked before any private value is read, then reserved."""

from collections.abc import Mapping
from pathlib import Path

from dpcore.errors import BudgetError, LedgerError
from schemas.bundle import MANIFEST
from schemas.plan import Plan
from tasks.home import ledger_url
from tasks.ledger import Charge, Ledger
from tasks.step import step


def charges_of(plan: Plan) -> Mapping[str, Charge]:
    """The charge of every release of the plan: its share, and the event of its mechanism."""
    return {
        name: Charge(release.share, release.mechanism.event.to_dict())
        for name, release in plan.built.items()
    }


@step("check budget")
def check_budget(plan: Plan, release_id: str, published: Path) -> None:
    """Refuse what the ledger would refuse, before any private value is read; write nothing.

    A ledger that knows nothing of a dataset of which bundles lie in ``published`` has been lost, or
    is the wrong one.
    """
    ledger = Ledger(ledger_url())
    granted = plan.budget.granted.budget
    known = ledger.granted(plan.dataset)
    if known is None:
        if any(published.glob(f"*/{MANIFEST}")):
            raise LedgerError(
                f"{published} holds bundles of {plan.dataset}, but the ledger has never heard of it:"
                " the ledger was lost, or is another one. Restore it, or name the right one with"
                " --ledger"
            )
        return  # the plan's own grant, which its request cannot exceed, is recorded with the charge
    if not known.covers(granted):
        raise BudgetError(
            f"budget.granted: the plan says that {plan.dataset} was granted {granted}, but the"
            f" ledger says {known}; correct the plan, or grant the difference with"
            " `dprelease ledger grant`"
        )
    ledger.check(plan.dataset, release_id, plan.digest, charges_of(plan))


@step("reserve budget")
def reserve_budget(plan: Plan, release_id: str) -> None:
    """Charge the whole release in one transaction; what was charged before stays as it is.

    A dataset that the ledger has never heard of is first granted what the plan says, once; from then
    on the ledger's word counts.
    """
    ledger = Ledger(ledger_url())
    granted = plan.budget.granted.budget
    ledger.first_grant(plan.dataset, granted, who="release plan", why="first use of the dataset")
    ledger.reserve(plan.dataset, release_id, plan.digest, charges_of(plan))


def undrawn(plan: Plan, release_id: str) -> list[str]:
    """The releases of the plan that have no committed draw yet."""
    ledger = Ledger(ledger_url())
    return [name for name in plan.built if ledger.committed(plan.dataset, release_id, name) is None]
