"""Counts of several releases and bundles as one set of estimates."""

from dataclasses import replace

import numpy as np
import pytest

import dprelease
from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.estimates.joined import DrawnRelease, join, replicates_of_best
from dpcore.line.privacy_line import perturb
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.thresholded import ThresholdedHistogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from tests.tasks.made_up import opened_once

PLACE, SEX = Categories("place", ("a", "b", "c")), Categories("sex", ("F", "M"))
AGE, COARSE = Bins("age", (0.0, 20.0, 40.0, 90.0)), Bins("age", (0.0, 40.0, 90.0))
WHOLE = Domain((PLACE, SEX, AGE))
COUNTS = np.random.default_rng(3).integers(0, 80, WHOLE.shape)


def releases(adjacency: Adjacency):
    rows = int(COUNTS.sum())
    return [
        Histogram("h", Domain((SEX, PLACE)), rows, Budget.of("0.5"), adjacency=adjacency),
        MarginTables(
            "m",
            WHOLE,
            rows,
            Budget.of("0.5", "1e-5"),
            ((0, 1), (1, 2)),
            "discrete-gaussian",
            aim="mean",
            adjacency=adjacency,
        ),
        Histogram("other bins", Domain((COARSE,)), rows, Budget.of("1"), adjacency=adjacency),
    ]


def parts(built, seed: int) -> list[DrawnRelease]:
    found = []
    for i, release in enumerate(built):
        names = release.domain.names
        if release.name == "other bins":
            young, middle, old = COUNTS.sum(axis=(0, 1))
            tally = Tally(release.domain, np.arange(2), np.array([young + middle, old]))
        else:
            tally = Tally(WHOLE, np.arange(WHOLE.size), COUNTS.ravel()).roll_up(names)
        exact = release.statistic(tally)
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(100 * seed + i))
        found.append(DrawnRelease(release.name, release, release.agreement(noisy), noisy, f"{i}"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, Adjacency("add-remove")])
def test_the_joint_estimate_has_the_stated_error_and_it_is_the_smallest(adjacency):
    built, truth, errors = releases(adjacency), COUNTS.sum(axis=2), []
    for seed in range(300):
        found = join("", Domain((PLACE, SEX)), built[1], parts(built, seed))
        errors.append(found.estimate.reshape(3, 2) - truth)
    assert found.sources == ("h", "m") if adjacency.public_rows else ("h", "m", "other bins")
    assert found.draws == ({"0", "1"} if adjacency.public_rows else {"0", "1", "2"})
    assert np.mean(np.square(errors)) == pytest.approx(found.variances[0], rel=0.08)
    alone = [built[0].mechanism.stddev ** 2, built[1].of_nothing.margin((0, 1)).variance]
    assert found.variances[0] < 1 / sum(1 / each for each in alone) * 1.001
    sums = [error[0].sum() for error in errors]
    _, variance = found.sum(np.array([1.0, 1, 0, 0, 0, 0]))
    assert np.mean(np.square(sums)) == pytest.approx(variance, rel=0.25)


def test_replicates_have_the_joint_error_and_agree_between_releases():
    built = releases(REPLACE_ONE)
    everything = parts(built, 1)
    number = 1200
    of_histogram = replicates_of_best(built[0], everything, number)["h"].reshape(-1, 2, 3)
    of_margins = replicates_of_best(built[1], everything, number)["m.place.sex"].reshape(-1, 3, 2)
    np.testing.assert_allclose(of_histogram, of_margins.transpose(0, 2, 1), atol=1e-3)
    found = join("", Domain((PLACE, SEX)), built[1], everything)
    assert np.mean(np.square(of_margins)) == pytest.approx(found.variances[0], rel=0.06)
    for factors in (np.array([1.0, 1, 0, 0, 0, 0]), np.array([1.0, -1, 0, 2, 0, 1])):
        sums = of_margins.reshape(number, -1) @ factors
        assert np.mean(np.square(sums)) == pytest.approx(found.sum(factors)[1], rel=0.2)


@pytest.mark.slow
def test_tables_in_other_bins_are_combined_too():
    built, truth, errors = releases(Adjacency("add-remove")), COUNTS.sum(axis=0), []
    for seed in range(300):
        found = join("", Domain((SEX, AGE)), built[1], parts(built, seed))
        errors.append(found.estimate.reshape(2, 3) - truth)
    assert found.sources == ("h", "m", "other bins")
    alone = built[1].of_nothing.margin((1, 2)).variance
    assert found.variances.max() < alone * 0.99
    errors = np.reshape(errors, (300, 6))
    np.testing.assert_allclose(np.mean(errors**2, axis=0), found.variances, rtol=0.3)
    young = np.array([1.0, 1, 0, 1, 1, 0])
    assert np.mean((errors @ young) ** 2) == pytest.approx(found.sum(young)[1], rel=0.3)


def test_weights_are_not_combined_with_records_nor_tables_that_passed_a_threshold():
    built = releases(REPLACE_ONE)
    weighted = replace(built[0], adjacency=Adjacency(weighted=True), name="w")
    rest = parts(built, 1)
    agreement = replace(rest[0].agreement, total=None)
    rest.append(DrawnRelease("w", weighted, agreement, rest[0].noisy, "9"))
    assert join("", Domain((PLACE, SEX)), built[1], rest).sources == ("h", "m")
    passed = ThresholdedHistogram("h", built[0].domain, built[0].rows, built[0].share)
    assert passed.agreement(None) is None
    assert join("", Domain((SEX, PLACE)), passed, rest) is None


def test_a_lone_histogram_says_what_the_reader_says(plan_document, tmp_path):
    """Also where nothing but the public number of records is known beside what was drawn."""
    cells = {"name": "cells", "kind": "histogram", "columns": ["sex"]}
    plan_document |= {"releases": [cells], "synthesis": []}
    plan_document["budget"]["requested"]["beta"] = "0"
    opened = opened_once(tmp_path, plan_document)
    table, women = opened.table("cells"), opened.total("cells", lambda t: t["sex"] == "F")
    assert table["best_estimate"].sum() == pytest.approx(opened.manifest.plan["rows"])
    assert women.value == pytest.approx(table["best_estimate"][table["sex"] == "F"][0])
    assert women.standard_error == pytest.approx(table["best_standard_error"][0])
    assert women.standard_error < table["standard_error"][0] * 0.9
    again = dprelease.open_bundle(opened.path).table("cells", replicates=True)
    assert again.filter(like="replicate_").sum().to_numpy() == pytest.approx(
        opened.manifest.plan["rows"], rel=1e-5
    )
    assert "of `best_estimate`" in (opened.path / "replicates" / "README.md").read_text()
