"""Kernel machines at a regularisation that is drawn first: its sensitivity, and what is published."""

from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import affordable
from dpcore.mechanisms.exponential import WHOLE
from dpcore.releases.machines.classifier import Classifier, LossName
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.machines.regression import Regression
from dpcore.releases.machines.tuned import TunedMachine
from tests.dpcore.releases.contract import drawn, tally_of

SIDES = Domain((Grid("x", 0.0, 1.0, 16), Categories("yes", (False, True))))
NUMBERS = Domain((Grid("x", 0.0, 1.0, 16), Grid("y", 0.0, 1.0, 2)))
SHARE = Budget.of("1", "1e-6")
CANDIDATES = (0.001, 0.01, 0.1, 1.0)


def classifier(rows: int, loss: LossName = "hinge") -> KernelMachine:
    return Classifier("c", SIDES, rows, SHARE, (0.2,), 0.01, 16, signs=(-1, 1), loss_name=loss)


def tuned(machine: KernelMachine, share: Budget = SHARE, first_share: str = "1/5") -> TunedMachine:
    facts = machine.name, machine.domain, machine.rows, share
    return TunedMachine(*facts, machine, Fraction(first_share), CANDIDATES)


MACHINES = {
    "hinge": (classifier(20), 0.6),
    "logistic": (classifier(20, "logistic"), 0.35),
    "huber": (Regression("r", NUMBERS, 20, SHARE, (0.2,), 0.01, 16), 0.6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_no_record_moves_a_least_loss_by_more_than_its_sensitivity(name: str):
    """All replacements of a record, of tables with all others in one cell and of some others."""
    machine, attained = MACHINES[name]
    least = tuned(machine).choice
    generator = np.random.default_rng(1)
    shares, scores = [], []
    for others in [[1] * 19, [1, 30] * 9 + [1], generator.integers(0, 32, 19).tolist()]:
        tables = [tally_of(machine.domain, [*others, cell]) for cell in range(32)]
        shares.append(np.ptp([least.losses(each) for each in tables], axis=0))
        scores.append(np.ptp([least.scores(each) for each in tables], axis=0).max())
    most = np.max(shares, axis=0) / least.sensitivities
    assert attained < most.max() <= 1
    assert 0.1 * WHOLE < max(scores) <= least.mechanism.sensitivity


def test_both_steps_cost_the_share_and_have_one_law_at_all_candidates():
    for share in (SHARE, Budget(rho=Fraction(1, 2))):
        release = tuned(classifier(400), share)
        assert affordable(release.mechanism.event, share)
        assert not affordable(release.mechanism.event, share * Fraction(999, 1000))
        assert len({machine.mechanism for machine in release.choice.machines}) == 1


def test_noise_for_another_sensitivity_is_refused(monkeypatch: pytest.MonkeyPatch):
    release = tuned(classifier(400))
    assert release.after(np.array([3])).regularisation == 1.0
    quieter = classifier(400).mechanism
    monkeypatch.setitem(release._first.__dict__, "mechanism", quieter)
    with pytest.raises(PrivacyLineError, match="another sensitivity"):
        release.after(np.array([3]))


def test_many_records_of_a_pattern_have_little_regularisation_and_few_have_much():
    """Labels that alternate along x: with much regularisation the function is nearly flat."""
    chosen = {}
    for rows in (400, 400_000):
        release = tuned(classifier(rows), first_share="1/2")
        cells = [2 * x + (x // 4) % 2 for x in range(16)]
        noisy = drawn(release, np.repeat(cells, rows // 16))
        settled, second = release.settled(noisy)
        chosen[rows] = settled.regularisation
        facts = release.publish(noisy).facts
        assert facts["regularisation"] == settled.regularisation
        assert facts["regularisation_choice"]["candidates"] == list(CANDIDATES)
        x = {"x": np.array([0.1, 0.4])}
        found, expected = release.evaluate(noisy, x), settled.evaluate(second, x)
        assert found.keys() == expected.keys()
        np.testing.assert_array_equal(found["decision"], expected["decision"])
    assert chosen[400] > chosen[400_000]


def test_candidates_that_do_not_ascend_are_refused():
    machine, facts = classifier(20), ("c", SIDES, 20, SHARE)
    for candidates, said in [((0.1,), "state 2 to 16"), ((0.1, 0.01), "must ascend")]:
        with pytest.raises(ValueError, match=said):
            TunedMachine(*facts, machine, Fraction(1, 5), candidates)
