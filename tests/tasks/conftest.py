"""What tests of several rooms share: published bundles, and a Spark master with a worker."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import ibis
import pytest

from tests.bare import leave_out_audits, release, small_plan
from tests.conftest import made_once, plan_of_every_kind
from tests.tasks.made_up import opened_once
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    """A folder with the small plan, its bundle ``r1`` and the home that paid for it; to be copied."""

    def publish(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DPRELEASE_HOME", str(folder / "home"))
            patch.delenv("DPRELEASE_LEDGER", raising=False)
            leave_out_audits(patch.setattr)
            release(small_plan(folder), "r1", folder / "out")

    return made_once(tmp_path_factory, "published", publish)


@pytest.fixture(scope="session")
def every_kind(tmp_path_factory) -> Path:
    """A folder with a bundle ``r1`` of every kind of release, and the home that paid for it."""
    plan = plan_of_every_kind()
    return made_once(tmp_path_factory, "every-kind", lambda folder: opened_once(folder, plan))


BRIEFLY = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for processes that live for a minute: most of their time went into optimising code."""

START_BRIEFLY = {"SPARK_LAUNCHER_OPTS": BRIEFLY, "SPARK_SUBMIT_OPTS": BRIEFLY}
"""They, for what starts a process of Spark, and for a session of its own."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[Any]:
    """Ibis on a session of a master and a worker, each a process of its own, without Python.

    What the worker sends to the driver is written down in the folder of ``spark.eventLog.dir``.
    """
    pyspark = pytest.importorskip("pyspark")
    folder = tmp_path_factory.mktemp("spark")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    program = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    worker = [f"{deploy}.worker.Worker", *place, "--cores", "2", "--memory", "1g", master]
    environment = os.environ | START_BRIEFLY | {"SPARK_DAEMON_JAVA_OPTS": BRIEFLY}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYSPARK_PYTHON", "/no/python/on/the/workers")
        log = stack.enter_context((folder / "log").open("w"))
        commands = [[f"{deploy}.master.Master", *place, "--port", str(port)], worker]
        for command in commands:
            process = subprocess.Popen(
                [*program, *command], cwd=folder, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        said = (folder / "log").read_text
        registered = "Successfully registered with master"
        wait_for(lambda: registered in said(), "a worker", said)
        (folder / "events").mkdir()
        builder = pyspark.sql.SparkSession.builder.master(master)
        for key, value in {
            "spark.driver.extraJavaOptions": BRIEFLY,
            "spark.executor.extraJavaOptions": BRIEFLY,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(folder / "events"),
        }.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        stack.callback(session.stop)
        yield ibis.pyspark.connect(session)
