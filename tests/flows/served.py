"""`dprelease serve` for tests: plans over one made-up survey, on a free port of loopback."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml

from dpcore.accounting.budget import Budget
from flows.operation.gate import HEADERS, NAME, headers_with
from flows.operation.lost import POOL
from tasks.ledger import Ledger
from tasks.workplace.places import FLOW_RUN
from tests.conftest import ROOT
from tests.waiting import SECONDS, wait_for, wait_for_server

PASSWORD = "officer:hush-hush"
WHOLE = {"releases": [], "alpha": "0.4", "title": "", "requester": "B. Analyst"}
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED", "PAUSED"}

PROXY = {
    "HTTP_PROXY": "http://192.0.2.1:3128",
    "ALL_PROXY": "socks5://192.0.2.1:1080",
    "NO_PROXY": "localhost",
}
"""An agency's proxy, which cannot forward what a machine says to itself."""

BRIEFLY = str(Path(__file__).parent / "alone")
"""In PYTHONPATH of processes that do less of what is not looked at; see ``alone/sitecustomize.py``."""

REPORTS_NOTHING = ("CI", "GITHUB_ACTIONS", "DO_NOT_TRACK")
"""Variables that would stop Prefect from reporting its use."""


@dataclass
class Served:
    """A running `dprelease serve`, its folders, and a client of its API."""

    folder: Path
    port: int = field(default_factory=lambda: free_port())
    said: list[str] = field(default_factory=list)
    process: subprocess.Popen[str] | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def contacts(self) -> str:
        """The other hosts that the server, its worker or a run wanted to contact; none could."""
        noted = self.folder / "contacts"
        return noted.read_text() if noted.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        """Of a machine without other hosts: see ``alone/sitecustomize.py``."""
        own = own_environment(self.folder / "home")
        alone = {"OUTSIDE_CONTACTS": str(self.folder / "contacts"), **PROXY}
        return {k: v for k, v in own.items() if k not in REPORTS_NOTHING} | alone

    @property
    def ledger(self) -> Ledger:
        return Ledger(f"sqlite:///{self.folder}/ledger.sqlite", create=False)

    def start(self) -> None:
        arguments = ["--plans", "plans", "--out", "out", "--port", str(self.port)]
        arguments += ["--ledger", "sqlite:///ledger.sqlite"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "serve", *arguments],
            cwd=self.folder,
            env=self.environment | {"PREFECT_SERVER_API_AUTH_STRING": PASSWORD},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said, address = self.process.stderr, self.process.stdout
        assert said is not None
        assert address is not None
        threading.Thread(target=lambda: self.said.extend(said)).start()
        assert address.readline().strip() == self.address, "".join(self.said)

    def words(self) -> str:
        """The last of what the server said."""
        return "".join(self.said[-40:])

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=SECONDS)

    @property
    def key(self) -> str:
        """The agency's, which nobody learns from the server."""
        return (self.folder / "home" / "server" / "agency-key").read_text()

    def own(self, method: str, path: str, **document: Any) -> Any:
        """As ``api``, by who has the agency's key too."""
        return self.api(method, path, {NAME: self.key}, **document)

    def api(
        self, method: str, path: str, headers: dict[str, str] | None = None, **document: Any
    ) -> Any:
        def answered() -> list[httpx.Response]:
            answer = httpx.request(
                method,
                f"{self.address}/api{path}",
                json=document,
                headers=headers,
                auth=_login(),
                timeout=SECONDS,
                verify=False,  # without TLS: reading all certificates takes longer than the answer
            )
            locked = answer.status_code == httpx.codes.SERVICE_UNAVAILABLE  # by another writer
            return [] if locked else [answer]

        (answer,) = wait_for(answered, f"an answer to {path}", self.words)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def log_in(self, page: Any) -> None:
        """Log in on a browser's page, which from then on waits as long as a busy machine needs."""
        page.set_default_timeout(1000 * SECONDS)
        page.goto(f"{self.address}/dashboard")
        page.get_by_placeholder("admin:pass").fill(PASSWORD)
        page.get_by_role("button", name="Login").click()
        page.wait_for_url("**/dashboard")

    def deployed(self) -> set[str]:
        return {each["name"] for each in self.api("POST", "/deployments/filter")}

    def deployment(self, flow: str, name: str) -> dict[str, Any]:
        return self.api("GET", f"/deployments/name/{flow}/{name}")

    def ask(self, plan: str, **choices: object) -> dict[str, Any]:
        """Fill in the form for an ad hoc release of a whole plan, also with choices it would refuse."""
        form = self.deployment("ad hoc release", "ad-hoc-release")
        return self.api(
            "POST",
            f"/deployments/{form['id']}/create_flow_run",
            parameters=WHOLE | {"plan": plan} | choices,
            **({"enforce_parameter_schema": False} if choices else {}),
        )

    def first_due(self, deployment: dict[str, Any]) -> dict[str, Any]:
        """The first run that Prefect's scheduler has planned for a deployment."""
        only, order = {"id": {"any_": [deployment["id"]]}}, "EXPECTED_START_TIME_ASC"

        def planned() -> list[dict[str, Any]]:
            return self.api("POST", "/flow_runs/filter", deployments=only, sort=order)

        return wait_for(planned, "a scheduled run", self.words)[0]

    def start_now(self, run: str) -> None:
        """Have a run start, whenever it is due, and whether it has ended."""
        state = {"type": "SCHEDULED", "state_details": {"scheduled_time": None}}
        self.api("POST", f"/flow_runs/{run}/set_state", state=state, force=True)

    def answer(self, run: str, **form: Any) -> None:
        """Fill in the form of a run that waits: Prefect makes it a moment after it says so."""

        def taken() -> bool:
            answer = self.api("POST", f"/flow_runs/{run}/resume", run_input=form)
            return bool(answer["status"] == "ACCEPT")

        wait_for(taken, f"the form of run {run}", self.words)

    def settled(self, run: str) -> dict[str, Any]:
        """The run, once it has ended or waits for somebody."""

        def ended() -> dict[str, Any] | None:
            found = self.api("GET", f"/flow_runs/{run}")
            return found if found["state_type"] in ENDED else None

        return wait_for(ended, f"the end of run {run}", self.words)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """The worker takes no run meanwhile."""
        self.own("PATCH", f"/work_pools/{POOL}", is_paused=True)
        try:
            yield
        finally:
            self.own("PATCH", f"/work_pools/{POOL}", is_paused=False)

    def carry_out(self, runs: list[str]) -> None:
        """Do what the worker, which rests, would do, in one process."""
        for run in runs:
            self.own("POST", f"/flow_runs/{run}/set_state", state={"type": "PENDING"}, force=True)
        worker = {
            "PREFECT_HOME": str(self.folder / "home" / "server"),
            "PREFECT_API_URL": f"{self.address}/api",
            "PREFECT_API_AUTH_STRING": PASSWORD,
            HEADERS: headers_with(self.key),
            "DPRELEASE_LEDGER": f"sqlite:///{self.folder}/ledger.sqlite",
            "DPRELEASE_PLANS": str(self.folder / "plans"),
            "DPRELEASE_OUT": str(self.out),
            FLOW_RUN: runs[0],
        }
        subprocess.run(
            [sys.executable, "-m", "tests.flows.forked", *runs],
            cwd=self.folder,
            env=self.environment | worker,
            check=True,
            timeout=10 * SECONDS,
        )
        for run in runs:  # a worker says so of a process that fails before its run begins
            if self.api("GET", f"/flow_runs/{run}")["state_type"] == "PENDING":
                state = {"type": "CRASHED"}
                self.own("POST", f"/flow_runs/{run}/set_state", state=state, force=True)

    def artifact(self, run: str, key: str) -> dict[str, Any]:
        only = {"flow_run_id": {"any_": [run]}, "key": {"any_": [key]}}
        return self.api("POST", "/artifacts/filter", artifacts=only, sort="CREATED_DESC")[0]


@contextmanager
def prefect_server(
    port: int, environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Prefect's own server, up, on a port of loopback; its process leads a group, which ends with it."""
    command = ["server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *command],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=0o077,
        )
    health = f"http://127.0.0.1:{port}/api/health"
    try:
        wait_for_server(
            lambda: httpx.get(health, verify=False).raise_for_status(),
            process,
            lambda: log.read_text(),
        )
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=SECONDS)


def last_due() -> datetime:
    """When the plan on a schedule was last due."""
    due = datetime.now(UTC).replace(day=1, hour=0, minute=15, second=0, microsecond=0)
    return due if due < datetime.now(UTC) else (due - timedelta(days=1)).replace(day=1)


def prepare(folder: Path, survey: Any, document: dict[str, Any]) -> None:
    """Plans: one on a schedule, one that asks for approval, two for requests alone, and two that are
    not deployed: one that its grant does not cover and one that is not valid.

    The first four have a grant, and open two releases and two columns to requests, for a tenth of it.
    """
    plans = folder / "plans"
    plans.mkdir()
    survey.to_parquet(plans / "survey.parquet")
    kept = ("people", "pairs", "wealth")
    document["releases"] = [r for r in document["releases"] if r["name"] in kept]
    document["synthesis"] = document["synthesis"][:1]
    document["budget"]["granted"] |= {"alpha": "80", "beta": "2e-5"}  # more than a year's runs
    document["dataset"] = "income"
    document["publication"]["title"] = "Income of a made-up population"
    began = (datetime.now(UTC) - timedelta(days=40)).date()
    schedule = {"cron": "0 6 1 * *", "timezone": "Asia/Kathmandu", "since": began}
    requests = {"releases": ["people", "pairs"], "columns": ["sex", "region"], "part": "1/10"}
    document["operation"] = {"schedule": schedule, "requests": requests}
    (plans / "income.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    for name, operation in (
        ("health", {"requests": requests}),
        ("rush", {"requests": requests}),
        ("thesis", {"requests": requests}),
        ("poor", {"schedule": {"cron": "0 6 1 * *"}}),
    ):
        survey.to_parquet(plans / f"{name}.parquet")
        document |= {"dataset": name, "source": f"{name}.parquet", "operation": operation}
        document["publication"] = {"title": f"{name.title()} of a made-up population"}
        if name == "health":
            document["publication"]["approval"] = True
        (plans / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    (plans / "draft.yaml").write_text("dprelease: 1\n")
    ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite")
    for dataset in ("income", "health", "rush", "thesis"):
        ledger.grant(dataset, Budget.of(80, "2e-5"), who="the board", why="a year of releases")
    ledger.grant("poor", Budget.of(4, "1e-6"), who="the board", why="one release")


def own_environment(home: Path, briefly: bool = True) -> dict[str, str]:
    """The environment without the settings that the tests' own Prefect has left in it.

    ``briefly``: its processes do less of what is not looked at; see ``alone/sitecustomize.py``.
    """
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "DPRELEASE_"))
    }
    paths = (BRIEFLY if briefly else None, str(ROOT), os.environ.get("PYTHONPATH"))
    path = os.pathsep.join(filter(None, paths))
    return environment | {"DPRELEASE_HOME": str(home), "PYTHONPATH": path}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _login() -> tuple[str, str]:
    user, _, password = PASSWORD.partition(":")
    return user, password
