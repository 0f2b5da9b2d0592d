"""Every error that dprelease raises on purpose.

    DPReleaseError            exit code 1
    +-- InputError            exit code 2: the input is wrong; nothing was spent
    |   +-- PlanError             the plan document
    |   +-- DataError             the survey table does not have the declared form
    |   +-- UnreadableError       this user may not read a file or folder, or the disk fails
    |   +-- UnmeasuredError       a question relates columns that were not measured together
    +-- BudgetError           exit code 3: the budget does not cover the release, or is of another kind
    +-- AuditError            exit code 4: an audit found more privacy loss than is claimed
    +-- ApprovalError         exit code 5: a disclosure officer has not approved, or has rejected
    +-- BundleError           exit code 6: a bundle is damaged or was changed, or contradicts the ledger
    +-- LedgerError               the ledger contradicts the request
    |   +-- UnusableLedgerError       it cannot be reached, read or written, or is damaged
    |   +-- LostLedgerError           an old copy, or the wrong one: it lacks what was published
    +-- ServerError           exit code 7: the Prefect server does not answer
    +-- PrivacyLineError          a statistic, mechanism or price is not as declared

A message says what is wrong, where, and what to do.  It never contains a value that was read from
a survey table; it may name columns and rules, and count failing rows.
"""

from collections.abc import Sequence


class DPReleaseError(Exception):
    """Base of all errors that dprelease raises on purpose."""

    exit_code = 1


class InputError(DPReleaseError):
    """The input is wrong; correct it and try again."""

    exit_code = 2


class PlanError(InputError):
    """The release plan is wrong; the message names the position in the document."""


class DataError(InputError):
    """The survey table does not have the form that the plan declares."""


class UnreadableError(InputError):
    """This user may not read a file or folder, or the disk fails; its contents are unknown."""


class UnmeasuredError(InputError):
    """A question relates columns that were not measured together; ``also``: sets to measure too."""

    also: Sequence[Sequence[str]] = ()


class BudgetError(DPReleaseError):
    """The budget does not cover the release, or was granted for another unit or composition."""

    exit_code = 3


class AuditError(DPReleaseError):
    """An audit's lower bound on alpha is above the claim; ``results``: what the audit found."""

    exit_code = 4
    results: Sequence[object] = ()


class ApprovalError(DPReleaseError):
    """A disclosure officer has not approved; ``release_id`` is set while the decision is open."""

    exit_code = 5
    release_id: str | None = None


class LedgerError(DPReleaseError):
    """The ledger contradicts the request, or is not usable."""


class UnusableLedgerError(LedgerError):
    """The ledger cannot be reached, read or written, or is damaged."""


class LostLedgerError(LedgerError):
    """The ledger lacks what was published or drawn: it is an old copy, or the wrong one."""

    exit_code = 6


class BundleError(DPReleaseError):
    """A bundle is damaged or was changed, or contradicts the ledger."""

    exit_code = 6


class ServerError(DPReleaseError):
    """The Prefect server does not answer; earlier charges and draws remain.

    ``before_the_run``: no step of this run has begun.
    """

    exit_code = 7
    before_the_run = False


class PrivacyLineError(DPReleaseError):
    """A statistic may not be drawn: its form, its mechanism or its price is not as declared."""
