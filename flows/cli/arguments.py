"""Arguments, checks and progress output that several commands share."""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from dpcore.errors import InputError


def add_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    """Add a command; ``run`` takes the parsed options, ``text`` is its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the plan's path and the option that changes values of it."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="the release plan, a YAML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="replace a value of the plan, such as source=PATH or rows=1000; may be repeated",
    )


def add_ledger_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the ledger."""
    parser.add_argument(
        "--ledger",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE; default: DPRELEASE_LEDGER, or a"
        " file in dprelease's home",
    )


def add_out_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of bundles."""
    words, default = "the folder of bundles; default: published", Path("published")
    parser.add_argument("--out", type=Path, default=default, metavar="DIR", help=words)


def read_overrides(options: argparse.Namespace) -> dict[str, Any]:
    """The values of ``--set`` by their dotted keys in the plan."""
    from schemas.document import read_value

    overrides: dict[str, Any] = {}
    for setting in options.set:
        place, separator, value = setting.partition("=")
        if not separator or not place:
            raise InputError(f"--set {setting}: write KEY=VALUE, such as source=survey.parquet")
        overrides[place] = value if place == "source" else read_value(value)
    return overrides


def show_progress() -> None:
    """Print the progress lines of steps on standard error."""
    from tasks.workplace.step import LOGGER

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def write_file(option: str, path: Path, text: str) -> None:
    """Write the file that an option names; raises ``InputError`` if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written ({error.strerror})") from None


def require_svg(plot: Path | None) -> None:
    """Raise ``InputError`` if a plot cannot be written to this path as SVG."""
    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise InputError(f"--plot {plot}: plots are SVG files; name a file that ends in .svg")
    if not plot.parent.is_dir():
        raise InputError(f"--plot: there is no folder {plot.parent}")
