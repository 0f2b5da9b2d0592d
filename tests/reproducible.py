"""The same noise whenever a test is run again: one that fails once fails until it is mended.

A test of noise may fail by chance, however good the code is.  With the operating system's randomness it
would fail in one run of many, and nobody could look at it.  So each test, and each fixture that several
share, draws from a stream of its own, which its name begins.  What other processes draw stays random.
"""

import os
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from dpcore.sampling.source import SeededSource, SystemSource

AT_RANDOM = ("tests/dpcore/sampling/test_source.py", "tests/flows/operation/test_parallel.py")
"""Files that test the operating system's source itself."""

_from_the_system = SystemSource.words
_streams: list[SeededSource] = []
_process = os.getpid()


def _words(source: SystemSource, size: int) -> NDArray[np.uint64]:
    if os.getpid() == _process and _streams:  # processes that fork would all draw the same
        return _streams[-1].words(size)
    return _from_the_system(source, size)


SystemSource.words = _words  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    parameter = getattr(request, "param_index", 0)
    with_its_own = f"{fixturedef.baseid}::{fixturedef.argname}[{parameter}]"
    return (yield from _drawing_from(with_its_own))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.nodeid.startswith(AT_RANDOM):
        return (yield)
    return (yield from _drawing_from(item.nodeid))


def _drawing_from(name: str) -> Iterator[None]:
    _streams.append(SeededSource(zlib.crc32(name.encode())))
    try:
        return (yield)
    finally:
        _streams.pop()
