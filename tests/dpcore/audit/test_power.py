"""An audit catches what is wrong and is silent about what is right."""

from dataclasses import replace

import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import audit_releases
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import SeededSource
from tests.chance import most_failures
from tests.dpcore.audit.gallery import RIGHT, TABLE, WRONG, audited, violations

CHEAP = ("randomised response", "noisy max")
"""Those of the gallery that can be audited often; ``benchmarks.audit`` counts them all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mechanism_is_caught(name: str):
    exhibit = replace(WRONG[name], draws=WRONG[name].draws // 3)
    found = audited(exhibit, seed=1)
    assert not found.passed
    assert found.lower_bound > exhibit.claim.alpha


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAP)
def test_a_right_mechanism_is_not_accused(name: str):
    """In 95% of audits at 95% confidence; ``most_failures`` states how often chance exceeds it."""
    failed, largest = violations(RIGHT[name], 60)
    assert failed <= most_failures(60, 0.05)
    assert largest > 0.2 * RIGHT[name].claim.alpha


@pytest.mark.slow
def test_releases_of_a_survey_are_audited_together():
    first = Histogram("a", Domain((Categories("a", (0, 1)),)), 9, Budget.of("1"))
    second = Histogram("b", TABLE, 9, Budget.of("1"))
    together = audit_releases((first, second), draws=10_000, source=SeededSource(1))
    assert together.claim.alpha == 2
    assert together.passed
    assert together.lower_bound > 1.7
    alone = audit_releases((first, second), Budget.of("1.5"), 10_000, source=SeededSource(1))
    assert not alone.passed


def test_releases_of_different_surveys_are_refused():
    releases = [Histogram("a", TABLE, rows, Budget.of("1")) for rows in (8, 9)]
    with pytest.raises(ValueError, match="same number of rows"):
        audit_releases(releases)
