"""One server for all tests that need one."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import made_up_survey, plan_of_every_kind
from tests.flows.hostile import put_hostile
from tests.flows.served import Served, prepare


def small_plan_of_every_kind() -> dict:
    """Three releases and their people: a flow on every kind takes twice as long."""
    every = plan_of_every_kind()
    return every | {"releases": every["releases"][:3], "synthesis": every["synthesis"][:1]}


@pytest.fixture
def plan_document() -> dict:
    return small_plan_of_every_kind()


@pytest.fixture(scope="session")
def put_database(prefect: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Put a copy of Prefect's database where a process will look for it: making one takes seconds."""
    made = tmp_path_factory.mktemp("made") / "prefect.db"
    with closing(sqlite3.connect(prefect / "prefect.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(made)])

    def put(folder: Path) -> None:
        folder.mkdir(parents=True)
        shutil.copy(made, folder)

    return put


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`dprelease serve`, up; it must end cleanly, and contact no other host."""
    folder = tmp_path_factory.mktemp("served")
    prepare(folder, made_up_survey(), plan_of_every_kind())
    put_hostile(folder)
    served = Served(folder)
    served.start()
    try:
        yield served
    finally:
        assert served.stop() == 0
    assert served.contacts == ""
