"""The URL of a ledger that does not exist yet, of each engine."""

import pytest

from tests.tasks.ledger.test_postgresql import ENGINES, fresh_schema, fresh_url


@pytest.fixture(params=ENGINES)
def url(request, tmp_path) -> str:
    if request.param == "postgresql":
        return fresh_schema()
    return fresh_url(request.param, tmp_path)
