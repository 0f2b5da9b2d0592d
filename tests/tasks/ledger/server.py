"""A PostgreSQL server of our own on loopback, for tests that need one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.waiting import SECONDS, wait_for_server

PASSWORD = "hush-hush"


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, if they are installed."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.get_exec_path())]
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def verifier(password: str) -> str:
    """What PostgreSQL stores of it (RFC 5802): 4,096 rounds would be most of a connection's cost."""
    salt = b"salt of tests"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations=1)
    client, server = (hmac.digest(salted, key, "sha256") for key in (b"Client Key", b"Server Key"))
    stored = hashlib.sha256(client).digest()
    kept, stored, server = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return f"SCRAM-SHA-256$1:{kept}${stored}:{server}"


class Server:
    """Its data are in a temporary folder, until it is removed."""

    def __init__(self, bin_folder: Path) -> None:
        self.programs = bin_folder
        # The server refuses to run as root, so root lends its folder to another user.
        self._as_user = {"user": "nobody"} if os.geteuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-postgresql-"))
        if self._as_user:
            shutil.chown(self.folder, "nobody")
        (password_file := self.folder / "password").write_text(PASSWORD)
        password_file.chmod(0o644)
        initdb = [bin_folder / "initdb", "-D", self.folder / "data", "-U", "ledger"]
        initdb += ["-A", "scram-sha-256", "-N", "--pwfile", password_file]
        subprocess.run(
            initdb, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self._as_user
        )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        postgres = [self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port)]
        postgres += ["-k", self.folder]
        postgres += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        # A server takes a moment to clear away a closed connection, and a race opens 64 at once.
        postgres += ["-c", "max_connections=300"]
        # Defaults that would break the ledger if it trusted them.
        postgres += ["-c", "default_transaction_isolation=serializable"]
        postgres += ["-c", "synchronous_commit=off"]
        log = self.folder / "log"
        with log.open("a") as output:
            self._process = subprocess.Popen(
                postgres, stdout=output, stderr=output, cwd=self.folder, **self._as_user
            )
        one_round = f"ALTER ROLE ledger PASSWORD '{verifier(PASSWORD)}'"
        wait_for_server(lambda: self.administer(one_round), self._process, log.read_text)

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT in order, SIGQUIT as in a crash."""
        self._process.send_signal(how)
        self._process.wait(timeout=SECONDS)

    def remove(self) -> None:
        self.end()
        shutil.rmtree(self.folder)

    def administer(self, *statements: str) -> None:
        import psycopg

        where = f"host=127.0.0.1 port={self.port} user=ledger password={PASSWORD} dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def url(self, database: str) -> str:
        return f"postgresql://ledger:{PASSWORD}@127.0.0.1:{self.port}/{database}"


def started() -> Server:
    """One that runs; skips the test where PostgreSQL or its driver is not installed."""
    import pytest

    pytest.importorskip("psycopg")
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL server is installed")
    server = Server(found)
    server.start()
    return server
