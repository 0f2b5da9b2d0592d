"""The quality of synthetic records: its values, what one row moves, and what is accepted."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.post.records.rules import Rule
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.criteria import (
    STEPS,
    Contradictions,
    Copies,
    Distance,
    Largest,
    MeanDifference,
    Prediction,
)
from dpcore.releases.tables.quality import RecordQuality
from dpcore.sampling.source import SystemSource
from tests.dpcore.releases.contract import opened

AREA = Categories("area", ("a", "b", "c"))
AGE = Bins("age", (0.0, 20.0, 40.0, 60.0), nullable=True)
WORKS = Categories("works", ("no", "yes"))
DOMAIN = Domain((AREA, AGE, WORKS))
CHILDREN = Rule(((1, (0,)),), ((2, (0,)),))
CRITERIA = (
    Distance("distance of area x works", 0.5, (("area", "works"),)),
    Distance("mean distance", 0.5, (("area", "age"), ("age", "works"))),
    Contradictions("contradictions", 0.5, (CHILDREN,)),
    Prediction("excess error of works", 0.5, "works", ("age", "area")),
    Prediction("excess error of age", 0.5, "age", ("works",)),
    Copies("copies", 0.5),
    Largest("largest", 0.5, (("area", "age"), ("works",))),
    MeanDifference("means of age", 0.5, "age", ("area", "works")),
    MeanDifference("means of works", 0.5, "works", ("age",)),
)
OWN = tuple(replace(each, own=True) if isinstance(each, Distance) else each for each in CRITERIA)


PLENTY = Budget.of("100")


def quality(rows: int, criteria=CRITERIA, share=PLENTY, **own) -> RecordQuality:
    return RecordQuality("q", DOMAIN, rows, share, criteria=criteria, of="people", **own)


def tally(codes) -> Tally:
    return Tally.of(DOMAIN, DOMAIN.pack(np.asarray(codes)))


def drawn(random: np.random.Generator, rows: int) -> np.ndarray:
    return np.column_stack([random.integers(size, size=rows) for size in DOMAIN.shape])


def values(codes, records, criteria=CRITERIA) -> np.ndarray:
    release = quality(len(codes), criteria).judging(tally(records))
    return opened(release, tally(codes)) * release._units


@pytest.mark.slow
@pytest.mark.parametrize("criteria", [CRITERIA, OWN])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_row_moves_the_values_by_more_than_the_stated_sensitivity(relation, criteria):
    random = np.random.default_rng(1)
    loose = [replace(each, at_most=1e9) for each in criteria]
    largest = np.zeros(len(CRITERIA))
    for _ in range(200):
        rows = drawn(random, random.integers(1, 7))
        records = drawn(random, random.integers(1, 12))
        adjacency = Adjacency(relation)
        release = quality(5 if relation == "add-remove" else len(rows), loose, adjacency=adjacency)
        release = release.judging(tally(records))
        other = np.vstack([rows[1:], drawn(random, 1)]) if relation == "replace-one" else rows[1:]
        near, far = (opened(release, tally(each)) for each in (rows, other))
        moved = np.abs(near - far)
        assert moved.sum() <= release.mechanism.l1_sensitivity
        largest = np.maximum(largest, moved / STEPS)
    of_one = [float(each.present) for each in criteria]
    assert np.all(largest <= (1 if relation == "replace-one" else of_one))
    assert np.all(largest[[0, 2, 3, 4, 5, 6, 7, 8]] >= 0.4)


def test_the_values_are_what_they_say():
    random = np.random.default_rng(2)
    rows, records = drawn(random, 300), drawn(random, 500)
    rows[:, 2] = (rows[:, 1] > 1) & (rows[:, 0] > 0)
    found = dict(zip((each.words for each in CRITERIA), values(rows, records), strict=True))

    def shares(codes, places):
        cells = np.ravel_multi_index(codes[:, places].T, [DOMAIN.shape[i] for i in places])
        return np.bincount(cells, minlength=np.prod([DOMAIN.shape[i] for i in places])) / len(codes)

    def apart(*places):
        return np.abs(shares(rows, places) - shares(records, places)).sum() / 2

    near = {"abs": 2 / STEPS}
    assert found["distance of area x works"] == pytest.approx(apart(0, 2), **near)
    assert found["mean distance"] == pytest.approx((apart(0, 1) + apart(1, 2)) / 2, **near)
    broken = [np.mean((codes[:, 1] == 0) & (codes[:, 2] == 1)) for codes in (records, rows)]
    assert found["contradictions"] == pytest.approx(broken[0] - broken[1], **near)
    once, of = np.unique(rows, axis=0, return_counts=True)
    there = {tuple(each) for each in records.tolist()}
    copied = sum(tuple(each) in there for each in once[of == 1].tolist())
    assert found["copies"] == pytest.approx(copied / len(rows), **near)
    largest = max(np.abs(shares(rows, at) - shares(records, at)).max() for at in ([0, 1], [2]))
    assert found["largest"] == pytest.approx(largest, **near)
    ages = rows[:, 1] < 3
    share, means = [], []
    for group in range(3):
        share.append(np.mean(rows[:, 1] == group))
        means.append([codes[codes[:, 1] == group, 2].mean() for codes in (rows, records)])
    share.append(np.mean(~ages))
    means.append([codes[codes[:, 1] == 3, 2].mean() for codes in (rows, records)])
    apart_by_age = sum(s * abs(one - other) for s, (one, other) in zip(share, means, strict=True))
    assert found["means of works"] == pytest.approx(apart_by_age, abs=4 / STEPS)


def test_records_that_lost_a_relation_predict_rows_worse_than_rows_do():
    random = np.random.default_rng(3)
    rows = drawn(random, 400)
    rows[:, 2] = rows[:, 1] > 1
    related = rows[random.integers(400, size=400)]
    # What these records teach is the opposite of what holds of the rows.
    reversed_ = related.copy()
    reversed_[:, 2] = 1 - reversed_[:, 2]
    criterion = (CRITERIA[3],)
    assert abs(values(rows, related, criterion)[0]) < 0.05
    assert values(rows, reversed_, criterion)[0] > 0.5


def test_means_notice_a_relation_that_records_have_lost():
    random = np.random.default_rng(3)
    rows = drawn(random, 400)
    rows[:, 2] = rows[:, 1] > 1
    criteria = (CRITERIA[3], CRITERIA[8])
    prediction, means = values(rows, drawn(random, 400), criteria)
    assert abs(prediction) < 0.05
    assert means > 0.4
    assert values(rows, rows[random.integers(400, size=400)], criteria)[1] < 0.02


def test_the_error_of_a_row_is_the_same_in_every_table():
    random = np.random.default_rng(4)
    criterion, records = CRITERIA[3], tally(drawn(random, 50))
    effects = criterion._fitted(records)
    rows = drawn(random, 200)
    alone = [criterion._error(tally(rows[i : i + 1]), effects) for i in range(len(rows))]
    assert criterion._error(tally(rows), effects) == sum(alone)


def test_records_are_accepted_where_all_intervals_lie_below_their_limits():
    release = quality(1000, CRITERIA[:2], Budget.of("1"))
    width = release._half_widths[0]
    steps = (0.5 - width) * STEPS * 1000
    for change, accepted in ((-1, True), (1, False)):
        noisy = Noisy(np.array([0, int(steps) + change * STEPS]))
        assert release.accepted(noisy).tolist() == [True, accepted]
        facts = release.publish(noisy).facts
        assert facts["accepted"] == accepted
        assert facts["withheld"] != accepted
        assert not replace(release, withholds=False).publish(noisy).facts["withheld"]


def test_intervals_hold_nine_times_in_ten():
    """Of 400 independent intervals of each number, 322 at least: else by chance below 1e-6."""
    random = np.random.default_rng(5)
    rows, records = drawn(random, 200), drawn(random, 200)
    release = quality(200, CRITERIA[:2], Budget.of("2")).judging(tally(records))
    true = values(rows, records, CRITERIA[:2])
    exact = release.statistic(tally(rows))
    held = np.zeros(2)
    for _ in range(400):
        noisy = perturb(exact, release.mechanism, release.share, SystemSource())
        (table,) = release.publish(noisy).tables
        held += (table.columns["lower_90"] <= true) & (true <= table.columns["upper_90"])
    assert np.all(held >= 322)


@pytest.mark.parametrize(("guess", "share"), [(200, "2"), (325, "2"), (325, "0.1"), (120, "0.1")])
def test_intervals_hold_nine_times_in_ten_whatever_number_of_rows_the_plan_guesses(guess, share):
    """Of 400 independent intervals of each number, 322 at least: else by chance below 1e-6."""
    random = np.random.default_rng(6)
    rows, records = (tally(drawn(random, 200)) for _ in range(2))
    unknown = {"adjacency": Adjacency("add-remove")}
    source = Histogram("cells", DOMAIN, guess, Budget.of("1"), **unknown)
    # The smaller share has so much noise that distances use the noisy number of rows.
    release = quality(guess, CRITERIA, Budget.of(share), **unknown).counting(source)
    assert release.criteria[0].own == (share == "2")
    known = quality(200, share=Budget.of(share)).judging(records)
    true = opened(known, rows) * known._units
    held = np.zeros(len(CRITERIA))
    for _ in range(400):
        first, second = (SystemSource() for _ in range(2))
        counts = perturb(source.statistic(rows), source.mechanism, source.share, first)
        judge = release.counting(source, counts).judging(records)
        noisy = perturb(judge.statistic(rows), judge.mechanism, judge.share, second)
        (table,) = judge.publish(noisy).tables
        held += (table.columns["lower_90"] <= true) & (true <= table.columns["upper_90"])
    assert np.all(held >= 322)


def test_the_number_of_rows_lengthens_intervals_by_little():
    unknown = {"adjacency": Adjacency("add-remove")}
    for share in ("0.1", "1", "10"):
        source = Histogram("cells", DOMAIN, 10000, Budget.of("1"), **unknown)
        before = quality(10000, CRITERIA, Budget.of(share), **unknown)
        assert np.all(before.counting(source)._half_widths < 1.3 * before._half_widths)


def test_a_limit_that_noise_alone_exceeds_is_refused():
    with pytest.raises(
        ValueError, match=r"accept\[0\].at_most: noise alone .* state a larger limit"
    ):
        quality(20, CRITERIA, Budget.of("1")).require_publishable()


def test_numbers_beyond_64_bits_are_exact():
    huge = Tally(DOMAIN, np.array([0, 5]), np.array([2**38, 2**38]))
    records = Tally(DOMAIN, np.array([0]), np.array([2**31]))
    (steps,) = [CRITERIA[0].steps(huge, 2**39, records)]
    assert steps == Fraction(STEPS * 2**39, 2)
