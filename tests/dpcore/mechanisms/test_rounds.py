"""Rounds that measure what noisy numbers chose: each is paid for, and all lie in the result."""

import numpy as np
import pytest

from dpcore.line.privacy_line import perturb
from dpcore.mechanisms import rounds
from dpcore.mechanisms.rounds import Rounds
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import LAWS, tally_of

ROUNDS = {n: case.release for n, case in LAWS.items() if isinstance(case.release.mechanism, Rounds)}
every_mechanism = pytest.mark.parametrize("name", ROUNDS)


@every_mechanism
def test_every_round_crosses_the_privacy_line_and_together_they_pay_what_the_event_costs(
    name: str, monkeypatch
):
    release, paid = ROUNDS[name], []

    def watched(exact, mechanism, share, source):
        paid.append(share.rho)
        return perturb(exact, mechanism, share, source)

    monkeypatch.setattr(rounds, "perturb", watched)
    mechanism = release.mechanism
    exact = release.statistic(tally_of(release.domain, LAWS[name].near))
    perturb(exact, mechanism, release.share, SeededSource(1))
    assert len(paid) == len(mechanism.laws)
    assert sum(paid) == mechanism.event.concentrated[0]


@every_mechanism
def test_a_result_holds_what_every_round_drew_where_it_says_so(name: str, monkeypatch):
    release, drawn = ROUNDS[name], []
    honest = rounds._drawn
    monkeypatch.setattr(rounds, "_drawn", lambda *of: drawn.append(honest(*of)) or drawn[-1])
    exact = release.statistic(tally_of(release.domain, LAWS[name].near))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(2))
    for part, once in zip(release.mechanism.by_round(noisy.values[None]), drawn, strict=True):
        np.testing.assert_array_equal(part, once)
