"""``dprelease ledger``: check the ledger, print its metrics, and make backups and a list of draws."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from dpcore.errors import BundleError, InputError, LedgerError, LostLedgerError
from flows.cli.arguments import (
    DEFAULT_LEDGER,
    LEDGER_ANSWER,
    AnyDataset,
    Dataset,
    LedgerOption,
    LedgerOutput,
    Out,
    Plans,
    Who,
    Why,
    existing_ledger,
    file_option,
    require_dataset,
    valid_plans,
)

if TYPE_CHECKING:
    from tasks.ledger import Fault


def check(
    dataset: AnyDataset = None,
    /,
    *,
    out: Out = None,
    plans: Plans = None,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Check that ledger, draws and bundles agree. This changes nothing."""
    from tasks.budget.reconcile import reconcile
    from tasks.budget.schedule import MOST_LATE, late_releases
    from tasks.explain.account import fault_rows
    from tasks.explain.tables import text_table
    from tasks.workplace.plans import published_folder

    known = existing_ledger()
    folder = out or published_folder()
    published = folder if folder.is_dir() else None
    if dataset and not (folder / dataset).is_dir():
        require_dataset(known, dataset)
    if not published and (out or os.environ.get("DPRELEASE_OUT")):
        raise InputError(f"{'--out' if out else 'DPRELEASE_OUT'}: there is no folder {folder}")
    words = []
    if not published:
        words = [f"bundles were not compared: there is no folder {folder} (name one with --out)"]
    loaded = valid_plans(plans, output)
    faults = reconcile(known, published, dataset)
    for path, plan in loaded.items():
        if dataset in (None, plan.dataset):
            late = late_releases(plan, path, known, datetime.now(UTC))
            faults += late
            if len(late) == MOST_LATE:
                output.note(f"{path}: only the {MOST_LATE:,} oldest late releases are listed here")
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
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Print budgets, releases, runs, notices and the time of steps as OpenMetrics."""
    from tasks.budget.metrics import metrics_text
    from tasks.workplace.events import VARIABLE
    from tasks.workplace.places import place

    path = events or place(VARIABLE)
    if path and path != events and not path.exists():
        output.note(
            f"{VARIABLE}: there is no file {path} yet, so there are no metrics of runs and steps"
        )
        path = None
    known, loaded = existing_ledger(), valid_plans(plans, output)
    text = metrics_text(known, loaded, path, datetime.now(UTC))
    output.answer(text.removesuffix("\n"), {"metrics": text})


def checkpoint(
    file: Annotated[Path | None, Parameter(help="default: DPRELEASE_CHECKPOINT")] = None,
    /,
    *,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Write a list of the draws in the ledger, by which an old copy of the ledger can be detected."""
    from tasks.budget.checkpoint import checkpoint_file, lost_draws, write_checkpoint

    path = file or checkpoint_file()
    if path is None:
        raise InputError("name a file, or set DPRELEASE_CHECKPOINT")
    known = existing_ledger()
    drawn = write_checkpoint(known, path)
    if lost := lost_draws(known, path=path):
        places = [f"{each.dataset}/{each.release_id}/{each.release_name}" for each in lost]
        raise LostLedgerError(
            f"these draws are in {path}, but not in the ledger: {', '.join(places)}; see `dprelease"
            " ledger check`"
        )
    output.answer(f"{path}: {drawn:,} draw{'s' * (drawn != 1)}", {"file": path, "draws": drawn})


def backup(
    file: Annotated[Path, Parameter(help="must not exist")],
    /,
    *,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Copy the ledger to a new file (SQLite)."""
    existing_ledger().copy_to(file)
    output.answer(
        f"{file}: a copy of the ledger, with all noisy statistics and no survey record",
        {"file": file},
    )


def restore(
    file: Annotated[Path, Parameter(help="the backup")], /, *, output: LedgerOutput = LEDGER_ANSWER
) -> None:
    """Restore the ledger from a backup, if there is no ledger (SQLite)."""
    from tasks.budget.checkpoint import checkpoint_file, lost_draws
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_file

    place = ledger_file()
    if place is None:
        raise InputError(
            "only a file can be restored, --ledger sqlite:///FILE; restore a PostgreSQL ledger with"
            " pg_restore"
        )
    if ledger_exists():
        raise InputError(
            "there already is a ledger, perhaps with draws that the backup lacks: compare both with"
            " `dprelease ledger show`. If the ledger is damaged, move it away and restore again"
        )
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    try:
        copy = Ledger(f"sqlite:///{file.absolute()}", create=False)
    except LedgerError as error:
        raise InputError(f"{file}: is not the backup of a ledger ({error})") from None
    copy.require_whole()
    faults = [fault for name in copy.datasets() for fault in copy.find_faults(name)]
    # A backup may have been made while a run was between its charge and its draw.
    if what := [fault.what for fault in faults if fault.what != "reserved, not drawn"]:
        raise LedgerError(f"{file}: {what[0]}; take another backup")
    copy.copy_to(place)
    lost = sorted({fault.dataset for fault in lost_draws(copy)})
    compare = "compare with all bundles, `dprelease ledger check --out DIR`, before the next run."
    if checkpoint_file():
        compare = "the checkpoint lists no missing draw."
        if lost:
            compare = (
                f"the checkpoint lists draws of {', '.join(lost)} that the backup lacks, so these runs"
                " cannot continue: restore a newer backup, or use `dprelease ledger recover`."
            )
    output.answer(
        f"restored. Draws made after the backup are missing: {compare} Repeat grants and allowances"
        " given after the backup.",
        {"restored": file, "datasets": copy.datasets(), "lost": lost},
    )


def recover(
    dataset: Dataset,
    /,
    *,
    out: Out = None,
    who: Who,
    why: Why,
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Enter bundles of a dataset that are missing in the ledger, with their draws."""
    from schemas.plan.identity import check_dataset
    from tasks.budget.checkpoint import lost_draws
    from tasks.budget.recover import recover as enter
    from tasks.workplace.plans import published_folder

    published = (out or published_folder()) / check_dataset(dataset)
    if not published.is_dir():
        raise InputError(f"there is no folder of bundles {published}: name its parent with --out")
    known = existing_ledger()
    entered = enter(known, published, who, why)
    words = f"{dataset}: entered {', '.join(entered) or 'nothing'}; {known.remaining(dataset)} left"
    lost = [f"{fault.release_id} {fault.release_name}" for fault in lost_draws(known, dataset)]
    output.answer(words, {"dataset": dataset, "entered": entered, "lost": lost})
    if lost:
        raise LostLedgerError(
            f"the checkpoint lists draws without a bundle in {published} ({', '.join(lost)}): find"
            " their bundles and repeat the command. If nobody has seen a draw, void it: dprelease"
            f" ledger void {dataset} {lost[0]} --who WHO --why WHY"
        )


def roles(
    *,
    apply: Annotated[
        bool,
        Parameter(
            negative="", help="make the ledger if there is none, and run the SQL as its owner"
        ),
    ] = False,
    ledger: LedgerOption = DEFAULT_LEDGER,
) -> None:
    """Print SQL that makes two roles, for publishers and for officers (PostgreSQL)."""
    from tasks.ledger import Ledger
    from tasks.ledger.roles import roles_sql
    from tasks.workplace.home import ledger_url

    if apply:
        Ledger(ledger_url()).make_roles()
    print(roles_sql(), end="")


def _places(faults: list[Fault], remedy: str) -> list[str]:
    return [str(number) for number, fault in enumerate(faults, 1) if fault.remedy == remedy]
