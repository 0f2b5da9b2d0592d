"""The type of keys whose values are names from a list that other packages may extend."""

from collections.abc import Callable, Collection
from typing import Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError


def one_of(names: Callable[[], Collection[str]]) -> tuple[Any, ...]:
    """Annotations for a key that must be one of ``names()``, which is called for every plan."""

    def known(value: Any) -> Any:
        if value not in names():
            *most, last = (f"'{name}'" for name in names())
            expected = f"{', '.join(most)} or {last}"
            raise PydanticCustomError(
                "literal_error", "Input should be {expected}", {"expected": expected, "open": True}
            )
        return value

    return (
        BeforeValidator(known),
        Field(json_schema_extra=lambda schema: schema.update(enum=list(names()))),
    )
