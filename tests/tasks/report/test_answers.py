"""A report states the means that were asked for, and says so where noise hides how groups differ."""

import sys

import numpy as np
import pandas as pd
import pytest

import dprelease
from schemas.plan import load_plan
from schemas.survey.columns import IntegerColumn
from tasks.bundle.verify import read_manifest
from tasks.report.answers import GroupMean, answer_of_means, compared_groups
from tasks.report.findings import findings
from tests.bare import leave_out_audits
from tests.shortest import document as shortest


def test_groups_whose_intervals_meet_are_not_told_apart():
    one, other = GroupMean("a", 5.0, 4.0, 6.0, 0.5), GroupMean("b", 3.0, 2.0, 4.0, 0.5)
    said = compared_groups("Pay", [one, other], "noise leaves")
    assert said == ("Pay: noise leaves it open whether groups differ.", True)
    said = compared_groups("Pay", [other._replace(high=3.9), one], "noise leaves")
    assert said.sentence.startswith("Pay: the mean is 5.00 (4.00 to 6.00) where a, and 3.00")
    assert not said.leaves_open


def test_a_mean_that_may_be_anything_between_the_bounds_is_not_told():
    lead = IntegerColumn(type="integer", bounds=(0, 200))
    noise, known = (GroupMean(group, 15.0, 0.0, 200.0, 9.0, lead) for group in "ab")
    said = compared_groups("Lead", [noise, known], "noise leaves")
    assert said == ("Lead: the noise is too large for any mean.", True)
    assert compared_groups("Lead", [], "noise leaves") == said
    said = compared_groups(
        "Lead", [noise, known._replace(low=10.0, high=20.0, error=2.5)], "noise leaves"
    )
    assert said == ("Lead: the mean is 15.0 (10.0 to 20.0) where b.", False)


@pytest.mark.slow
def test_means_of_a_release_are_told(tmp_path, monkeypatch):
    random = np.random.default_rng(5)
    rows = pd.DataFrame({"region": random.choice(["n", "s", "w"], 5000)})
    rows["pay"] = np.where(rows.region == "n", 30, 60) + random.integers(0, 20, 5000)
    region = {"type": "categorical", "categories": ["n", "s", "w"], "labels": {"n": "north"}}
    columns = {"region": region, "pay": {"type": "integer", "bounds": [0, 100]}}
    mean = {"kind": "mean", "column": "pay", "mechanism": "discrete-laplace"}
    releases = [mean | {"name": "pay-by-region", "by": "region"}, mean | {"name": "all-pay"}]
    leave_out_audits(monkeypatch.setattr)
    plan = load_plan(shortest(columns, releases, alpha="9", rows=5000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    found = findings(plan, read_manifest(bundle), bundle)
    by_region, of_all = found.sentences
    assert by_region.startswith("Pay by region: ")
    assert float(by_region.split()[6]) == pytest.approx(69.5, abs=3)
    assert by_region.count(" where “region” is ") == 2
    assert by_region.endswith(" where “region” is north.")
    assert of_all.startswith("All pay: ")
    assert float(of_all.split()[5]) == pytest.approx(rows.pay.mean(), abs=3)
    assert "all intervals of means here are right at once, although they were chosen" in found.note
    assert "by rule from 4 means" in found.note


@pytest.mark.slow
def test_means_that_were_asked_for_are_as_certain_beside_many_shares(tmp_path, monkeypatch):
    """They shared the chance of an error with thousands of shares, which hid clear differences."""
    columns = {
        "region": {"type": "categorical", "categories": ["n", "s"]},
        "pay": {"type": "integer", "bounds": [0, 99]},
    }
    rows = pd.DataFrame({"region": ["n", "s"] * 500, "pay": np.arange(1000) % 100})
    mean = {"name": "pay", "kind": "mean", "column": "pay", "mechanism": "discrete-laplace"}
    table = {"name": "t", "kind": "histogram", "columns": ["region", "pay"], "bins": {"pay": 50}}
    leave_out_audits(monkeypatch.setattr)
    plan = load_plan(shortest(columns, [mean | {"by": "region"}, table], alpha="9", rows=1000))
    bundle = dprelease.release(plan, rows, release_id="r1", out=tmp_path, progress=False).path
    chances = []

    def asked(source, chance):
        chances.append(chance)
        return answer_of_means(source, chance)

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["tasks.report.findings"], "answer_of_means", asked)
    found = findings(plan, read_manifest(bundle), bundle)
    assert "shares and 2 means" in found.note
    assert chances == [pytest.approx(0.05 / 2 / 2)]
