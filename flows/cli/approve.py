"""``dprelease approve`` and ``dprelease reject``: a disclosure officer's decision."""

from typing import Annotated

from cyclopts import Parameter

from flows.cli.arguments import ANSWER, Dataset, LedgerURL, Output

Waiting = Annotated[str, Parameter(name="RELEASE_ID", help="the id of the waiting run")]
Who = Annotated[str, Parameter(metavar="WHO", help="the officer's name; it is published")]
Why = Annotated[str, Parameter(metavar="WHY", help="the reason; it is published")]


def approve(
    dataset: Dataset,
    release_id: Waiting,
    /,
    *,
    who: Who,
    why: Why,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Allow a drawn release to be published."""
    _decide(dataset, release_id, True, who, why, output)


def reject(
    dataset: Dataset,
    release_id: Waiting,
    /,
    *,
    who: Who,
    why: Why,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Forbid the publication of a drawn release; its budget stays spent."""
    _decide(dataset, release_id, False, who, why, output)


def _decide(
    dataset: str, release_id: str, approved: bool, who: str, why: str, output: Output
) -> None:
    from schemas.plan.identity import check_dataset, check_release_id
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    check_dataset(dataset)
    check_release_id(release_id)
    known = Ledger(ledger_url(), create=False)
    decision = known.decide(dataset, release_id, approved, who=who, why=why)
    words = [f"{dataset} {release_id}: {decision}"]
    published = bool(known.seals(dataset, release_id))
    if published and not approved:
        words.append(
            "its bundle is already published or is being published now; withdraw the bundle instead"
        )
    elif approved and not known.asks(dataset, release_id):
        words.append(
            "no run of this release asks for an approval: without `publication: {approval: true}` in"
            f" its plan it {'was' if published else 'is'} published without one"
        )
    elif approved and not published:
        words.append(
            "to publish, run the plan again with this release id, or resume its Prefect run"
        )
    facts = {"dataset": dataset, "release_id": release_id, "approved": decision.approved}
    output.answer("\n".join(words), facts | {"who": decision.who, "why": decision.why})
