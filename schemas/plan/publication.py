"""The plan's section on publication: its texts, its publisher, and whether an officer must approve."""

from typing import Literal

from pydantic import Field, StrictBool, StrictInt, field_validator

from schemas.document import Section, absent
from schemas.text import Line


class Publication(Section):
    """The bundle's title, its publisher, and conditions of publication."""

    title: str = Field(description="One line.")
    description: str = Field(default="", description="What the survey is about.")
    units: Line = Field(
        default="",
        exclude_if=absent,
        description="A plural noun for the records, used in findings: women, households.",
    )
    publisher: str = Field(default="", description="Who publishes.")
    contact: str = Field(default="", description="The contact for readers.")
    licence: str = Field(default="", description="The licence of the bundle for readers.")
    citation: str = Field(default="", description="How the survey is cited.")
    requester: str = Field(default="", description="Who requested the release; this is published.")
    approval: bool = Field(
        default=False,
        description="Whether a disclosure officer must approve a release before it is published.",
    )
    replicates: StrictInt = Field(
        default=40,
        ge=0,
        le=200,
        description="The number of replicates published with each table of unbiased counts, from"
        " which readers compute the error of any sum, share or ratio. 0: none.",
    )
    csv: StrictBool = Field(
        default=True,
        description="Whether each table is also written as CSV, for spreadsheets and other programs.",
    )
    curator_type: Literal["Government", "Industry", "Nonprofit"] | None = Field(
        default=None, description="The publisher's sector, for the registry of deployments."
    )
    region: str = Field(default="", description="The region described by the data.")
    intended_use: str = Field(default="", description="The purpose of the release.")

    @field_validator("title")
    @classmethod
    def _one_line(cls, title: str) -> str:
        if not title.strip() or title.splitlines() != [title]:
            raise ValueError("must be one line of text, and not empty")
        return title

    @field_validator("requester")
    @classmethod
    def _printable(cls, requester: str) -> str:
        if not requester.isprintable():
            raise ValueError("must be one line of printable text")
        return requester.strip()
