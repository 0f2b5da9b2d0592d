"""Coverage of the 95% intervals of models that nobody asked for, from the plan of a first hour.

    python -m benchmarks.unasked
    python -m benchmarks.unasked slid --alpha 1 --rows 3000 --draws 10

Each table goes the way of ``benchmarks.first_hour`` with one wish, records, and is drawn ``--draws``
times.  Linear models are fitted to each draw as ``bundle.fit`` does: each number by each other one
(``slope``), its means in the groups of each column of categories (``groups``), and the share of the
first category by each number (``share``); correlations of all pairs of numbers are asked, too.

    held    how often the interval holds the value of the table itself
    given   the share of questions with an interval
    width   its median width over that of the table's own 95% interval (Huber 1967); for a correlation
            the median width

A value of the table is no more than its best estimate for the population, so intervals hold it a little
more often than they hold the population's.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.first_hour import CASES, drawn, truly
from dpcore.domain.axes import Categories
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.model import Coefficient
from dpcore.estimates.questions import correlation
from schemas.first_plan.wishes import Said
from schemas.plan import Plan
from tasks.bundle.drawn import DrawnPlan
from tasks.inference.fit import fit

FEW_GROUPS = 12


class Answer(NamedTuple):
    """``found``: None where there is no answer; ``value``: of the table; ``width``: half that of the
    table's own interval, 1 for a correlation."""

    found: Coefficient | None
    value: float
    width: float

    @property
    def given(self) -> bool:
        return self.found is not None and bool(np.isfinite(self.found.standard_error))


def main() -> None:
    """Print a line for each kind of question of each table, and of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", default=[*CASES], help="default: all")
    parser.add_argument("--alpha", default="2", help="default: 2")
    parser.add_argument("--rows", type=int, help="of a part drawn by chance; default: all")
    parser.add_argument("--draws", type=int, default=4, help="default: 4")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    every = defaultdict[str, list[Answer]](list)
    for name in options.tables:
        case = replace(CASES[name], wishes=Said(records=True))
        found = defaultdict[str, list[Answer]](list)
        plan, frame, _, drawings = drawn(case, options.alpha, options.draws, options.rows)
        for noisy in drawings:
            evidence = DrawnPlan(plan, noisy.__getitem__).evidence()
            for kind, answer in answers(plan, evidence, frame):
                found[kind].append(answer)
        for kind, some in found.items():
            report(name, kind, some)
            every[kind] += some
    for kind, some in every.items():
        report("all", kind, some)


def report(table: str, kind: str, some: list[Answer]) -> None:
    given = [(a.found, a.value, a.width) for a in some if a.given and a.found]
    held = np.mean([found.interval[0] <= value <= found.interval[1] for found, value, _ in given])
    width = np.median([np.ptp(found.interval) / 2 / width for found, _, width in given])
    share = len(given) / len(some)
    print(
        f"{table:15}{kind:12} held {held:6.1%}  given {share:4.0%} of {len(some):5}"
        f"  width {width:5.2f}",
        flush=True,
    )


def answers(plan: Plan, evidence: Evidence, frame: pd.DataFrame) -> Iterator[tuple[str, Answer]]:
    """All questions to one draw, by kind; ``frame``: the table."""
    domain, numbers, groups = evidence.domain, list[str](), dict[str, str]()
    for name, axis in zip(domain.names, domain.axes, strict=True):
        if isinstance(axis, Categories) and isinstance(axis.categories[0], str):
            if name in frame and axis.size <= FEW_GROUPS:
                groups[name] = axis.categories[0]
        elif name in frame:
            numbers.append(name)
    frame = frame.assign(**{name: clipped(plan, frame, name) for name in numbers})
    formulas = [("slope", f"`{one}` ~ `{other}`") for one, other in permutations(numbers, 2)]
    for one in numbers:
        formulas += [("groups", f"`{one}` ~ 0 + C(`{group}`)") for group in groups]
        formulas += [("share", f"{{`{g}` == '{c}'}} ~ `{one}`") for g, c in groups.items()]
    for kind, formula in formulas:
        truth = truly(formula, "gaussian", frame)
        try:
            fitted = {each.name: each for each in fit(evidence, formula).coefficients}
        except InputError:
            fitted = {}
        for name, (value, error) in truth.items():
            if error > 0:
                yield kind, Answer(fitted.get(name), value, 1.96 * error)
    for one, other in combinations(numbers, 2):
        value = float(frame[[one, other]].corr().iloc[0, 1])
        try:
            yield "correlation", Answer(correlation(evidence, one, other), value, 1.0)
        except InputError:
            yield "correlation", Answer(None, value, 1.0)


def clipped(plan: Plan, frame: pd.DataFrame, name: str) -> pd.Series:
    """A column of numbers, which may be written as texts, as a plan that clamps reads it."""
    numbers, bounds = pd.to_numeric(frame[name]), getattr(plan.columns[name], "bounds", None)
    return numbers.clip(*map(float, bounds)) if bounds else numbers


if __name__ == "__main__":
    main()
