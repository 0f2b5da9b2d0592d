"""The command line, ``dprelease``.

Exit codes: 0 success, 2 bad input, 3 the budget refuses, 4 an audit fails, 1 anything else.  The
result goes to standard output, progress and errors to standard error.  Heavy modules are imported
by the command that needs them.
"""

import argparse
import atexit
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dpcore.budget import Budget
from dpcore.errors import AuditError, DPReleaseError, InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Before numpy is imported: threads of the linear algebra library that compete for few cores
    # make training many times slower.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = _parser().parse_args(arguments)
    try:
        if getattr(options, "ledger", None):
            os.environ["DPRELEASE_LEDGER"] = options.ledger
        options.run(options)
    except DPReleaseError as error:
        print(f"dprelease: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("dprelease: interrupted; run again with the same release id", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace) -> None:
    from flows.embedded import prefect_api
    from schemas.plan import check_release_id, load_plan

    overrides = _overrides(options)
    load_plan(options.plan, overrides)  # a faulty plan is told before anything is started
    if options.release_id is not None:
        check_release_id(options.release_id)
    _show_progress()
    with prefect_api():
        from flows.release import release

        bundle = release(
            plan=str(options.plan),
            release_id=options.release_id,
            out=str(options.out),
            overrides=overrides,
        )
    print(bundle)


def _audit(options: argparse.Namespace) -> None:
    from flows.embedded import prefect_api
    from schemas.plan import load_plan
    from tasks.explain import text_table

    overrides = _overrides(options)
    plan = load_plan(options.plan, overrides)
    if options.draws is not None and options.draws < 1:
        raise InputError("--draws: write a positive whole number")
    _show_progress()
    with prefect_api():
        from flows.audit import audit
        from tasks.audit import result_rows

        failure: AuditError | None = None
        try:
            results: Sequence[Any] = audit(
                str(options.plan), options.quick, options.draws, overrides
            )
        except AuditError as error:
            failure, results = error, error.results
    if options.json:
        print(json.dumps([result.to_dict() for result in results], indent=2))
    elif results:
        print(text_table(result_rows(plan, results)))
    if failure:
        raise failure


def _explain(options: argparse.Namespace) -> None:
    from schemas.plan import load_plan
    from tasks.explain import explain
    from tasks.home import ledger_url
    from tasks.ledger import Ledger

    plan = load_plan(options.plan, _overrides(options))
    granted, spent = None, Budget()
    url = ledger_url()
    if _ledger_exists(url):
        ledger = Ledger(url, create=False)
        granted, spent = ledger.granted(plan.dataset), ledger.spent(plan.dataset)
    print(explain(plan, granted, spent))


def _schema(options: argparse.Namespace) -> None:
    from schemas.plan import Plan

    print(json.dumps(Plan.model_json_schema(by_alias=True), indent=2))


def _verify(options: argparse.Namespace) -> None:
    from tasks.home import ledger_url
    from tasks.ledger import Ledger
    from tasks.verify import read_manifest, verify_budget, verify_files

    manifest = read_manifest(options.bundle)
    files = verify_files(options.bundle, manifest)
    print(f"digests and schemas: {files} files as published")
    url = ledger_url()
    if os.environ.get("DPRELEASE_LEDGER") or _ledger_knows(url, manifest.dataset):
        spent = verify_budget(manifest, Ledger(url, create=False))
        print(f"budget: the ledger charged {spent}, as the manifest says")
    else:
        print("budget: not compared, no ledger here knows the dataset (name one with --ledger)")


def _ledger_grant(options: argparse.Namespace) -> None:
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


def _ledger_show(options: argparse.Namespace) -> None:
    from tasks.explain import ledger_text
    from tasks.home import ledger_url
    from tasks.ledger import Ledger

    url = ledger_url()
    if not _ledger_exists(url):
        raise InputError("there is no ledger yet; name one with --ledger or DPRELEASE_LEDGER")
    ledger = Ledger(url, create=False)
    datasets = [options.dataset] if options.dataset else ledger.datasets()
    if options.dataset and options.dataset not in ledger.datasets():
        raise InputError(f"the ledger knows no dataset {options.dataset!r}")
    print("\n\n".join(ledger_text(ledger, dataset) for dataset in datasets) or "no datasets yet")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dprelease", description=__doc__.partition("\n\n")[2], allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = _command(commands, "run", _run, "publish a release and print the path of its bundle")
    _plan_arguments(run)
    run.add_argument("--release-id", metavar="ID", help="the same id never charges or draws twice")
    run.add_argument(
        "--out", type=Path, default=Path("published"), metavar="DIR", help="default: published"
    )
    _ledger_argument(run)

    explain = _command(commands, "explain", _explain, "print cost and accuracy; opens no data")
    _plan_arguments(explain)
    _ledger_argument(explain)

    audit = _command(commands, "audit", _audit, "test a plan's privacy as an attacker would")
    _plan_arguments(audit)
    audit.add_argument(
        "--quick", action="store_true", help="fewer draws, and no rehearsal of the survey's path"
    )
    audit.add_argument("--draws", type=int, metavar="N", help="draws on each of two tables")
    audit.add_argument("--json", action="store_true", help="print the results as JSON")

    _command(commands, "schema", _schema, "print the JSON Schema of a plan")

    verify = _command(commands, "verify", _verify, "check that a bundle is whole and paid for")
    verify.add_argument("bundle", type=Path, metavar="BUNDLE")
    _ledger_argument(verify)

    ledger = commands.add_parser("ledger", help="grant a budget, or show what was spent")
    actions = ledger.add_subparsers(dest="action", required=True, metavar="ACTION")
    grant = _command(actions, "grant", _ledger_grant, "add to the budget of a dataset")
    grant.add_argument("dataset", metavar="DATASET")
    for name in ("alpha", "beta", "gamma"):
        grant.add_argument(f"--{name}", default="0", metavar="NUMBER")
    grant.add_argument("--who", required=True, help="who decided")
    grant.add_argument("--why", required=True, help="on what grounds")
    _ledger_argument(grant)
    show = _command(actions, "show", _ledger_show, "print grants, charges and what is left")
    show.add_argument("dataset", nargs="?", metavar="DATASET")
    _ledger_argument(show)
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PLACE=VALUE",
        help="replace a value of the plan, such as source=PATH; may be repeated",
    )


def _ledger_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger", metavar="URL", help="default: DPRELEASE_LEDGER, or a file in dprelease's home"
    )


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    from schemas.document import read_value

    overrides: dict[str, Any] = {}
    for setting in options.set:
        place, separator, value = setting.partition("=")
        if not separator or not place:
            raise InputError(f"--set {setting}: write PLACE=VALUE, such as source=survey.parquet")
        overrides[place] = value if place == "source" else read_value(value)
    return overrides


def _ledger_exists(url: str) -> bool:
    """Whether there is something to open; looking must not make an empty ledger."""
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


def _ledger_knows(url: str, dataset: str) -> bool:
    from tasks.ledger import Ledger

    return _ledger_exists(url) and dataset in Ledger(url, create=False).datasets()


def _show_progress() -> None:
    from tasks.progress import LOGGER

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def console() -> NoReturn:
    """The installed command: ``main``, and an exit that leaves nothing on the screen."""
    atexit.register(end_quietly)
    sys.exit(main())


def end_quietly() -> None:
    """Close standard error, as the last thing that Python does.

    While the interpreter is torn down, DuckDB's binding reports what Prefect's threads still hold.
    Exit functions run last in, first out: registered before anything else, this one ends the list.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


if __name__ == "__main__":
    console()
