"""``dprelease ledger``: grant budgets, show and recompute spending, and void reservations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from flows.cli import custody
from flows.cli.arguments import (
    LEDGER_ANSWER,
    AnyDataset,
    Changes,
    Dataset,
    LedgerOutput,
    PlanFile,
    Who,
    Why,
    existing_ledger,
    file_option,
    read_changes,
    require_dataset,
    valid_plans,
)

if TYPE_CHECKING:
    from tasks.ledger import HistoryRecord, Ledger

Amount = Annotated[str, Parameter(metavar="NUMBER", help="a decimal or a fraction; default: 0")]
Alpha = Annotated[Amount, Parameter(name=("--alpha", "--epsilon"))]
Beta = Annotated[Amount, Parameter(name=("--beta", "--delta"))]


def grant(
    dataset: Dataset,
    /,
    *,
    alpha: Alpha = "0",
    beta: Beta = "0",
    gamma: Amount = "0",
    composition: Annotated[
        Literal["basic", "concentrated"],
        Parameter(
            help=(
                "how the prices of releases add up: as alpha (basic), or as rho of zero-concentrated"
                " differential privacy (concentrated). This needs a beta and opens another account"
            )
        ),
    ] = "basic",
    who: Who,
    why: Why,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Add to the budget of a dataset."""
    from schemas.plan.identity import check_dataset
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_file, ledger_url

    check_dataset(dataset)
    budget = _read_budget(alpha=alpha, beta=beta, gamma=gamma)
    if budget == Budget():
        raise InputError("nothing to grant: give --alpha, --beta or --gamma")
    new = not ledger_exists()
    known = Ledger(ledger_url())
    before = known.account(dataset)
    try:
        known.grant(dataset, budget, who, why, composition)
    except ValueError as error:
        raise InputError(str(error)) from None
    words = [f"{dataset}: granted {known.promised(dataset)} in all"]
    if new and os.environ.get("PREFECT_API_URL"):
        print(
            f"This ledger is new: {ledger_file()}. A server with another DPRELEASE_HOME or"
            " DPRELEASE_LEDGER does not know this grant.",
            file=sys.stderr,
        )
    if composition == "concentrated":
        words.append(f"From now on charges count against {known.granted(dataset)}.")
        if before:
            words[-1] += (
                " This grant covers only later releases. Its promise adds to the promises of earlier"
                " grants, whose unspent rest is lost. A series that has begun cannot continue: begin a"
                " new series."
            )
    if os.environ.get("PREFECT_API_URL"):
        words += _resume_schedules()
    output.answer("\n".join(words), _budget_facts(known, dataset))


def _resume_schedules() -> list[str]:
    from httpx import HTTPError

    from flows.operation.exhaustion import resume_schedules

    try:
        return [f"The schedule of {plan} is resumed." for plan in resume_schedules()]
    except HTTPError:
        return [
            "The Prefect server at PREFECT_API_URL does not answer: when it does, `dprelease deploy`"
            " resumes the schedules that this grant covers."
        ]


def allow(
    dataset: Dataset,
    analyst: Annotated[str, Parameter(name="ANALYST", help="the name that will be published")],
    /,
    *,
    alpha: Alpha,
    beta: Annotated[
        str,
        Parameter(
            name=("--beta", "--delta"),
            metavar="NUMBER",
            help="default: the grant's beta times --alpha / the grant's alpha. With concentrated"
            " composition: the beta at which --alpha applies; default: the grant's beta",
        ),
    ] = "0",
    who: Who,
    why: Why,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Let an analyst spend more of a dataset's grant, and print the analyst's token.

    From the first allowance on, every request of the dataset is charged to an allowance. Only the newest
    token of an analyst is valid. To replace a lost or stolen token, use --alpha 0.
    """
    known = existing_ledger()
    promise = _read_budget(alpha=alpha, beta=beta)
    try:
        token = known.allow(dataset, analyst, promise, who, why)
    except ValueError as error:
        raise InputError(f"--alpha: {error}") from None
    allowance = known.allowances(dataset)[analyst]
    output.note(f"{dataset}: {analyst} may spend {allowance.left}. The token is shown only once")
    output.answer(token, _budget_facts(known, dataset) | {"token": token})


def _read_budget(**written: str) -> Budget:
    """The amounts of ``--alpha``, ``--beta`` and ``--gamma``."""
    from schemas.numbers import read_rational

    amounts = {}
    for name, text in written.items():
        try:
            amounts[name] = read_rational(text)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
        if name != "alpha" and amounts[name] >= 1:
            raise InputError(f"--{name}: must be below 1")
    return Budget(**amounts)


def source(
    plan: PlanFile,
    /,
    *,
    changes: Changes = (),
    who: Who,
    why: Why,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Record that a plan's survey replaces an earlier survey of its dataset."""
    from schemas.plan import load_plan
    from tasks.survey.steps import name_survey

    loaded = load_plan(plan, read_changes(changes))
    known = existing_ledger()
    known.assign(name_survey.fn(loaded), loaded.dataset, who, why)
    output.answer(
        f"the survey named by {plan} now belongs to dataset {loaded.dataset}",
        _budget_facts(known, loaded.dataset),
    )


def show(
    dataset: AnyDataset = None,
    /,
    *,
    plans: Annotated[
        Path | None,
        file_option(
            "the folder of plans, to show how many runs of each plan are left; default: plans, if it"
            " exists",
            "DIR",
        ),
    ] = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Print grants, charges and what is left."""
    from tasks.explain.account import ledger_text

    loaded = valid_plans(plans, output)
    known = existing_ledger()
    datasets = [dataset] if dataset else known.datasets()
    require_dataset(known, dataset)
    text = "\n\n".join(ledger_text(known, each, loaded) for each in datasets)
    facts = [
        _budget_facts(known, each) | {"history": [_line(r) for r in known.history(each)]}
        for each in datasets
    ]
    output.answer(text or "no datasets yet", facts)


def void(
    dataset: Dataset,
    release_id: Annotated[
        str, Parameter(name="RELEASE_ID", help="the id of the run that reserved it")
    ],
    name: Annotated[str, Parameter(help="the release's name in its plan")],
    /,
    *,
    who: Who,
    why: Why,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Void a reservation that was never drawn, or whose draw was lost before anybody saw it."""
    from tasks.budget.checkpoint import seen_draws

    known = existing_ledger()
    require_dataset(known, dataset)
    forgotten = name in seen_draws(dataset, release_id)
    known.void(dataset, release_id, name, who=who, why=why, forgotten=forgotten)
    output.answer(
        f"{dataset}: voided {name} of release {release_id}; {known.remaining(dataset)} left",
        _budget_facts(known, dataset),
    )


def reprice(
    dataset: Dataset,
    /,
    *,
    beta: Annotated[
        str | None,
        Parameter(
            name=("--beta", "--delta"),
            metavar="NUMBER",
            help="beta of all past releases together; default: the charged beta",
        ),
    ] = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Print the joint cost of past releases under tighter composition bounds. This changes nothing.

    A lower price is a statement about past releases, not a refund.
    """
    from schemas.numbers import read_rational
    from tasks.budget.reprice import reprice as price_again
    from tasks.budget.reprice import reprice_facts

    known = existing_ledger()
    require_dataset(known, dataset)
    try:
        whole = None if beta is None else read_rational(beta)
    except ValueError as error:
        raise InputError(f"--beta: {error}") from None
    if output.as_json:
        output.answer("", reprice_facts(known, dataset, whole))
    else:
        print(price_again(known, dataset, whole))


ledger = App(
    name="ledger",
    help="Grant a budget, show spending, look for faults.",
    group_parameters="Options",
)
_ACTIONS: tuple[Callable[..., None], ...] = (
    grant,
    allow,
    source,
    show,
    void,
    custody.check,
    custody.metrics,
    reprice,
    custody.checkpoint,
    custody.backup,
    custody.restore,
    custody.recover,
    custody.roles,
)
for _place, _action in enumerate(_ACTIONS):
    ledger.command(_action, sort_key=_place)


def _budget_facts(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """A dataset's budget, with amounts as exact decimals or fractions in text."""
    budgets = {
        "promised": ledger.promised(dataset),
        "granted": ledger.granted(dataset) or Budget(),
        "spent": ledger.spent(dataset),
        "left": ledger.remaining(dataset),
    }
    allowances = {
        analyst: {"allowed": each.allowed.as_strings(), "left": each.left.as_strings()}
        for analyst, each in ledger.allowances(dataset).items()
    }
    facts = {name: each.as_strings() for name, each in budgets.items()}
    return {"dataset": dataset} | facts | ({"allowances": allowances} if allowances else {})


def _line(record: HistoryRecord) -> dict[str, Any]:
    """A line of history, with amounts as exact decimals or fractions in text."""
    return {
        "at": record.at,
        "action": str(record.action),
        "release_id": record.release_id,
        "release": record.release_name,
        "budget": record.budget.as_strings(),
        "caps": record.caps.as_strings() if record.caps else None,
        "who": record.who,
        "why": record.why,
    }
