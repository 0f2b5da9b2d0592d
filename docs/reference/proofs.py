"""How many tests each mechanism has, counted where they are collected."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from docs.reference.markdown import docstring, table
from tests.dpcore.contract import CASES

ROOT = Path(__file__).parents[2]


def proofs(mechanisms: list[type]) -> str:
    """One row for each mechanism: its law, the releases that use it, its tests."""
    contract, others = counts()
    rows = [
        (
            f"[{mechanism.__name__}](#{mechanism.__name__.lower()})",
            law(mechanism),
            ", ".join(f"`{name}`" for name in sorted(_released_by(mechanism))),
            str(contract[mechanism]),
            str(others[mechanism]),
        )
        for mechanism in mechanisms
    ]
    return table(["mechanism", "law", "releases", "contract tests", "other tests"], rows)


def law(mechanism: type) -> str:
    """The first paragraph that states it, the class's own or that of its parent."""
    stated = [docstring(kind).split("\n\n")[0] for kind in mechanism.__mro__[:-1]]
    return " ".join(next((text for text in stated if "DP" in text), stated[0]).split())


@cache
def counts() -> tuple[Mapping[type, int], Mapping[type, int]]:
    """Tests of the cases that a mechanism is registered with, and tests in files that name it."""
    contract, others = Counter[type](), Counter[type]()
    for file, name in _collected():
        if case := _case(name):
            contract[type(CASES[case].release.mechanism)] += 1
        else:
            others.update(_named_in(file))
    return contract, others


def _case(test: str) -> str | None:
    """The longest name of a case among the parameters of a test, if there is one."""
    parameters = test.partition("[")[2].rstrip("]")
    found = [case for case in CASES if f"-{case}-" in f"-{parameters}-"]
    return max(found, key=len, default=None)


@cache
def _named_in(file: str) -> frozenset[type]:
    """The mechanisms that a file of tests names, or whose sampler or releases it names."""
    words = set(re.findall(r"\w+", (ROOT / file).read_text()))
    kinds = {type(case.release.mechanism) for case in CASES.values()}
    return frozenset(
        kind
        for kind in kinds
        if words & {kind.__name__, kind.__module__.rpartition(".")[2], *_released_by(kind)}
    )


def _collected() -> Iterator[tuple[str, str]]:
    """File and name of every test of ``dpcore``."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/dpcore"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for line in found.stdout.splitlines():
        file, separator, name = line.partition("::")
        if separator:
            yield file, name


def _released_by(mechanism: type) -> set[str]:
    releases = (case.release for case in CASES.values())
    return {type(r).__name__ for r in releases if type(r.mechanism) is mechanism}
