"""The plan's budget: the dataset's grant, how prices add up, and the price of one release."""

from dataclasses import replace
from fractions import Fraction
from typing import Self

from pydantic import Field, model_validator

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import Composition, caps
from schemas.document import Section
from schemas.numbers import WrittenRational

LARGEST_ALPHA = 1000
"""The largest alpha: it lets odds change by a factor of exp(1000), which protects nobody."""

LEAST_AMOUNT = Fraction(1, 10**50)
"""The smallest positive amount; shares of smaller amounts could be zero as floats."""


class Amount(Section):
    """An amount of privacy: alpha (epsilon), beta (delta), and gamma of random DP."""

    alpha: WrittenRational = Field(description="epsilon of differential privacy.")
    beta: WrittenRational = Field(
        default=Fraction(0), description="delta, for mechanisms that spend it."
    )
    gamma: WrittenRational = Field(
        default=Fraction(0),
        description="gamma of random differential privacy; for mechanisms that spend it.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        _check_amounts(self.alpha, "alpha", self.beta, self.gamma)
        return self

    @property
    def budget(self) -> Budget:
        return Budget(self.alpha, self.beta, self.gamma)


class Request(Section):
    """The request for one release: alpha (or rho), beta and gamma, or a part of the grant."""

    alpha: WrittenRational | None = Field(
        default=None,
        description="epsilon of differential privacy, for all releases of the plan together.",
    )
    rho: WrittenRational | None = Field(
        default=None,
        description="Instead of alpha, with concentrated composition: rho of zero-concentrated"
        " differential privacy.",
    )
    part: WrittenRational | None = Field(
        default=None,
        description="Instead of amounts: the part of the grant to request, such as `1/12`. It applies to"
        " each of alpha (or rho), beta and gamma that a mechanism of the plan spends.",
    )
    beta: WrittenRational = Field(
        default=Fraction(0), description="delta; with rho, only for mechanisms that may fail."
    )
    gamma: WrittenRational = Field(
        default=Fraction(0),
        description="gamma of random differential privacy; for mechanisms that spend it.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        stated = [name for name in ("alpha", "rho", "part") if getattr(self, name) is not None]
        if len(stated) != 1:
            raise ValueError("state one of alpha, rho and part")
        if self.part is not None:
            if self.beta or self.gamma:
                raise ValueError("part: applies to beta and gamma too; leave them out")
            if not LEAST_AMOUNT <= self.part <= 1:
                raise ValueError("part must be positive and at most 1")
        else:
            _check_amounts(getattr(self, stated[0]), stated[0], self.beta, self.gamma)
        return self


class BudgetSection(Section):
    """The dataset's grant over its whole life, and this plan's request."""

    composition: Composition = Field(
        default="basic",
        description="How the prices of releases add up: as alphas (`basic`), or as rhos of"
        " zero-concentrated differential privacy (`concentrated`). The dataset's first grant decides.",
    )
    granted: Amount = Field(description="The total over the life of the dataset.")
    requested: Request = Field(description="The largest cost of one release of this plan.")

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if self.composition == "basic" and self.requested.rho is not None:
            raise ValueError(
                "requested.rho: the grant is in alpha; request alpha, or write `composition:"
                " concentrated` if the grant is in rho"
            )
        if self.composition == "concentrated" and not self.granted.beta:
            raise ValueError(
                "granted.beta: concentrated composition needs a beta; without it, write `composition:"
                " basic`"
            )
        if self.composition == "concentrated" and self.requested.alpha and not self.requested.beta:
            raise ValueError(
                "requested.beta: with concentrated composition, a request of alpha needs a beta; state"
                " beta, or request rho or a part of the grant"
            )
        return self

    @property
    def caps(self) -> Budget:
        """The caps on the joint spending of all releases of the dataset."""
        return caps(self.composition, self.granted.budget)

    def asking(self, cost: Budget) -> Self:
        """The section with these amounts, unchecked, as the request."""
        alpha, rho = (None, cost.rho) if cost.rho else (cost.alpha, None)
        request = Request.model_construct(
            alpha=alpha, rho=rho, part=None, beta=cost.beta, gamma=cost.gamma
        )
        return self.model_copy(update={"requested": request})

    def as_asked(self, cost: Budget) -> Budget:
        """A cost in the units of the request: alpha and beta if these were requested, even if the grant
        is in rho."""
        asked = self.requested
        if asked.alpha is None:
            return cost
        return Budget(asked.alpha, asked.beta, asked.gamma)

    def cost(self, needs_beta: bool, needs_gamma: bool) -> Budget:
        """The price of one release, in the coordinates of the caps.

        ``needs_beta``, ``needs_gamma``: whether a mechanism of the plan spends beta or gamma. Stated
        amounts stay unchanged; converted ones and parts of the grant are 0 if nothing spends them.
        """
        asked = self.requested
        if asked.rho is not None:
            return Budget(beta=asked.beta, gamma=asked.gamma, rho=asked.rho)
        if asked.alpha is not None:
            promise = Budget(asked.alpha, asked.beta, asked.gamma)
            cost = caps(self.composition, promise)
            # Most of the stated beta converts alpha into rho; mechanisms that may fail get the rest.
            return replace(cost, beta=cost.beta * needs_beta) if cost.rho else cost
        assert asked.part is not None
        cost = self.caps * asked.part
        return replace(cost, beta=cost.beta * needs_beta, gamma=cost.gamma * needs_gamma)


def _check_amounts(loss: Fraction, name: str, beta: Fraction, gamma: Fraction) -> None:
    """Refuse amounts that protect nobody or underflow as floats; ``loss``: alpha or rho."""
    if loss == 0:
        raise ValueError(f"{name} must be positive")
    if loss > LARGEST_ALPHA:
        raise ValueError(f"{name} must be at most {LARGEST_ALPHA}; a larger value protects nobody")
    if any(0 < amount < LEAST_AMOUNT for amount in (loss, beta, gamma)):
        raise ValueError(f"{name}, beta and gamma must be 0 or at least 1e-50")
    if beta >= 1 or gamma >= 1:
        raise ValueError("beta and gamma must be below 1")
