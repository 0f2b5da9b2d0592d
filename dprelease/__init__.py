"""Differentially private releases from Python, in a script or a notebook.

    import dprelease

    plan = dprelease.load_plan("plan.yaml")
    dprelease.explain(plan)                                  # cost and accuracy; opens no data
    bundle = dprelease.release(plan, source=table, out="published")
    bundle.table("people")                                   # a pandas DataFrame
    bundle.total("people", lambda t: t["age_from"] >= 65)    # 424 ± 34

``open_bundle`` needs few of the packages that a release needs (``dprelease.bundle``).
Errors are subclasses of ``DPReleaseError``, the same as on the command line.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dpcore.errors import (
    ApprovalError,
    AuditError,
    BudgetError,
    BundleError,
    DataError,
    DPReleaseError,
    InputError,
    LedgerError,
    PlanError,
)

if TYPE_CHECKING:
    from dpcore.estimates.estimate import Estimate
    from dprelease.bundle import Bundle, open_bundle
    from dprelease.running import audit, explain, load_plan, plan, release
    from schemas.plan import Plan
    from tasks.ledger import Ledger

__version__ = version("dprelease")

_PLACES = {
    "Bundle": "dprelease.bundle",
    "Estimate": "dpcore.estimates.estimate",
    "open_bundle": "dprelease.bundle",
    "audit": "dprelease.running",
    "explain": "dprelease.running",
    "load_plan": "dprelease.running",
    "plan": "dprelease.running",
    "release": "dprelease.running",
    "Plan": "schemas.plan",
    "Ledger": "tasks.ledger",
}

__all__ = [
    "ApprovalError",
    "AuditError",
    "BudgetError",
    "Bundle",
    "BundleError",
    "DPReleaseError",
    "DataError",
    "Estimate",
    "InputError",
    "Ledger",
    "LedgerError",
    "Plan",
    "PlanError",
    "__version__",
    "audit",
    "explain",
    "load_plan",
    "open_bundle",
    "plan",
    "release",
]


# Looked up when used: readers of a bundle need few of the packages that a release needs.
def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'dprelease' has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"dprelease.{name}: needs {missing.name}, which is not installed; install dprelease with its"
            " dependencies"
        ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
