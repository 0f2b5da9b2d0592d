"""A run of a series in its bundle's report."""

from pathlib import Path

import pytest

from tasks.bundle.reader import open_bundle
from tests.tasks.made_up_series import published
from tests.tasks.report.pages import require_sound


@pytest.fixture
def out(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DPRELEASE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPRELEASE_LEDGER", raising=False)
    return tmp_path / "published"


@pytest.mark.slow
def test_each_quantity_has_its_bars_and_the_earlier_runs_are_named(out):
    first, second, _ = published(out, 1, 2, 3)
    page = require_sound((second / "report.html").read_text(encoding="utf-8"), second)
    assert "run 2 of a series of 4 periods" in page.words
    assert "computed with the draws of week-1, and revises none" in page.words
    titles = [node.words for node in page.all("figcaption")]
    for words in ("Count of the period", "Total of all periods to date", "Change on the period"):
        assert sum(words in title for title in titles) == 4  # a histogram, three margins
    before = require_sound((first / "report.html").read_text(encoding="utf-8"), first)
    assert "computed with the draws" not in before.words
    bundle = open_bundle(second)
    table = bundle.table("events")
    chart = next(
        node
        for node in page.all("table")
        if next(node.all("caption")).words.startswith("Records by kind")
    )
    shown = [next(iter(row.all("td"))).words for row in list(chart.all("tr"))[1:]]
    assert len(shown) == 2
    for text, number in zip(shown, table["estimate"][:2], strict=True):
        assert float(text.replace(",", "")) == pytest.approx(number, abs=0.5)
