"""Additive classifiers: exact sums, errors that hold, and curves that separate what lines cannot."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.mechanisms import StagedGaussian
from dpcore.releases.machines.additive import AdditiveClassifier
from dpcore.releases.machines.curves import (
    PART,
    SCALE,
    cells_at,
    coordinates_of,
    even_places,
)
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import drawn, opened, tally_of

SHARE = Budget.of("1", "1e-6")
X, KIND = Grid("x", 0.0, 1.0, 32), Categories("kind", ("a", "b", "c"))
AMOUNT = Bins("amount", tuple(float(10 * i) for i in range(33)), nullable=True)
LABEL = Categories("label", ("no", "yes"))
DOMAIN = Domain((X, KIND, AMOUNT, LABEL))
ROWS = 20_000


def records(rows: int = ROWS, seed: int = 0) -> np.ndarray:
    """Positive in the middle of x, more often where kind is b; amounts crowd at the lower end."""
    random = np.random.default_rng(seed)
    x, kind = random.random(rows), random.integers(0, 3, rows)
    amount = np.minimum(random.exponential(15, rows) / 10, 31).astype(int)
    amount[random.random(rows) < 0.1] = 32
    value = 0.25 - np.abs(x - 0.5) + 0.1 * (kind == 1) + 0.05 * (amount == 32)
    label = (value + random.normal(0, 0.05, rows) > 0).astype(int)
    codes = np.column_stack([(32 * x).astype(int), kind, amount, label])
    return DOMAIN.pack(codes)


def classifier(part: Fraction = Fraction(1, 10), share: Budget = SHARE) -> AdditiveClassifier:
    return AdditiveClassifier("c", DOMAIN, ROWS, share, (-1, 1), part)


def test_the_sums_are_those_of_whole_numbers_record_by_record():
    release = classifier(Fraction(0)).after(None)
    cells = records(300)
    codes = DOMAIN.unpack(cells)
    products, labels = [], []
    for row in codes.tolist():
        parts = [table[code].tolist() for table, code in zip(release.tables, row, strict=False)]
        z = [SCALE, *(number for part in parts for number in part)]
        products.append([a * b for i, a in enumerate(z) for b in z[i:]])
        labels.append([release.weight * (-1, 1)[row[-1]] * a for a in z])
    kept = release.measured[np.triu_indices(len(release.measured))]
    products_kept = np.array(products, dtype=object)[:, kept]
    # What is not measured is the same in every table of as many records.
    assert set(np.array(products, dtype=object)[:, ~kept].ravel()) == {0, SCALE**2}
    expected = [*products_kept.sum(axis=0), *np.array(labels, dtype=object).sum(axis=0)]
    assert opened(release, cells).tolist() == expected


def test_the_decision_is_the_intercept_and_the_published_contributions():
    release = classifier()
    noisy = drawn(release, records())
    published = release.publish(noisy)
    x, kind, amount = (table.columns["contribution"] for table in published.tables)
    points = {"x": np.array([0.02, 0.98]), "kind": np.array(["a", "c"], dtype=object)}
    points["amount"] = np.array([None, 15.0], dtype=object)
    expected = published.facts["intercept"] + x[[0, 31]] + kind[[0, 2]] + amount[[32, 1]]
    np.testing.assert_allclose(release.evaluate(noisy, points)["decision"], expected, atol=1e-12)
    assert published.facts["positive"] == ["yes"]


@pytest.mark.parametrize("weight", [1.0, None])
def test_intervals_hold_what_the_same_ridge_gives_without_noise(weight):
    """Of the sums alone, at the places that were drawn: nine in ten, over points and draws."""
    release = replace(classifier(), weight=weight)
    grid = np.linspace(0.02, 0.98, 9)
    points = {"x": grid, "kind": np.full(9, "b", dtype=object), "amount": np.full(9, 30.0)}
    inside, scaled = [], []
    for seed in range(60):
        sums, noisy = release.settled(drawn(release, records(), seed))
        even = AdditiveClassifier("c", DOMAIN, ROWS, release.rest, (-1, 1), Fraction(0), weight)
        even.__dict__["_even"] = sums  # the same places, without a draw of them
        found = even.evaluate(noisy, points)
        quiet = even.evaluate(Noisy(opened(sums, records())), points)["decision"]
        inside.append((found["lower_90"] <= quiet) & (quiet <= found["upper_90"]))
        scaled.append((found["decision"] - quiet) / found["standard_error"])
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)
    assert np.std(scaled) == pytest.approx(1, abs=0.15)


def test_coordinates_of_numbers_nulls_and_categories():
    table = coordinates_of(AMOUNT, even_places(AMOUNT))
    assert table.shape == (33, 5)
    assert table[-1].tolist() == [0, 0, 0, 0, PART]
    assert np.abs(table[:-1, 0]).max() <= SCALE
    assert np.abs(table[:-1, 3]).max() <= SCALE // 4
    assert coordinates_of(KIND, ()).tolist() == (PART * np.eye(3)).tolist()
    with pytest.raises(ValueError, match="features: many has 65 values, and may have 64 at most"):
        coordinates_of(Categories("many", tuple(f"c{i}" for i in range(65))), ())


def test_values_find_their_cells():
    assert cells_at(X, np.array([0.0, 0.5, 1.0])).tolist() == [0, 16, 31]
    assert cells_at(AMOUNT, np.array([9.99, 10.0, 320.0, np.nan])).tolist() == [0, 1, 31, 32]
    whole = Bins("n", (0.0, 3.0, 10.0), integer=True)
    assert cells_at(whole, np.array([2, 3, 9])).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="n must lie in"):
        cells_at(whole, np.array([10]))
    with pytest.raises(ValueError, match="no category 'z'"):
        cells_at(KIND, np.array(["z"], dtype=object))
    with pytest.raises(ValueError, match="x has no nulls"):
        cells_at(X, np.array([np.nan]))


def test_a_second_step_of_other_noise_than_was_priced_is_stopped_after_the_first():
    release = classifier()
    mechanism = release.mechanism
    assert isinstance(mechanism, StagedGaussian)
    quiet = replace(
        mechanism, again=replace(mechanism.again, variance=4 * mechanism.again.variance)
    )
    with pytest.raises(PrivacyLineError, match="not the one that was priced"):
        perturb(release.statistic(tally_of(DOMAIN, records())), quiet, SHARE, SeededSource(1))


RELATIONS = (Adjacency("add-remove"), Adjacency("add-remove", 3), Adjacency("replace-one", 3))


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_where_the_number_of_records_is_private_the_guess_of_it_hardly_matters(adjacency):
    """It sets where the sums are cut, and what ``explain`` says."""
    points = {"x": np.linspace(0.02, 0.98, 9), "kind": np.full(9, "b", dtype=object)}
    points["amount"] = np.full(9, 30.0)
    found = []
    for guess in (ROWS // 100, ROWS, 100 * ROWS):
        release = replace(classifier(), adjacency=adjacency, rows=guess, share=SHARE * Fraction(4))
        noisy = drawn(release, records(), 5)
        sums, drawn_ = release.settled(noisy)
        assert sums.records(drawn_) == pytest.approx(ROWS, rel=0.02)
        found.append(release.evaluate(noisy, points))
    for other in found[1:]:
        for name, values in found[0].items():
            np.testing.assert_allclose(values, other[name], rtol=1e-9)
    assert np.sign(found[0]["decision"]).tolist() == [-1, -1, 1, 1, 1, 1, 1, -1, -1]


def test_tables_far_larger_than_the_guess_are_summed_exactly_and_cut():
    release = replace(classifier(Fraction(0)), adjacency=Adjacency("add-remove")).after(None)
    one, many = (Tally(DOMAIN, np.array([7]), np.array([n])) for n in (1, 10**12))
    cut = [
        max(-release.largest_statistic, min(release.largest_statistic, (10**12) * each))
        for each in opened(release, one).tolist()
    ]
    assert opened(release, many).tolist() == cut
    exact = replace(release, rows=10**9)
    assert opened(exact, many).tolist() == [(10**12) * e for e in opened(exact, one).tolist()]


def test_a_label_with_nulls_is_refused():
    nullable = Domain((X, Categories("label", ("no", "yes"), nullable=True)))
    with pytest.raises(ValueError, match=r"^label.column: label has nulls"):
        AdditiveClassifier("c", nullable, ROWS, SHARE, (-1, 1, 1))


def test_no_table_makes_the_fit_fail():
    """All records alike, or none but noise: eigenvalues that are zero or negative."""
    release = classifier()
    noisy = drawn(release, ROWS * [0], 3)
    for table in release.publish(noisy).tables:
        assert np.all(np.isfinite(table.columns["contribution"]))
        assert np.all(np.isfinite(table.columns["standard_error"]))
