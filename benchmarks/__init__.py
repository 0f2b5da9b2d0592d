"""Side-by-side measurements; each module runs with ``python -m benchmarks.<name>``."""

import os
from pathlib import Path

DATA = Path(os.environ.get("DPRELEASE_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""The folder of the public test tables."""
