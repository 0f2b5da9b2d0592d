"""Audit every registered release; the exit code is 1 if one fails.

python -m benchmarks.mutations.audits short|full
"""

from __future__ import annotations

import sys

from dpcore.audit import audit_release, audit_scale
from tests.dpcore.releases.contract import CASES

DRAWS = 100_000


def main(depth: str) -> int:
    """1 if the audit of a release says that it loses more than it claims."""
    for case in CASES.values():
        if depth == "short":
            result = audit_scale(case.release)
        else:
            result = audit_release(case.release, draws=DRAWS)
        if not result.passed:
            print(result)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
