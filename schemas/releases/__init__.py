"""What a plan says about each release, and how it becomes one of ``dpcore``.

One module for each kind: a section here that states a ``kind`` is one that a plan may name.  ``build``
gets the facts of the survey and the share of the budget; the message of a ``ValueError`` from it begins
with the place inside the section.
"""

import pkgutil
from functools import reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from schemas.releases.base import Name, ReleaseSection, SurveyFacts, check_names


def sections() -> tuple[type[Any], ...]:
    """The sections of all kinds, by module."""
    modules = [
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    ]
    classes = [value for module in modules for value in vars(module).values()]
    found = [c for c in classes if isinstance(c, type) and issubclass(c, ReleaseSection)]
    return tuple(dict.fromkeys(c for c in found if "kind" in c.model_fields))


if TYPE_CHECKING:
    AnyRelease = ReleaseSection
else:
    AnyRelease = Annotated[reduce(or_, sections()), Field(discriminator="kind")]

__all__ = ["AnyRelease", "Name", "SurveyFacts", "check_names", "sections"]
