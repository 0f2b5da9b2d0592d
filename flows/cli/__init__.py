"""The command line, ``dprelease``.

Exit codes: 0 success, 2 bad input, 3 the budget does not allow it, 4 an audit failed, 5 a
disclosure officer has not approved, 1 any other error.  Results go to standard output, progress
and errors to standard error.

Each command is one module, which adds its parser and runs it.  A command imports heavy modules only
when it runs.
"""

import argparse
import atexit
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from dpcore.errors import DPReleaseError
from flows.cli import (
    approve,
    audit,
    catalogue,
    evaluate,
    explain,
    init,
    ledger,
    run,
    schema,
    serve,
    sign,
    verify,
)

COMMANDS = (
    init,
    run,
    explain,
    audit,
    schema,
    sign,
    verify,
    ledger,
    approve,
    serve,
    catalogue,
    evaluate,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Before numpy is imported: with several threads on few cores, its linear algebra library makes
    # training many times slower.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = command_parser().parse_args(arguments)
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
        again = "; run again with the same release id" if options.command == "run" else ""
        print(f"dprelease: interrupted{again}", file=sys.stderr)
        return 1
    return 0


def command_parser() -> argparse.ArgumentParser:
    """The parser of all commands and options; the reference page is generated from it."""
    parser = argparse.ArgumentParser(
        prog="dprelease", description=__doc__.split("\n\n")[1], allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


def console() -> NoReturn:
    """The installed command: runs ``main`` and exits without messages of the interpreter's shutdown."""
    atexit.register(end_quietly)
    sys.exit(main())


def end_quietly() -> None:
    """Close standard error as the last exit function.

    While the interpreter shuts down, DuckDB's binding reports objects that Prefect's threads still
    hold.  Exit functions run last in, first out, so this one must be registered first.
    """
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
