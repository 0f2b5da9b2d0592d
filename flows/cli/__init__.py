"""The command line, ``dprelease``.

Each command is a function in a separate module.  It imports heavy modules only when it runs. Answers go
to standard output, progress and errors to standard error.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter

from dpcore.errors import DPReleaseError, InputError
from flows import whole_process
from flows.cli import (
    approve,
    ask,
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
from flows.cli.arguments import LedgerOption

HELP = ("--help", "-h")
EXIT_CODES = {
    0: "success",
    1: "any other error",
    2: "bad input: a command, an option, a plan, a table or a file",
    3: "the budget does not cover the release, or was granted for another privacy unit",
    4: "an audit found more loss than is claimed",
    5: "a disclosure officer has not approved the release, or has rejected it",
    6: "a bundle is damaged or was changed, or the ledger and its bundles disagree",
    7: "the Prefect server at PREFECT_API_URL does not answer",
}
COMMANDS: tuple[App | Callable[..., None], ...] = (
    init.init,
    run.run,
    ask.ask,
    explain.explain,
    audit.audit,
    schema.schema,
    sign.sign,
    verify.verify,
    ledger.ledger,
    approve.approve,
    approve.reject,
    serve.serve,
    serve.deploy,
    catalogue.catalogue,
    evaluate.evaluate,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # Before numpy is imported: with several threads on few cores, its linear algebra library makes
    # training many times slower.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.environ.get("PREFECT_API_URL"):
        from flows.operation.gate import show_key

        show_key()  # before Prefect reads its settings
    given = list(sys.argv[1:] if arguments is None else arguments)
    app = command_line()
    try:
        command, bound, _ = app.parse_args(given, print_error=False, exit_on_error=False)
        if command == app.help_print and not set(HELP) & set(given):  # no command is named
            app.help_print(given, console=app.error_console)
            return InputError.exit_code
        # Set for all commands, because steps open the ledger that the environment names, even in a flow.
        for options in bound.arguments.values():
            if isinstance(options, LedgerOption) and options.ledger:
                os.environ["DPRELEASE_LEDGER"] = options.ledger
        command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        early = given[0].startswith("-") and len(given) > 1
        complain(f"{error}{' Options follow the command.' * early}")
        return InputError.exit_code
    except DPReleaseError as error:
        complain(str(error))
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        again = "; run again with the same release id" if given[0] == "run" else ""
        complain(f"interrupted{again}")
        return 1
    return 0


def command_line() -> App:
    """All commands and options. The reference page is generated from this parser."""
    app = App(
        name="dprelease",
        help="Publish differentially private statistics and synthetic microdata from survey tables.",
        help_epilogue="\n".join(
            ["Exit codes:", *(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items())]
        ),
        help_format="plaintext",
        help_flags=HELP,
        version=_version,
        version_flags="--version",
        group_parameters="Options",
        default_parameter=Parameter(negative="", show_default=False),
    )
    for place, command in enumerate((*COMMANDS, completion)):
        if isinstance(command, App):
            command.sort_key, command.help_epilogue = place, ""
            app.command(command)
        else:
            app.command(command, sort_key=place, help_epilogue="")
    return app


def _version() -> str:
    from importlib.metadata import version

    return version("dprelease")


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="the shell")], /
) -> None:
    """Print a script that completes commands and options in a shell.

    For bash, write into ~/.bashrc: source <(dprelease completion bash)
    """
    print(command_line().generate_completion(shell=shell))


def complain(words: str) -> None:
    """Print an error; its first word is red on a terminal."""
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble(("dprelease:", "bold red"), " ", words)
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


def console() -> NoReturn:
    """The installed command."""
    whole_process(main)
