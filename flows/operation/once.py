"""Remembers on the Prefect server, for all workers, which notices were sent before."""

import hashlib

from httpx import HTTPError
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import VariableCreate
from prefect.exceptions import ObjectAlreadyExists

from tasks.workplace.notify import notify


def notify_once(dataset: str, release_id: str, trouble: str, event: str) -> None:
    """Notify unless any machine notified this ``event`` of the dataset before."""
    if first_time(dataset, event):
        notify(dataset, release_id, trouble)


def first_time(dataset: str, event: str) -> bool:
    """Whether this function is called for this event for the first time, on any machine.

    True if the server does not answer, because it is better to notify twice than never.
    """
    digest = hashlib.sha256(f"{dataset}\n{event}".encode()).hexdigest()[:32]
    said = VariableCreate(name=f"dprelease_said_{digest}", value=f"{dataset}: {event}")
    # Created without a check first: names on the server are unique, so only one machine succeeds.
    try:
        with get_client(sync_client=True) as client:
            client.create_variable(said)
    except ObjectAlreadyExists:
        return False
    except HTTPError:
        pass
    return True
