"""A release at a setting that is drawn from the records first, such as a bandwidth.

The choice of the setting and the numbers at that setting each spend a fraction of the share
(``dpcore.mechanisms.tuned_noise``); both form one draw.  Before the choice is known, everything is
stated for the setting with most noise.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

from dpcore.accounting.analytic import Inherited
from dpcore.accounting.budget import Budget
from dpcore.accounting.gaussian import gaussian_variance
from dpcore.arrays import Integers
from dpcore.domain.tally import Tally
from dpcore.line.statistic import Exact, Noisy
from dpcore.mechanisms import DiscreteGaussian, DiscreteLaplace, ExponentialMechanism, TunedNoise
from dpcore.mechanisms.exponential import LARGEST_RELATIVE
from dpcore.mechanisms.rounds import GAUSSIAN_PRICE
from dpcore.mechanisms.tuned_noise import Tuning
from dpcore.releases.base import ErrorStatement, Release
from dpcore.releases.table import Published

Settled = TypeVar("Settled", bound=Release)


class Choice(Protocol):
    """How a setting is chosen."""

    @property
    def share(self) -> Budget:
        """The share of the choice."""
        ...

    @property
    def mechanism(self) -> ExponentialMechanism:
        """The mechanism that chooses the setting."""
        ...

    def scores(self, tally: Tally) -> Integers:
        """The exact scores of all candidates: private."""
        ...

    def stated(self, noisy: Noisy) -> dict[str, object]:
        """The chosen values, for the manifest."""
        ...

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        """The expected error of the choice."""
        ...


class TunedRelease(Release, Generic[Settled]):
    """A release at a chosen setting; ``rule``: how the setting is chosen; ``first_share``: the fraction
    of the share for the choice (of rho or precision with Gaussian noise, otherwise of alpha)."""

    first_share: Fraction
    rule: Any
    setting: str
    """The name of the setting, in words (``DrawsSetting``)."""
    least: str
    """The setting with the most noise, in words."""

    @abstractmethod
    def _at_most_noise(self, share: Budget) -> Settled:
        """The second step at the setting with most noise, paid by this share."""

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The first step, which chooses the setting."""

    @abstractmethod
    def after(self, chosen: Integers) -> Settled:
        """The second step at the chosen setting.

        Raises ``PrivacyLineError`` if one record may change its numbers by more than the noise allows.
        """

    @cached_property
    def _shares(self) -> tuple[Budget, Budget]:
        rest = self.share * (1 - self.first_share)
        law = self._at_most_noise(rest).mechanism
        if self.share.rho or not isinstance(law, DiscreteGaussian):
            return self.share * self.first_share, rest
        # The precisions of the noise and of the choices (8 GAUSSIAN_PRICE times their rho) add up to the
        # precision of one draw at the share.
        squared, left = law.l2_sensitivity_squared, 1 - self.first_share
        variance = gaussian_variance(
            squared / left, self.share.alpha, self.share.beta, Inherited(squared)
        )
        spent = squared * self.first_share / left / variance / (8 * GAUSSIAN_PRICE)
        return Budget(rho=spent), Budget(rho=squared / (2 * variance))

    @property
    def rest(self) -> Budget:
        """The share of the second step."""
        return self._shares[1]

    @cached_property
    def _first(self) -> Settled:
        """The second step, as stated before the choice is known."""
        return self._at_most_noise(self.rest)

    def scores(self, tally: Tally) -> Integers:
        """The exact scores of the choice: private."""
        return self.choice.scores(tally)

    @property
    def chosen(self) -> int:
        """The number of values in the choice."""
        return self.choice.mechanism.choices

    def settled(self, noisy: Noisy) -> tuple[Settled, Noisy]:
        """The release at the chosen setting, and its draw."""
        release = self.after(noisy.values[: self.chosen])
        values = noisy.values[self.chosen : self.chosen + release.mechanism.size]
        return release, replace(noisy, values=values)

    @property
    def _longest(self) -> int:
        """The most numbers that are drawn at any setting."""
        return self._first.mechanism.size

    @cached_property
    def mechanism(self) -> TunedNoise:
        law = self._first.mechanism
        assert isinstance(law, DiscreteLaplace | DiscreteGaussian)
        noise = replace(law, size=self._longest)
        tuning = cast(Tuning, self)  # the second step of every kind has numbers
        return TunedNoise(self.domain.size, self.domain, self.choice.mechanism, noise, tuning)

    @property
    def largest_statistic(self) -> int:
        # Other scores are ranks, which ``ColumnQuantiles`` bounds.
        return max(LARGEST_RELATIVE, self._at_most_noise(self.share).largest_statistic)

    def statistic(self, tally: Tally) -> Exact:
        return Exact(tally.counts, tally.cells)

    def publish(self, noisy: Noisy) -> Published:
        release, drawn = self.settled(noisy)
        published = release.publish(drawn)
        chosen = self.choice.stated(Noisy(noisy.values[: self.chosen]))
        spent = self.choice.share.as_strings()
        facts = {f"{self.setting}_choice": {"rule": self.rule, "spent": spent, **chosen}}
        return replace(published, facts={**published.facts, **facts})

    def expected_error(self) -> tuple[ErrorStatement, ...]:
        share = self.choice.share
        cost = f"rho = {float(share.rho):.3g}" if share.rho else f"alpha = {float(share.alpha):.3g}"
        return tuple(
            replace(error, note=f"{error.note}; {said}" if error.note else said)
            for errors, said in (
                (self.choice.expected_error(), f"the choice costs {cost}"),
                (self._first.expected_error(), f"at the {self.least}"),
            )
            for error in errors
        )
