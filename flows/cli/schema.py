"""``dprelease schema``: print the JSON Schema of a plan."""

import argparse
import json
from typing import Any

from flows.cli.arguments import add_command


def add(commands: Any) -> None:
    """Add the command to the parser."""
    add_command(commands, "schema", _schema, "print the JSON Schema of a plan")


def _schema(options: argparse.Namespace) -> None:
    from schemas.plan import Plan

    print(json.dumps(Plan.model_json_schema(by_alias=True), indent=2))
