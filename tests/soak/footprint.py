"""What an agency occupies that runs for years: memory, descriptors and threads, databases and logs.

    python -m tests.soak FOLDER --releases 100

Ten plans that are due every four minutes run under ``dprelease serve``, and nothing is broken: what
grows here, and is not a database whose old rows are deleted, grows without bound.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from dpcore.accounting.budget import Budget
from flows.cli import main
from tasks.bundle.verify import read_manifest
from tasks.ledger import Action, Ledger
from tests.bare import PLAN
from tests.flows.served import Served
from tests.waiting import SECONDS

PLANS, EVERY = 10, 4
"""How many plans, and how many minutes lie between two due times of one."""

MEGABYTE = 2**20
STAYING = {"serve": "flows.cli serve", "server": "flows.operation.pages", "worker": "worker start"}
"""The processes that stay, by words of their command lines."""

KINDS = ("PSS MB", "descriptors", "threads")
SHOWN = [f"{name} {kind}" for name in STAYING for kind in KINDS]
SHOWN += ["prefect kB", "ledger kB", "worker.log kB", "files at home", "temporary files"]


def open_agency(folder: Path) -> Served:
    """Plans, each with a table and a grant of its own, and their server."""
    (folder / "plans").mkdir(parents=True)
    ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite")
    table = pd.DataFrame({"sex": ["F", "M"] * 20, "age": range(20, 60)})
    for number in range(PLANS):
        name = f"survey-{number:02}"
        table.to_parquet(folder / "plans" / f"{name}.parquet")
        document: dict[str, Any] = yaml.safe_load(PLAN)
        document |= {"dataset": name, "source": f"{name}.parquet", "synthesis": []}
        document["releases"] = document["releases"][:1]
        cron = f"{number % EVERY}-59/{EVERY} * * * *"
        document["operation"] = {"schedule": {"cron": cron}, "allow_exhaustion": True}
        (folder / "plans" / f"{name}.yaml").write_text(yaml.safe_dump(document))
        ledger.grant(name, Budget.of(1000, 0), who="the board", why="the soak")
    (folder / "tmp").mkdir()
    os.environ["TMPDIR"] = str(folder / "tmp")
    return Served(folder)


def footprints(served: Served, releases: int, every: int = 10) -> Iterator[dict[str, float]]:
    """What is occupied whenever so many more releases have been published; raises ``TimeoutError`` if
    none is for long."""
    seen, shown, patience = 0, 0, time.monotonic() + SECONDS
    while shown < releases:
        made = len([*served.out.glob("*/*/manifest.json")])
        if made > seen:
            seen, patience = made, time.monotonic() + SECONDS
        if made // every > shown // every:
            shown = made
            yield {"releases": made} | footprint(served)
        if time.monotonic() > patience:
            raise TimeoutError(f"{made} releases, and no more in {SECONDS} s: {served.words()}")
        time.sleep(1)


def footprint(served: Served) -> dict[str, float]:
    """Megabytes of memory (proportional set size), descriptors and threads of each process that stays,
    and kilobytes and rows on disk."""
    assert served.process is not None
    found: dict[str, float] = {}
    for process in (served.process.pid, *_children(served.process.pid)):
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        for name, words in STAYING.items():
            if words in command:
                found |= {f"{name} {what}": size for what, size in occupied(process).items()}
    home = served.folder / "home"
    database = home / "server" / "prefect.db"
    found["prefect kB"] = _kilobytes(database, database.with_name("prefect.db-wal"))
    found |= {f"rows {table}": rows for table, rows in _rows(database).items() if rows}
    found["ledger kB"] = _kilobytes(*served.folder.glob("ledger.sqlite*"))
    found |= {f"{log.name} kB": _kilobytes(log) for log in (home / "server").glob("*.log")}
    others = [p for p in home.rglob("*") if "pages" not in p.parts and p.is_file()]
    found["files at home"] = len(others)
    found["temporary files"] = len([*(served.folder / "tmp").rglob("*")])
    return found


def faults(served: Served) -> list[str]:
    """Bundles that ``dprelease verify`` refuses, and draws not charged and made exactly once."""
    found = []
    for bundle in sorted(each.parent for each in served.out.glob("*/*/manifest.json")):
        with redirect_stdout(io.StringIO()):
            code = main(
                ["verify", str(bundle), "--ledger", f"sqlite:///{served.folder}/ledger.sqlite"]
            )
        lines = served.ledger.history(bundle.parent.name)
        for action in (Action.RESERVE, Action.COMMIT):
            same = [e for e in lines if (e.release_id, e.action) == (bundle.name, action)]
            names = sorted(line.release_name for line in same)
            if names != sorted({record.name for record in read_manifest(bundle).releases}):
                found.append(f"{bundle}: {action} {names}")
        found += [f"{bundle}: verify exits with {code}"] * bool(code)
    return found


def measure(folder: Path, releases: int) -> list[str]:
    """Print a line for every ten releases; the faults of all.  ``footprint.json`` holds every number."""
    served, found = open_agency(folder), []
    print("releases", *(f"{key:>18}" for key in SHOWN), sep="  ")
    served.start()
    try:
        for row in footprints(served, releases):
            found.append(row)
            print(
                f"{row['releases']:8}", *(f"{row[key]:18}" for key in SHOWN), sep="  ", flush=True
            )
            (folder / "footprint.json").write_text(json.dumps(found, indent=1))
    finally:
        served.stop()
    return faults(served)


def _children(process: int) -> list[int]:
    """The processes that it has started, but not theirs, which are runs that come and go."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def occupied(process: int) -> dict[str, float]:
    """What a process occupies now."""
    folder = Path(f"/proc/{process}")
    memory = (folder / "smaps_rollup").read_text().splitlines()
    sizes = {line.split()[0]: int(line.split()[1]) for line in memory[1:]}
    return {
        "RSS MB": sizes["Rss:"] * 1024 // MEGABYTE,
        "PSS MB": sizes["Pss:"] * 1024 // MEGABYTE,
        "descriptors": len([*(folder / "fd").iterdir()]),
        "threads": len([*(folder / "task").iterdir()]),
    }


def _kilobytes(*files: Path) -> int:
    return sum(file.stat().st_size for file in files if file.exists()) // 1024


def _rows(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as read:
        tables = read.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: read.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in tables
        }
