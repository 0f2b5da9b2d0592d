"""What was said before, remembered by the Prefect server for all workers."""

import hashlib

from httpx import HTTPError
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import VariableCreate
from prefect.exceptions import ObjectAlreadyExists

from tasks.workplace.notify import notify


def notify_once(dataset: str, release_id: str, trouble: str, event: str) -> None:
    """Notify unless this ``event`` of the dataset was notified before, from whichever machine."""
    if first_time(dataset, event):
        notify(dataset, release_id, trouble)


def first_time(dataset: str, event: str) -> bool:
    """Whether nobody asked this before, from whichever machine.

    If the server does not answer, it is better to say a thing twice than never.
    """
    digest = hashlib.sha256(f"{dataset}\n{event}".encode()).hexdigest()[:32]
    said = VariableCreate(name=f"dprelease_said_{digest}", value=f"{dataset}: {event}")
    try:
        with get_client(sync_client=True) as client:
            client.create_variable(said)
    except ObjectAlreadyExists:
        return False
    except HTTPError:
        pass
    return True
