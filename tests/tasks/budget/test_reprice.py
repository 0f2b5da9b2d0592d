"""Pricing a history again reads the ledger, tells what it knows, and changes nothing."""

from fractions import Fraction

import pytest

from dpcore.accounting.budget import Budget
from dpcore.errors import LedgerError
from dpcore.mechanisms.laplace import LaplaceEvent
from flows.cli import main
from tasks.budget.reprice import charged_events, reprice
from tasks.ledger import Charge, ChargeRequest, Ledger

TENTH = Charge(Budget.of("0.1"), LaplaceEvent(Fraction(2), Fraction(20)).to_dict())


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def ledger(url: str) -> Ledger:
    ledger = Ledger(url)
    ledger.grant("wages", Budget.of(20, "0.01"), who="A. Officer", why="test")
    for quarter in range(20):
        charges = {f"table {number}": TENTH for number in range(5)}
        ledger.reserve(ChargeRequest("wages", f"q{quarter:02}", "digest", charges))
    return ledger


@pytest.mark.slow
def test_a_hundred_releases_cost_less_than_they_were_charged_and_the_ledger_stays(ledger: Ledger):
    before = ledger.history("wages")
    text = reprice(ledger, "wages", Fraction(1, 10**6))
    assert "charged, 100 releases       10 " in text
    assert "The history costs at most alpha = 4.77" in text
    assert "not a refund" in text
    assert ledger.history("wages") == before
    assert ledger.spent("wages") == Budget.of(10)


@pytest.mark.slow
def test_without_beta_only_what_was_charged_can_be_said(ledger: Ledger):
    text = reprice(ledger, "wages")
    assert "at most alpha = 10, beta = 0, gamma = 0, by basic composition" in text
    assert "Give --beta" in text
    assert "concentrated" not in text


@pytest.mark.slow
def test_a_voided_reservation_does_not_count(ledger: Ledger):
    ledger.void("wages", "q00", "table 0", who="A. Officer", why="power cut")
    assert len(charged_events(ledger, "wages")) == 99


@pytest.mark.slow
def test_an_event_of_another_version_stops_the_pricing(ledger: Ledger):
    unknown = Charge(Budget.of("0.1"), {"event": "telepathy", "neighbours": "replace-one"})
    ledger.reserve(ChargeRequest("wages", "q99", "digest", {"minds": unknown}))
    with pytest.raises(LedgerError, match=r"'minds' in release 'q99' has .* unknown kind"):
        reprice(ledger, "wages", Fraction(1, 10**6))


def test_without_the_optional_package_the_text_names_it(ledger: Ledger, monkeypatch):
    for module in ("tasks.budget.reprice", "dpcore.line.history"):
        monkeypatch.setattr(f"{module}.installed", lambda: False)
    text = reprice(ledger, "wages", Fraction(1, 10**6))
    assert "dprelease[accounting]" in text
    assert "by concentrated composition" in text


@pytest.mark.slow
def test_the_command_prints_it(ledger: Ledger, url: str, capsys: pytest.CaptureFixture[str]):
    arguments = ["ledger", "reprice", "wages", "--beta", "1e-6", "--ledger", url]
    assert main(arguments) == 0
    assert capsys.readouterr().out == reprice(ledger, "wages", Fraction(1, 10**6)) + "\n"
