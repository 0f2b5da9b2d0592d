"""In which order several processes run the tests: those that take minutes first, spread over all.

pytest-xdist gives each process an equal stretch of the list of tests, and who has finished takes over
the end of another's stretch.  So one long test at the end of a stretch would leave all others idle.
"""

from collections.abc import Iterator, Sequence

import pytest

LONG = (
    "tests/flows/test_killed.py",
    "tests/flows/test_hostile_requests.py",
    "tests/flows/deployment/test_serve.py",
    "tests/flows/test_hostile.py",
    "tests/soak/test_short.py",
    "tests/tasks/survey/engines/test_spark.py",
    "tests/tasks/ledger/test_processes.py",
    "tests/flows/test_leaks_server.py",
    "tests/flows/test_alone.py",
    "tests/flows/test_lost_server.py",
    "tests/deployments/test_plans.py",
    "tests/docs/test_site.py",
    "tests/flows/deployment/test_burst.py",
    "tests/flows/test_browser.py",
)
"""Files by the time that they take, the longest first."""

ALONE = LONG[0]
"""Tests of this file have nothing in common that takes long to make."""


def spread(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests in an order of which each of ``processes`` equal stretches begins with long ones."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    long = [block for name in LONG for block in _blocks(name, files.pop(name, []))]
    stretches: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for number, block in enumerate(
        long
    ):  # forwards and backwards, so that none has all the longest
        turn, place = divmod(number, processes)
        stretches[place if turn % 2 == 0 else processes - 1 - place] += block
    others = iter([item for tests in files.values() for item in tests])
    for place, stretch in enumerate(stretches):
        wanted = len(items) * (place + 1) // processes - len(items) * place // processes
        stretch += [item for _, item in zip(range(wanted - len(stretch)), others, strict=False)]
    return [*(item for stretch in stretches for item in stretch), *others]


def _blocks(name: str, tests: list[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """What one process runs: a file's tests, which may share a server."""
    if name == ALONE:
        yield from ([test] for test in tests)
    elif tests:
        yield tests
