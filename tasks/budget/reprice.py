"""Reports what a dataset's past releases cost by tighter composition bounds; it grants nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpcore.accounting.budget import Budget, decimal_text, total
from dpcore.accounting.loss_distributions import installed
from dpcore.errors import InputError, LedgerError
from dpcore.line.history import Charged, Price, prices
from schemas.releases.events import read_event
from tasks.explain.tables import amounts, text_table

if TYPE_CHECKING:
    from tasks.ledger import Ledger

WHY_NOTHING_CHANGES = (
    "Nothing was changed. A lower price is a statement about what was published, not a refund. It"
    " holds only if no plan was chosen in view of earlier results, and only for this one beta of the"
    " whole history. The charged price needs neither condition."
)
_WITHOUT_PACKAGE = (
    "Privacy-loss distributions, which are tighter, need dp-accounting:"
    " pip install 'dprelease[accounting]'"
)


def charged_events(ledger: Ledger, dataset: str) -> list[Charged]:
    """Every event of the dataset that counts, drawn or only reserved, with its charge.

    Raises ``LedgerError`` for an event that this version does not know.
    """
    from tasks.ledger import State

    found = []
    for release_id, charges in ledger.releases(dataset).items():
        for name, charge in charges.items():
            if charge.state is State.VOID:
                continue
            try:
                found.append(Charged(read_event(charge.event), charge.budget))
            except ValueError as error:
                raise LedgerError(
                    f"{name!r} in release {release_id!r} has {error}; use the version of dprelease"
                    " that charged it"
                ) from None
    return found


def reprice(ledger: Ledger, dataset: str, beta: Fraction | None = None) -> str:
    """The prices of a dataset's history as text.

    ``beta``: the beta at which alpha is computed; None for the sum of the charged betas, or, if charges
    are concentrated, for the beta of all grants.
    """
    events, charged, found, beta = _priced(ledger, dataset, beta)
    rows = [
        *([] if charged.rho else [amounts(f"charged, {len(events)} releases", charged)]),
        *(amounts(price.accountant, price.budget) for price in found),
    ]
    notes = [_verdict(found, beta), *[_WITHOUT_PACKAGE] * (not installed()), WHY_NOTHING_CHANGES]
    return "\n\n".join([f"{dataset}\n{text_table(rows)}", *notes])


def reprice_facts(ledger: Ledger, dataset: str, beta: Fraction | None = None) -> dict[str, Any]:
    """The prices of ``reprice`` as JSON values; amounts are exact decimals or fractions as text."""
    events, charged, found, beta = _priced(ledger, dataset, beta)
    return {
        "dataset": dataset,
        "releases": len(events),
        "charged": charged.as_strings(),
        "beta": str(beta),
        "prices": [{"accountant": p.accountant, **p.budget.as_strings()} for p in found],
    }


def _priced(
    ledger: Ledger, dataset: str, beta: Fraction | None
) -> tuple[list[Charged], Budget, list[Price], Fraction]:
    """The events, their charge, their prices by each accountant, and the beta used for these prices."""
    events = charged_events(ledger, dataset)
    charged = total(each.budget for each in events)
    if beta is None:
        beta = ledger.promised(dataset).beta if charged.rho else charged.beta
    try:
        return events, charged, prices(events, beta), beta
    except ValueError as error:
        raise InputError(f"--beta: {error}") from None


def _verdict(found: list[Price], beta: Fraction) -> str:
    if not found:
        return f"No accountant has a price for beta = {decimal_text(beta)}; give a higher --beta."
    least = found[0]
    verdict = f"The history costs at most {least.budget}, by {least.accountant}."
    return verdict + " Give --beta for the tighter accountants." * (beta == 0)
