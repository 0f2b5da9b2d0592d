"""An agency's months in minutes, with everything that goes wrong in years.

    python -m tests.soak FOLDER [--minutes 30] [--seed N]

Twelve plans are due every three minutes, which stand for a month each.  A Prefect server and two
workers, one behind a proxy that never answers, run them, with PostgreSQL as their ledger.  Runs,
workers, server and database are killed at random, the disk of bundles fills up, and an old copy of
the ledger takes its place for a while.  Staff ask for ad hoc releases and audits, decide, grant
budget and retry what crashed.  At the end schedules are paused, what is still due is made, and every
promise is counted.  Exits with 1 if one is broken.

    python -m tests.soak FOLDER --releases 100

measures instead what so many scheduled releases occupy if nothing goes wrong (``footprint``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.soak.agency import KEY, UNENDED, Agency, Due
from tests.soak.footprint import measure
from tests.soak.promises import Row, promises
from tests.soak.troubles import Life
from tests.tasks.ledger.server import Server, programs

SETTLE_SECONDS = 1500
"""A server that was killed holds events back for a quarter of an hour, and a run that was taken and
never began starts again only then."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--releases", type=int)
    options = parser.parse_args()
    if options.folder.exists():
        shutil.rmtree(options.folder)
    options.folder.mkdir(parents=True)
    if options.releases is not None:
        wrong = measure(options.folder.resolve(), options.releases)
        print(*wrong, sep="\n")
        sys.exit(bool(wrong))
    postgresql = programs()
    if postgresql is None:
        parser.error("PostgreSQL is not installed")
    agency = Agency(options.folder.resolve(), Server(postgresql), options.seed)
    print(
        f"seed {options.seed}: {options.minutes:g} minutes, and up to 25 to settle", file=sys.stderr
    )
    life = Life(agency)
    rows = soak(life, 60 * options.minutes, min(15, 3 * options.minutes), SETTLE_SECONDS)
    print(table(life, rows))
    (agency.folder / "promises.json").write_text(json.dumps([vars(row) for row in rows], indent=1))
    sys.exit(not all(row.kept for row in rows))


def soak(life: Life, seconds: float, gap: float, settle_seconds: float) -> list[Row]:
    """Live so long, with a trouble or a deed every ``gap`` seconds; what was promised, counted."""
    agency = life.agency
    try:
        agency.open()
        life.live(time.monotonic() + seconds, gap)
        return [*promises(agency, settle(agency, life, settle_seconds))]
    finally:
        agency.close()


def settle(agency: Agency, life: Life, seconds: float) -> list[Due]:
    """Pause all schedules, wait for what runs, and make by hand what is still due; what was due."""
    for deployment in agency.api("POST", "/deployments/filter"):
        agency.api("POST", f"/deployments/{deployment['id']}/pause_deployment", KEY)
    ended, deadline = datetime.now(UTC), time.monotonic() + seconds
    while agency.runs(*UNENDED) and time.monotonic() < deadline:
        life.attend()
        time.sleep(3)
    due = [*agency.due(ended)]
    for each in due:
        if agency.state(each) is None:
            life.counts["a late release made by hand"] += 1
            agency.command("run", str(each.path), "--due", each.local, "--out", str(agency.out))
            if each.plan.publication.approval:
                who = ["--who", "C. Officer", "--why", "as the rules say"]
                agency.command("approve", each.plan.dataset, each.release_id, *who)
                agency.command("run", str(each.path), "--due", each.local, "--out", str(agency.out))
    published = next(each for each in due if agency.state(each) == "published")
    for home in agency.workers:  # a run removes what killed ones with its home have left
        again = ("run", str(published.path), "--due", published.local, "--out", str(agency.out))
        agency.command(*again, home=home)
    return due


def table(life: Life, rows: list[Row]) -> str:
    """What went wrong, and what was kept, as text."""
    lines = [f"{'what happened':55} times", *(f"{n:55} {c:5}" for n, c in life.counts.items())]
    lines += ["", f"{'promise':55} count wanted"]
    for row in rows:
        wanted = "" if row.wanted is None else str(row.wanted)
        lines.append(f"{row.what:55} {row.count:5} {wanted:>6}")
        lines += [] if row.kept else [f"    {place}" for place in row.where[:20]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
