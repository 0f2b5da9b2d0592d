"""``dprelease approve`` and ``dprelease reject``: a disclosure officer's decision."""

import argparse
import sys
from functools import partial
from typing import Any

from dpcore.errors import ApprovalError
from flows.cli.arguments import add_command, add_ledger_argument


def add(commands: Any) -> None:
    """Add both commands to the parser."""
    for verb, approved, text in (
        ("approve", True, "allow a drawn release to be published"),
        ("reject", False, "forbid a drawn release to be published; its budget stays spent"),
    ):
        parser = add_command(commands, verb, partial(_decide, approved=approved), text)
        parser.add_argument("dataset", metavar="DATASET", help="its name in the plan")
        parser.add_argument("release_id", metavar="RELEASE_ID", help="the id of the waiting run")
        parser.add_argument("--who", required=True, help="the officer's name; it is published")
        parser.add_argument("--why", required=True, help="the reason; it is published")
        add_ledger_argument(parser)


def _decide(options: argparse.Namespace, approved: bool) -> None:
    from schemas.identity import check_dataset, check_release_id
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    check_dataset(options.dataset)
    check_release_id(options.release_id)
    ledger = Ledger(ledger_url(), create=False)
    decision = ledger.decide(
        options.dataset, options.release_id, approved, who=options.who, why=options.why
    )
    print(f"{options.dataset} {options.release_id}: {decision}")
    if approved:
        print("to publish, run the plan again with this release id, or resume its Prefect run")


def ask_officer(dataset: str, release_id: str) -> None:
    """Ask on the terminal and record the answer.

    Raises ``ApprovalError`` for any answer but ``approve`` and ``reject``; nothing is then recorded.
    """
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_url

    print(f"{dataset} {release_id} is drawn. Publish it? A decision is final.", file=sys.stderr)
    answer = _ask("approve or reject: ")
    if answer not in ("approve", "reject"):
        raise ApprovalError(f"nothing was decided: {dataset} {release_id} still waits")
    Ledger(ledger_url()).decide(
        dataset, release_id, answer == "approve", who=_ask("name: "), why=_ask("reason: ")
    )


def _ask(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
