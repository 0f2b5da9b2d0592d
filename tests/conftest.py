"""What many tests share: a home of their own, a small made-up survey, one Prefect API."""

import atexit
import copy
import functools
import gc
import itertools
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does, before numpy
# Nothing here speaks TLS, yet each client would read a hundred certificates, which takes 40 ms.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("certificate.pem"))

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, settings

from flows import end_quietly
from tasks.workplace.home import locked
from tests.order import spread
from tests.reproducible import pytest_fixture_setup, pytest_runtest_protocol

__all__ = ["pytest_fixture_setup", "pytest_runtest_protocol"]

atexit.register(end_quietly)
gc.set_threshold(50_000)  # or a tenth of the time goes into looking at what stays: all libraries

# How long an example takes says how busy the machine is; each run tries the same ones.
settings.register_profile(
    "same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("same")

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("DPRELEASE_TEST_DATA", ROOT.parent / "shared" / "data"))
ROWS = 400


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if processes := getattr(config, "workerinput", {}).get("workercount"):
        items[:] = spread(items, processes)


def those_slow(names: Iterable[str], slow: Iterable[str]) -> list[Any]:
    """Cases of a test, some of which are left to the slow run."""
    return [pytest.param(n, marks=pytest.mark.slow if n in slow else (), id=n) for n in names]


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real tables; a test that needs it skips where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the real tables are not here (DPRELEASE_TEST_DATA)")
    return DATA


FOLDERS = itertools.count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """As pytest's own, which looks at the folders of all tests before to number each one."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}-{next(FOLDERS)}", numbered=False)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the ledger or the home of the person who runs it."""
    home = tmp_path / "home"
    monkeypatch.setenv("DPRELEASE_HOME", str(home))
    monkeypatch.setenv("DPRELEASE_LEDGER", "")  # so that what a command sets is undone
    monkeypatch.delenv("DPRELEASE_LEDGER")
    return home


@pytest.fixture(scope="session")
def prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One Prefect API for all tests that run flows; yields its home.

    Making its database takes long: the first process of the run that needs one makes it for all.
    """
    home = tmp_path_factory.mktemp("prefect")
    os.environ["PREFECT_HOME"] = str(home)
    from flows.operation.embedded import prefect_api

    with ExitStack() as stack:
        several = "PYTEST_XDIST_WORKER" in os.environ
        shared = tmp_path_factory.getbasetemp().parent if several else home
        with locked(shared / "prefect.lock"):
            if (shared / "made.db").exists():
                shutil.copy(shared / "made.db", home / "prefect.db")
            stack.enter_context(prefect_api())
            if several and not (shared / "made.db").exists():
                with closing(sqlite3.connect(home / "prefect.db")) as made:
                    made.execute("VACUUM INTO ?", [str(shared / "made.db")])
        stack.enter_context(short_audits_made_up())
        yield home


@pytest.fixture(scope="session")
def put_database(prefect: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], None]:
    """Put a copy of Prefect's database where a process will look for it: making one takes seconds."""
    made = tmp_path_factory.mktemp("made") / "prefect.db"
    with closing(sqlite3.connect(prefect / "prefect.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(made)])

    def put(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(made, folder)

    return put


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that tests read: the first process of the run that needs it makes it for all."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        make(folder := factory.mktemp(name))
        return folder
    shared = factory.getbasetemp().parent
    folder, whole = shared / name, shared / f"{name}.made"
    with locked(shared / f"{name}.lock"):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the demo, for all tests that read one."""
    from tests.bare import leave_out_audits, release

    def publish(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            leave_out_audits(patch.setattr)
            patch.setenv("DPRELEASE_HOME", str(folder / "home"))
            patch.delenv("DPRELEASE_LEDGER", raising=False)
            release(ROOT / "deployments" / "plans" / "fair.yaml", "demo", folder / "published")

    return made_once(tmp_path_factory, "demo", publish) / "published" / "fair-1978" / "demo"


@contextmanager
def short_fits() -> Iterator[None]:
    """Fits to noisy tables stop early: for tests to which it does not matter how close records are."""
    from dpcore.post.records import denoise, weighted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(denoise, "fit_mixture", functools.partial(denoise.fit_mixture, steps=3))
        patch.setattr(weighted, "fit_records", functools.partial(weighted.fit_records, sweeps=8))
        yield


@pytest.fixture(name="short_fits")
def fits_stop_early() -> Iterator[None]:
    with short_fits():
        yield


@contextmanager
def short_audits_made_up() -> Iterator[None]:
    """Flows take the results of a short audit as given; ``audited`` is for tests of the audit itself."""
    from tasks.audit import audit
    from tests.tasks.made_up import made_up_audits_of

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "short_audit", lambda releases, _: made_up_audits_of(releases))
        patch.setattr(audit, "rehearse_shortly", lambda _: None)
        yield


@contextmanager
def audited() -> Iterator[None]:
    """Short audits are real; they draw from a seed, as one in a thousand accuses a right plan."""
    from dpcore.audit import short_audit
    from dpcore.sampling.source import SeededSource
    from tasks.audit import audit
    from tasks.audit.rehearsal import rehearse_shortly

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpcore.audit.short.SystemSource", lambda: SeededSource(1))
        patch.setattr(audit, "short_audit", short_audit)
        patch.setattr(audit, "rehearse_shortly", rehearse_shortly)
        yield


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Chromium without a window; the test skips where there is none.

    Its event loop runs for as long as it is open, so it is closed before other tests.
    """
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("there is no Chromium here (name one with CHROMIUM)")
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    quiet += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # reaches no other host
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=quiet)
        yield browser
        browser.close()


@pytest.fixture
def survey() -> pd.DataFrame:
    return made_up_survey()


def made_up_survey() -> pd.DataFrame:
    """A survey of mixed columns with nulls, made of a fixed seed."""
    random = np.random.default_rng(7)
    age = random.integers(18, 90, ROWS)
    income = np.round(random.gamma(2.0, 900.0, ROWS), 2)
    income[income > 9000] = 9000
    return pd.DataFrame(
        {
            "sex": random.choice(["F", "M"], ROWS),
            "region": pd.array(
                random.choice(["north", "south", "east", None], ROWS), dtype="string"
            ),
            "age": age,
            "children": pd.array(random.poisson(1.2, ROWS).clip(0, 6), dtype="Int64"),
            "income": income,
        }
    )


@pytest.fixture
def plan_document() -> dict:
    return plan_of_every_kind()


def plan_of_every_kind() -> dict:
    """A plan with every kind of release, as a document that tests may change."""
    return copy.deepcopy(_every_kind())


@functools.cache
def _every_kind() -> dict:
    return yaml.safe_load(
        """
        dprelease: 1
        dataset: survey
        source: survey.parquet
        rows: 400
        privacy_unit: row
        neighbours: replace-one
        budget:
          granted: {alpha: "10", beta: "1e-5", gamma: "0"}
          requested: {alpha: "4", beta: "1e-6", gamma: "0"}
        columns:
          sex: {type: categorical, categories: [F, M]}
          region: {type: categorical, categories: [north, south, east, west], nullable: true}
          age: {type: integer, bounds: [18, 89]}
          children: {type: integer, bounds: [0, 6]}
          income: {type: continuous, bounds: [0, 9000], grid: 256}
        releases:
          - {name: people, kind: histogram, columns: [sex, region, age], bins: {age: 6}}
          - name: rare
            kind: histogram
            columns: [sex, region, age, children]
            mechanism: thresholded-laplace
          - name: pairs
            kind: margins
            columns: [sex, region, children, income]
            ways: 2
            bins: {income: 5}
            mechanism: discrete-gaussian
            weight: 3
          - {name: wealth, kind: density, columns: [income], bandwidth: 0.1, mechanism: binned-laplace}
          - {name: ages, kind: density, columns: [age, income], bandwidth: 0.2,
             mechanism: spectral-gaussian}
          - name: rich
            kind: classifier
            features: [age, children, sex]
            label: {column: income, at_least: 2000}
            bandwidth: [0.5, 0.5, 1]
            regularisation: 0.1
            frequencies: 32
          - {name: age-quartiles, kind: quantiles, column: age, levels: ["1/4", "0.5", "0.75"]}
          - {name: grown-up, kind: count, condition: {column: age, at_least: 40}, prior: 0.6}
          - name: rarer
            kind: histogram
            columns: [sex, region, age, children]
            mechanism: stability-laplace
          - {name: pure-wealth, kind: density, columns: [income], bandwidth: 0.2,
             mechanism: spectral-gamma}
          - {name: path, kind: function, columns: [income], bandwidth: 0.1, points: 40}
          - {name: pay, kind: regression, features: [age, region], target: income, bandwidth: 0.5,
             regularisation: 0.1, frequencies: 16}
        synthesis:
          - {name: everybody, from: pairs, rows: 400}
          - {name: hundred, from: pairs, rows: 100}
          - {name: from-counts, from: people, rows: 400}
          - {name: from-density, from: ages, rows: 50}
        publication: {title: A made-up survey}
        """
    )


@pytest.fixture
def plan_path(tmp_path: Path, survey: pd.DataFrame, plan_document: dict) -> Path:
    """The plan beside its survey, on disk."""
    survey.to_parquet(tmp_path / "survey.parquet")
    return write_plan(tmp_path, plan_document)


def write_plan(folder: Path, document: dict) -> Path:
    """A plan document as a file."""
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
