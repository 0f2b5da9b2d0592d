"""What goes wrong at an agency, and what its people do meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from unittest.mock import patch

import httpx

from flows.operation.lost import FORGOTTEN_AFTER
from tasks.budget.checkpoint import lost_draws
from tests.soak.agency import LITTLE, POOR, Agency, end

Deed = Callable[[], None]

STAYS = ("rejected", "budget", "Budget", "out of date")
"""Words of refusals that no retry changes; retries of these would keep workers from what is due."""


class Life:
    """Troubles and deeds at random; ``counts`` says how often each came."""

    def __init__(self, agency: Agency) -> None:
        self.agency, self.counts = agency, Counter[str]()
        self.troubles: dict[str, Deed] = {
            "a worker killed": self.kill_worker,
            "a run killed": self.kill_run,
            "the Prefect server killed": self.kill_server,
            "PostgreSQL crashed": self.crash_postgresql,
            "an old copy of the ledger restored": self.restore_old_ledger,
            "the disk full": self.fill_disk,
        }
        self.deeds: dict[str, Deed] = {
            "an ad hoc request": self.request,
            "an audit asked for": self.audit,
            "a grant": self.grant,
        }

    def live(self, until: float, gap: float) -> None:
        """One trouble after another, each ended before the next, and people at work in between."""
        number = 0
        while time.monotonic() < until:
            number += 1
            if number % 3 == 0:
                self._do(self.troubles)
            else:
                self._do(self.deeds)
            resume = time.monotonic() + gap * self.agency.random.uniform(0.5, 1.5)
            while time.monotonic() < min(resume, until):
                self.attend()
                time.sleep(2)

    def attend(self) -> None:
        """What the staff do as soon as they see it: decide what waits, retry what crashed, and deploy
        again where a run was taken long ago and never began."""
        with suppress(httpx.HTTPError):
            for run in self.agency.runs("PAUSED"):
                self._decide(run)
            for run in self.agency.runs("CRASHED", "FAILED"):
                self._retry(run)
            taken = [
                datetime.fromisoformat(r["state"]["timestamp"]) for r in self.agency.runs("PENDING")
            ]
            if taken and min(taken) < datetime.now(UTC) - FORGOTTEN_AFTER:
                self.agency.deploy()
                self.counts["plans deployed again, to free a slot"] += 1

    def _do(self, choices: dict[str, Deed]) -> None:
        name = list(choices)[self.agency.random.integers(len(choices))]
        self.counts[name] += 1
        with suppress(httpx.HTTPError):
            choices[name]()

    def _decide(self, run: dict) -> None:
        if run["state"]["state_details"]["pause_key"].startswith("submission"):
            self.agency.api("POST", f"/flow_runs/{run['id']}/resume")
            self.counts["a dry run submitted"] += 1
            return
        decision = "approve" if self.agency.random.random() < 0.7 else "reject"
        review = {"decision": decision, "name": "C. Officer", "reason": "as the rules say"}
        self.agency.api("POST", f"/flow_runs/{run['id']}/resume", run_input=review)
        self.counts["a decision"] += 1

    def _retry(self, run: dict) -> None:
        """Staff press Retry, unless the run was refused for a reason that stays."""
        said = run["state"]["message"] or ""
        if any(word in said for word in STAYS) or run["run_count"] > 6:
            return
        self.agency.set_state(run["id"], type="SCHEDULED", name="AwaitingRetry")
        self.counts["a run retried"] += 1

    def _worker(self) -> str:
        return ("first", "second")[self.agency.random.integers(2)]

    def kill_worker(self) -> None:
        name = self._worker()
        end(self.agency.workers[name])
        time.sleep(3)
        self.agency.start_worker(name)

    def kill_run(self) -> None:
        runs = [pid for name in self.agency.workers for pid in self.agency.children(name)]
        if runs:
            with suppress(ProcessLookupError):
                os.kill(runs[self.agency.random.integers(len(runs))], signal.SIGKILL)

    def kill_server(self) -> None:
        end(self.agency.server)
        time.sleep(10)
        self.agency.start_server()

    def crash_postgresql(self) -> None:
        self.agency.postgresql.end(signal.SIGQUIT)
        time.sleep(5)
        self.agency.postgresql.start()

    def fill_disk(self) -> None:
        if not self.agency.own_disk:
            self.counts["the disk full"] -= 1
            return
        filler = self.agency.out / ".filler"
        with suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * 2**16)
                file.flush()
        time.sleep(15)
        filler.unlink()

    def restore_old_ledger(self) -> None:
        """An old copy takes the ledger's place while workers run; then the right one is put back."""
        server = self.agency.postgresql
        copy = server.folder / "copy.dump"
        environment = os.environ | {"PGPASSWORD": server.url("").split(":")[2].split("@")[0]}
        where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "ledger"]

        def run(program: str, *arguments: str) -> None:
            command = [str(server.programs / program), *where, *arguments]
            subprocess.run(command, env=environment, check=True, capture_output=True)

        run("pg_dump", "-Fc", "-f", str(copy), "ledger")
        drawn = len(self.agency.ledger.history())
        deadline = time.monotonic() + 120
        while len(self.agency.ledger.history()) <= drawn + 2 and time.monotonic() < deadline:
            time.sleep(2)
        self._stop_workers()
        server.administer("ALTER DATABASE ledger RENAME TO right_one", "CREATE DATABASE ledger")
        run("pg_restore", "-d", "ledger", str(copy))
        self._start_workers()
        time.sleep(45)
        self._stop_workers()
        server.administer("DROP DATABASE ledger", "ALTER DATABASE right_one RENAME TO ledger")
        self._recover()
        self._start_workers()

    def _recover(self) -> None:
        """Enter what was published from the copy, and give up draws that were not."""
        why = ("--who", "the operator", "--why", "an old copy of the ledger was in use")
        for dataset in self.agency.ledger.datasets():
            where = ("--out", str(self.agency.out))
            self.agency.command("ledger", "recover", dataset, *where, *why)
            with patch.dict(os.environ, DPRELEASE_SIGNING_KEY=str(self.agency.signing_key)):
                all_lost = lost_draws(self.agency.ledger, dataset, self.agency.witness)
            for lost in all_lost:
                self.counts["a draw given up, which no bundle shows"] += 1
                self.agency.command(
                    "ledger", "void", dataset, lost.release_id, lost.release_name, *why
                )

    def _stop_workers(self) -> None:
        for process in self.agency.workers.values():
            end(process)
        self.agency.postgresql.administer(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'ledger'"
        )
        time.sleep(1)

    def _start_workers(self) -> None:
        for name in list(self.agency.workers):
            self.agency.start_worker(name)

    def request(self) -> None:
        form = self.agency.api("GET", "/deployments/name/ad hoc release/ad-hoc-release")
        number = self.agency.random.integers(self.agency.number_of_plans)
        asked = {
            "plan": f"survey-{number:02}",
            "releases": [],
            "alpha": f"0.{self.agency.random.integers(10, 60)}",
            "title": "A question",
            "requester": "B. Analyst",
            "dry_run": bool(self.agency.random.random() < 0.3),
        }
        self.agency.api("POST", f"/deployments/{form['id']}/create_flow_run", parameters=asked)

    def audit(self) -> None:
        form = self.agency.api("GET", "/deployments/name/audit/audit-a-plan")
        number = self.agency.random.integers(self.agency.number_of_plans)
        asked = {"plan": f"survey-{number:02}", "quick": True}
        self.agency.api("POST", f"/deployments/{form['id']}/create_flow_run", parameters=asked)

    def grant(self) -> None:
        poor = [number for number in POOR if number < self.agency.number_of_plans]
        dataset = f"survey-{poor[self.agency.random.integers(len(poor))]:02}"
        if (
            dataset not in self.agency.ledger.datasets()
        ):  # its first release records the plan's grant
            self.counts["a grant"] -= 1
            return
        amount = ["--alpha", str(LITTLE - 2), "--who", "the board", "--why", "more is needed"]
        self.agency.command("ledger", "grant", dataset, *amount)
