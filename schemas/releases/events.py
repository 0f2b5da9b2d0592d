"""Privacy events of all installed kinds: ``read_event`` reads an event that a ledger recorded."""

import schemas.releases  # noqa: F401 - loads the kinds of other packages, with their events
from dpcore.line.mechanism import event_from_dict as read_event

__all__ = ["read_event"]
