"""The findings with which a report opens: their intervals hold together, whatever was selected."""

import re

import numpy as np
import pytest

from dpcore.domain.axes import Categories
from dpcore.estimates.selected import MeasuredColumns, deviations
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from dpcore.releases.counts.unit import RECORDS
from schemas.plan import load_plan
from tasks.bundle.reader import open_bundle
from tasks.bundle.verify import read_manifest
from tasks.charts.svg import supported
from tasks.report.findings import (
    _first,
    _measured,
    _relation,
    _share,
    _Text,
    findings,
)
from tasks.report.parts import Source
from tests.conftest import write_plan
from tests.tasks.made_up import publish_made_up
from tests.tasks.report.pages import require_sound

A, B = Categories("sex", ("F", "M")), Categories("region", ("north", "south"))


def related(pairs, error, plan, chance=0.001):
    """The sentence on a two by two table of counts, all with one error."""
    drawn = Margin((0, 1), np.asarray(pairs, dtype=float), error**2)
    agreement = Agreement((2, 2), [drawn], None)
    measured = MeasuredColumns((A, B), agreement, (0, 1), gaussian=True)
    return _relation(measured, chance, _Text(plan, RECORDS))


@pytest.fixture
def plan(plan_path):
    return load_plan(plan_path)


def test_a_relation_is_stated_only_where_the_noise_excludes_independence(plan):
    assert related([[100, 100], [100, 100]], 1.0, plan) is None
    assert related([[150, 50], [50, 150]], 60.0, plan) is None
    stated = related([[150, 50], [50, 150]], 1.0, plan)
    assert "75.0% (" in stated.sentence
    assert "of all others 25.0% (" in stated.sentence
    assert 0 < stated.rank < 0.5  # the correlation, less what the noise may have added


def test_tables_without_a_relation_rarely_seem_to_have_one(plan):
    random, found = np.random.default_rng(2), 0
    for _ in range(300):
        noisy = np.array([[400.0, 300.0], [200.0, 150.0]]) + random.normal(scale=20, size=(2, 2))
        found += related(noisy, 20 * 2**0.5, plan, chance=0.05 / 8) is not None
    assert found <= 0.05 * 300


def test_the_strongest_come_first_and_no_column_comes_twice(plan):
    strong = related([[190, 10], [10, 190]], 1.0, plan)
    weak = related([[150, 50], [50, 150]], 1.0, plan)
    assert _first([weak, None, strong]) == [strong.sentence]


def test_numbers_are_rounded_to_two_digits_of_their_error():
    assert supported((1234.567, 0.0), 0.31) == ["1,234.57", "0.00"]
    assert supported((1234.567,), 310.0) == ["1,230"]
    assert supported((-0.001,), 3.0) == ["0.0"]
    assert supported((5.0,), float("nan")) == ["5.0"]


@pytest.mark.parametrize(
    "relation", ["replace-one", pytest.param("add-remove", marks=pytest.mark.slow)]
)
def test_the_page_opens_with_findings_and_says_how_they_were_selected(
    plan_document, plan_path, tmp_path, relation
):
    model = {"name": "pay", "title": "What pay depends on", "formula": "income ~ children + C(sex)"}
    plan_document |= {"neighbours": relation, "analyses": [model]}
    plan = load_plan(write_plan(plan_path.parent, plan_document))
    bundle = publish_made_up(plan, "r1", tmp_path / "out")
    found = findings(plan, read_manifest(bundle), bundle)
    assert 2 <= len(found.sentences) <= 5
    assert "selected" in found.note
    for low, middle, high in shares(" ".join(found.sentences)):
        assert 0 <= low <= middle <= high <= 100
    page = require_sound((bundle / "report.html").read_text(encoding="utf-8"), bundle)
    first = next(page.all("main")).children[0]
    assert first.words == "Findings"
    assert all(sentence in page.words for sentence in found.sentences)
    assert found.note in page.words


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_intervals_of_shares_are_those_of_the_reader_but_for_the_selection(
    plan_document, plan_path, tmp_path, relation
):
    plan_document["neighbours"] = relation
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["synthesis"] = []
    plan_document["budget"]["granted"]["alpha"] = "50"
    plan_document["budget"]["requested"] = {"alpha": "6", "beta": "0", "gamma": "0"}
    plan = load_plan(write_plan(plan_path.parent, plan_document))
    path = publish_made_up(plan, "r1", tmp_path / "out")
    source = Source(plan, read_manifest(path).releases[0], path)
    measured = next(each for each in _measured(source) if each.axes[0].name == "sex")
    stated = _share(measured, 0.01, _Text(plan, source.unit))
    bundle = open_bundle(path)
    values = bundle.table("people")["sex"]
    best = max(
        (bundle.share("people", values == each) for each in np.unique(values)),
        key=lambda share: share.value,
    )
    ((low, middle, high),) = shares(stated.sentence)
    assert middle == pytest.approx(100 * best.value, abs=1)
    wide = deviations(0.01, measured.gaussian) * best.standard_error
    assert high - low == pytest.approx(200 * wide, rel=0.3)


def shares(text):
    """The low end, the number and the high end of each share."""
    number = r"([\d.]+)%"
    matches = re.findall(rf"{number} \({number} to {number}\)", text)
    assert matches
    return [(float(low), float(middle), float(high)) for middle, low, high in matches]
