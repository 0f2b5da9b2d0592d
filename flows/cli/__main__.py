"""Runs the command line with ``python -m flows.cli``."""

from flows.cli import console

console()
