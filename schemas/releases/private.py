"""Settings of a release that are drawn privately from the records, for a part of its share."""

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, field_validator

from dpcore.accounting.budget import Budget
from dpcore.releases.base import Release
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.machines.tuned import MOST_CANDIDATES, TunedMachine
from schemas.document import Section
from schemas.numbers import WrittenRational


class PrivateSetting(Section):
    """A setting that the exponential mechanism chooses."""

    share: WrittenRational = Field(
        default=Fraction(1, 5),
        description=(
            "The part of the release's alpha (rho with Gaussian noise) that pays for the choice."
        ),
    )

    @field_validator("share")
    @classmethod
    def _a_part(cls, share: Fraction) -> Fraction:
        if not Fraction(1, 1000) <= share <= Fraction(999, 1000):
            raise ValueError("must lie between 0.001 and 0.999")
        return share


class PrivateRegularisation(PrivateSetting):
    """The regularisation of a kernel machine, chosen by the loss of the noisy predictions."""

    private: Literal["loss"] = Field(
        description="loss: choose the candidate with the smallest mean loss of noisy predictions."
    )
    candidates: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        min_length=2,
        max_length=MOST_CANDIDATES,
        description="The candidates, ascending. The machine is trained once for each candidate.",
    )


Regularisation = Annotated[float, Field(gt=0, le=1)] | PrivateRegularisation


def at_regularisation(
    machine: KernelMachine, regularisation: Regularisation, share: Budget
) -> Release:
    """The machine, with a stated regularisation or one that is drawn first."""
    if not isinstance(regularisation, PrivateRegularisation):
        return machine
    own = machine.name, machine.domain, machine.rows, share, machine, regularisation.share
    return TunedMachine(*own, tuple(regularisation.candidates), adjacency=machine.adjacency)


def stated(regularisation: Regularisation) -> float:
    """The stated regularisation, or the smallest candidate."""
    if isinstance(regularisation, PrivateRegularisation):
        return regularisation.candidates[0]
    return regularisation
