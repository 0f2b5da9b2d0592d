"""One question of a questionnaire: the description of one column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.survey.cells import Numbers


class AskedIf(NamedTuple):
    """A column, a sign and ``values``, as in the questionnaire. Only = and != allow several values."""

    column: str
    sign: str
    values: Sequence[str]


@dataclass(frozen=True)
class Question:
    """The description of one column: its keys in a plan except ``type``, and the range of its numbers
    (``upper`` and ``step`` for a column that a plan does not describe).  ``role``: weight, stratum,
    cluster, period or empty.  ``universe``: the conditions under which people were asked; ``answered``:
    whether they all answered."""

    type: str
    keys: Mapping[str, Any]
    numbers: Numbers | None = None
    role: str = ""
    universe: Sequence[AskedIf] = ()
    answered: bool = False
