"""The sections that find the categories of open columns, where a plan does not state them."""

import re
from collections.abc import Iterator
from fractions import Fraction

from schemas.plan.contents import PlanDocument
from schemas.releases.base import LARGEST_WEIGHT
from schemas.releases.found import FoundSection

PART = Fraction(1, 5)
"""Of the budget, for all of them together."""

LEAST = Fraction(1, LARGEST_WEIGHT)


def searches(plan: PlanDocument) -> list[FoundSection]:
    """A section for each open column that none is about."""
    known = {section.finds for section in plan.releases}
    columns = [name for name in plan.open_columns if name not in known]
    others = sum((section.weight for section in plan.releases), Fraction(0))
    each = PART / (1 - PART) * others / max(len(columns), 1)
    weight = min(max(each.limit_denominator(LARGEST_WEIGHT), LEAST), Fraction(LARGEST_WEIGHT))
    taken = {section.name for section in plan.releases}
    return [
        FoundSection(name=name, kind="found-categories", column=column, weight=weight)
        for column, name in zip(columns, _names(columns, taken), strict=True)
    ]


def _names(columns: list[str], taken: set[str]) -> Iterator[str]:
    """A name for each, of the letters that names may have."""
    for column in columns:
        letters = re.sub("[^a-z0-9]+", "-", column.lower()).strip("-")[:60]
        name = first = f"categories-{letters}".strip("-")
        while name in taken:
            name = f"{first}-{len(taken)}"
        taken.add(name)
        yield name
