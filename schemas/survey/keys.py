"""Keys that several kinds of columns have, and how they are written in a plan."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, StrictStr


def _of_one_column(outside: Any) -> Any:
    if outside in ("drop", "own-cell"):
        raise ValueError(f"must be refuse or clamp; `{outside}` goes in the plan's own `invalid`")
    return outside


Outside = Annotated[Literal["refuse", "clamp"], BeforeValidator(_of_one_column)]


NULLABLE = "Whether null is a value; it gets a cell."
DESCRIPTION = "What the column means, for readers."
LABEL = (
    "What readers call the column, in charts and headings; without it, the first clause of a short"
    " description."
)
MISSING = (
    'Codes that stand for no answer, such as [-9, "NA", NaN]: they are read as null, and the column is'
    " nullable. Numbers are compared as numbers, text as it is written; NaN is also a float's."
)


def nullable_if_missing(given: Any) -> Any:
    """Set a column nullable if it states codes for no answer."""
    if not isinstance(given, dict) or not given.get("missing"):
        return given
    if given.get("nullable") is False:
        raise ValueError("missing: its codes are read as null; leave out `nullable: false`")
    return {**given, "nullable": True}


NAN = "NaN"
"""The code for no answer that matches floats which are NaN."""


def _with_nan(codes: Any) -> Any:
    """Replace YAML's .nan by the text NaN, which JSON can represent."""
    return [NAN if c != c else c for c in codes] if isinstance(codes, list | tuple) else codes


Missing = Annotated[
    list[StrictStr | StrictInt | StrictFloat],
    BeforeValidator(_with_nan),
    Field(description=MISSING),
]


def as_text(mapping: Any) -> Any:
    """The keys of a mapping as text, because YAML reads some categories as numbers."""
    return {str(k): str(v) for k, v in mapping.items()} if isinstance(mapping, dict) else mapping


Labels = Annotated[
    dict[str, str],
    BeforeValidator(as_text),
    Field(description="What a category, a level or another value means, for the codebook."),
]

STEP = (
    "Synthetic values are multiples of this number, such as 0.01 for an amount in cents or 5 for hours"
    " that people round. The table is not checked for it."
)
LEVELS = (
    "The only values that occur, in ascending order, if they are few: each has a cell of its own, any"
    " other value is not valid, and `bounds` need not be stated."
)
POINTS = (
    "Values that many records have, such as 0 and a top code: each has a cell of its own in addition to"
    " the bins, and a density leaves its records out."
)
