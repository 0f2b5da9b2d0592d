"""One site for all tests that read one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, made_once
from tests.flows.served import BRIEFLY


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a warning and without contact to another host; it releases all kinds in one plan."""
    return made_once(tmp_path_factory, "site", build_site) / "site"


def build_site(folder: Path) -> None:
    contacts = folder / "contacts"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/mkdocs.yml"]
    built = subprocess.run(
        [*command, "--site-dir", str(folder / "site")],
        cwd=ROOT,
        env=os.environ
        | {
            "NO_MKDOCS_2_WARNING": "true",
            "OUTSIDE_CONTACTS": str(contacts),
            "PYTHONPATH": BRIEFLY,
        },
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert not contacts.exists(), contacts.read_text()
