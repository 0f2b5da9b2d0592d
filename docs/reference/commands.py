"""The page of commands, from the command line itself."""

import inspect
from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from cyclopts import App
from cyclopts.argument import Argument

from docs.reference.markdown import linked, table
from flows.cli import EXIT_CODES, HELP, command_line

Named = tuple[str, App]
Row = tuple[str, str]

HEAD = ["argument", "meaning"]

COMMON = "Options of many commands"
OFTEN = 10
"""Commands that describe an option in the same words."""


def commands_page() -> str:
    """Every command with every argument and option; those of many commands are described once."""
    codes = [(str(code), meaning) for code, meaning in EXIT_CODES.items()]
    intro = (
        "Answers go to standard output, progress and errors to standard error. A terminal shows progress"
        " bars and colours, unless `NO_COLOR` is set; a pipe gets plain lines."
    )
    often = Counter(_row(a) for _, command in commands() for a in arguments(command))
    common = [row for row, number in often.items() if number >= OFTEN]
    parts = ["# Commands", intro, "## Exit codes", table(["code", "meaning"], codes)]
    parts += [f"## {COMMON}", table(HEAD, common)]
    return "\n\n".join([*parts, *(_section(*command, common) for command in commands())]) + "\n"


def commands(app: App | None = None, name: str = "dprelease") -> Iterator[Named]:
    """Each command with its full name, without those that only group commands."""
    app = app or command_line()
    inner = [each for each in app if each not in (*HELP, "--version")]
    if not inner:
        yield name, app
    for each in inner:
        yield from commands(app[each], f"{name} {each}")


def arguments(command: App) -> list[Argument]:
    """The arguments and options of a command, except ``--help``."""
    return [a for a in command.assemble_argument_collection() if a.show]


def spelled(argument: Argument) -> str:
    """An argument as written on the command line."""
    names = [name for name in argument.names if name not in argument.negatives]
    return f"{', '.join(names)} {_value(argument)}".strip()


def described(command: App) -> str:
    """What a command does, as a paragraph."""
    return " ".join(inspect.cleandoc(command.help).split())


def _section(name: str, command: App, common: list[Row]) -> str:
    found = sorted(arguments(command), key=lambda a: a.index is not None)
    own = [a for a in found if _row(a) not in common]
    usage = "\n    ".join(wrap(" ".join([name, *map(_in_usage, own)]), 72)).replace("\0", " ")
    parts = [f"## {name}", described(command), f"```\n{usage}\n```"]
    if own:
        parts.append(table(HEAD, map(_row, own)))
    if also := [f"`{argument.name}`" for argument in found if argument not in own]:
        parts.append(f"And {linked(COMMON, COMMON.lower())}: {', '.join(also)}.")
    return "\n\n".join(parts)


def _row(argument: Argument) -> Row:
    required = " (required)" * _must_be_named(argument)
    return f"`{spelled(argument)}`", (argument.parameter.help or "") + required


def _value(argument: Argument) -> str:
    """What follows an option's name."""
    if argument.index is not None or argument.hint is bool:
        return ""
    return argument.parameter.metavar or "|".join(argument.get_choices() or ())


def _must_be_named(argument: Argument) -> bool:
    return argument.required and argument.index is None


def _in_usage(argument: Argument) -> str:
    """An argument in a line of usage: in brackets where it may be left out; "\0" does not break."""
    text = f"{argument.name} {_value(argument)}".strip().replace(" ", "\0")
    return text if argument.required else f"[{text}]"
