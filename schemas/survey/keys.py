"""Keys of several kinds of columns, and their form in a plan."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, StrictStr


def _of_one_column(outside: Any) -> Any:
    if outside in ("drop", "own-cell"):
        raise ValueError(f"must be refuse or clamp; write `{outside}` as the plan's `invalid`")
    return outside


Outside = Annotated[Literal["refuse", "clamp"], BeforeValidator(_of_one_column)]


NULLABLE = "Whether null is a possible value; it gets a cell."
DESCRIPTION = "The meaning of the column, for readers."
LABEL = (
    "The column's name for readers, in charts and headings. Default: the first clause of a short"
    " description."
)
MISSING = (
    'Codes that mean no answer, such as [-9, "NA", NaN]. They are read as null, and the column is'
    " nullable. Numbers are compared as numbers, and text exactly; NaN also matches a float NaN."
)


def nullable_if_missing(given: Any) -> Any:
    """Make a column nullable if it states codes for no answer."""
    if not isinstance(given, dict) or not given.get("missing"):
        return given
    if given.get("nullable") is False:
        raise ValueError("missing: its codes are read as null; leave out `nullable: false`")
    return {**given, "nullable": True}


NAN = "NaN"
"""The code for no answer that matches a float NaN."""


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
    Field(description="The meaning of a category, a level or another value, for the codebook."),
]

STEP = (
    "Synthetic values are multiples of this number, such as 0.01 for amounts in cents or 5 for rounded"
    " hours. The survey table is not checked for it."
)
LEVELS = (
    "The only possible values, in ascending order, if they are few. Each has a separate cell, other"
    " values are not valid, and `bounds` need not be stated."
)
POINTS = (
    "Values that many records share, such as 0 and a top code. Each has a separate cell in addition to"
    " the bins; densities leave these records out."
)
