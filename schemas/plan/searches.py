"""The sections that find the categories of open columns, where a plan does not state them."""

import re
from collections.abc import Iterator
from fractions import Fraction

from dpcore.domain.texts import LONGEST
from dpcore.releases.counts.found import FOUND, FoundCategories
from schemas.plan.contents import PlanDocument
from schemas.releases.base import LARGEST_WEIGHT
from schemas.releases.found import FoundSection
from schemas.survey.columns import CategoricalColumn
from schemas.survey.found import OTHER

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


def search_words(plan: PlanDocument) -> list[str]:
    """How the categories of open columns are found, and what is left out: a line for each column."""
    lines = []
    for name in plan.finding:
        search = plan.built[name]
        assert isinstance(search, FoundCategories)
        column = plan.columns[search.column]
        assert isinstance(column, CategoricalColumn)
        one, chance = plan.protection.one, float(plan.prices[name].beta)
        one_of_each = f" One record of each {one} is counted." if plan.unit else ""
        lines.append(
            f"The categories of {search.column} are found in the survey, with noise, at a price of"
            f" {plan.prices[name]}: one that {search.needed} {one}s have is found with probability"
            f" {FOUND:.0%}, and one that a single {one} has with probability {chance:.2g} at most."
            f" If more than {column.at_most} are found, the most frequent count. All other texts count"
            f" as {OTHER}, and so do those that are blank, longer than {LONGEST} bytes, hold what"
            f" nobody sees or look like a more frequent one.{one_of_each}"
        )
    return lines
