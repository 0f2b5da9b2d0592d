"""The URL of a ledger that does not exist yet, of each engine; and requests that a ledger refuses."""

import pytest

from tasks.ledger import ChargeRequest, Ledger
from tests.tasks.ledger.test_postgresql import ENGINES, fresh_schema, fresh_url


@pytest.fixture(params=ENGINES)
def url(request, tmp_path) -> str:
    if request.param == "postgresql":
        return fresh_schema()
    return fresh_url(request.param, tmp_path)


def refused(ledger: Ledger, request: ChargeRequest, error: type[Exception], match: str) -> None:
    for method in (ledger.check, ledger.reserve):
        with pytest.raises(error, match=match):
            method(request)
