"""What a planted fault is: one wrong line, the tests that ought to notice it, and what an audit sees.

``old`` occurs exactly once in ``file`` (``tests/benchmarks/test_mutations.py`` checks it).
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """Replace ``old`` by ``new`` in ``file``, and some test of ``tests`` fails.

    ``audit``: what the short audit looks at, one of ``audits.SUBJECTS`` (all where it is empty); or
    ``unseen``: why no audit can see the fault.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    audit: str = ""
    unseen: str = ""


SAMPLING = "dpcore/sampling/"
MECHANISMS = "dpcore/mechanisms/"
RELEASES = "dpcore/releases/"
CONTRACT = "tests/dpcore/releases/test_contract.py"
NOISE = "tests/dpcore/releases/test_contract_noise.py"
LINE = "tests/dpcore/line/test_privacy_line.py"
OF_MECHANISMS = (
    "tests/dpcore/releases/counts",
    "tests/dpcore/releases/densities/test_bandwidth.py",
    "tests/dpcore/releases/machines/test_descent.py",
    "tests/dpcore/releases/tables/test_compressed_microdata.py",
    "tests/dpcore/releases/tables/test_two_rounds.py",
)
"""Tests of releases that make claims about the law of a mechanism of their own."""


def of_sampling(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    return Fault(name, f"{SAMPLING}{module}.py", old, new, ("tests/dpcore/sampling",), **seen)


def of_paper(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    tests = (f"papers/{module.partition('/')[0]}", CONTRACT, NOISE)
    return Fault(name, f"papers/{module}.py", old, new, tests, **seen)


def of_mechanism(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    tests = ("tests/dpcore/mechanisms", LINE, CONTRACT, NOISE, *OF_MECHANISMS)
    return Fault(name, f"{MECHANISMS}{module}.py", old, new, tests, **seen)


def of_release(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    room = module.partition("/")[0]
    tests = (f"tests/dpcore/releases/{room}", CONTRACT, NOISE)
    return Fault(name, f"{RELEASES}{module}.py", old, new, tests, **seen)


def of_survey(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    return Fault(name, f"tasks/survey/{module}.py", old, new, ("tests/tasks/survey",), **seen)


def of_ledger(name: str, module: str, old: str, new: str, **seen: str) -> Fault:
    return Fault(name, f"tasks/ledger/{module}.py", old, new, ("tests/tasks/ledger",), **seen)
