"""What a questionnaire says of one column, as it is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.survey.cells import Numbers


class Condition(NamedTuple):
    """``values``: as the questionnaire writes them; several only after = and !=."""

    column: str
    sign: str
    values: Sequence[str]


@dataclass(frozen=True)
class Question:
    """What is said of one column: its keys in a plan but for ``type``, and what its numbers may be.
    Of a column that a plan does not describe, ``upper`` and ``step``.  ``role``: weight, stratum,
    cluster or empty.  ``universe``: the conditions that held for whoever was asked; ``answered``:
    whether they all answered."""

    type: str
    keys: Mapping[str, Any]
    numbers: Numbers | None = None
    role: str = ""
    universe: Sequence[Condition] = ()
    answered: bool = False
