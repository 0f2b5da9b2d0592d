"""What a plan says of a model before anything is drawn."""

import numpy as np
import pytest

from dpcore.domain import Tally
from dpcore.errors import InputError
from dpcore.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import load_plan
from tasks.explain.analysis import analysis_text, expected_fit
from tasks.inference.designs import middles
from tasks.inference.evidence import Evidence
from tasks.inference.fit import fit
from tests.conftest import write_plan


@pytest.fixture
def plan(plan_document, tmp_path):
    return load_plan(write_plan(tmp_path, plan_document))


def test_expected_errors_are_those_of_a_draw_from_such_a_survey(plan):
    name, expected = expected_fit(plan, "income ~ sex + children", "gaussian")
    release = plan.built[name]
    assert name == "pairs"
    generator = np.random.default_rng(1)
    codes = np.stack(
        [generator.integers(0, axis.size, plan.rows) for axis in release.domain.axes], axis=1
    )
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    exact = release.statistic(Tally(release.domain, cells, counts))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(1))
    columns = {a.name: middles(a)[codes[:, i]] for i, a in enumerate(release.domain.axes)}
    drawn = Evidence(release.domain, release.agreement(noisy), plan.rows, codes, columns)
    found = fit(drawn, "income ~ sex + children")
    for before, after in zip(expected.coefficients, found.coefficients, strict=True):
        assert before.sampling_error == pytest.approx(after.sampling_error, rel=0.5)
        # Tables of other releases help too, so what is expected may be less.
        assert 0.3 < before.privacy_error / after.privacy_error < 1.5


def test_the_text_names_the_release_and_the_parts_of_the_error(plan):
    text = analysis_text(plan, "income ~ sex + children", "gaussian")
    assert "from pairs: supported" in text
    assert "sampling    privacy   together" in text


def test_what_the_plan_does_not_measure_is_named(plan):
    with pytest.raises(InputError, match=r"also: \[\[sex, children, income\]\]"):
        analysis_text(plan, "income ~ sex * children", "gaussian")


def test_a_plan_without_counts_says_so(plan_document, tmp_path):
    kept = [section for section in plan_document["releases"] if section["kind"] == "density"]
    plan_document |= {"releases": kept, "synthesis": []}
    with pytest.raises(InputError, match="no counts of records"):
        analysis_text(load_plan(write_plan(tmp_path, plan_document)), "income ~ age", "gaussian")
