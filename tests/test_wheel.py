"""The wheel publishes the plan of the tutorial, and three packages are enough to open the bundle."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.runnable import files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INSTALL = ("install", "--quiet", "--no-compile")
"""Each package is compiled where it is imported: most modules never are."""


def called(*command: object, folder: Path, packages: Path | None = None) -> str:
    """What a command prints; fails with its errors.  ``packages``: a folder to import from first."""
    environment = {name: v for name, v in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": str(packages)} if packages else {}
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


def environment(folder: Path, *packages: object) -> Path:
    """The programs of a new environment with some packages."""
    called(sys.executable, "-m", "venv", folder, folder=folder.parent)
    pip = (folder / "bin" / "pip", *INSTALL, "--constraint", ROOT / "constraints.txt")
    called(*pip, *packages, folder=folder.parent)
    return folder / "bin"


@pytest.mark.slow
def test_the_wheel_publishes_and_three_packages_open_the_bundle(wheel, tmp_path):
    full = tmp_path / "full"
    pip = (sys.executable, "-m", "pip", *INSTALL, "--no-deps")
    called(*pip, "--target", full, wheel, folder=tmp_path)
    (tmp_path / "survey.yaml").write_text(files(ROOT / "docs/pages/tutorial.md")["survey.yaml"])
    command, inside = full / "bin" / "dprelease", {"folder": tmp_path, "packages": full}
    run = (command, "run", "survey.yaml", "--release-id", "r1")
    assert called(*run, **inside) == "published/fair-1978/r1"
    assert called(command, "verify", "published/fair-1978/r1", **inside)
    lines = "import dprelease, flows; print(dprelease.__version__, flows.__file__)"
    version, file = called(sys.executable, "-c", lines, **inside).split()
    assert version == PROJECT["version"]
    assert Path(file).is_relative_to(full)

    small = environment(tmp_path / "small", "numpy", "pandas", "pyarrow")
    called(small / "pip", *INSTALL, "--no-deps", wheel, folder=tmp_path)
    lines = (
        "import dprelease; b = dprelease.open_bundle('published/fair-1978/r1')\n"
        "print(len(b.table('marriage-and-affairs')))\n"
        "try: b.total('marriage-and-affairs')\n"
        "except dprelease.InputError as error: print(error)"
    )
    rows, error = called(small / "python", "-c", lines, folder=tmp_path).splitlines()
    assert rows == "20"
    needed = error.partition("pip install ")[2].split()
    called(small / "pip", *INSTALL, "--constraint", ROOT / "constraints.txt", *needed,
           folder=tmp_path)  # fmt: skip
    lines = (
        "import dprelease; b = dprelease.open_bundle('published/fair-1978/r1')\n"
        "print(round(b.total('marriage-and-affairs').value))\n"
        "print(len(b.sample('respondents', 9)))\n"
        "b.fit('affairs ~ rate_marriage')"
    )
    assert called(small / "python", "-c", lines, folder=tmp_path).split() == ["6366", "9"]


def test_the_package_says_which_python_it_is_for():
    stated = [line for line in PROJECT["classifiers"] if " :: 3." in line]
    assert stated[0].endswith(PROJECT["requires-python"].removeprefix(">="))
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]
