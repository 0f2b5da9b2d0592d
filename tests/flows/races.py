"""Two machines publish the same release at the same time: one draw, one charge, one whole bundle.

    python -m tests.flows.races FOLDER [LEDGER_URL] [--pairs N] [--sabotage NAME]

Each pair shares a disk and a ledger, and has a home each.  The second starts while the first is at
work; half of all runs are killed (SIGKILL) at a random time.  A run that is not killed must end
well, and when both homes have resumed nothing may be left but the bundle.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.flows.kills import (
    NOWHERE,
    Boundaries,
    Case,
    Row,
    install,
    new_cases,
    sabotage,
    warm_up,
)

HOMES = ("first", "second")


def race(case: Case, boundaries: Boundaries, duration: float) -> tuple[int, list[str]]:
    """Run one pair, and resume it in both homes; how many were killed, and every harm."""
    children, moments = {}, []
    for home, start in zip(HOMES, (0.0, random.uniform(0, duration)), strict=True):
        moments.append((start, "start", home))
        if random.random() < 1 / 2:
            moments.append((start + random.uniform(0, 2 * duration), "kill", home))
    began = time.monotonic()
    for moment, what, home in sorted(moments):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        if what == "kill":
            children[home].kill()
        else:
            os.environ["DPRELEASE_HOME"] = str(case.folder / home)
            children[home] = case.start(boundaries, NOWHERE)
    ends = [children[home].end() for home in HOMES]
    told = [line for _, lines in ends for line in lines]
    harm = [f"a run {line}" for line in told if line.startswith("failed")]
    harm += case.harm_when_killed(told)
    drawn, published = case.digests(case.ledger()), case.contents()
    if any(not killed for killed, _ in ends) and not published:
        harm.append("a run ended, and there is no bundle")
    for home in HOMES:
        os.environ["DPRELEASE_HOME"] = str(case.folder / home)
        _, told = case.run(boundaries, NOWHERE)
        if home == HOMES[-1]:
            harm += case.harm_when_resumed(told, drawn, published)
    return sum(killed for killed, _ in ends), harm


def races(cases: Iterator[Case], boundaries: Boundaries, pairs: int, ledger: str | None) -> Row:
    """Race ``pairs`` releases, or until there is harm."""
    row, duration = Row(), 0.0
    for number in range(pairs + 1):
        case = next(cases)
        os.environ["DPRELEASE_LEDGER"] = ledger or f"sqlite:///{case.folder}/ledger.sqlite"
        case.grant()
        if number == 0:
            began = time.monotonic()
            case.run(boundaries, NOWHERE)
            duration = time.monotonic() - began
            continue
        kills, harm = race(case, boundaries, duration)
        row.kills, row.resumes = row.kills + kills, row.resumes + 2
        row.violations += harm
        if harm:
            break
    return row


def race_pairs(
    folder: Path, ledger: str | None = None, *, pairs: int = 200, broken: str | None = None
) -> list[str]:
    """Every harm that was seen; the options of the command, by other names."""
    boundaries = Boundaries()
    install(boundaries)
    sabotage(broken)
    if ledger:
        os.environ["DPRELEASE_LEDGER"] = ledger
    cases = new_cases(folder, "concentrated")
    warm_up(next(cases))
    row = races(cases, boundaries, pairs, ledger)
    print(f"{pairs} pairs, {row.kills} kills, {row.resumes} resumes", file=sys.stderr)
    return row.violations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ledger", nargs="?", metavar="LEDGER_URL")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sabotage", metavar="NAME", dest="broken")
    print(*race_pairs(**vars(parser.parse_args())), sep="\n")


if __name__ == "__main__":
    main()
