"""The public result of an audit, in the form that manifests, reports and commands show."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from dpcore.accounting.budget import Budget, decimal_text
from dpcore.audit.chosen import Frequencies
from dpcore.audit.fresh import Freshness
from dpcore.audit.price import AuditedPrice
from dpcore.audit.replay import Replay
from dpcore.audit.width import WidthBound


@dataclass(frozen=True)
class GaussianLoss:
    """A bound on mu, the distance between neighbours in standard deviations of Gaussian noise."""

    lower_bound: float
    claim: float

    @property
    def passed(self) -> bool:
        return self.lower_bound <= self.claim


@dataclass(frozen=True)
class AuditResult:
    """The public result of an audit.

    ``estimate``: the point estimate of the outcome's loss.
    ``lower_bound``: a lower confidence bound for alpha.
    ``level``: the confidence of all bounds together.
    ``draws``: fresh draws of each side.
    ``gaussian``: a lower confidence bound for mu of Gaussian noise.
    ``width``: an upper one for the width of the noise, relative to the stated width.
    ``fresh``: a test of whether noise values are independent.
    ``chosen``: a test of whether candidates are chosen with the stated probabilities.
    ``price``: a test of whether the price covers the loss of the draws.
    ``replay``: the largest change of the statistic between neighbours, found without sampling.
    """

    name: str
    estimate: float
    lower_bound: float
    level: float
    draws: int
    search_draws: int
    pair: str
    outcome: str
    hits: tuple[int, int]
    claim: Budget
    score: str = field(compare=False)
    gaussian: GaussianLoss | None = None
    width: WidthBound | None = None
    fresh: Freshness | None = None
    chosen: Frequencies | None = None
    price: AuditedPrice | None = None
    replay: Replay | None = None

    @property
    def passed(self) -> bool:
        """Whether no bound contradicts its claim."""
        return not self.faults

    @property
    def faults(self) -> list[str]:
        """The contradictions to the claim, in words."""
        found = []
        if self.lower_bound > self.claim.alpha:
            found.append(
                f"alpha is at least {self.lower_bound:.3g}, not {float(self.claim.alpha):.3g}"
            )
        if self.gaussian and not self.gaussian.passed:
            found.append(
                f"mu is at least {self.gaussian.lower_bound:.3g}, not {self.gaussian.claim:.3g}"
            )
        if self.width and not self.width.passed:
            found.append(f"the noise is at most {self.width.at_most:.2g} times as wide as stated")
        if self.fresh and not self.fresh.passed:
            found.append(
                f"noise is reused: the signs of two numbers have correlation ±{self.fresh.alike:.2g}"
            )
        if self.chosen and not self.chosen.passed:
            found.append(
                f"choices lack the stated probabilities: one is off by {self.chosen.apart:.2g}"
            )
        if self.price:
            found += self.price.faults
        if self.replay and not self.replay.passed:
            found.append(
                f"neighbours differ by {self.replay.moved:.3g} times the declared sensitivity"
            )
        return found

    def to_dict(self) -> dict[str, object]:
        """The JSON form; infinite and unknown numbers are null."""
        values = asdict(self) | {"claim": self.claim.as_strings()}
        values |= {"hits": [*self.hits], "passed": self.passed, "faults": self.faults}
        return {key: _json_numbers(value) for key, value in values.items()}

    def __str__(self) -> str:
        beta = f", beta {decimal_text(self.claim.beta)}" if self.claim.beta else ""
        return (
            f"{'passed' if self.passed else 'FAILED'}: {self.name}, alpha at least"
            f" {self.lower_bound:.3g} with {100 * self.level:.4g}% confidence,"
            f" claimed {decimal_text(self.claim.alpha)}{beta} ({self.draws:,} draws)"
        )


def _json_numbers(value: Any) -> Any:
    """Replace infinities and NaN by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: _json_numbers(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
