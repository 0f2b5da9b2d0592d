"""``dprelease catalogue``: write a page that lists all bundles of a folder."""

import argparse
from pathlib import Path
from typing import Any

from flows.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "catalogue", _catalogue, "write a page that lists all bundles of a folder"
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of bundles")
    parser.add_argument(
        "--out", type=Path, metavar="SITE", help="the folder for index.html; default: DIR itself"
    )


def _catalogue(options: argparse.Namespace) -> None:
    from tasks.catalogue import write_catalogue

    print(write_catalogue(options.folder, options.out or options.folder))
