"""A plan's operation: its schedule, allowed requests, and warnings of a low budget.

The operation is neither published nor part of the guarantee. So it may change without a new digest: a
release stays the same if its schedule changes.
"""

import re
from datetime import date
from fractions import Fraction
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, StrictStr, field_validator, model_validator

from schemas.document import Section
from schemas.numbers import WrittenRational


class Schedule(Section):
    """When a release is due."""

    cron: str = Field(description="Minute, hour, day of month, month, day of week.")
    timezone: str = Field(default="UTC", description="A name such as Europe/Lisbon.")
    since: date | None = Field(
        default=None,
        ge=date(2000, 1, 1),
        le=date(2200, 1, 1),
        description=(
            "The first day of the schedule, and of the first year, which the budget must cover. A run"
            " due since then without a release is late. Default: the day of the plan's first scheduled"
            " release."
        ),
    )

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str) -> str:
        if not re.fullmatch(r"[\w*/,?#-]+( +[\w*/,?#-]+){4}", cron):
            raise ValueError(
                "write five fields: minute, hour, day of month, month, day of week, such as"
                ' "0 6 1 * *" for six o\'clock on the first of every month'
            )
        if re.search(r"\b[HR]\b", cron, re.IGNORECASE):
            raise ValueError(
                "H and R mean random times, which nobody knows in advance; write the time"
            )
        return cron

    @field_validator("timezone")
    @classmethod
    def _known(cls, timezone: str) -> str:
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("unknown time zone; write a name such as Europe/Lisbon") from None
        return timezone


class OpenRequests(Section):
    """Requests that anybody with access to Prefect's page may make."""

    releases: list[StrictStr] = Field(
        default_factory=list, description="The names of the releases that may be requested."
    )
    columns: list[StrictStr] = Field(
        default_factory=list,
        description="The columns that other requested releases may use in any combination: tables,"
        " means, models, synthetic records and so on.",
    )
    part: WrittenRational = Field(
        description="The part of the dataset's grant, such as `1/10`, that all requests together may"
        " spend."
    )

    @field_validator("part")
    @classmethod
    def _a_part(cls, part: Fraction) -> Fraction:
        if not 0 < part <= 1:
            raise ValueError("must be above 0 and at most 1")
        return part

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.releases and not self.columns:
            raise ValueError("opens nothing: name releases, columns or both")
        return self


class Operation(Section):
    """The section on an agency's operation of a plan."""

    schedule: Schedule | None = Field(
        default=None, description="When releases are made; without a schedule, only on demand."
    )
    requests: OpenRequests | None = Field(
        default=None, description="Allowed requests in Prefect's form; by default none."
    )
    warn_runs: int = Field(
        default=3,
        ge=0,
        description="Warn when the dataset has budget for at most this many more runs of the schedule.",
    )
    decide_within: int = Field(
        default=30,
        ge=1,
        le=366,
        description="Days that a run waits in Prefect for a disclosure officer's decision.",
    )
    allow_exhaustion: bool = Field(
        default=False,
        description="Deploy the schedule even if the dataset's budget ends within its first year.",
    )
