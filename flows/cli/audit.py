"""``dprelease audit``: test a plan's privacy."""

from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from dpcore.errors import AuditError, InputError
from flows.cli.arguments import ANSWER, Changes, Output, PlanFile, read_changes


def audit(
    plan: PlanFile,
    /,
    *,
    changes: Changes = (),
    quick: Annotated[
        bool,
        Parameter(help="make fewer draws, and skip the test of ingest, validation and tally"),
    ] = False,
    draws: Annotated[
        int | None,
        Parameter(metavar="N", help="number of draws on each of two neighbouring tables"),
    ] = None,
    output: Output = ANSWER,
) -> None:
    """Test a plan's privacy as an attacker would."""
    from schemas.plan import load_plan
    from tasks.explain.tables import text_table

    loaded = load_plan(plan, read_changes(changes))
    if draws is not None and draws < 1:
        raise InputError("--draws: write a positive whole number")
    failure: AuditError | None = None
    with output.shown():
        from flows.course import audit_plan
        from tasks.audit.audit import result_rows

        try:
            results: Sequence[Any] = audit_plan(loaded, draws, quick)
        except AuditError as error:
            failure, results = error, error.results
    if output.as_json or results:
        rows = result_rows(loaded, results)
        output.answer(text_table(rows), [result.to_dict() for result in results])
    if failure:
        raise failure
