"""The benchmark of conclusions: its keys, and the error that it states of a coverage."""

import numpy as np
import pytest

from benchmarks.inference import QUESTIONS, Seen, load, repeated
from dpcore.accounting.budget import Budget
from dpcore.releases.tables.microdata import Microdata
from tests.chance import shares
from tests.conftest import DATA


def line(held: bool) -> dict[str, float]:
    return {"given": 1.0, "held": float(held), "survey": 1.0, "naive": 0.0} | dict.fromkeys(
        ("width_ratio", "optimum_ratio"), 1.5
    )


def test_intervals_of_one_survey_that_fail_together_count_as_one():
    held = np.repeat([True, True, True, False], 10)
    together = Seen([[line(each)] * 8 for each in held], [0.1]).summary()
    apart = Seen([[line(each)] for each in np.repeat(held, 8)], [0.1]).summary()
    assert together["coverage"] == apart["coverage"] == 0.75
    assert together["coverage_error"] == pytest.approx(8**0.5 * apart["coverage_error"], rel=0.01)
    assert apart["coverage_error"] == pytest.approx((0.75 * 0.25 / 320) ** 0.5, rel=0.01)


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="needs the test data")
def test_every_family_is_answered_and_held_far_better_than_by_the_records_alone():
    domain, codes = load("fair")
    share = Budget.of("1", "1e-6")
    release = Microdata("r", domain, 5000, share, noise="discrete-gaussian", aim="mean")
    surveys = 12
    found = repeated("fair", domain, codes, release, surveys, 3)["families"]
    assert list(found) == list(QUESTIONS["fair"])
    for family, result in found.items():
        assert {"coverage", "width_ratio", "cpu_seconds"} <= set(result)
        # As if all intervals of a survey failed together.
        assert result["coverage"] >= shares(surveys, 0.95)[0], family
    assert found["linear"]["optimum_ratio"] < 1.5
    assert found["linear"]["naive"] < 0.8
