"""The findings with which a report opens: their intervals hold together, whatever was selected."""

import html
import re
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dprelease
from dpcore.domain.axes import Bins, Categories
from dpcore.estimates.selected import (
    Contrast,
    MeasuredColumns,
    ShareInterval,
    deviations,
    possible_shares,
    share_of_all,
    strongest_contrast,
)
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from schemas.plan import load_plan
from schemas.survey.columns import ContinuousColumn, IntegerColumn
from tasks.bundle.reader import BundleReader
from tasks.bundle.verify import read_manifest
from tasks.report.findings import (
    Stated,
    _first,
    _known_beforehand,
    _measured,
    _most_precise,
    _rank,
    _share,
    findings,
)
from tasks.report.parts import Source
from tasks.report.wording import Wording, _numbers
from tests.bare import leave_out_audits
from tests.chance import shares as plausible_shares
from tests.conftest import ROOT
from tests.shortest import document as shortest
from tests.tasks.made_up import publish_made_up
from tests.tasks.report.pages import page_of

A, B = Categories("sex", ("F", "M")), Categories("region", ("north", "south"))


def related(pairs, error, axes=(A, B), chance=0.001):
    """The contrast of a table of counts, all with one error, among groups by its first column."""
    pairs = np.asarray(pairs, dtype=float)
    agreement = Agreement(pairs.shape, [Margin((0, 1), pairs, error**2)], None)
    return strongest_contrast(MeasuredColumns(axes, agreement, (0, 1), gaussian=True), chance, 0)


def test_a_contrast_is_stated_only_where_the_noise_excludes_that_there_is_none():
    assert related([[100, 100], [100, 100]], 1.0) is None
    assert related([[150, 50], [50, 150]], 60.0) is None
    found = related([[150, 50], [50, 150]], 1.0)
    assert [share.value for share in found.shares] == [0.75, 0.25]
    assert 0 < found.rank < 0.5  # the difference, less what the noise may have added


@pytest.mark.slow
def test_tables_without_a_relation_rarely_seem_to_have_one():
    random, found = np.random.default_rng(2), 0
    chance = 0.05 / possible_shares((A, B))
    for _ in range(300):
        noisy = np.array([[400.0, 300.0], [200.0, 150.0]]) + random.normal(scale=20, size=(2, 2))
        found += related(noisy, 20, chance=chance) is not None
    assert found <= 0.05 * 300


ANSWERED = Categories("ever", ("yes", "no"), nullable=True)


def test_groups_that_were_asked_to_a_different_extent_are_no_contrast():
    """Nine tenths of those who were asked say yes in both groups: of all records, 45% and 9%."""
    assert related([[450, 50, 500], [90, 10, 900]], 1.0, axes=(A, ANSWERED)) is None
    found = related([[450, 50, 500], [50, 50, 900]], 1.0, axes=(A, ANSWERED))
    assert [share.value for share in found.shares] == [0.9, 0.5]


def test_intervals_of_shares_among_those_asked_cover():
    random, chance, draws = np.random.default_rng(3), 0.05, 2000
    noisy = np.array([300.0, 100.0, 600.0]) + random.normal(scale=20, size=(draws, 3))
    found = [share_of_all(counted(each, 20.0, ANSWERED), (0, 1), chance) for each in noisy]
    missed = np.mean([not each.low <= 0.75 <= each.high for each in found])
    least, most = plausible_shares(draws, chance)
    assert least < missed < most


def test_a_column_that_follows_from_the_other_comes_last():
    assert related([[480, 20], [20, 480]], 1.0).rank < 0
    assert related([[300, 0], [150, 150]], 1.0) is None
    ages, adult = Bins("age", (0, 10, 20, 30, 40), integer=True), Categories("adult", ("no", "yes"))
    known, mixed = [[200, 150, 9, 0], [5, 70, 100, 300]], [[200, 150, 90, 0], [90, 70, 100, 300]]
    by_age = (
        related(known, 1.0, axes=(adult, ages)),
        related(np.transpose(known), 1.0, (ages, adult)),
    )
    assert all(found.rank < 0 for found in by_age)
    assert related(mixed, 1.0, axes=(adult, ages)).rank > 0


def test_groups_of_groups_are_known_beforehand():
    listed = {"tract": ["a", "b", "c"], "county": ["x", "y"], "state": ["s", "t"]}
    columns = {name: {"type": "categorical", "categories": each} for name, each in listed.items()}
    columns["tract"]["refines"] = {"county": {"a": "x", "b": "x", "c": "y"}}
    columns["county"]["refines"] = {"state": {"x": "s", "y": "t"}}
    count = {
        "name": "c",
        "kind": "histogram",
        "columns": ["tract"],
        "mechanism": "discrete-laplace",
    }
    found = _known_beforehand(load_plan(shortest(columns, [count])))
    assert found == {*map(frozenset, combinations(columns, 2))}


def test_a_contrast_that_one_column_determines_ranks_below_all_others(plan_document):
    plan = load_plan(plan_document)
    assert _rank(plan, -0.9, "children", "income") == -0.9


@pytest.mark.slow
@pytest.mark.parametrize("ruled", [True, False])
def test_what_a_rule_of_the_plan_says_is_no_finding(tmp_path, monkeypatch, short_fits, ruled):
    """A tenth of those without work say that they have pay, though less of it: the survey's errors, as
    who was asked is in the plan."""
    rows = pd.DataFrame({"works": ["no"] * 3000 + ["yes"] * 3000, "sex": ["f", "m"] * 3000})
    tenth, works = np.arange(6000) % 20, rows.works == "yes"
    paid = np.where(works, tenth > 5, tenth > 17)
    much = np.where(works, rows.sex == "m", np.arange(6000) % 80 == 19)
    rows["pay"] = np.where(paid, np.where(much, "much", "some"), None)
    two = {"type": "categorical", "categories": ["no", "yes"]}
    columns = {
        "works": two,
        "sex": two | {"categories": ["f", "m"]},
        "pay": two | {"categories": ["some", "much"], "nullable": True},
    }
    rule = {"if": {"works": ["no"]}, "then": {"pay": [None]}}
    pairs = {"name": "pairs", "kind": "microdata-margins", "columns": list(columns)}
    pairs |= {"mechanism": "discrete-laplace", "rules": [rule] if ruled else []}
    leave_out_audits(monkeypatch.setattr)
    plan = load_plan(shortest(columns, [pairs], alpha="1", rows=6000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    found = findings(plan, read_manifest(bundle), bundle)
    assert (frozenset(("works", "pay")) in found.related) is not ruled


@pytest.mark.slow
def test_a_weighted_table_hides_no_finding_of_the_other_tables(tmp_path, monkeypatch, short_fits):
    rows = pd.DataFrame({"sex": ["f", "m"] * 3000, "works": ["no", "yes"] * 3000, "w": 2.0})
    rows.loc[np.arange(6000) % 7 < 2, "works"] = "yes"
    rows.loc[np.arange(6000) % 7 == 3, "works"] = "no"
    rows["old"] = np.where(np.arange(6000) % 3 == 0, "yes", "no")
    two = {"type": "categorical", "categories": ["no", "yes"]}
    columns = {"sex": two | {"categories": ["f", "m"]}, "works": two, "old": two}
    pairs = {"name": "pairs", "kind": "margins", "columns": list(columns), "ways": 2}
    weighed = {"name": "old", "kind": "histogram", "columns": ["old", "sex"], "weighted": True}
    plan = shortest(columns, [pairs, weighed], alpha="4", rows=6000)
    plan["weights"] = {"column": "w", "largest": "4", "step": "1", "total": 12000}
    leave_out_audits(monkeypatch.setattr)
    bundle = dprelease.release(
        load_plan(plan), rows, release_id="r1", out=tmp_path, progress=False
    ).path
    found = findings(load_plan(plan), read_manifest(bundle), bundle)
    first, *others = [*found.sentences, *found.more]
    assert re.search("“works” is .* of respondents where “sex” is", first)
    assert sum("of the population" in each for each in others) == 2  # of the weighted columns alone
    assert any("“works” is" in each for each in others)


def test_shares_of_those_who_answered_are_not_shares_of_the_population(plan_document):
    """A plan with weights whose counts do not use them."""
    weights = {"column": "w", "largest": "4", "step": "0.5", "total": 800}
    units = {"publication": {"title": "Pay", "units": "adults"}}
    people = plan_document["releases"][0]
    weighted = people | {"name": "all", "weighted": True}
    both = {"releases": [*plan_document["releases"], weighted], "weights": weights}
    plain, weighed = load_plan(plan_document), load_plan(plan_document | both)
    assert Wording(plain, {}).people == "records"
    assert Wording(weighed, {}).people == "respondents"
    assert Wording(weighed, {}, weighted=True).people == "the population"
    weighed = load_plan(plan_document | both | units)
    assert Wording(weighed, {}).people == "respondents"
    assert Wording(weighed, {}, weighted=True).people == "adults"


def test_all_ranges_of_numbers_count_as_looked_at():
    numbers = Bins("visits", (0.0, 1.0, 2.0, 3.0), nullable=True, integer=True)
    assert possible_shares((A, numbers)) == 2 * 2 * 6


def test_the_strongest_come_first_and_no_two_columns_twice():
    strong, weak = Stated(0.5, "strong", ("sex", "pay")), Stated(0.2, "weak", ("sex", "age"))
    turned = Stated(0.3, "turned", ("pay", "sex"))
    other = Stated(0.1, "other", ("region", "age"))
    assert _first([weak, turned, other, strong], 5) == [strong, other]


def counted(counts, error, axis):
    table = Margin((0,), np.asarray(counts, dtype=float), error**2)
    return MeasuredColumns((axis,), Agreement((axis.size,), [table], None), (0,), gaussian=True)


def measured_in(edges, counts, error):
    return counted(counts, error, Bins("visits", edges, integer=True))


def test_the_cells_for_readers_give_way_to_a_table_with_half_their_noise():
    for_readers, fine = (0.0, 1.0, 2.0, 15.0), tuple(map(float, range(16)))
    rough = measured_in(for_readers, [800, 150, 50], 80.0)
    exact = measured_in(fine, [800, 150, *[4] * 13], 15.0)
    similar = measured_in(fine, [800, 150, *[4] * 13], 30.0)
    assert _most_precise([rough, exact]) == [exact]
    assert _most_precise([rough, similar]) == [rough]


def share_of(counts, text, axis=A):
    return _share(counted(counts, 1.0, axis), 0.01, text)


def test_a_share_of_a_column_that_may_be_null_is_of_those_with_a_value(plan_document):
    text = Wording(load_plan(plan_document), {})
    asked = Categories("sex", A.categories, nullable=True)
    stated = share_of([300, 300, 400], text, asked).sentence
    assert stated == "“sex” is F for 50.0% (49.6% to 50.4%) of records with a value."


def test_a_share_of_nobody_is_no_finding(plan_document):
    text = Wording(load_plan(plan_document), {})
    assert share_of([600, 400], text) is not None
    assert share_of([995, 5], text) is None


def test_a_share_of_merged_categories_is_a_finding_if_all_are_named(plan_document):
    """The group in the middle is nearest to half of the records."""
    plan, groups = load_plan(plan_document), Categories("region", (0, 1, 2))
    for number, found in ((3, True), (4, False)):
        regions = Categories("region", tuple(f"region {i}" for i in range(number + 2)))
        text = Wording(plan, {"region": (regions, np.array([0, *[1] * number, 2]))})
        assert (share_of([250, 450, 300], text, groups) is not None) is found


def test_categories_of_a_table_that_merges_none_are_themselves(plan_document):
    """Another table of the column has groups: here both categories in one."""
    text = Wording(load_plan(plan_document), {"sex": (A, np.array([0, 0]))})
    assert text.values(A, (0, 1)) == "F"
    assert text.values(Categories("sex", (0,)), (0, 1)) == "F or M"


@pytest.mark.parametrize(
    ("axis", "part", "event"),
    [
        (Categories("ill", ("no", "yes"), nullable=True), (0, 1), (1, 2)),
        (Categories("ill", ("Yes", "No")), (1, 2), (0, 1)),
        (Categories("coded", (0, 1)), (0, 1), (1, 2)),
        (Categories("ill", ("no", "yes")), (1, 2), (1, 2)),
        (Categories("ill", ("no", "yes", "unsure")), (0, 1), (0, 1)),
        (Categories("sex", ("F", "M")), (0, 1), (0, 1)),
        (Bins("visits", (0, 1, 2, 60), integer=True, nullable=True), (0, 1), (1, 3)),
        (Bins("visits", (0, 1, 2, 60), integer=True), (0, 2), (0, 2)),
        (Bins("visits", (1, 2, 60), integer=True), (0, 1), (0, 1)),
        (Categories("visits", (0, 1, 5), ordered=True), (0, 1), (1, 3)),
        (Categories("visits", (0, 1, 5)), (0, 1), (1, 3)),
        (Categories("visits", (0, 5, 1)), (0, 1), (0, 1)),
        (Bins("paid", (0.0, 0.0, 10.0, 60.0)), (0, 1), (1, 3)),
        (Bins("rated", (0, 1, 6), integer=True), (0, 1), (0, 1)),
    ],
)
def test_a_share_is_that_of_the_event_and_not_of_its_opposite(axis, part, event):
    number = {"type": "continuous", "bounds": [0, 60]}
    coded = {"type": "categorical", "categories": [0, 1], "labels": {"0": "no", "1": "yes"}}
    text_column = {"type": "categorical", "categories": ["a", "b"]}
    columns = {
        "ill": text_column,
        "sex": text_column,
        "coded": coded,
        "visits": number,
        "paid": number,
    }
    rated = {str(i): word for i, word in enumerate(["never", *"abcde"])}
    columns["rated"] = {"type": "integer", "bounds": [0, 5], "labels": rated}
    count = {"name": "c", "kind": "histogram", "columns": ["sex"], "mechanism": "discrete-laplace"}
    text = Wording(load_plan(shortest(columns, [count])), {})
    assert text.event_of(axis, part) == event
    if axis.name == "visits" and event == (1, 3):
        assert text.values(axis, event) == "1 or more"
    cells = axis.size - axis.nullable
    shares, groups = (ShareInterval(0.8, 0.7, 0.9), ShareInterval(0.3, 0.2, 0.5)), ((0, 1), (1, 2))
    found = text.of_event(axis, Contrast(0, groups, part, shares, 0.2, ((groups[0], shares[0]),)))
    if event != part:
        assert found.groups == groups[::-1]
        assert found.shares == tuple(
            pytest.approx(each) for each in ((0.7, 0.5, 0.8), (0.2, 0.1, 0.3))
        )
        assert found.across == ((groups[0], pytest.approx((0.2, 0.1, 0.3))),)
        assert {*range(*part), *range(*event)} == {*range(cells)}
    else:
        assert (found.groups, found.shares) == (groups, shares)


def test_a_single_share_is_that_of_the_event(plan_document):
    plan = load_plan(plan_document)
    axis = Categories("sex", ("no", "yes"))
    assert share_of([600, 400], Wording(plan, {}), axis).sentence == (
        "“sex” is yes for 40.00% (39.81% to 40.19%) of records."
    )


@pytest.mark.parametrize(
    ("axis", "part", "words"),
    [
        (Bins("n", (0, 1, 2, 12, 60), integer=True), (3, 4), "12 visits or more"),
        (Bins("n", (0, 1, 2, 12, 60), integer=True), (0, 1), "0 visits"),
        (Bins("n", (0, 1, 2, 12, 60), integer=True), (1, 2), "1 visit"),
        (Bins("n", (0, 7.95, 8.05, 60), step=Fraction(1, 10)), (1, 2), "8 visits"),
        (Bins("n", (0, 1, 2, 12, 60), integer=True), (2, 3), "2 to 11 visits"),
        (Bins("n", (0.0, 10.0, 50.0, 50.0)), (2, 3), "50 visits"),
        (Bins("n", (0, 1, 60), integer=True), (1, 2), "1 visit or more"),
        (Bins("n", (0.0, 0.0, 10.0, 50.0)), (1, 2), "above 0 to under 10 visits"),
        (Bins("n", (0.0, 5.0, 5.0, 10.0, 10.0, 50.0)), (2, 4), "above 5 to 10 visits"),
    ],
)
def test_bins_become_words(axis, part, words):
    column = ContinuousColumn(type="continuous", bounds=[0, 60], unit="visits")
    assert _numbers(axis, part, column) == words


@pytest.mark.parametrize(
    ("many", "one"), [("boxes", "box"), ("illnesses", "illness"), ("houses", "house"), ("kg", "kg")]
)
def test_one_is_singular(many, one):
    column = ContinuousColumn(type="continuous", bounds=[0, 60], unit=many)
    assert _numbers(Bins("n", (0, 1, 60), integer=True), (1, 2), column) == f"1 {one} or more"


def test_a_contrast_is_a_sentence_and_people_have_ages():
    sizes = "small, or very small", "large"
    columns = {
        "age": {"type": "integer", "bounds": [0, 99], "unit": "years", "label": "Age"},
        "size": {"type": "categorical", "categories": [*sizes], "label": "Size"},
    }
    axes = Bins("age", (0, 30, 60, 100), integer=True), Categories("size", sizes)
    found = Contrast(0, ((2, 3), (0, 1)), (0, 1), (), 0.5, ())
    turned = Contrast(1, ((0, 1), (1, 2)), (2, 3), (), 0.5, ())
    count = {"name": "c", "kind": "histogram", "columns": ["size"], "mechanism": "discrete-laplace"}
    plan = load_plan(shortest(columns, [count]))
    text = Wording(plan, {})
    assert text.contrast(*axes, found, ["60%", "20%"]) == (
        "“Size” is “small, or very small” for 60% of records where “Age” is 60 or older, and for 20%"
        " where it is under 30"
    )
    assert text.contrast(*axes[::-1], turned, ["60%", "20%"]) == (
        "“Age” is 60 or older for 60% of records where “Size” is “small, or very small”, and for 20%"
        " where it is large"
    )
    text = Wording(plan, {}, weighted=True)
    assert text.contrast(*axes, found, ["60%", "20%"]) == (
        "“Size” is “small, or very small” for 60% of the population aged 60 or older, and for 20% of"
        " those under 30"
    )


YEARS = Bins("n", (1990, 2000, 2006, 2027), integer=True)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"bounds": [1990, 2026]}, ["under 2000", "2000 to 2005", "2006 or more"]),
        (
            {"bounds": [1, 2999], "from": {"column": "day", "part": "year"}},
            ["under 2000", "2000 to 2005", "2006 or more"],
        ),
        (
            {"bounds": [1990, 2026], "unit": "dollars"},
            ["under 2,000 dollars", "2,000 to 2,005 dollars", "2,006 dollars or more"],
        ),
        ({"bounds": [0, 2026]}, ["under 2,000", "2,000 to 2,005", "2,006 or more"]),
    ],
)
def test_years_have_no_thousands_separator(facts, words):
    column = IntegerColumn.model_validate({"type": "integer"} | facts)
    assert [_numbers(YEARS, (i, i + 1), column) for i in range(3)] == words


@pytest.mark.slow
def test_a_page_writes_years_without_separators_everywhere(tmp_path):
    part = {"column": "day", "part": "year"}
    columns = {
        "hired": {"type": "integer", "bounds": [1985, 2026]},
        "left": {"type": "integer", "bounds": [1, 2999], "from": part},
    }
    kinds = [
        {"kind": "mean", "column": "hired", "mechanism": "discrete-laplace"},
        {"kind": "density", "columns": ["hired"], "bandwidth": 0.1, "mechanism": "best"},
        {"kind": "density", "columns": ["left", "hired"], "bandwidth": 0.2, "mechanism": "best"},
        {"kind": "heaping", "columns": ["hired"], "mechanism": "discrete-gaussian"},
    ]
    releases = [each | {"name": f"r{i}"} for i, each in enumerate(kinds)]
    plan = load_plan(shortest(columns, releases, alpha="9", beta="1e-6", rows=900))
    page = (publish_made_up(plan, "r1", tmp_path / "out") / "report.html").read_text()
    assert "It is 19" in page
    assert not re.search(r"(?<![\d,])(1,9\d\d|2,\d{3})(?![\d,])", page)


@pytest.mark.slow
def test_the_page_opens_with_findings_and_says_how_they_were_selected(plan_document, tmp_path):
    model = {"name": "pay", "title": "What pay depends on", "formula": "income ~ children + C(sex)"}
    plan_document["analyses"] = [model]
    plan = load_plan(plan_document)
    bundle = publish_made_up(plan, "r1", tmp_path / "out")
    found = findings(plan, read_manifest(bundle), bundle)
    assert 2 <= len(found.sentences) <= 5
    assert "chosen by rule from" in found.note
    assert "wider than intervals for one number alone" in found.note
    assert all(
        "95% intervals for all findings on shares at once" in each.says for each in found.figures
    )
    for low, middle, high in shares(" ".join(found.sentences)):
        assert 0 <= low <= middle <= high <= 100
    page = page_of(bundle)
    first = next(page.all("main")).children[0]
    assert first.words == "Findings"
    assert all(sentence in page.words for sentence in found.sentences)
    assert found.note in page.words


@pytest.mark.slow
def test_each_column_and_each_related_pair_is_told_once(demo):
    plan = load_plan(ROOT / "deployments" / "plans" / "fair.yaml")
    found = findings(plan, read_manifest(demo), demo)
    contrasts = [each for each in [*found.sentences, *found.more] if ", and for " in each]
    of_all = [each for each in found.more if each not in contrasts]
    assert len(found.related) == len({*contrasts}) == len(contrasts)
    assert len({*of_all}) == len(of_all) == len(plan.columns)
    page = html.unescape((demo / "report.html").read_text(encoding="utf-8"))
    assert all(sentence in page for sentence in found.more)


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_intervals_of_shares_are_those_of_the_reader_but_for_the_selection(
    plan_document, tmp_path, relation
):
    plan_document["neighbours"] = relation
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["synthesis"] = []
    plan_document["budget"]["granted"]["alpha"] = "50"
    plan_document["budget"]["requested"] = {"alpha": "6", "beta": "0", "gamma": "0"}
    plan = load_plan(plan_document)
    path = publish_made_up(plan, "r1", tmp_path / "out")
    source = Source(plan, read_manifest(path).releases[0], path)
    measured = next(each for each in _measured(source) if each.axes[0].name == "sex")
    stated = _share(measured, 0.01, Wording(plan, {}))
    bundle = BundleReader.open(path)
    values = bundle.table("people")["sex"]
    ((low, middle, high),) = shares(stated.sentence)
    best = min(
        (bundle.share("people", values == each) for each in np.unique(values)),
        key=lambda share: abs(100 * share.value - middle),
    )
    assert middle == pytest.approx(100 * best.value, abs=1)
    wide = deviations(0.01, measured.gaussian) * best.standard_error
    assert high - low == pytest.approx(200 * wide, rel=0.3)


@pytest.mark.slow
def test_a_share_that_may_be_anything_is_no_finding(plan_document, tmp_path):
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["synthesis"] = []
    plan_document["budget"]["requested"] = {"alpha": "0.001", "beta": "0", "gamma": "0"}
    plan = load_plan(plan_document)
    path = publish_made_up(plan, "r1", tmp_path / "out")
    assert findings(plan, read_manifest(path), path).sentences == []


def shares(text):
    """The low end, the number and the high end of each share."""
    number = r"([\d.]+)%"
    matches = re.findall(rf"{number} \({number} to {number}\)", text)
    assert matches
    return [(float(low), float(middle), float(high)) for middle, low, high in matches]
