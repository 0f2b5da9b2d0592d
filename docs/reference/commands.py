"""The page of commands, from the argument parser."""

import argparse
from collections.abc import Iterator

import flows.cli
from docs.reference.markdown import docstring, table


def commands_page() -> str:
    """Every command with every argument and option."""
    sections = [_section(parser) for parser in parsers()]
    return "\n\n".join(["# Commands", docstring(flows.cli).split("\n\n")[1], *sections]) + "\n"


def parsers() -> Iterator[argparse.ArgumentParser]:
    """The parser of each command, without those that only group commands."""
    return _leaves(flows.cli.command_parser())


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments and options of a command, except ``--help``."""
    return [a for a in parser._actions if not isinstance(a, argparse._HelpAction)]


def spelled(action: argparse.Action) -> str:
    """An argument as written on the command line."""
    value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def _leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for command in group.choices.values():
            yield from _leaves(command)


def _section(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=72)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    rows = [
        (
            f"`{spelled(a)}`",
            f"{a.help or ''}{' (required)' * (a.required and bool(a.option_strings))}",
        )
        for a in arguments(parser)
    ]
    text = parser.description or ""
    parts = [f"## {parser.prog}", f"{text[:1].upper()}{text[1:]}."]
    parts.append(f"```\n{formatter.format_help().strip()}\n```")
    if rows:
        parts.append(table(["argument", "meaning"], rows))
    return "\n\n".join(parts)
