"""The wheel publishes the plan of the tutorial, and three packages are enough to open the bundle."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT
from tests.docs.runnable import files
from tests.flows.served import BRIEFLY

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def called(*command: object, folder: Path, packages: Sequence[Path] = ()) -> str:
    """What a command prints; fails with its errors.  ``packages``: folders to import from first."""
    hidden = ("PYTHONPATH", "SSL_CERT_FILE")  # pip may ask its index for what builds the wheel
    environment = {name: v for name, v in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, packages))} if packages else {}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `make wheel` builds it, of a copy of the code without what git ignores."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = called("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT)
    for name in listed.splitlines():
        if not name.startswith(("tests/", "docs/", "benchmarks/", "deployments/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    made = called(
        "make", "--no-print-directory", "wheel", f"VENV={Path(sys.executable).parent.parent}",
        folder=folder,
    )  # fmt: skip
    return folder / made.splitlines()[-1]


def put_packages(folder: Path, *names: str) -> None:
    """Put links to these packages, and to those that they need, into a folder to import from.

    As pip would fill an environment, but for the time that unpacking and compiling them takes.
    """
    folder.mkdir(exist_ok=True)
    wanted = list(names)
    for name in wanted:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))
        needed = map(Requirement, found.requires or ())
        asked = [r.name for r in needed if not r.marker or r.marker.evaluate({"extra": ""})]
        wanted += [each for each in asked if each not in wanted]


@pytest.mark.slow
def test_the_wheel_publishes_and_three_packages_open_the_bundle(
    wheel, tmp_path, own_home, put_database, monkeypatch
):
    put_database(own_home / "prefect")
    monkeypatch.setenv("PREFECT_HOME", str(own_home / "prefect"))
    full = tmp_path / "full"
    # It is compiled where it is imported: most modules never are.
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps")
    called(*pip, "--target", full, wheel, folder=tmp_path)
    (tmp_path / "survey.yaml").write_text(files(ROOT / "docs/pages/tutorial.md")["survey.yaml"])
    command = full / "bin" / "dprelease"
    inside = {"folder": tmp_path, "packages": [full, Path(BRIEFLY)]}
    run = (command, "run", "survey.yaml", "--release-id", "r1")
    assert called(*run, **inside) == "published/fair-1978/r1"
    lines = (
        "import dprelease, flows.cli; print(dprelease.__version__, flows.__file__)\n"
        "assert flows.cli.main(['verify', 'published/fair-1978/r1']) == 0"
    )
    version, file, *_ = called(sys.executable, "-c", lines, **inside).split()
    assert version == PROJECT["version"]
    assert Path(file).is_relative_to(full)

    small = tmp_path / "small"
    put_packages(small, "numpy", "pandas", "pyarrow")
    python = (sys.executable, "-S", "-c")  # -S: without the packages of these tests
    inside = {"folder": tmp_path, "packages": [full, small]}
    lines = (
        "import dprelease; b = dprelease.open_bundle('published/fair-1978/r1')\n"
        "print(len(b.table('marriage-and-affairs')))\n"
        "try: b.total('marriage-and-affairs')\n"
        "except dprelease.InputError as error: print(error)"
    )
    rows, error = called(*python, lines, **inside).splitlines()
    assert rows == "20"
    needed = error.partition("pip install ")[2].split()
    put_packages(small, *needed)
    lines = (
        "import dprelease; b = dprelease.open_bundle('published/fair-1978/r1')\n"
        "print(round(b.total('marriage-and-affairs').value))\n"
        "print(len(b.sample('respondents', 9)))\n"
        "b.fit('affairs ~ rate_marriage')"
    )
    assert called(*python, lines, **inside).split() == ["6366", "9"]


def test_the_package_says_which_python_it_is_for():
    stated = [line for line in PROJECT["classifiers"] if " :: 3." in line]
    assert stated[0].endswith(PROJECT["requires-python"].removeprefix(">="))
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]
