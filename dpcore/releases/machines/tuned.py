"""A kernel machine whose regularisation is drawn from the records first (Hall 2012, section 1.2.3).

Each public candidate lambda is valued by a bound of the mean loss of noisy predictions on the records:

    F(lambda) + M s(lambda) sqrt(2/pi),    F = the least value of  mean loss + lambda ||f||^2,

where s is the standard deviation of the noise in f(x), and M the largest slope of the loss: noise Z in
f(x) adds at most M E|Z| to the expected loss.  F rises with lambda, and the noise falls.  The choice is
by the exponential mechanism, with relative scores of these values (``mechanisms.exponential``).

**Sensitivity.**  Let f be the minimiser for one table of n records, and let a record z be replaced by
z'.  For the other table the value of f is (l(f, z') - l(f, z))/n higher, and the minimum is at most this
value; the same is true with both tables exchanged.  Losses are not negative.  As 2 lambda f is a mean of
-l' Phi, and lambda ||f||^2 is at most the loss of f = 0,

    ||f|| <= B = min(M kappa/(2 lambda), sqrt(l(0)/lambda)),    F moves by at most l(kappa B)/n,

where l(u) is the largest loss of outputs of at most u in size.

**Rounding.**  A certified gap G of the solver bounds ||gradient||^2/(2 lambda), so its minimum is at
most G/2 too high.  The value is then a sum over at most n rows, of losses of sums over D features,
which errs by at most (n + D + 64) u (2 l(kappa B) + M kappa B), u = 2^-53.  The sensitivity counts both
twice.

The second step trains again at the chosen lambda, and its noise is paid by the rest of the share.  The
lattice of weights has equally many steps per sensitivity at each lambda, so the noise law is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.statistic import Noisy
from dpcore.machines.features import KAPPA
from dpcore.machines.sensitivity import default_gap
from dpcore.mechanisms.exponential import ExponentialMechanism, relative_scores
from dpcore.releases.abilities import Trained
from dpcore.releases.base import ErrorStatement
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.table import LEVEL
from dpcore.releases.tuned import TunedRelease
from dpcore.releases.work import Work

MOST_CANDIDATES = 16


@dataclass(frozen=True)
class LeastLoss:
    """The choice of lambda; ``machines``: one per candidate, ascending; ``share``: its price."""

    machines: tuple[KernelMachine, ...]
    share: Budget

    @cached_property
    def mechanism(self) -> ExponentialMechanism:
        return ExponentialMechanism.relative(self.share, len(self.machines))

    @cached_property
    def sensitivities(self) -> Floats:
        """The largest change (candidates,) of the minimum F when one record is replaced."""
        return np.array([_moved(machine) for machine in self.machines])

    @property
    def noise(self) -> Floats:
        """The largest increases (candidates,) of the mean loss by noise."""
        spread = [machine.loss.slope * machine.decision_stddev for machine in self.machines]
        return np.array(spread) * math.sqrt(2 / math.pi)

    def losses(self, tally: Tally) -> Floats:
        """The minima F (candidates,): private."""
        return np.array([machine.trained(tally)[1] for machine in self.machines])

    def scores(self, tally: Tally) -> Integers:
        """The exact scores (candidates,): private."""
        return relative_scores(self.losses(tally) + self.noise, self.sensitivities)

    def stated(self, noisy: Noisy) -> dict[str, object]:
        """The candidates, for the manifest."""
        return {"candidates": [machine.regularisation for machine in self.machines]}

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """The expected error compared with the largest candidate, which has the least noise."""
        worse = self.mechanism.shortfall(1 - LEVEL)
        worse *= float(self.sensitivities[-1] + self.sensitivities.max())
        what = "90% bound of the mean loss that the choice of the regularisation adds"
        largest = self.machines[-1].regularisation
        return (ErrorStatement(what, worse, f"compared with {largest:g}, the largest candidate"),)


@dataclass(frozen=True)
class TunedMachine(TunedRelease[KernelMachine], Trained):
    """A machine at a chosen lambda; ``machine``: at the smallest candidate; ``candidates``: ascending.

    The rows and the share in ``machine`` are ignored.
    """

    machine: KernelMachine
    first_share: Fraction
    candidates: tuple[float, ...] = ()

    setting, least, rule = "regularisation", "smallest candidate", "loss"
    chart = "features"
    finer = "larger candidates, a larger bandwidth or fewer features"

    def __post_init__(self) -> None:
        self.adjacency.require_public_rows("a private regularisation")
        if not 2 <= len(self.candidates) <= MOST_CANDIDATES:
            raise ValueError(f"regularisation.candidates: state 2 to {MOST_CANDIDATES}")
        if list(self.candidates) != sorted(set(self.candidates)):
            raise ValueError("regularisation.candidates: must ascend")
        super().__post_init__()

    def _at_most_noise(self, share: Budget) -> KernelMachine:
        least = self.candidates[0]
        return replace(self.machine, regularisation=least, rows=self.rows, share=share)

    @cached_property
    def choice(self) -> LeastLoss:
        machines = tuple(replace(self._first, regularisation=each) for each in self.candidates)
        return LeastLoss(machines, self._shares[0])

    def after(self, chosen: Integers) -> KernelMachine:
        release = self.choice.machines[int(chosen[0])]
        if release.mechanism != self._first.mechanism:
            raise PrivacyLineError("the noise is for another sensitivity than the chosen machine's")
        return release

    def require_publishable(self) -> None:
        for machine in self.choice.machines:
            machine.require_publishable()
        super().require_publishable()

    @property
    def feature_axes(self) -> tuple[Axis, ...]:
        return self.machine.feature_axes

    @property
    def work(self) -> Work:
        trained = self.machine.work
        return Work((len(self.candidates) + 1) * trained.seconds, trained.bytes)

    def evaluate(self, noisy: Noisy, points: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
        """The predictions of the machine at the chosen candidate."""
        release, drawn = self.settled(noisy)
        return release.evaluate(drawn, points)


def _largest_loss(machine: KernelMachine, output: float) -> float:
    """The largest loss of outputs of at most this size: a convex loss is largest at an end."""
    targets = np.array([machine.targets.min(), machine.targets.max()])
    outputs = np.array([-output, output])
    return float(machine.loss.value(outputs[:, None], targets).max())


def _moved(machine: KernelMachine) -> float:
    loss, rows, strength = machine.loss, machine.rows, machine.regularisation
    slope = loss.slope * KAPPA
    norm = min(slope / (2 * strength), math.sqrt(_largest_loss(machine, 0.0) / strength))
    largest = _largest_loss(machine, KAPPA * norm)
    gap = default_gap(rows, strength, loss.slope)
    roundings = (rows + machine.features.size + 64) * 2.0**-53
    rounded = roundings * (2 * largest + slope * norm)
    # This formula is rounded as well.
    return (largest / rows + gap + 2 * rounded) * (1 + 2.0**-30)
