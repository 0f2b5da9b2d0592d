"""What the benchmarks of intervals have in common: options, and how results are printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks import DATA


def options(
    about: str | None, datasets: Iterable[str], surveys: int = 100, **choices: Iterable[str]
) -> argparse.Namespace:
    """Those of the command line; the first of the datasets, and of other ``choices``, are defaults.

    Ends the program where the test tables are missing.
    """
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    for name, each in {"dataset": datasets, **choices}.items():
        listed = [*each]
        parser.add_argument(f"--{name}", choices=listed, default=listed[0])
    parser.add_argument("--alpha", default="1")
    for name, usual in (("rows", 5000), ("surveys", surveys), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--json", action="store_true")
    found = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    return found


def show(asked: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """Print a line for each family in ``families``, or everything that was found as one JSON line."""
    named = {name: value for name, value in vars(asked).items() if name not in ("seed", "json")}
    if asked.json:
        print(json.dumps({**named, **found}))
        return
    for family, result in found["families"].items():
        print({**named, "family": family, **result})
