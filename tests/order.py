"""In which order several processes run the tests: those that take minutes first, spread over all.

pytest-xdist gives each process an equal stretch of the list of tests, and who has finished takes over
the end of another's stretch.  So one long test at the end of a stretch would leave all others idle.
"""

from collections.abc import Iterator, Sequence

import pytest

SERVED = (
    "tests/flows/deployment/test_burst.py",
    "tests/flows/deployment/test_serve.py",
    "tests/flows/test_browser.py",
    "tests/flows/test_consent.py",
    "tests/flows/test_foreign.py",
    "tests/flows/test_hostile.py",
    "tests/flows/test_hostile_requests.py",
)
"""Files that share a server: in several processes each would start one of its own."""

LONG = (
    SERVED,
    ("tests/flows/test_killed.py",),
    ("tests/soak/test_short.py",),
    ("tests/tasks/survey/engines/test_spark.py",),
    ("tests/tasks/ledger/test_processes.py",),
    ("tests/flows/test_leaks_server.py",),
    ("tests/flows/test_alone.py",),
    ("tests/flows/test_lost_server.py",),
    ("tests/deployments/test_plans.py",),
    ("tests/docs/test_site.py", "tests/docs/test_kinds.py"),
)
"""Groups of files by the time that they take, the longest first; one process runs all of a group."""

ALONE = LONG[1]
"""Tests of this group have nothing in common that takes long to make."""


def spread(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests in an order of which each of ``processes`` equal stretches begins with long ones."""
    group_of = {name: group for group in LONG for name in group}
    groups: dict[tuple[str, ...], list[pytest.Item]] = {}
    for item in items:
        name = item.nodeid.partition("::")[0]
        groups.setdefault(group_of.get(name, (name,)), []).append(item)
    long = [block for group in LONG for block in _blocks(group, groups.pop(group, []))]
    stretches: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for number, block in enumerate(long):  # forwards and backwards: none has all the longest
        turn, place = divmod(number, processes)
        stretches[place if turn % 2 == 0 else processes - 1 - place] += block
    others = iter([item for tests in groups.values() for item in tests])
    for place, stretch in enumerate(stretches):
        wanted = len(items) * (place + 1) // processes - len(items) * place // processes
        stretch += [item for _, item in zip(range(wanted - len(stretch)), others, strict=False)]
    return [*(item for stretch in stretches for item in stretch), *others]


def _blocks(group: tuple[str, ...], tests: list[pytest.Item]) -> Iterator[list[pytest.Item]]:
    """What one process runs: tests of a group, which may share a server."""
    if group == ALONE:
        yield from ([test] for test in tests)
    elif tests:
        yield tests
