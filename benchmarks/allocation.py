"""How much more accurate tables are whose residuals are measured at the best precisions.

    python -m benchmarks.allocation

prints, for the tables of public surveys, the errors of an equal split over those of ``optimise``: the
root mean squared error over all cells, the mean over tables, and that of the table that gains least
(below 1: loses).  Both have the same budget, so ratios do not depend on it.  ``moved`` is the squared
sensitivity (or the sensitivity of Laplace noise) of a replaced record over that of a present one.
``seconds``: to plan.
"""

from __future__ import annotations

import sys
import time
from itertools import combinations

import numpy as np

from benchmarks import DATA
from benchmarks.synthesis.tables import TABLES
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.post.tables.margins import Attributes, cells
from dpcore.releases.tables.allocation import Aim, allocate, equal_split, table_variances
from dpcore.releases.tables.sensitivity import Norm

RELATIONS = {"replace-one": REPLACE_ONE, "add-remove": Adjacency("add-remove")}
AIMS: tuple[Aim, ...] = ("balanced", "mean", "max")


def main() -> None:
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    print(
        "survey            tables    neighbours   noise  aim       rmse   mean  least  moved  seconds"
    )
    for name in ("nltcs", "adult_coded", "acs_nist_ma2019"):
        sizes = TABLES[name](DATA)[0].shape
        for ways in ((2,), (1, 2, 3)) if name == "nltcs" else ((2,), (1, 2)):
            report(name, sizes, ways)
    report("made up, 5 cells", (5,) * 100, (2,))


def report(name: str, sizes: tuple[int, ...], ways: tuple[int, ...]) -> None:
    """A line for each relation, noise and aim."""
    sets = tuple(s for w in ways for s in combinations(range(len(sizes)), w))
    for relation, adjacency in RELATIONS.items():
        for norm, noise in (("l2", "Gauss"), ("l1", "Laplace")):
            for aim in AIMS:
                line = compared(sizes, sets, aim, adjacency, "l2" if norm == "l2" else "l1")
                words = "+".join(map(str, ways)) + "-way"
                print(f"{name:16}  {words:10}{relation:12} {noise:7}  {aim!s:9}{line}", flush=True)


def compared(
    sizes: tuple[int, ...],
    sets: tuple[Attributes, ...],
    aim: Aim,
    adjacency: Adjacency,
    norm: Norm,
) -> str:
    start = time.process_time()
    found = allocate(sizes, sets, aim, adjacency, norm)
    seconds = time.process_time() - start
    split = equal_split(sizes, sets)
    before = table_variances(sizes, sets, split, adjacency, norm)
    after = table_variances(sizes, sets, found, adjacency, norm)
    size = np.array([cells(s, sizes) for s in sets], dtype=np.float64)
    rmse = ((size @ before) / (size @ after)) ** 0.5
    each = np.sqrt(before / after)
    return (
        f"{rmse:6.3f} {each.mean():6.3f} {each.min():6.3f} {float(found.moved / found.present):6.3f}"
        f" {seconds:8.2f}"
    )


if __name__ == "__main__":
    main()
