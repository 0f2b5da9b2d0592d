"""``dprelease ledger``: grant, show, void, check, re-price and copy what datasets have spent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from dpcore.accounting.budget import Budget
from dpcore.errors import BundleError, InputError, LedgerError, PlanError
from dpcore.suggestion import suggestion
from flows.cli.arguments import (
    ANSWER,
    Changes,
    Dataset,
    LedgerURL,
    Out,
    Output,
    PlanFile,
    Plans,
    file_option,
    read_changes,
)

if TYPE_CHECKING:
    from schemas.plan import Plan
    from tasks.ledger import Fault, HistoryRecord, Ledger

Amount = Annotated[str, Parameter(metavar="NUMBER", help="a decimal or a fraction; default: 0")]
AnyDataset = Annotated[str | None, Parameter(name="DATASET", help="default: all")]
Who = Annotated[str, Parameter(metavar="WHO", help="who decided")]
Why = Annotated[str, Parameter(metavar="WHY", help="the reason")]


def grant(
    dataset: Dataset,
    /,
    *,
    alpha: Annotated[Amount, Parameter(name=("--alpha", "--epsilon"))] = "0",
    beta: Annotated[Amount, Parameter(name=("--beta", "--delta"))] = "0",
    gamma: Amount = "0",
    composition: Annotated[
        Literal["basic", "concentrated"],
        Parameter(
            help="how the prices of releases add up: as alpha, or as rho of zero-concentrated"
            " differential privacy, which needs a beta and opens an account of its own"
        ),
    ] = "basic",
    who: Who,
    why: Why,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Add to the budget of a dataset."""
    from schemas.numbers import read_rational
    from schemas.plan.identity import check_dataset
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    check_dataset(dataset)
    amounts = {}
    for name, written in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        try:
            amounts[name] = read_rational(written)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
        if name != "alpha" and amounts[name] >= 1:
            raise InputError(f"--{name}: must be below 1")
    budget = Budget(**amounts)
    if budget == Budget():
        raise InputError("nothing to grant: give --alpha, --beta or --gamma")
    known = Ledger(ledger_url())
    try:
        known.grant(dataset, budget, who, why, composition)
    except ValueError as error:
        raise InputError(str(error)) from None
    words = [f"{dataset}: granted {known.promised(dataset)} in all"]
    if composition == "concentrated":
        words.append(
            f"From now on charges count against {known.granted(dataset)}. That covers what"
            " comes after this grant; its promise adds to those of earlier grants, and what they had"
            " left can no longer be spent. A series that was begun before cannot go on: begin a new one."
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


def source(
    plan: PlanFile,
    /,
    *,
    changes: Changes = (),
    who: Who,
    why: Why,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Give a plan's survey to its dataset, when another survey took the place of an earlier one."""
    from schemas.plan import load_plan
    from tasks.survey.steps import name_survey

    loaded = load_plan(plan, read_changes(changes))
    known = _existing_ledger()
    known.assign(name_survey.fn(loaded), loaded.dataset, who, why)
    output.answer(
        f"{loaded.dataset}: the survey that {plan} names now belongs to it",
        _budget_facts(known, loaded.dataset),
    )


def show(
    dataset: AnyDataset = None,
    /,
    *,
    plans: Annotated[
        Path | None,
        file_option(
            "the folder of plans, to say how many runs of each are left; default: plans, if there is"
            " one",
            "DIR",
        ),
    ] = None,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Print grants, charges and what is left."""
    from tasks.explain.explain import ledger_text

    loaded = _valid_plans(plans, output)
    known = _existing_ledger()
    datasets = [dataset] if dataset else known.datasets()
    _require_known(known, dataset)
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
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Give up a reservation that was never drawn."""
    known = _existing_ledger()
    _require_known(known, dataset)
    known.void(dataset, release_id, name, who=who, why=why)
    output.answer(
        f"{dataset}: voided {name} of release {release_id}; {known.remaining(dataset)} left",
        _budget_facts(known, dataset),
    )


def check(
    dataset: AnyDataset = None,
    /,
    *,
    out: Out = None,
    plans: Plans = None,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Check that ledger, draws and bundles agree; repairs nothing."""
    from tasks.budget.reconcile import reconcile
    from tasks.budget.schedule import MOST_LATE, late_releases
    from tasks.explain.explain import fault_rows, text_table
    from tasks.workplace.plans import published_folder

    known = _existing_ledger()
    published: Path | None = out or published_folder()
    assert published is not None
    if dataset and not (published / dataset).is_dir():
        _require_known(known, dataset)
    if not published.is_dir() and (out or os.environ.get("DPRELEASE_OUT")):
        raise InputError(f"{'--out' if out else 'DPRELEASE_OUT'}: there is no folder {published}")
    words = []
    if not published.is_dir():
        words = [f"bundles were not compared: there is no folder {published} (name one with --out)"]
        published = None
    loaded = _valid_plans(plans, output)
    faults = reconcile(known, published, dataset)
    for path, plan in loaded.items():
        if dataset in (None, plan.dataset):
            late = late_releases(plan, path, known, datetime.now(UTC))
            faults += late
            if len(late) == MOST_LATE:
                output.note(
                    f"{path}: lists its {MOST_LATE:,} oldest late releases; there may be more"
                )
    if not faults:
        agree = "ledger, draws and bundles agree" if published else "the ledger and its draws agree"
        words.append(agree + "; no scheduled release is late" * bool(loaded))
    else:
        words.append(text_table(fault_rows(faults)))
    for remedy in dict.fromkeys(fault.remedy for fault in faults):
        words.append(f"\n{', '.join(_places(faults, remedy))}:\n  {remedy}")
    facts = [asdict(fault) for fault in faults]
    output.answer("\n".join(words), {"bundles_compared": bool(published), "faults": facts})
    if faults:
        count = f"{len(faults)} fault" + "s" * (len(faults) > 1)
        raise BundleError(f"{count} found; nothing was changed")


def metrics(
    *,
    events: Annotated[
        Path | None, file_option("the file of events; default: DPRELEASE_EVENTS, if it is set")
    ] = None,
    plans: Plans = None,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Print budgets, releases, runs, notices and the time of steps as OpenMetrics."""
    from tasks.budget.metrics import metrics_text
    from tasks.workplace.events import VARIABLE
    from tasks.workplace.places import place

    path = events or place(VARIABLE)
    if path and path != events and not path.exists():
        output.note(
            f"{VARIABLE}: there is no file {path} yet, so nothing is known of runs and steps"
        )
        path = None
    known, loaded = _existing_ledger(), _valid_plans(plans, output)
    text = metrics_text(known, loaded, path, datetime.now(UTC))
    output.answer(text.removesuffix("\n"), {"metrics": text})


def reprice(
    dataset: Dataset,
    /,
    *,
    beta: Annotated[
        str | None,
        Parameter(
            name=("--beta", "--delta"),
            metavar="NUMBER",
            help="beta of the whole history; default: what was charged",
        ),
    ] = None,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Print what the history costs by tighter accountants; changes nothing.

    A lower price is a statement about what was published, not a refund.
    """
    from schemas.numbers import read_rational
    from tasks.budget.reprice import reprice as price_again
    from tasks.budget.reprice import reprice_facts

    known = _existing_ledger()
    _require_known(known, dataset)
    try:
        whole = None if beta is None else read_rational(beta)
    except ValueError as error:
        raise InputError(f"--beta: {error}") from None
    if output.as_json:
        output.answer("", reprice_facts(known, dataset, whole))
    else:
        print(price_again(known, dataset, whole))


def checkpoint(
    file: Annotated[Path | None, Parameter(help="default: DPRELEASE_CHECKPOINT")] = None,
    /,
    *,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Write which draws the ledger knows, as a witness of it."""
    from tasks.budget.checkpoint import checkpoint_file, write_checkpoint

    path = file or checkpoint_file()
    if path is None:
        raise InputError("name a file, or set DPRELEASE_CHECKPOINT")
    drawn = write_checkpoint(_existing_ledger(), path)
    output.answer(f"{path}: {drawn:,} draw{'s' * (drawn != 1)}", {"file": path, "draws": drawn})


def backup(
    file: Annotated[Path, Parameter(help="must not exist")],
    /,
    *,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Copy the ledger to a new file (SQLite)."""
    _existing_ledger().copy_to(file)
    output.answer(
        f"{file}: a copy of the ledger; it holds every noisy statistic, and no record",
        {"file": file},
    )


def restore(
    file: Annotated[Path, Parameter(help="the backup")],
    /,
    *,
    ledger: LedgerURL = None,
    output: Output = ANSWER,
) -> None:
    """Make a ledger of a backup, where there is none (SQLite)."""
    from tasks.budget.checkpoint import checkpoint_file, require_checkpoint
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_file

    place = ledger_file()
    if place is None:
        raise InputError(
            "a ledger is restored to a file, --ledger sqlite:///FILE; one in PostgreSQL is restored with"
            " its own tool, pg_restore"
        )
    if ledger_exists():
        raise InputError(
            "there is a ledger already, and it may know draws that the backup does not: compare the two"
            " with `dprelease ledger show`, move it away if it is damaged, and restore again"
        )
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    try:
        copy = Ledger(f"sqlite:///{file.absolute()}", create=False)
    except LedgerError as error:
        raise InputError(f"{file}: is not the backup of a ledger ({error})") from None
    copy.require_whole()
    faults = [fault for name in copy.datasets() for fault in copy.find_faults(name)]
    if what := [fault.what for fault in faults if fault.what != "reserved, not drawn"]:
        raise LedgerError(f"{file}: {what[0]}; take another backup")
    require_checkpoint(copy)
    copy.copy_to(place)
    output.answer(
        "restored. Draws that were made after the backup are forgotten"
        + (
            "; the checkpoint knows of none."
            if checkpoint_file()
            else ": compare with all bundles, `dprelease ledger check --out DIR`, before the next run."
        ),
        {"restored": file, "datasets": copy.datasets()},
    )


def roles(
    *,
    apply: Annotated[
        bool,
        Parameter(
            negative="", help="make the ledger if there is none, and run the SQL as its owner"
        ),
    ] = False,
    ledger: LedgerURL = None,
) -> None:
    """Print SQL that makes a role for publishers and one for officers (PostgreSQL)."""
    from tasks.ledger import Ledger
    from tasks.ledger.roles import roles_sql
    from tasks.workplace.home import ledger_url

    if apply:
        Ledger(ledger_url()).make_roles()
    print(roles_sql(), end="")


ledger = App(
    name="ledger",
    help="Grant a budget, show what was spent, look for faults.",
    group_parameters="Options",
)
_ACTIONS: tuple[Callable[..., None], ...] = (
    grant,
    source,
    show,
    void,
    check,
    metrics,
    reprice,
    checkpoint,
    backup,
    restore,
    roles,
)
for _place, _action in enumerate(_ACTIONS):
    ledger.command(_action, sort_key=_place)


def _budget_facts(ledger: Ledger, dataset: str) -> dict[str, Any]:
    """A dataset's budget as exact strings."""
    budgets = {
        "promised": ledger.promised(dataset),
        "granted": ledger.granted(dataset) or Budget(),
        "spent": ledger.spent(dataset),
        "left": ledger.remaining(dataset),
    }
    return {"dataset": dataset} | {name: each.as_strings() for name, each in budgets.items()}


def _line(record: HistoryRecord) -> dict[str, Any]:
    """A line of history; amounts are exact strings."""
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


def _places(faults: list[Fault], remedy: str) -> list[str]:
    return [str(number) for number, fault in enumerate(faults, 1) if fault.remedy == remedy]


def _valid_plans(folder: Path | None, output: Output) -> dict[Path, Plan]:
    """The plans of the named folder, or of the usual one; invalid ones are reported."""
    from schemas.plan import load_plan
    from tasks.workplace.plans import plans_in, usual_plans

    plans = {}
    for path in (plans_in(folder) if folder else usual_plans()).values():
        try:
            plans[path] = load_plan(path)
        except PlanError as error:
            output.note(f"skipped: {error}")
    return plans


def _existing_ledger() -> Ledger:
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    if not ledger_exists():
        raise InputError("there is no ledger yet; name one with --ledger or DPRELEASE_LEDGER")
    return Ledger(ledger_url(), create=False)


def _require_known(ledger: Ledger, dataset: str | None) -> None:
    if dataset and dataset not in ledger.datasets():
        meant = suggestion(dataset, ledger.datasets())
        raise InputError(f"the ledger knows no dataset {dataset!r}{meant}")
