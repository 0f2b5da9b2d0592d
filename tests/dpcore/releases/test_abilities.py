"""Abilities are recognised by their methods: no kind has one because it shares a name by chance."""

import pytest

from dpcore.releases import abilities
from tests.dpcore.releases.contract import CASES

COUNTS = {"FoundBounds", "Histogram", "MarginTables", "Microdata", "RandomHistogram"}
COUNTS |= {"CompressedMicrodata", "ThresholdedHistogram"}


@pytest.mark.parametrize(
    ("ability", "kinds"),
    [
        ("CountsUnits", {"FoundBounds", "FoundCategories", "MeasuredModel"}),
        ("JudgesRecords", {"RecordQuality"}),
        ("Repeatable", COUNTS),
        ("RunOfSeries", {"SeriesRun"}),
        ("ReplicableRun", {"SeriesRun"}),
        ("ColumnSearch", {"FoundBounds", "FoundCategories"}),
        ("StatesMeans", {"Mean", "RatioMean"}),
        ("Weighable", COUNTS | {"Hierarchy"}),
        ("DrawsSetting", {"CompressedMicrodata", "TunedDensity", "TunedMachine"}),
        ("StoredInPart", {"Heaping"}),
        ("Conditional", {"Mean", "RandomCount", "RandomHistogram", "UStatistic"}),
    ],
)
def test_only_the_meant_kinds_have_an_ability(ability, kinds):
    tested = getattr(abilities, ability)
    able = (case.release for case in CASES.values() if isinstance(case.release, tested))
    assert {type(release).__name__ for release in able} == kinds
