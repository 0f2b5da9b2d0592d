"""What runs at an agency: PostgreSQL, a Prefect server, two workers, a webhook, twelve plans."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pandas as pd
import yaml

from flows.operation import gate
from schemas.plan import Plan, load_plan
from tasks.ledger import Ledger, State
from tasks.workplace.schedule import due_times, run_id
from tests.bare import PLAN
from tests.flows.served import PASSWORD, free_port, own_environment
from tests.tasks.ledger.server import Server

PLANS, EVERY = 12, 3
"""How many plans, and how many minutes lie between two due times of one: a made-up month."""

POOR, ASKING = (0, 5, 9), (3, 7)
"""The plans whose budget runs out, and those that a disclosure officer must approve."""

ENOUGH, LITTLE = 200, 4
UNENDED = ("SCHEDULED", "PENDING", "RUNNING", "PAUSED", "CANCELLING")
SECRET = "Secret-7391-Soak"
AMOUNT = 7391.4825
DISK = "96m"
KEY = "soaked"


class Due(NamedTuple):
    """A release that a schedule asked for."""

    path: Path
    plan: Plan
    at: datetime

    @property
    def release_id(self) -> str:
        return run_id(self.path, self.at)

    @property
    def local(self) -> str:
        return f"{self.at:%Y-%m-%dT%H:%M}"


class Agency:
    """A folder with plans and published bundles, and the processes that serve them."""

    def __init__(
        self,
        folder: Path,
        postgresql: Server,
        seed: int,
        number_of_plans: int = PLANS,
        briefly: bool = False,
    ) -> None:
        self.folder, self.postgresql, self.briefly = folder, postgresql, briefly
        self.number_of_plans = number_of_plans
        self.plans, self.out = folder / "plans", folder / "published"
        self.witness, self.signing_key = folder / "checkpoint", folder / "private.pem"
        self.random = np.random.default_rng(seed)
        self.server: subprocess.Popen[bytes] | None = None
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.port, self.notices = free_port(), list[str]()
        self.own_disk = False

    @property
    def ledger_url(self) -> str:
        return self.postgresql.url("ledger")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.ledger_url, create=False)

    def due(self, ended: datetime) -> Iterator[Due]:
        """What was due while the agency was open."""
        for path in sorted(self.plans.glob("*.yaml")):
            plan = load_plan(path)
            assert plan.operation.schedule is not None
            for at in due_times(plan.operation.schedule, self.opened, ended):
                yield Due(path, plan, at)

    def state(self, due: Due) -> str | None:
        """``published``, ``refused`` by an officer or for want of budget, or ``given up`` with its draw;
        None: none of these."""
        dataset, release_id = due.plan.dataset, due.release_id
        if (self.out / dataset / release_id / "manifest.json").exists():
            return "published"
        decision = self.ledger.decision(dataset, release_id)
        rejected = decision is not None and not decision.approved
        poor = not self.ledger.remaining(dataset).covers(due.plan.requested)
        charges = self.ledger.release(dataset, release_id)
        if any(charge.state is State.VOID for charge in charges.values()):
            return "given up"
        return "refused" if rejected or (poor and not charges) else None

    def environment(self, home: str) -> dict[str, str]:
        """What a machine of the agency has set; the second one is behind a proxy that never answers."""
        folder = self.folder / home
        folder.mkdir(exist_ok=True)
        login = {"PREFECT_API_AUTH_STRING": PASSWORD, "PREFECT_SERVER_API_AUTH_STRING": PASSWORD}
        behind = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
        return {
            **own_environment(folder / "home", self.briefly),
            **login,
            **(behind if home == "second" else {}),
            gate.KEY: KEY,
            gate.HEADERS: gate.headers_with(KEY),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_API_URL": f"http://127.0.0.1:{self.port}/api",
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": self.postgresql.url("prefect").replace(
                "postgresql:", "postgresql+asyncpg:"
            ),
            "PREFECT_LOGGING_EXTRA_LOGGERS": "dprelease",
            "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
            "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "DPRELEASE_LEDGER": self.ledger_url,
            "DPRELEASE_PLANS": str(self.plans),
            "DPRELEASE_OUT": str(self.out),
            "DPRELEASE_SIGNING_KEY": str(self.signing_key),
            "DPRELEASE_CHECKPOINT": str(self.witness),
            "DPRELEASE_EVENTS": str(self.folder / "events.jsonl"),
            "DPRELEASE_WEBHOOK": f"http://127.0.0.1:{self.webhook}/",
        }

    def open(self) -> None:
        """Write the plans, start everything and deploy."""
        self.plans.mkdir(parents=True)
        self.out.mkdir()
        with suppress(OSError, subprocess.CalledProcessError):
            mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(self.out)]
            subprocess.run(mount, check=True, capture_output=True)
            self.own_disk = True
        make_key = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(self.signing_key)]
        subprocess.run(make_key, check=True, capture_output=True)
        self._write_plans()
        self.webhook = self._listen()
        self.postgresql.start()
        self.postgresql.administer("CREATE DATABASE ledger", "CREATE DATABASE prefect")
        ledger = Ledger(self.ledger_url)
        for path in sorted(self.plans.glob("*.yaml")):
            plan = load_plan(path)
            ledger.grant(plan.dataset, plan.budget.granted.budget, "the board", "the soak")
        self.command("ledger", "checkpoint")
        self.start_server()
        self.deploy()
        for name in ("first", "second"):
            self.start_worker(name)
        self.opened = datetime.now(UTC)

    def deploy(self) -> None:
        self.command("deploy", "--plans", str(self.plans), "--runs-at-once", "2")

    def close(self) -> None:
        for process in (*self.workers.values(), self.server):
            end(process)
        self.postgresql.remove()
        if self.own_disk:
            kept = self.folder / "kept"
            shutil.copytree(self.out, kept)
            subprocess.run(["umount", "--lazy", str(self.out)], check=False, capture_output=True)
            self.out.rmdir()
            kept.rename(self.out)

    def _write_plans(self) -> None:
        survey = pd.DataFrame({"sex": ["F", "M"] * 20, "age": range(20, 60)})
        survey["name"], survey["income"] = SECRET, AMOUNT
        (self.folder / "survey").mkdir()
        for number in range(self.number_of_plans):
            document: dict[str, Any] = yaml.safe_load(PLAN)
            document["dataset"] = f"survey-{number:02}"
            source = self.folder / "survey" / f"survey-{number:02}.parquet"
            survey.to_parquet(source)
            document["source"] = str(source)
            document["budget"]["granted"]["alpha"] = str(LITTLE if number in POOR else ENOUGH)
            document["publication"]["approval"] = number in ASKING
            cron = f"{number % EVERY}-59/{EVERY} * * * *"
            document["operation"] = {
                "schedule": {"cron": cron},
                "requests": {
                    "releases": [each["name"] for each in document["releases"]],
                    "part": 1,
                },
                "allow_exhaustion": True,
                "warn_runs": 1,
            }
            (self.plans / f"survey-{number:02}.yaml").write_text(yaml.safe_dump(document))

    def _listen(self) -> int:
        notices = self.notices

        class Webhook(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                notices.append(
                    json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
                )
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return int(server.server_address[1])

    def start_server(self) -> None:
        command = ["prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self.port)]
        self.server = self._start(command, "server")
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                self.api("GET", "/health")
                return
            time.sleep(0.5)
        raise TimeoutError("the Prefect server does not start")

    def start_worker(self, name: str) -> None:
        command = ["prefect", "worker", "start", "--pool", "dprelease", "--type", "process"]
        self.workers[name] = self._start([*command, "--name", name], name)

    def _start(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        environment = self.environment(name)
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *command],
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=self.folder,
            )

    def command(self, *arguments: str, home: str = "operator") -> int:
        """A command of dprelease, on the operator's machine or another; its exit code."""
        with (self.folder / "operator.log").open("ab") as log:
            log.write(f"$ dprelease {' '.join(arguments)}\n".encode())
            log.flush()
            return subprocess.run(
                [sys.executable, "-m", "flows.cli", *arguments],
                env=self.environment(home),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                check=False,
                cwd=self.folder,
            ).returncode

    def api(self, method: str, path: str, key: str = "", **document: Any) -> Any:
        user, _, password = PASSWORD.partition(":")
        address = f"http://127.0.0.1:{self.port}/api{path}"
        answer = httpx.request(
            method,
            address,
            json=document,
            auth=(user, password),
            headers={gate.NAME: key},
            timeout=30,
            trust_env=False,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def runs(self, *states: str) -> list[dict[str, Any]]:
        """The runs in any of these states, the next first."""
        only = {"state": {"type": {"any_": list(states)}}}
        return list(
            self.api("POST", "/flow_runs/filter", flow_runs=only, sort="EXPECTED_START_TIME_ASC")
        )

    def set_state(self, run: str, **state: Any) -> None:
        self.api("POST", f"/flow_runs/{run}/set_state", state=state, force=True)

    def children(self, name: str) -> list[int]:
        """The processes of a worker's runs."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.workers[name].pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(line) for line in found.stdout.split()]

    def kept(self) -> Iterator[Path]:
        """What others than the operator may read: all but the surveys."""
        return (p for p in self.folder.iterdir() if p.name != "survey")


def end(process: subprocess.Popen[bytes] | None, how: signal.Signals = signal.SIGKILL) -> None:
    """End a process and all its children."""
    if process is not None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        process.wait()
