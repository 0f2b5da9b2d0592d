"""``dprelease ask``: answer an analyst's question, charged to the analyst's allowance."""

import sys
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter

from dpcore.errors import ApprovalError, InputError
from flows.cli.arguments import ANSWER, NO_WISHES, Output, Wishes, existing_ledger


def ask(
    plan: Annotated[str, Parameter(help="its name in the folder of plans (DPRELEASE_PLANS)")],
    /,
    *,
    analyst: Annotated[
        str, Parameter(name="--as", metavar="ANALYST", help="who asks; the name is published")
    ],
    alpha: Annotated[
        str,
        Parameter(
            name=("--alpha", "--epsilon"),
            metavar="NUMBER",
            help="the largest cost of the answer; at most the plan's request",
        ),
    ],
    wishes: Wishes = NO_WISHES,
    title: Annotated[
        str, Parameter(metavar="TEXT", help="title of the bundle; default: the wishes")
    ] = "",
    output: Output = ANSWER,
) -> None:
    """Show the cost and the accuracy of an answer; with the analyst's token, publish it.

    The command asks for the token on the terminal, or reads it from standard input. Without a token,
    nothing is charged. If anybody wrote the same wishes with the same alpha before, the answer is the
    earlier bundle, and costs nothing.
    """
    from flows.course import carry_out
    from flows.question import asked_before, question_id, select_releases
    from tasks.budget.charge import require_budget
    from tasks.explain.account import question_facts, question_text
    from tasks.workplace.job import ReleaseJob

    if wishes == NO_WISHES:
        raise InputError("ask for something: --table, --mean, --model or another wish")
    known = existing_ledger()
    chosen, open_fraction = select_releases(plan, [], alpha, title, analyst, wishes.said())
    allowance = known.allowance(chosen.dataset, chosen.publication.requester)
    if before := asked_before(chosen, plan, known):
        job = ReleaseJob(before.plan, before.release_id, open_fraction=open_fraction)
        output.note(str(before))
    else:
        job = ReleaseJob(chosen, question_id(chosen, plan, known), open_fraction=open_fraction)
        if not output.as_json:
            print(question_text(chosen, known), flush=True)
        require_budget(job, known)
        token = _read_token(chosen.publication.requester)
        if not token:
            if output.as_json:
                output.answer("", question_facts(chosen, known))
            print("no token: nothing was charged", file=sys.stderr)  # printed even with --quiet
            return
        allowance.require(token)
    try:
        with output.shown(job.plan):
            bundle = carry_out(job)
    except ApprovalError as waiting:
        if waiting.release_id:
            output.note(
                "once it is approved, ask the same question again to publish it; this costs nothing more"
            )
        raise
    facts = {"bundle": bundle, "dataset": job.dataset, "release_id": job.release_id}
    output.answer(bundle, facts)


def _read_token(analyst: str) -> str:
    """Return the token, or '' for none. Neither process lists nor the shell's history show the token."""
    if sys.stdin is None:  # it was closed
        return ""
    if sys.stdin.isatty():
        return getpass(f"Token of {analyst} (leave empty to charge nothing): ").strip()
    return sys.stdin.readline().strip()
