"""Makes sections that search for categories or bounds of open columns, if a plan states no search."""

import re
from fractions import Fraction
from typing import Any

from dpcore.domain.texts import LONGEST
from dpcore.releases.abilities import ColumnSearch
from dpcore.releases.counts.found import FOUND
from schemas.plan.contents import PlanDocument
from schemas.releases.base import LARGEST_WEIGHT
from schemas.releases.found import BoundsSection, FoundSection
from schemas.survey.columns import CategoricalColumn, ContinuousColumn
from schemas.survey.found import OTHER

PART = Fraction(1, 5)
"""The fraction of the budget for all these searches together."""

LEAST = Fraction(1, LARGEST_WEIGHT)


def searches(plan: PlanDocument) -> list[FoundSection | BoundsSection]:
    """A section for each open column for which the plan states no search."""
    known = {section.finds for section in plan.releases}
    columns = [name for name in plan.open_columns if name not in known]
    others = sum((section.weight for section in plan.releases), Fraction(0))
    # Weights are relative: this weight gives all searches together PART of the budget.
    each = PART / (1 - PART) * others / max(len(columns), 1)
    weight = min(max(each.limit_denominator(LARGEST_WEIGHT), LEAST), Fraction(LARGEST_WEIGHT))
    taken = {section.name for section in plan.releases}
    added: list[FoundSection | BoundsSection] = []
    for column in columns:
        keys: dict[str, Any] = {"column": column, "weight": weight}
        if isinstance(plan.columns[column], CategoricalColumn):
            name = _name("categories", column, taken)
            added.append(FoundSection(name=name, kind="found-categories", **keys))
        else:
            name = _name("bounds", column, taken)
            added.append(BoundsSection(name=name, kind="found-bounds", **keys))
        taken.add(name)
    return added


def _name(what: str, column: str, taken: set[str]) -> str:
    """An unused name for the search, with only characters that are allowed in names."""
    letters = re.sub("[^a-z0-9]+", "-", column.lower()).strip("-")[:60]
    name = first = f"{what}-{letters}".strip("-")
    while name in taken:
        name = f"{first}-{len(taken)}"
    return name


def search_words(plan: PlanDocument) -> list[str]:
    """For each open column, a line on the search and on omitted values."""
    lines = []
    for name in plan.finding:
        search, of = plan.built[name], plan.section(name).finds
        column, one, price = plan.columns[of], plan.protection.one, plan.prices[name]
        what = "categories" if isinstance(column, CategoricalColumn) else "bounds"
        said = f"A noisy search of the survey finds the {what} of {of}, at a price of {price}: "
        assert isinstance(search, ColumnSearch)
        if isinstance(column, CategoricalColumn):
            said += (
                f"a category of {search.needed} {one}s is found with probability {FOUND:.0%}, and a"
                f" category of a single {one} with probability at most {float(price.beta):.2g}. If more"
                f" than {column.at_most} are found, only the most frequent are kept. All other texts"
                f" count as {OTHER}. So do texts that are blank, longer than {LONGEST} bytes, contain"
                " invisible characters or look like a more frequent text."
            )
        else:
            assert isinstance(column, ContinuousColumn)
            nothing = column.with_found(None).bounds
            said += (
                f"with probability {FOUND:.0%} they include every range, such as 1 to 2 or 2 to 5, with"
                f" {search.needed} {one}s. Numbers outside count as the nearest bound; error statements"
                f" do not include this bias. If no range has enough {one}s, the bounds are"
                f" {nothing[0]:g} and {nothing[1]:g}."
            )
            if column.unsearched:
                ends = " and ".join(f"{bound:g}" for bound in column.bounds)
                said += f" Until the search, errors are stated for bounds of {ends}."
        lines.append(said + (f" One record of each {one} is counted." if plan.unit else ""))
    return lines
