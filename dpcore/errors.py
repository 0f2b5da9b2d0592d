"""Every error that dprelease raises on purpose.

    DPReleaseError            exit code 1
    +-- InputError            exit code 2: something handed in is wrong, and nothing was lost
    |   +-- PlanError             the plan document
    |   +-- DataError             the survey table does not have the declared form
    +-- BudgetError           exit code 3: the privacy budget refuses
    +-- AuditError            exit code 4: an audit found more loss than is claimed
    +-- ApprovalError         exit code 5: a disclosure officer has not approved, or has rejected
    +-- LedgerError               the ledger cannot be read, written or trusted
    +-- BundleError               a published bundle is incomplete, changed or inconsistent
    +-- PrivacyLineError          a statistic, mechanism or price is not fit to be drawn

A message says what was wrong, where, and what to do.  It never holds a value that was read from
a survey table: column names, rules and counts of failing rows are the most it may say.
"""

from collections.abc import Sequence


class DPReleaseError(Exception):
    """Base of all errors that dprelease raises on purpose."""

    exit_code = 1


class InputError(DPReleaseError):
    """Something handed in is wrong; it can be corrected and tried again."""

    exit_code = 2


class PlanError(InputError):
    """The release plan is wrong; the message names the place in the document."""


class DataError(InputError):
    """The survey table does not have the form that the plan declares."""


class BudgetError(DPReleaseError):
    """The privacy budget does not allow the request: too little of it, or of another kind."""

    exit_code = 3


class AuditError(DPReleaseError):
    """An audit's lower bound on alpha is above the claim; ``results`` are those of the audit."""

    exit_code = 4
    results: Sequence[object] = ()


class ApprovalError(DPReleaseError):
    """A disclosure officer has not approved; ``release_id`` is set where one can still decide."""

    exit_code = 5
    release_id: str | None = None


class LedgerError(DPReleaseError):
    """The ledger cannot be read or written, or contradicts what was asked."""


class BundleError(DPReleaseError):
    """A bundle is incomplete, was changed, or contradicts the ledger."""


class PrivacyLineError(DPReleaseError):
    """A statistic may not be drawn: its form, its mechanism or its price is not as declared."""
