"""``dprelease approve`` and ``dprelease reject``: a disclosure officer's decision."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from flows.cli.arguments import LEDGER_ANSWER, Dataset, LedgerOutput

Waiting = Annotated[str, Parameter(name="RELEASE_ID", help="the id of the waiting run")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Officer:
    """Who decides, and why."""

    who: Annotated[str, Parameter(metavar="WHO", help="the officer's name; it is published")]
    why: Annotated[str, Parameter(metavar="WHY", help="the reason; it is published")]


def approve(
    dataset: Dataset, release_id: Waiting, /, *, by: Officer, output: LedgerOutput = LEDGER_ANSWER
) -> None:
    """Allow a drawn release to be published."""
    _decide(dataset, release_id, True, by, output)


def reject(
    dataset: Dataset, release_id: Waiting, /, *, by: Officer, output: LedgerOutput = LEDGER_ANSWER
) -> None:
    """Forbid the publication of a drawn release; its budget stays spent."""
    _decide(dataset, release_id, False, by, output)


def _decide(
    dataset: str, release_id: str, approved: bool, by: Officer, output: LedgerOutput
) -> None:
    from schemas.plan.identity import check_dataset, check_release_id
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    check_dataset(dataset)
    check_release_id(release_id)
    known = Ledger(ledger_url(), create=False)
    decision = known.decide(dataset, release_id, approved, by.who, by.why)
    words = [f"{dataset} {release_id}: {decision}"]
    published = bool(known.seals(dataset, release_id))
    if published and not approved:
        words.append(
            "its bundle is already published or is being published now; withdraw the bundle instead"
        )
    elif approved and not known.asks_approval(dataset, release_id):
        words.append(
            "no run of this release asks for approval; unless its plan has"
            " `publication: {approval: true}`,"
            f" it {'was' if published else 'is'} published without approval"
        )
    elif approved and not published:
        words.append(
            "to publish, run the plan again with this release id, or resume its Prefect run"
        )
    facts = {"dataset": dataset, "release_id": release_id, "approved": decision.approved}
    output.answer("\n".join(words), facts | {"who": decision.who, "why": decision.why})
