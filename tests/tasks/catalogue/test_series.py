"""A series in the catalogue: lines with bands, of what its bundles published."""

from pathlib import Path

import pytest

from tasks.bundle.reader import open_bundle
from tasks.catalogue import write_catalogue
from tasks.catalogue.bundles import find_bundles
from tasks.catalogue.series import series_figures
from tests.tasks.made_up_series import published
from tests.tasks.report.pages import require_sound


@pytest.fixture
def out(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("DPRELEASE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DPRELEASE_LEDGER", raising=False)
    return tmp_path / "published"


@pytest.mark.slow
def test_each_large_cell_has_a_line_for_its_periods_and_one_for_its_totals(out):
    bundles = [open_bundle(path) for path in published(out, 1, 2, 3)]
    ((dataset,), _) = find_bundles(out)
    figures = series_figures(dataset)
    # Two kinds of events, and in the release of several tables those of the first one.
    assert [each.title for each in figures] == [
        f"{name}, kind {kind}: {quantity}"
        for name in ("events", "tables")
        for kind in "ab"
        for quantity in ("count of the period", "total of all periods to date")
    ]
    assert "3 releases from w1 to w3" in figures[0].says
    assert [row[0] for row in figures[0].table.rows] == ["w1", "w2", "w3"]
    for row, bundle in zip(figures[0].table.rows, bundles, strict=True):
        table = bundle.table("events")
        for text, column in zip(row[1:], ("estimate", "lower_90", "upper_90"), strict=True):
            number = table[column][0]  # of the period, for the first kind
            assert float(text.replace(",", "")) == pytest.approx(number, rel=1e-3, abs=0.5)
    page = require_sound(write_catalogue(out, out).read_text(encoding="utf-8"), out)
    titles = [node.words for node in page.all("figcaption")]
    assert sum("total of all periods to date" in title for title in titles) == 4
    assert sum(node.attributes.get("class") == "band" for node in page.all("path")) == 8
