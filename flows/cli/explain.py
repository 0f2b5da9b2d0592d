"""``dprelease explain``: print a plan's cost and expected accuracy."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from dpcore.accounting.budget import total
from dpcore.errors import BudgetError, InputError
from flows.cli.arguments import LEDGER_ANSWER, Changes, LedgerOutput, Output, PlanFile, read_changes

if TYPE_CHECKING:
    from schemas.plan import Plan


def explain(
    plan: PlanFile,
    /,
    *,
    changes: Changes = (),
    target: Annotated[
        str | None,
        Parameter(
            metavar="RELEASE[:STATEMENT]=ERROR",
            help="print the smallest alpha of the plan at which an expected error of the release is at"
            " most this value: its first error statement, or the statement with STATEMENT in its name",
        ),
    ] = None,
    analysis: Annotated[
        str | None,
        Parameter(
            metavar="FORMULA",
            help='print whether the plan supports a model, such as "y ~ a + b", and its standard'
            " errors",
        ),
    ] = None,
    family: Annotated[
        Literal["gaussian", "binomial", "poisson"],
        Parameter(
            help="family of the model of --analysis: linear (the default), logistic or Poisson"
        ),
    ] = "gaussian",
    output: LedgerOutput = LEDGER_ANSWER,
) -> None:
    """Print cost and accuracy. This opens no data."""
    from schemas.plan import load_plan
    from tasks.explain import explain as words
    from tasks.explain.account import in_the_ledger
    from tasks.explain.target import find_target, target_facts, target_text

    loaded = load_plan(plan, read_changes(changes))
    if loaded.series and target:
        raise InputError(
            "--target: not for a series, because the price of a run depends on earlier runs; compare"
            " plans with `dprelease explain`"
        )
    if analysis is not None:
        _say_analysis(loaded, analysis, family, output)
        return
    asked = loaded, granted, spent, refusal = in_the_ledger(loaded)
    requested = total(loaded.prices.values())
    if target is None:
        if output.as_json:
            output.answer("", words.explanation(*asked))
        else:
            print(words.explain(*asked))
    else:
        found = find_target(loaded, *_read_target(target))
        output.answer(target_text(loaded, found), target_facts(found))
        requested = found.requested
    grant = loaded.budget.caps if granted is None else granted
    if refusal:  # it may say why the grant does not cover the release
        raise BudgetError(refusal)
    if not grant.covers(spent + requested):
        raise BudgetError("the grant does not cover this release; a run would be refused")


def _say_analysis(plan: "Plan", formula: str, family: str, output: Output) -> None:
    from tasks.explain.analysis import analysis_dict, analysis_text

    if not output.as_json:
        print(analysis_text(plan, formula, family))
        return
    found = analysis_dict(plan, formula, family)
    output.answer("", found)
    if not found["supported"]:
        raise InputError(found["reason"])


def _read_target(text: str) -> tuple[str, float, str]:
    """The release's name, the wanted error, and text that the error statement's name contains."""
    place, separator, value = text.rpartition("=")
    release, _, quantity = place.partition(":")
    try:
        wanted = float(value)
    except ValueError:
        wanted = 0.0
    if not separator or not 0 < wanted < float("inf"):
        raise InputError(f"--target {text}: write RELEASE=ERROR with a positive number")
    return release, wanted, quantity
