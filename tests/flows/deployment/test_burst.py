"""Many people press the form's button at the same moment."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from threading import Barrier

import httpx
import pytest

from tests.flows.served import PASSWORD, WHOLE
from tests.waiting import SECONDS

REQUESTS = 3
ALPHA, OPENED = "3.2", 2
"""What the dearest request asks for, and how many of them the plan opens its grant to."""


@pytest.mark.slow
def test_requests_at_the_same_moment_wait_and_each_is_made_or_refused_with_a_reason(served):
    form = served.deployment("ad hoc release", "ad-hoc-release")["id"]
    asked = f"{served.address}/api/deployments/{form}/create_flow_run"
    together = Barrier(REQUESTS)

    def ask(number: int) -> httpx.Response:
        # Each is another question: the same one would be answered by the bundle of the first.
        alpha = str(Decimal(ALPHA) - Decimal(number) / 100)
        own = {"plan": "rush", "alpha": alpha, "requester": f"Analyst {number}"}
        together.wait(SECONDS)
        login = httpx.BasicAuth(*PASSWORD.split(":", 1))
        # As a browser does, which repeats no request.
        return httpx.post(asked, json={"parameters": WHOLE | own}, auth=login, timeout=SECONDS)

    with ThreadPoolExecutor(REQUESTS) as people:
        answers = list(people.map(ask, range(REQUESTS)))
    assert Counter(answer.status_code for answer in answers) == {201: REQUESTS}
    ended = [served.settled(answer.json()["id"]) for answer in answers]
    made = [run for run in ended if run["state_type"] == "COMPLETED"]
    refused = [run["state"]["message"] for run in ended if run not in made]
    assert len(made) == OPENED, refused
    assert all("requests" in reason for reason in refused), refused
    spent = served.ledger.spent("rush").alpha
    assert OPENED * (Fraction(ALPHA) - Fraction(REQUESTS, 100)) < spent <= OPENED * Fraction(ALPHA)
    assert len(list((served.out / "rush").iterdir())) == OPENED
