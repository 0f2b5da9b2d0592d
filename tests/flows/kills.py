"""Kill the release path at every boundary and at random, resume it, and look for harm.

    python -m tests.flows.kills FOLDER [LEDGER_URL] [--sabotage NAME] [--only BOUNDARY]

A boundary is a point at which what outlives the process may change: before and after every commit of
the ledger and every call that renames or links a file, after every draw, and before every writing
statement of the ledger and a call that makes a folder or flushes a file.  Where the same boundary comes
several times in a row, as when files are flushed one by one, the first and every tenth count.  A
boundary before which nothing has changed since the last one counts no more: a kill there leaves the
same.  Each release is run in a forked child that is killed (SIGKILL) at one of them, and resumed in
another child.
``--sabotage`` breaks the product on purpose, to show that the harm is seen, and stops where it is.
Without LEDGER_URL every release has an SQLite ledger of its own, made and killed with it; with it,
boundaries of files are left out, which are the same.
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

import flows.course
import tasks.bundle.staging
import tasks.draw
from dpcore.accounting.budget import Budget
from dpcore.errors import DPReleaseError
from schemas.plan import load_plan
from tasks.budget.reconcile import reconcile
from tasks.bundle.verify import read_manifest, verify_budget, verify_files
from tasks.ledger import Ledger, State, queries, tables
from tasks.workplace.home import ledger_url
from tests.bare import leave_out_audits, release, small_plan

FILE_CALLS = ("rename", "replace", "link")
NOWHERE = 0
# Quick to draw and to publish.
QUICK = {"name": "women", "kind": "count", "condition": {"column": "sex", "categories": ["F"]}}


class Boundaries:
    """Counts the boundaries that a process reaches, and kills it at the one numbered ``fatal``."""

    def __init__(self, files: bool = True, only: str = "") -> None:
        self.files, self.only = files, only
        self.fatal = NOWHERE
        self.reached = 0
        self.label, self.repeated = "", 0
        self.report = os.open(os.devnull, os.O_WRONLY)
        self.wrote = False
        self.folder, self.drawn, self.sent = Path(), 0, 0
        self.left: object = None

    def reach(self, label: str) -> None:
        if not self.fatal or (not self.files and " file " in label) or self.only not in label:
            return
        self.repeated = self.repeated + 1 if label == self.label else 0
        self.label = label
        if self.repeated % 10 or self.left == (left := self.would_leave()):
            return
        self.left = left
        self.reached += 1
        if self.reached == self.fatal:
            self.tell(f"killed {label}")
            os.kill(os.getpid(), signal.SIGKILL)

    def would_leave(self) -> object:
        """What a kill would leave: each file's content, what was drawn, and what a server was sent."""
        files = {p: p.is_file() and p.read_bytes() for p in self.folder.rglob("*")}
        return files, self.drawn, 0 if self.files else self.sent

    def tell(self, line: str) -> None:
        os.write(self.report, f"{line}\n".encode())

    def before(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.reach(f"before {label}")
            return function(*args, **kwargs)

        return bounded

    def around(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def bounded(*args: Any, **kwargs: Any) -> Any:
            self.reach(f"before {label}")
            result = function(*args, **kwargs)
            self.reach(f"after {label}")
            return result

        return bounded


def install(boundaries: Boundaries) -> None:
    """Mark every boundary of the release path in this process and those forked from it."""
    leave_out_audits()
    for name in FILE_CALLS:
        setattr(os, name, boundaries.around(f"file {name}", getattr(os, name)))
    os.fsync = boundaries.before("file fsync", os.fsync)
    make_folder, commit = os.mkdir, DefaultDialect.do_commit
    make_new_folder = boundaries.before("file mkdir", make_folder)

    def commit_and_count(*args: Any) -> None:
        commit(*args)
        boundaries.sent += 1

    commit_writes = boundaries.around("ledger COMMIT", commit_and_count)

    def mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        (make_folder if os.path.exists(path) else make_new_folder)(path, *args, **kwargs)

    def do_commit(*args: Any) -> None:
        wrote, boundaries.wrote = boundaries.wrote, False
        (commit_writes if wrote else commit)(*args)

    os.mkdir, DefaultDialect.do_commit = mkdir, do_commit

    perturb = tasks.draw.perturb

    def draw_and_tell(*args: Any) -> Any:
        noisy = perturb(*args)
        boundaries.tell(f"drawn {noisy.digest()}")
        boundaries.drawn += 1
        boundaries.reach("after the noise is drawn")
        return noisy

    tasks.draw.perturb = draw_and_tell

    def statement(_: Any, __: Any, sql: str, *___: Any) -> None:
        verb, *words = sql.split()
        if verb == "CREATE":  # all of them in one transaction
            if not boundaries.wrote:
                boundaries.reach("before ledger CREATE")
            boundaries.wrote = True
        elif verb in ("INSERT", "UPDATE"):
            boundaries.wrote = True
            boundaries.reach(f"before ledger {verb} {words[verb == 'INSERT']}")
            boundaries.sent += 1

    event.listen(Engine, "before_cursor_execute", statement)


@dataclass
class Row:
    """What became of the kills at one boundary."""

    kills: int = 0
    resumes: int = 0
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Child:
    """A forked process that runs a release and tells what it does."""

    process: int
    told: int

    def kill(self) -> None:
        os.kill(self.process, signal.SIGKILL)

    def end(self) -> tuple[bool, list[str]]:
        """Wait for the end: whether it was killed, and what it told before."""
        with os.fdopen(self.told) as lines:
            said = lines.read().splitlines()
        return os.WIFSIGNALED(os.waitpid(self.process, 0)[1]), said


@dataclass(frozen=True)
class Case:
    """One release that is to be killed: a dataset, a home and a folder of its own."""

    plan: Path
    price: Budget
    folder: Path
    dataset: str

    def run(
        self, boundaries: Boundaries, fatal: int, seconds: float | None = None
    ) -> tuple[bool, list[str]]:
        """Run the release in a child; whether it was killed, and what it told before."""
        child = self.start(boundaries, fatal)
        if seconds is not None:
            time.sleep(seconds)
            child.kill()
        return child.end()

    def start(self, boundaries: Boundaries, fatal: int) -> Child:
        """Run the release in a child, and do not wait for it."""
        told, boundaries.report = os.pipe()
        child = os.fork()
        if child == 0:
            boundaries.fatal, boundaries.folder = fatal, self.folder
            try:
                release(self.plan, "r1", self.folder / "out", dataset=self.dataset)
            except Exception as error:
                boundaries.tell(f"failed {type(error).__name__}: {error}")
            os._exit(0)
        os.close(boundaries.report)
        return Child(child, told)

    def grant(self) -> None:
        """Grant what the plan says, where the first use of a dataset does not."""
        ledger, budget = Ledger(ledger_url()), load_plan(self.plan).budget
        if ledger.shared and ledger.account(self.dataset) is None:
            words = "the board", "a case", budget.composition
            ledger.grant(self.dataset, budget.granted.budget, *words)

    def ledger(self) -> Ledger | None:
        """The ledger, if the run came so far as to make one."""
        try:
            return Ledger(ledger_url(), create=False)
        except DPReleaseError:
            return None

    @property
    def bundle(self) -> Path:
        return self.folder / "out" / self.dataset / "r1"

    def digests(self, ledger: Ledger | None) -> dict[str, str]:
        """The digest of every committed draw, by release name."""
        charges = ledger.release(self.dataset, "r1") if ledger else {}
        return {n: c.digest or "" for n, c in charges.items() if c.state is State.COMMITTED}

    def contents(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.bundle.rglob("*") if path.is_file()}

    def harm_when_killed(self, told: list[str]) -> Iterator[str]:
        """What must not be, however the run ended."""
        ledger = self.ledger()
        drawn = any(line.startswith("drawn") for line in told)
        if drawn and (ledger is None or ledger.spent(self.dataset) != self.price):
            yield "noise was drawn without a charge"
        if ledger is not None:
            for fault in ledger.find_faults(self.dataset):
                if fault.what != "reserved, not drawn":
                    yield f"the ledger disagrees with itself: {fault.what}"
        if self.bundle.exists():
            try:
                manifest = read_manifest(self.bundle)
                verify_files(self.bundle, manifest)
                assert ledger is not None
                verify_budget(manifest, ledger)
            except Exception as error:
                yield f"a partial bundle: {error}"

    def harm_when_resumed(
        self, told: list[str], drawn: dict[str, str], published: dict[Path, bytes]
    ) -> Iterator[str]:
        """What must not be after a resumed run came to its end."""
        if failures := [line for line in told if line.startswith("failed")]:
            yield f"the resumed run {failures[0]}"
        ledger = self.ledger()
        if ledger is None or ledger.spent(self.dataset) != self.price:
            yield "not charged exactly once"
            return
        if not drawn.items() <= self.digests(ledger).items():
            yield "a committed draw was drawn again"
        if not published.items() <= self.contents().items():
            yield "a published bundle was changed"
        for fault in reconcile(ledger, self.folder / "out", self.dataset):
            yield f"ledger and bundles disagree: {fault.what}"
        private = Path(os.environ["DPRELEASE_HOME"]) / "private"
        left = [*self.bundle.parent.glob(".*"), *private.glob("[!.]*")]
        if left:
            yield f"left behind: {', '.join(path.name for path in left)}"


def kill_at_every_boundary(
    cases: Iterator[Case], boundaries: Boundaries, until_harm: bool
) -> dict[str, Row]:
    """One release for each boundary: killed there, resumed, examined; until one is not killed."""
    rows: dict[str, Row] = {}
    for fatal in itertools.count(1):
        case = next(cases)
        killed, told = case.run(boundaries, fatal)
        if not killed:
            return rows
        row = rows.setdefault(told[-1].removeprefix("killed "), Row())
        row.kills += 1
        row.violations += case.harm_when_killed(told)
        resume(case, boundaries, row)
        if row.violations and until_harm:
            return rows
    raise AssertionError


def kill_at_random(cases: Iterator[Case], boundaries: Boundaries, kills: int) -> dict[str, Row]:
    """Releases that are killed at any time, and whose resumed runs are killed too."""
    started = time.monotonic()
    next(cases).run(boundaries, NOWHERE)
    duration = time.monotonic() - started
    row = Row()
    while row.kills < kills:
        case, told, killed = next(cases), [], True
        while killed and row.kills < kills:
            killed, more = case.run(boundaries, NOWHERE, random.uniform(0, duration))
            told += more
            row.kills += killed
            row.violations += case.harm_when_killed(told)
        resume(case, boundaries, row)
    return {"at random": row}


def resume(case: Case, boundaries: Boundaries, row: Row) -> None:
    """Run a release to its end, and note every harm."""
    drawn, published = case.digests(case.ledger()), case.contents()
    _, told = case.run(boundaries, NOWHERE)
    row.resumes += 1
    row.violations += case.harm_when_resumed(told, drawn, published)


def new_cases(folder: Path, composition: str) -> Iterator[Case]:
    """Releases that have nothing in common but their plan and, on a server, the ledger."""
    plan = small_plan(folder)
    document = yaml.safe_load(plan.read_text())
    document["releases"][1] = dict(QUICK)
    document["budget"] = {
        "composition": composition,
        "granted": {"alpha": "2", "beta": "1e-6"},
        "requested": {"part": "1/2"},
    }
    plan.write_text(yaml.safe_dump(document))
    price = load_plan(plan).requested
    for number in itertools.count(1):
        own = folder / str(number)
        own.mkdir()
        os.environ["DPRELEASE_HOME"] = str(own / "home")
        for file in (plan, plan.with_name("survey.parquet")):
            shutil.copy(file, own)
        case = Case(own / plan.name, price, own, f"survey-{number}")
        if "DPRELEASE_LEDGER" in os.environ:
            case.grant()
        yield case


def warm_up(case: Case) -> None:
    """Make one release here: children need not import, compile and cache what it takes anew."""
    release(case.plan, "r1", case.folder / "out", dataset=case.dataset)
    gc.collect()
    gc.freeze()  # a collection in a child would copy the pages of all that it looks at


def sabotage(name: str | None) -> None:
    """Break the product in one of the ways that these tests must notice."""
    if name == "two transactions":

        def commit(
            self: Ledger, dataset: str, release_id: str, release_name: str, noisy: Any
        ) -> Any:
            with self._database.transaction(write=True) as connection:
                charge = queries.find_charge(connection, dataset, release_id, release_name)
                row = {"charge_id": charge.charge_id, "payload": noisy.to_bytes()}
                connection.execute(tables.draw.insert().values(row))
            with self._database.transaction(write=True) as connection:
                moved = {"state": "COMMITTED", "committed_at": "now", "digest": noisy.digest()}
                queries._move(connection, charge, **moved)
            return noisy

        Ledger.commit = commit  # type: ignore[method-assign]
    elif name == "no staging":

        @contextmanager
        def in_place(target: Path) -> Iterator[Path]:
            target.mkdir(parents=True)
            yield target

        flows.course.staging_folder = in_place  # type: ignore[assignment]
    elif name == "one staging for all":

        def same_name(size: int) -> str:
            return "0" * size

        tasks.bundle.staging.secrets.token_hex = same_name  # type: ignore[assignment]
    elif name is not None:
        raise SystemExit(f"no such sabotage: {name}")


def table(rows: dict[str, Row]) -> str:
    """The kill table as text."""
    total = Row(sum(r.kills for r in rows.values()), sum(r.resumes for r in rows.values()))
    total.violations = [v for row in rows.values() for v in row.violations]
    lines = [f"{'boundary':44} kills resumes violations"]
    for label, row in [*rows.items(), ("all", total)]:
        lines.append(f"{label:44} {row.kills:5} {row.resumes:7} {len(row.violations):10}")
    return "\n".join(lines)


def kill(
    folder: Path,
    ledger: str | None = None,
    *,
    at_random: int = 40,
    broken: str | None = None,
    composition: str = "basic",
    only: str = "",
) -> dict[str, Row]:
    """What became of the kills, by boundary; the options of the command, by other names."""
    if ledger:
        os.environ["DPRELEASE_LEDGER"] = ledger
        Ledger(ledger)
    boundaries = Boundaries(files=not ledger, only=only)
    install(boundaries)
    sabotage(broken)
    cases = new_cases(folder, composition)
    warm_up(next(cases))
    rows = kill_at_every_boundary(cases, boundaries, until_harm=bool(broken))
    if at_random:
        rows |= kill_at_random(cases, boundaries, at_random)
    print(table(rows), file=sys.stderr)
    return rows


def main() -> None:
    """Print the kill table on standard error, and every row of it as JSON on standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("ledger", nargs="?", metavar="LEDGER_URL")
    parser.add_argument("--random", type=int, default=40, metavar="KILLS", dest="at_random")
    parser.add_argument("--sabotage", metavar="NAME", dest="broken")
    parser.add_argument("--composition", default="basic")
    parser.add_argument(
        "--only", default="", metavar="BOUNDARY", help="those whose name holds this"
    )
    rows = kill(**vars(parser.parse_args()))
    print(json.dumps({label: vars(row) for label, row in rows.items()}))


if __name__ == "__main__":
    main()
