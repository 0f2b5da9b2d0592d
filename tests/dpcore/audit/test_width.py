"""Narrower noise is found, and right noise is not accused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.planted import narrower_noise
from dpcore.accounting.budget import Budget
from dpcore.audit import short_audit
from dpcore.audit.draws import ReleaseDraws
from dpcore.audit.releases import covered
from dpcore.audit.width import FACTORS, audit_noise, bound_width
from dpcore.errors import AuditError
from dpcore.line.mechanism import AS_STATED
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.tables.margins import MarginTables
from dpcore.sampling.source import SeededSource
from tests.chance import most_failures
from tests.conftest import those_slow
from tests.dpcore.audit.gallery import TABLE
from tests.dpcore.releases.contract import CASES, LAWS

NARROW = Budget.of("1", "1e-6")
"""A budget whose (alpha, beta) hide the loss of Gaussian noise in outputs too rare to be drawn."""

GAUSSIAN = MarginTables("g", TABLE, 50, NARROW, ((0,), (1,)), "discrete-gaussian")
SLOW = ["near series", "near records", "gradient classifier"]

SMALL = {
    "bandwidth": "0.6",
    "near series": "0.6",
    "histogram of occupied cells": "0.6",
}
"""Cases of two or three records, with few outputs to tell widths apart."""


def tables_of(release) -> list[ReleaseDraws]:
    return [ReleaseDraws(release, pair) for pair in covered(release, 4)]


@pytest.mark.parametrize("name", those_slow(LAWS, SLOW))
def test_narrower_noise_of_every_kind_is_found_and_right_noise_is_not_accused(name: str):
    tables = tables_of(CASES[name].release)
    right = audit_noise(tables, 5_000, 1e-5, SeededSource(1))[0]
    assert right is not None
    assert right.passed
    with narrower_noise(Fraction(SMALL.get(name, "0.8"))):
        wrong = audit_noise(tables, 5_000, 0.005, SeededSource(2))[0]
    assert wrong is not None
    assert not wrong.passed
    assert wrong.at_most < 1 <= right.at_most


@pytest.mark.slow
def test_gaussian_noise_of_half_its_scale_fails_though_its_alpha_is_hardly_seen():
    right, wrong = short_audit([GAUSSIAN], 0.999, SeededSource(1))[1], None
    with narrower_noise(Fraction(1, 2)):
        wrong = short_audit([GAUSSIAN], 0.999, SeededSource(1))[1]
    assert right.passed
    assert wrong.lower_bound <= 1
    assert wrong.gaussian.lower_bound > wrong.gaussian.claim
    assert not wrong.width.passed
    assert len(wrong.faults) == 2


def test_outputs_that_are_all_the_same_stop_the_audit():
    release = Histogram("h", TABLE, 50, Budget.of("1"))
    tables = tables_of(release)
    assert audit_noise(tables, 100, 0.01, SeededSource(1))[0].passed
    one = tables[0].draw(0, 1, SeededSource(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ReleaseDraws, "draw", lambda self, side, draws, source: np.repeat(one, draws, 0)
        )
        with pytest.raises(AuditError, match="all outputs on a table are the same"):
            audit_noise(tables, 100, 0.01, SeededSource(1))
    nothing = Histogram("h", TABLE, 50, Budget.of("1000"))  # whose noise is always nothing
    audit_noise(tables_of(nothing), 100, 0.01, SeededSource(1))


@pytest.mark.slow
def test_right_releases_are_hardly_ever_accused():
    """Of 200 audits at 95% confidence; the bound by Markov's inequality is far from sharp."""
    release = Histogram("h", TABLE, 50, Budget.of("1"))
    tables = tables_of(release)[:1]
    accused = sum(
        not audit_noise(tables, 60, 0.05, SeededSource(seed))[0].passed for seed in range(200)
    )
    assert accused <= most_failures(200, 0.05)


@pytest.mark.slow
def test_the_limit_has_the_error_that_it_states_and_holds_the_true_width():
    """For continuous Laplace noise of scale 1, stated as 1: the limit is below 1 at most this often."""
    generator = np.random.default_rng(1)
    below = 0
    for _ in range(400):
        lengths = np.abs(generator.laplace(size=200)).sum()
        bound = bound_width(-lengths / FACTORS - 200 * np.log(2 * FACTORS), 200, 0.1)
        below += bound.at_most < 1
        assert bound.passed == (bound.at_most >= 1)
    assert below <= most_failures(400, 0.1)


def test_nothing_is_concluded_from_nothing():
    bound = bound_width(np.zeros(len(FACTORS)), 10, 0.05)
    assert bound.passed
    assert bound.at_most == float("inf")
    assert 1.0 in FACTORS


@pytest.mark.parametrize("name", ["histogram", "gaussian margins", "quantiles", "minimax count"])
def test_log_chances_are_those_of_the_stated_law(name: str):
    """For the stated width they differ between outputs as frequencies of a long sample do."""
    table = tables_of(CASES[name].release)[0]
    outputs = table.draw(0, 100_000, SeededSource(3))[:, :1]
    exact, _ = table.readings
    wide = {"histogram": 1, "gaussian margins": 1}.get(name)
    if wide is None:
        outputs = table.draw(0, 100_000, SeededSource(3))
    (drawn,) = (
        table.release.mechanism.rounds_of(outputs, exact.at([0]))
        if wide
        else table.rounds_of(outputs, AS_STATED)
    )
    _, first, counts = np.unique(outputs, axis=0, return_index=True, return_counts=True)
    common = counts > 2_000
    logs = drawn.logs[first, 0][common]
    found = np.log(counts[common] / counts[common].sum())
    expected = logs - np.log(np.exp(logs).sum())
    np.testing.assert_allclose(found, expected, atol=5 / np.sqrt(counts[common].min()))


def test_a_likelihood_that_is_not_finite_stops_the_audit(monkeypatch):
    tables = tables_of(CASES["histogram"].release)
    monkeypatch.setattr(
        type(tables[0].release.mechanism),
        "log_chances",
        lambda *_: np.array([[np.nan, np.nan], [0.9, 1.0]]),
    )
    with pytest.raises(AuditError, match="not finite"):
        audit_noise(tables, 100, 1e-5, SeededSource(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "field", "narrower"),
    [
        ("gaussian compressed microdata", "again", {"variance": Fraction(16, 25)}),
        ("compressed microdata", "first", {"scale": Fraction(4, 5)}),
        ("density at a private bandwidth", "choice", {"scale": Fraction(1, 2)}),
    ],
)
def test_one_round_of_narrower_noise_is_found_beside_others(name, field, narrower, monkeypatch):
    tables = tables_of(CASES[name].release)
    kind = type(CASES[name].release.mechanism)
    honest = kind.repeat

    def repeat(self, *arguments):
        part = getattr(self, field)
        changed = {key: getattr(part, key) * factor for key, factor in narrower.items()}
        return honest(replace(self, **{field: replace(part, **changed)}), *arguments)

    monkeypatch.setattr(kind, "repeat", repeat)
    found = audit_noise(tables, 5_000, 0.005, SeededSource(5))[0]
    assert not found.passed
    assert found.at_most < 1
