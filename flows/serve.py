"""Everything on one machine: a Prefect server, a work pool, the deployments of all plans, a worker.

The server's database lies in dprelease's home, closed to other users, and nothing is sent to
anybody.  Server and worker are processes of their own, with their output in files beside the
database; they end with this one.  A run that is cut off by that has lost nothing: its draws are in
the ledger, and under the same release id it goes on.
"""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

from dpcore.errors import DPReleaseError, InputError
from tasks.home import home, private_folder
from tasks.plans import plans_in
from tasks.progress import say

HOST = "127.0.0.1"
STARTUP_SECONDS = 180
STOP_SECONDS = 30
POOL = "dprelease"


def serve(
    plans: Path, out: Path, port: int, runs_at_once: int, ready: Callable[[str], None]
) -> None:
    """Bring everything up, call ``ready`` with the UI's address, and stay until a signal ends it.

    Raises ``InputError`` where the port is taken or there is no plan, ``DPReleaseError`` where server
    or worker do not start or end by themselves.
    """
    plans_in(plans)
    require_free(port)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be made ({error.strerror})") from None
    os.umask(0o077)
    folder = private_folder(home() / "server")
    os.environ.update(environment(folder, plans, out, port))
    with ExitStack() as stack:
        stack.enter_context(_alone(folder))
        stack.enter_context(_until_signalled())
        server = stack.enter_context(
            running(["server", "start", "--host", HOST, "--port", str(port)], folder / "server.log")
        )
        _wait_until_healthy(server, f"{os.environ['PREFECT_API_URL']}/health", folder)
        from flows.deploy import deploy, let_go

        let_go()  # before our worker starts there is nobody to carry them on
        for name in deploy(plans, runs_at_once):
            say(f"deployed {name}")
        worker = ["worker", "start", "--pool", POOL, "--type", "process"]
        stack.enter_context(running(worker, folder / "worker.log"))
        ready(f"http://{HOST}:{port}")
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # until either ends, which neither should
        ended = "worker" if server.poll() is None else "server"
        raise DPReleaseError(f"the {ended} ended by itself; see {folder / ended}.log")


def environment(folder: Path, plans: Path, out: Path, port: int) -> dict[str, str]:
    """What server, worker and runs need to know; what the operator has set stays as it is."""
    fixed = {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_URL": f"http://{HOST}:{port}/api",
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "DPRELEASE_HOME": str(home()),
        "DPRELEASE_PLANS": str(plans.absolute()),
        "DPRELEASE_OUT": str(out.absolute()),
    }
    if password := os.environ.get("PREFECT_SERVER_API_AUTH_STRING"):
        fixed["PREFECT_API_AUTH_STRING"] = password
    defaults = {
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "dprelease",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_CLI_PROMPT": "false",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return {name: os.environ.get(name, value) for name, value in defaults.items()} | fixed


@contextmanager
def running(prefect: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Prefect command as a process with children of its own, all of which end with the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", *prefect],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for us alone: we end them in order
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"{prefect[0]} did not end in {STOP_SECONDS} s: it is killed")
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it may have left behind
            process.wait()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the home against a second server, which would write to the same database."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{home()}: another dprelease serve uses this home; end it, or set DPRELEASE_HOME"
            ) from None
        yield


def require_free(port: int) -> None:
    """Raise ``InputError`` where something listens on the port already."""
    if not 0 < port < 2**16:
        raise InputError(f"--port {port}: write a number from 1 to {2**16 - 1}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise InputError(
                f"--port {port}: is taken; end what uses it (it may be the server of a killed"
                " dprelease serve), or name another"
            ) from None


def _wait_until_healthy(server: subprocess.Popen[bytes], url: str, folder: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise DPReleaseError(f"Prefect's server did not start; see {folder / 'server.log'}")


class _EndedError(Exception):
    """A signal asked us to end."""


@contextmanager
def _until_signalled() -> Iterator[None]:
    """The block ends quietly on Ctrl-C and SIGTERM; a second signal does not break its ending."""

    def end(number: int, frame: FrameType | None) -> None:
        for known in previous:
            signal.signal(known, signal.SIG_IGN)
        raise _EndedError

    previous = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except _EndedError:
        say("ended")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
