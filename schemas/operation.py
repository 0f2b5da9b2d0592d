"""What a plan says about its operation: when it runs, and when to warn.

It is no part of what is promised or published, so it may change without a new digest: a release
that was drawn stays the same release when its schedule moves.
"""

import re
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator

from dpcore.budget import Budget
from schemas.document import Section
from schemas.numbers import WrittenRational


class Schedule(Section):
    """When a release is due."""

    cron: str = Field(description="Minute, hour, day of month, month, day of week.")
    timezone: str = Field(default="UTC", description="A name such as Europe/Lisbon.")

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str) -> str:
        if not re.fullmatch(r"[\w*/,?#-]+( +[\w*/,?#-]+){4}", cron):
            raise ValueError(
                "write five fields: minute, hour, day of month, month, day of week, such as"
                ' "0 6 1 * *" for six o\'clock on the first of every month'
            )
        return cron

    @field_validator("timezone")
    @classmethod
    def _known(cls, timezone: str) -> str:
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("no such time zone; write one such as Europe/Lisbon") from None
        return timezone


class Threshold(Section):
    """An amount of budget below which somebody should know."""

    alpha: WrittenRational = Field(default=Fraction(0), description="What should be left of alpha.")
    beta: WrittenRational = Field(default=Fraction(0), description="Of beta.")
    gamma: WrittenRational = Field(default=Fraction(0), description="Of gamma.")

    @property
    def budget(self) -> Budget:
        return Budget(self.alpha, self.beta, self.gamma)


class Operation(Section):
    """How a plan is run by an agency."""

    schedule: Schedule | None = Field(default=None, description="Without it, on demand alone.")
    warn_below: Threshold = Field(
        default=Threshold(), description="Warn when the dataset has less than this left."
    )
