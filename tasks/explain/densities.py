"""Which mechanism or kind estimates the density of a plan's columns best, as rows of a table."""

from collections.abc import Mapping
from dataclasses import replace

from dpcore.accounting.budget import decimal_text
from schemas.plan import Plan
from schemas.plan.best import DensityChoice, ways

Found = Mapping[str, list[DensityChoice]]
"""The ways to release each density and function of a plan, by name, the best first."""


def found_ways(plan: Plan) -> Found:
    """For each release of a density that could be another one.

    A plan that requests no beta is compared with one that requests as much of the grant's beta as of its
    alpha.
    """
    budget, compared = plan.budget, plan
    if budget.composition == "basic" and not plan.requested.beta:
        beta = budget.granted.beta * plan.requested.alpha / budget.granted.alpha
        compared = plan.changed(budget=budget.asking(replace(plan.requested, beta=beta)))
    found = {
        section.name: sorted(ways(compared, i), key=lambda way: way.error)
        for i, section in enumerate(plan.releases)
    }
    return {name: several for name, several in found.items() if len(several) > 1}


def way_rows(plan: Plan, found: Found) -> list[dict[str, str]]:
    """One row for each way: the whole error and its parts."""
    rows = []
    for name, several in found.items():
        for way in several:
            noise, *others = way.release.error_parts.values()
            planned = way.section == plan.section(name)
            rows.append(
                {
                    "release": name,
                    "kind": way.section.kind,
                    "mechanism": way.section.mechanism + " (as planned)" * planned,
                    "beta": decimal_text(way.release.share.beta),
                    "whole error": f"{noise + sum(others):.2g}",
                    "noise": f"{noise:.2g}",
                    "left out, at most": f"{sum(others):.2g}",
                }
            )
    return rows


def best_lines(found: Found) -> list[str]:
    """The best way for each density; if that is a function, also the best mechanism for a density."""
    lines = []
    for name, (best, *others) in found.items():
        words = f"{name}: best is the {best.section.kind} by {best.section.mechanism}"
        if best.section.kind == "function":
            other = next(way.section.mechanism for way in others if way.section.kind == "density")
            words += f", which is not reflected at the bounds; of densities, {other}"
        lines.append(f"{words}.")
    return lines
