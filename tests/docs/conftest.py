"""One bundle of the demo for all tests that read one."""

from pathlib import Path

import pytest

from tests.bare import leave_out_audits, release
from tests.conftest import ROOT, made_once


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def publish(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            leave_out_audits(patch.setattr)
            patch.setenv("DPRELEASE_HOME", str(folder / "home"))
            patch.delenv("DPRELEASE_LEDGER", raising=False)
            release(ROOT / "deployments" / "plans" / "fair.yaml", "demo", folder / "out")

    folder = made_once(tmp_path_factory, "demo", publish)
    (bundle,) = (folder / "out").glob("*/demo")
    return bundle
