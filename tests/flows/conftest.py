"""One server for all tests that need one."""

from collections.abc import Iterator

import pytest

from tests.conftest import made_up_survey, plan_of_every_kind
from tests.flows.served import Served, prepare


def small_plan_of_every_kind() -> dict:
    """Three releases and their people: a flow on every kind takes twice as long."""
    every = plan_of_every_kind()
    return every | {"releases": every["releases"][:3], "synthesis": every["synthesis"][:1]}


@pytest.fixture
def plan_document() -> dict:
    return small_plan_of_every_kind()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`dprelease serve`, up; it must end cleanly."""
    folder = tmp_path_factory.mktemp("served")
    prepare(folder, made_up_survey(), plan_of_every_kind())
    served = Served(folder)
    served.start()
    try:
        yield served
    finally:
        assert served.stop() == 0
