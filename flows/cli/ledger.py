"""``dprelease ledger``: grants and charges."""

import argparse
from typing import Any

from dpcore.budget import Budget
from dpcore.errors import InputError
from flows.cli.arguments import add_command, ledger_argument, ledger_exists


def add(commands: Any) -> None:
    """Add the command to the parser."""
    ledger = commands.add_parser("ledger", help="grant a budget, or show what was spent")
    actions = ledger.add_subparsers(dest="action", required=True, metavar="ACTION")
    grant = add_command(actions, "grant", _grant, "add to the budget of a dataset")
    grant.add_argument("dataset", metavar="DATASET")
    for name in ("alpha", "beta", "gamma"):
        grant.add_argument(f"--{name}", default="0", metavar="NUMBER")
    grant.add_argument("--who", required=True, help="who decided")
    grant.add_argument("--why", required=True, help="on what grounds")
    ledger_argument(grant)
    show = add_command(actions, "show", _show, "print grants, charges and what is left")
    show.add_argument("dataset", nargs="?", metavar="DATASET")
    ledger_argument(show)


def _grant(options: argparse.Namespace) -> None:
    from schemas.numbers import read_rational
    from schemas.plan import check_dataset
    from tasks.home import ledger_url
    from tasks.ledger import Ledger

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
    ledger.grant(options.dataset, budget, who=options.who, why=options.why)
    print(f"{options.dataset}: granted {ledger.granted(options.dataset)} in all")


def _show(options: argparse.Namespace) -> None:
    from tasks.explain import ledger_text
    from tasks.home import ledger_url
    from tasks.ledger import Ledger

    url = ledger_url()
    if not ledger_exists(url):
        raise InputError("there is no ledger yet; name one with --ledger or DPRELEASE_LEDGER")
    ledger = Ledger(url, create=False)
    datasets = [options.dataset] if options.dataset else ledger.datasets()
    if options.dataset and options.dataset not in ledger.datasets():
        raise InputError(f"the ledger knows no dataset {options.dataset!r}")
    print("\n\n".join(ledger_text(ledger, dataset) for dataset in datasets) or "no datasets yet")
