"""``dprelease ledger``: grant, show, void, check, re-price and copy what datasets have spent."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcore.budget import Budget
from dpcore.errors import InputError, LedgerError, PlanError
from flows.cli.arguments import add_command, add_ledger_argument

if TYPE_CHECKING:
    from schemas.plan import Plan
    from tasks.ledger import Fault, Ledger

PUBLISHED = Path("published")
_REPRICE = (
    "print what the history costs by tighter accountants; changes nothing: a lower price is a"
    " statement about what was published, not a refund"
)


def add(commands: Any) -> None:
    """Add the command to the parser."""
    ledger = commands.add_parser(
        "ledger", help="grant a budget, show what was spent, look for faults"
    )
    actions = ledger.add_subparsers(dest="action", required=True, metavar="ACTION")
    grant = add_command(actions, "grant", _grant, "add to the budget of a dataset")
    grant.add_argument("dataset", metavar="DATASET", help="its name in the plan")
    for name in ("alpha", "beta", "gamma"):
        grant.add_argument(
            f"--{name}", default="0", metavar="NUMBER", help="a decimal or a fraction; default: 0"
        )
    grant.add_argument(
        "--composition",
        choices=("basic", "concentrated"),
        default="basic",
        help="how the prices of releases add up: as alpha, or as rho of zero-concentrated differential"
        " privacy, which needs a beta and opens an account of its own",
    )
    _officer_arguments(grant)
    show = add_command(actions, "show", _show, "print grants, charges and what is left")
    show.add_argument("dataset", nargs="?", metavar="DATASET", help="default: all")
    _plans_argument(show, "to say how many runs of each are left")
    add_ledger_argument(show)
    void = add_command(actions, "void", _void, "give up a reservation that was never drawn")
    void.add_argument("dataset", metavar="DATASET", help="its name in the plan")
    void.add_argument("release_id", metavar="RELEASE_ID", help="the id of the run that reserved it")
    void.add_argument("name", metavar="NAME", help="the release's name in its plan")
    _officer_arguments(void)
    check = add_command(
        actions, "check", _check, "check that ledger, draws and bundles agree; repairs nothing"
    )
    check.add_argument("dataset", nargs="?", metavar="DATASET", help="default: all")
    check.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder of bundles; default: published"
    )
    _plans_argument(check, "to look for scheduled releases that are late")
    add_ledger_argument(check)
    reprice = add_command(actions, "reprice", _reprice, _REPRICE)
    reprice.add_argument("dataset", metavar="DATASET", help="its name in the plan")
    reprice.add_argument(
        "--beta", metavar="NUMBER", help="beta of the whole history; default: what was charged"
    )
    add_ledger_argument(reprice)
    checkpoint = add_command(
        actions, "checkpoint", _checkpoint, "write which draws the ledger knows, as a witness of it"
    )
    checkpoint.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="default: DPRELEASE_CHECKPOINT"
    )
    add_ledger_argument(checkpoint)
    backup = add_command(actions, "backup", _backup, "copy the ledger to a new file (SQLite)")
    backup.add_argument("file", type=Path, metavar="FILE", help="must not exist")
    add_ledger_argument(backup)
    restore = add_command(
        actions, "restore", _restore, "make a ledger of a backup, where there is none (SQLite)"
    )
    restore.add_argument("file", type=Path, metavar="FILE", help="the backup")
    add_ledger_argument(restore)
    roles = "print SQL that makes a role for publishers and one for officers (PostgreSQL)"
    add_command(actions, "roles", _roles, roles)


def _plans_argument(parser: argparse.ArgumentParser, purpose: str) -> None:
    words = f"the folder of plans, {purpose}; default: plans, if there is one"
    parser.add_argument("--plans", type=Path, metavar="DIR", help=words)


def _officer_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--who", required=True, help="who decided")
    parser.add_argument("--why", required=True, help="the reason")
    add_ledger_argument(parser)


def _grant(options: argparse.Namespace) -> None:
    from schemas.identity import check_dataset
    from schemas.numbers import read_rational
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    check_dataset(options.dataset)
    amounts = {}
    for name in ("alpha", "beta", "gamma"):
        try:
            amounts[name] = read_rational(getattr(options, name))
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
        if name != "alpha" and amounts[name] >= 1:
            raise InputError(f"--{name}: must be below 1")
    budget = Budget(**amounts)
    if budget == Budget():
        raise InputError("nothing to grant: give --alpha, --beta or --gamma")
    ledger = Ledger(ledger_url())
    try:
        ledger.grant(options.dataset, budget, options.who, options.why, options.composition)
    except ValueError as error:
        raise InputError(str(error)) from None
    print(f"{options.dataset}: granted {ledger.promised(options.dataset)} in all")
    if options.composition == "concentrated":
        print(
            f"From now on charges count against {ledger.granted(options.dataset)}. That covers what"
            " comes after this grant; its promise adds to those of earlier grants, and what they had"
            " left can no longer be spent. A series that was begun before cannot go on: begin a new one."
        )


def _show(options: argparse.Namespace) -> None:
    from tasks.explain.explain import ledger_text

    plans = _valid_plans(options)
    ledger = _existing_ledger()
    datasets = [options.dataset] if options.dataset else ledger.datasets()
    _require_known(ledger, options.dataset)
    texts = (ledger_text(ledger, dataset, plans) for dataset in datasets)
    print("\n\n".join(texts) or "no datasets yet")


def _void(options: argparse.Namespace) -> None:
    ledger = _existing_ledger()
    _require_known(ledger, options.dataset)
    ledger.void(options.dataset, options.release_id, options.name, who=options.who, why=options.why)
    print(
        f"{options.dataset}: voided {options.name} of release {options.release_id};"
        f" {ledger.remaining(options.dataset)} left"
    )


def _check(options: argparse.Namespace) -> None:
    from tasks.budget.reconcile import reconcile
    from tasks.budget.schedule import late_releases
    from tasks.explain.explain import fault_rows, text_table

    ledger = _existing_ledger()
    published = options.out or PUBLISHED
    if options.dataset and not (published / options.dataset).is_dir():
        _require_known(ledger, options.dataset)
    if options.out and not published.is_dir():
        raise InputError(f"--out: there is no folder {published}")
    if not published.is_dir():
        print(f"bundles were not compared: there is no folder {published} (name one with --out)")
        published = None
    plans = _valid_plans(options)
    faults = reconcile(ledger, published, options.dataset)
    for path, plan in plans.items():
        if options.dataset in (None, plan.dataset):
            faults += late_releases(plan, path, ledger, datetime.now(UTC))
    if not faults:
        agree = "ledger, draws and bundles agree" if published else "the ledger and its draws agree"
        print(agree + "; no scheduled release is late" * bool(plans))
        return
    print(text_table(fault_rows(faults)))
    for remedy in dict.fromkeys(fault.remedy for fault in faults):
        print(f"\n{', '.join(_places(faults, remedy))}:\n  {remedy}")
    count = f"{len(faults)} fault" + "s" * (len(faults) > 1)
    raise LedgerError(f"{count} found; nothing was changed")


def _reprice(options: argparse.Namespace) -> None:
    from schemas.numbers import read_rational
    from tasks.budget.reprice import reprice

    ledger = _existing_ledger()
    _require_known(ledger, options.dataset)
    try:
        beta = None if options.beta is None else read_rational(options.beta)
    except ValueError as error:
        raise InputError(f"--beta: {error}") from None
    print(reprice(ledger, options.dataset, beta))


def _checkpoint(options: argparse.Namespace) -> None:
    from tasks.budget.checkpoint import checkpoint_file, write_checkpoint

    path = options.file or checkpoint_file()
    if path is None:
        raise InputError("name a file, or set DPRELEASE_CHECKPOINT")
    drawn = write_checkpoint(_existing_ledger(), path)
    print(f"{path}: {drawn:,} draw{'s' * (drawn != 1)}")


def _backup(options: argparse.Namespace) -> None:
    _existing_ledger().copy_to(options.file)
    print(f"{options.file}: a copy of the ledger; it holds every noisy statistic, and no record")


def _restore(options: argparse.Namespace) -> None:
    from tasks.budget.checkpoint import checkpoint_file, require_checkpoint
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    place = ledger_url()
    if not place.startswith("sqlite:///"):
        raise InputError("a ledger in PostgreSQL is restored with its own tool: pg_restore")
    if ledger_exists():
        raise InputError(
            "there is a ledger already, and it may know draws that the backup does not: compare the two"
            " with `dprelease ledger show`, move it away if it is damaged, and restore again"
        )
    if not options.file.is_file():
        raise InputError(f"{options.file}: there is no such file")
    backup = Ledger(f"sqlite:///{options.file.absolute()}", create=False)
    faults = [fault for name in backup.datasets() for fault in backup.find_faults(name)]
    if what := [fault.what for fault in faults if fault.what != "reserved, not drawn"]:
        raise LedgerError(f"{options.file}: {what[0]}; take another backup")
    require_checkpoint(backup)
    backup.copy_to(Path(place.removeprefix("sqlite:///")))
    print(
        "restored. Draws that were made after the backup are forgotten"
        + (
            "; the checkpoint knows of none."
            if checkpoint_file()
            else ": compare with all bundles, `dprelease ledger check --out DIR`, before the next run."
        )
    )


def _roles(_: argparse.Namespace) -> None:
    from tasks.ledger.roles import roles_sql

    print(roles_sql(), end="")


def _places(faults: list[Fault], remedy: str) -> list[str]:
    return [str(number) for number, fault in enumerate(faults, 1) if fault.remedy == remedy]


def _valid_plans(options: argparse.Namespace) -> dict[Path, Plan]:
    """The plans of the named folder, or of the usual one if it exists; invalid ones are reported."""
    from schemas.plan import load_plan
    from tasks.workplace.plans import plans_folder, plans_in

    plans = {}
    if options.plans or plans_folder().is_dir():
        for path in plans_in(options.plans or plans_folder()).values():
            try:
                plans[path] = load_plan(path)
            except PlanError as error:
                print(f"skipped: {error}", file=sys.stderr)
    return plans


def _existing_ledger() -> Ledger:
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    if not ledger_exists():
        raise InputError("there is no ledger yet; name one with --ledger or DPRELEASE_LEDGER")
    return Ledger(ledger_url(), create=False)


def _require_known(ledger: Ledger, dataset: str | None) -> None:
    if dataset and dataset not in ledger.datasets():
        raise InputError(f"the ledger knows no dataset {dataset!r}")
