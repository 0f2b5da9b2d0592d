"""The page of commands, from the command line itself."""

import inspect
from collections import Counter
from collections.abc import Iterator

from cyclopts import App
from cyclopts.argument import Argument

from docs.reference.markdown import linked, table
from flows.cli import EXIT_CODES, HELP, command_line

Named = tuple[str, App]
Row = tuple[str, str]

HEAD = ["argument", "meaning"]

COMMON = "Options of many commands"
USUAL = ("--quiet", "--verbose", "--json")
"""Options that a section does not list if its command has all three."""

WORTH = 22
"""An option is described once for all commands if this saves at least this many words."""


def commands_page() -> str:
    """Every command with every argument and option; those of many commands are described once."""
    codes = [(str(code), meaning) for code, meaning in EXIT_CODES.items()]
    intro = (
        "Answers go to standard output, progress and errors to standard error. A terminal shows progress"
        " bars and colours, unless `NO_COLOR` is set; a pipe gets plain lines."
    )
    often = Counter(_row(a) for _, command in commands() for a in arguments(command))
    common = [row for row, number in often.items() if (number - 1) * len(row[1].split()) >= WORTH]
    parts = ["# Commands", intro, "## Exit codes", table(["code", "meaning"], codes)]
    parts += [f"## {COMMON}", _usual(), table(HEAD, common)]
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


def _usual() -> str:
    """Which commands have the usual options."""
    others = [name for name, app in commands() if not {*USUAL} <= {a.name for a in arguments(app)}]
    named = ", ".join(f"`{name}`" for name in others)
    return f"Every command has `{' '.join(USUAL)}`. The sections of {named} list what they have."


def _section(name: str, command: App, common: list[Row]) -> str:
    found = sorted(arguments(command), key=lambda a: a.index is not None)
    own = [a for a in found if _row(a) not in common]
    parts = [f"## {name}", described(command), f"```\n{_usage(name, found)}\n```"]
    if own:
        parts.append(table(HEAD, map(_row, own)))
    also = [argument.name for argument in found if argument not in own]
    if {*USUAL} <= {*also}:
        also = [name for name in also if name not in USUAL]
    if also:
        parts.append(f"Also {linked(COMMON, 'shared')}: `{' '.join(also)}`")
    return "\n\n".join(parts)


def _usage(name: str, found: list[Argument]) -> str:
    """The command with all that it needs; "[options]" if it takes more."""
    needed = [a for a in found if a.required or a.index is not None]
    more = ["[options]"] if len(needed) < len(found) else []
    return " ".join([name, *more, *map(_in_usage, needed)])


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
    """An argument in a line of usage: in brackets where it may be left out."""
    text = f"{argument.name} {_value(argument)}".strip()
    return text if argument.required else f"[{text}]"
