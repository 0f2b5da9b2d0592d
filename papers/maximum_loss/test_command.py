"""The command that estimates the largest loss of every release of a plan."""

import re

import pytest

from dpcore.accounting.budget import Budget
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import SeededSource
from papers.maximum_loss.__main__ import Search, main
from tests.conftest import write_plan
from tests.dpcore.releases.contract import TABLE


def test_the_loss_of_a_histogram_is_its_alpha_and_no_more():
    source = SeededSource(1)
    found, tables = Search.of(Histogram("h", TABLE, 50, Budget.of("1")), source).largest_loss(
        source
    )
    assert 0.85 < found.lower_bound <= 1
    assert found.estimate == pytest.approx(1, abs=0.1)
    assert "end to end" in tables


@pytest.mark.slow
def test_every_release_of_a_plan_has_a_line(tmp_path, plan_document, capsys):
    plan_document["releases"] = plan_document["releases"][:1]
    plan_document["releases"].append({"name": "ages", "kind": "mean", "column": "age"})
    plan_document["synthesis"] = []
    plan_document["budget"]["requested"]["beta"] = "0"
    main([str(write_plan(tmp_path, plan_document))])
    shown = capsys.readouterr()
    assert re.fullmatch(r"this takes about \d+ (seconds|minutes)\n", shown.err)
    header, people, ages, *_ = shown.out.splitlines()
    assert header.split() == ["release", "alpha", "estimate", "at", "least", "tables"]
    for line, name in ((people, "people"), (ages, "ages")):
        first, alpha, estimate, bound, *_ = line.split()
        assert first == name
        assert float(bound) <= float(alpha) * 1.02
        assert float(estimate) > 0.7 * float(alpha)


def test_a_plan_that_cannot_be_read_is_refused(tmp_path, capsys):
    (tmp_path / "plan.yaml").write_text("dataset: people\n")
    with pytest.raises(SystemExit) as refused:
        main([str(tmp_path / "plan.yaml")])
    assert refused.value.code == 2
    assert "the plan is not valid" in capsys.readouterr().err
