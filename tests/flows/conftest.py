"""One server for all tests that need one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import made_up_survey, plan_of_every_kind
from tests.flows.hostile import put_hostile
from tests.flows.served import Served, prepare
from tests.order import SERVED

SERVER = pytest.StashKey[Served]()


def small_plan_of_every_kind() -> dict:
    """Three releases and their people: a flow on every kind takes twice as long."""
    every = plan_of_every_kind()
    return every | {"releases": every["releases"][:3], "synthesis": every["synthesis"][:1]}


@pytest.fixture
def plan_document() -> dict:
    return small_plan_of_every_kind()


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    pytestconfig: pytest.Config,
    put_database: Callable[[Path], None],
) -> Iterator[Served]:
    """`dprelease serve` over plans of its own, not started; it contacts no other host."""
    folder = tmp_path_factory.mktemp("served")
    put_database(folder / "home" / "server")
    prepare(folder, made_up_survey(), plan_of_every_kind())
    put_hostile(folder)
    server = pytestconfig.stash[SERVER] = Served(folder)
    yield server
    assert server.contacts == ""


@pytest.fixture
def served(server: Served) -> Served:
    """The server, up."""
    if not server.running:
        server.start()
    return server


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End the server before tests that do not need it: it works also while nobody asks."""
    server = item.config.stash.get(SERVER, None)
    needed = nextitem is not None and nextitem.nodeid.startswith(SERVED)
    if server and server.running and not needed:
        assert server.stop() == 0
