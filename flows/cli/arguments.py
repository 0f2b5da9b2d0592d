"""What several commands ask and how they answer."""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from dpcore.errors import InputError


def add_command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text, allow_abbrev=False
    )
    parser.set_defaults(run=run)
    return parser


def plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", type=Path, metavar="PLAN", help="the release plan, a YAML file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PLACE=VALUE",
        help="replace a value of the plan, such as source=PATH; may be repeated",
    )


def ledger_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ledger", metavar="URL", help="default: DPRELEASE_LEDGER, or a file in dprelease's home"
    )


def overrides_of(options: argparse.Namespace) -> dict[str, Any]:
    from schemas.document import read_value

    overrides: dict[str, Any] = {}
    for setting in options.set:
        place, separator, value = setting.partition("=")
        if not separator or not place:
            raise InputError(f"--set {setting}: write PLACE=VALUE, such as source=survey.parquet")
        overrides[place] = value if place == "source" else read_value(value)
    return overrides


def ledger_exists(url: str) -> bool:
    """Whether there is something to open; looking must not make an empty ledger."""
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


def show_progress() -> None:
    from tasks.progress import LOGGER

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def require_svg(plot: Path | None) -> None:
    """Raise ``InputError`` where a plot is asked for that cannot be written as SVG."""
    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise InputError(f"--plot {plot}: plots are SVG; name a file that ends in .svg")
    if not plot.parent.is_dir():
        raise InputError(f"--plot: there is no folder {plot.parent}")
