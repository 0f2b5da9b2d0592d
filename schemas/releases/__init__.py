"""The sections of a plan on its releases; each builds a release of ``dpcore``.

There is one module for each ``kind`` that a plan may name. ``build`` gets the facts of the survey and
the share of the budget. If it raises ``ValueError``, the message begins with the place inside the
section.

Other packages add kinds by entry points of the group ``dprelease.kinds``. Each names a module like the
modules here, or a module that adds a mechanism to a kind (``density.MECHANISMS``, ``count.MECHANISMS``).
"""

import pkgutil
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from importlib.metadata import entry_points
from operator import or_
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field

from dpcore.errors import InputError
from schemas.releases.base import Name, ReleaseSection, SurveyFacts, check_names

DOOR = "dprelease.kinds"


def _modules() -> Iterator[ModuleType]:
    """Yield the modules of this package, then the modules of other packages, which may import them."""
    for found in pkgutil.iter_modules(__path__):
        yield import_module(f"{__name__}.{found.name}")
    for entry in sorted(entry_points(group=DOOR), key=lambda entry: entry.name):
        try:
            yield entry.load()
        except Exception as error:  # a foreign module may raise anything
            raise InputError(
                f"the kind {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}:"
                f" {error}. Repair or remove the package that brings it"
            ) from error


def sections() -> tuple[type[Any], ...]:
    """The sections of all kinds; raises ``InputError`` if two modules define the same kind."""
    classes = [value for module in _modules() for value in vars(module).values()]
    found = [c for c in classes if isinstance(c, type) and issubclass(c, ReleaseSection)]
    by_kind: dict[str, type[Any]] = {}
    for section in (c for c in found if "kind" in c.model_fields):
        (kind,) = get_args(section.model_fields["kind"].annotation)
        if by_kind.setdefault(kind, section) is not section:
            raise InputError(
                f"the kind {kind!r} is defined by {by_kind[kind].__module__} and by"
                f" {section.__module__}: remove one of these packages"
            )
    return tuple(by_kind.values())


# The kinds are known only at run time, so type checkers see their base class.
if TYPE_CHECKING:
    AnyRelease = ReleaseSection
else:
    AnyRelease = Annotated[reduce(or_, sections()), Field(discriminator="kind")]

__all__ = ["DOOR", "AnyRelease", "Name", "SurveyFacts", "check_names", "sections"]
