"""Runs everything on one machine: a Prefect server, a worker, and the deployments of all plans.

The server's database is in dprelease's home, closed to other users, and no usage data is sent.
Server and worker are separate processes, with their output in files next to the database; they end
with this process.  A run that is cut off loses nothing: its draws are in the ledger, and a run with the
same release id continues.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from types import FrameType

from httpx import HTTPError
from prefect.context import refresh_global_settings_context

from dpcore.errors import DPReleaseError, InputError
from flows.operation.gate import HEADERS, KEY, headers_with, make_key
from tasks.workplace.home import home, ledger_url, private_folder
from tasks.workplace.places import NAMED_FILES, place
from tasks.workplace.plans import plans_in
from tasks.workplace.room import require_room_at_home
from tasks.workplace.step import log_line

HOST = "127.0.0.1"
STARTUP_SECONDS = 180
RESUME_SECONDS = 20  # how soon a grant resumes a schedule
MISSED_ROUNDS = 45  # in rounds of RESUME_SECONDS: how soon a missed release is notified
STOP_SECONDS = 30
LOG_BYTES = 10_000_000  # a release writes 3,000 bytes


def serve(
    plans: Path, out: Path, port: int, runs_at_once: int, ready: Callable[[str], None]
) -> None:
    """Start everything, call ``ready`` with the UI's address, and run until a signal ends this process.

    Plans that the budget does not cover are deployed once it does; meanwhile forms and approvals work.
    Raises ``InputError`` if the port is taken or no plan is valid, ``DPReleaseError`` if server or
    worker does not start or ends by itself.
    """
    plans_in(plans)
    require_free(port)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be created ({error.strerror})") from None
    os.umask(0o077)  # Prefect makes its database and its storage readable for every user
    folder = private_folder(home() / "server")
    os.environ.update(environment(folder, plans, out, port))
    refresh_global_settings_context()  # Prefect read its settings when it was imported
    with ExitStack() as stack:
        lock = stack.enter_context(_alone(folder))
        stack.enter_context(_until_signalled())
        server = stack.enter_context(
            run_module(
                ["flows.operation.pages", "start", "--host", HOST, "--port", str(port)],
                folder / "server.log",
                lock,
            )
        )
        _wait_until_healthy(server, f"{os.environ['PREFECT_API_URL']}/health", folder)
        from flows.deployment.deploy import deploy, plans_to_deploy
        from flows.operation.exhaustion import resume_schedules
        from flows.operation.lost import POOL, end_lost_runs
        from flows.operation.notify import notify_lost, notify_missed

        notify_lost(end_lost_runs())  # our worker has not started, so no process works on them

        def deployed() -> int:
            """Deploy the plans; returns the number of plans that the budget does not cover."""
            names, refused = deploy(plans, runs_at_once, own=True)
            for name in names:
                log_line(f"deployed {name}")
            return len(refused)

        unpaid = deployed()
        worker = ["prefect", "worker", "start", "--pool", POOL, "--type", "process"]
        stack.enter_context(run_module(worker, folder / "worker.log", lock))
        ready(f"http://{HOST}:{port}")
        rounds = count()
        # Until server or worker has ended; WNOWAIT keeps its status for the wait below.
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            time.sleep(RESUME_SECONDS)
            shorten_logs(folder)
            with suppress(HTTPError, DPReleaseError):  # the next round may go better
                resume_schedules()
                if unpaid and len(plans_to_deploy(plans, say=lambda _: None)[1]) < unpaid:
                    unpaid = deployed()
                if next(rounds) % MISSED_ROUNDS == 0:
                    notify_missed(plans)
        require_room_at_home()
        ended = "worker" if server.poll() is None else "server"
        raise DPReleaseError(f"the {ended} ended by itself; see {folder / ended}.log")


def environment(folder: Path, plans: Path, out: Path, port: int) -> dict[str, str]:
    """Environment variables for server, worker and runs; the operator's own settings are kept."""
    fixed = {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_URL": f"http://{HOST}:{port}/api",
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        KEY: (key := make_key(folder)),
        HEADERS: headers_with(key),
        "DPRELEASE_HOME": str(home()),
        "DPRELEASE_LEDGER": ledger_url(),
        "DPRELEASE_PLANS": str(plans.absolute()),
        "DPRELEASE_OUT": str(out.absolute()),
    }
    for variable in NAMED_FILES:
        if path := place(variable):
            fixed[variable] = str(path.absolute())
    if password := os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        fixed["PREFECT_API_AUTH_STRING"] = password
    else:
        log_line(
            "no password: every user of this machine can open the page, request releases and decide;"
            " set PREFECT_SERVER_API_AUTH_STRING=user:password"
        )
    defaults = {
        "PREFECT_LOGGING_EXTRA_LOGGERS": "dprelease",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # else lines outside runs cause warnings
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_WORKER_QUERY_SECONDS": "2",  # ten would delay every run from a form
        "OPENBLAS_NUM_THREADS": "1",
    }
    return {name: os.environ.get(name, value) for name, value in defaults.items()} | fixed


@contextmanager
def run_module(module: list[str], log: Path, *held: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module in a process; this process and its children end with the block.

    ``held``: file descriptors of locks. The process inherits them, so the locks remain if this process
    is killed.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *module],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches only this process, which ends the others in order
            pass_fds=held,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                log_line(f"{log.stem} did not end within {STOP_SECONDS} s and is killed")
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its remaining children
            process.wait()


def shorten_logs(folder: Path) -> None:
    """Copy each long log to NAME.log.1 and empty it.

    The processes that append to it keep it open.  What they write between the two steps is lost.
    """
    for log in folder.glob("*.log"):
        with suppress(OSError):  # the next round may go better
            if log.stat().st_size > LOG_BYTES:
                shutil.copyfile(log, log.with_name(f"{log.name}.1"))
                os.truncate(log, 0)


@contextmanager
def _alone(folder: Path) -> Iterator[int]:
    """Lock dprelease's home against a second server on its database; yields the lock's descriptor."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{home()}: another dprelease serve, or a process left by a killed one, uses this home:"
                " end its processes, or set DPRELEASE_HOME"
            ) from None
        yield lock.fileno()


def require_free(port: int) -> None:
    """Raise ``InputError`` if something already listens on the port."""
    if not 0 < port < 2**16:
        raise InputError(f"--port {port}: write a number from 1 to {2**16 - 1}")
    with socket.socket() as probe:
        # As the server sets it; otherwise the port of a server that has just ended counts as used.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise InputError(
                f"--port {port}: is in use; end the process that uses it (perhaps the server of a"
                f" killed dprelease serve), or use another home and name another port"
            ) from None


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    require_room_at_home()
    raise DPReleaseError(f"Prefect's server did not start; see {folder / 'server.log'}")


class _EndedError(Exception):
    """A signal asked this process to end."""


@contextmanager
def _until_signalled() -> Iterator[None]:
    """The block ends quietly on Ctrl-C and SIGTERM; further signals do not disturb its clean-up."""

    def end(number: int, frame: FrameType | None) -> None:
        for known in previous:
            signal.signal(known, signal.SIG_IGN)
        raise _EndedError

    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _EndedError:
        log_line("ended")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
