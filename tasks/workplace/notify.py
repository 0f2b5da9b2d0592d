"""Notifies the operator of trouble, in the log and through a webhook if one is configured.

    DPRELEASE_WEBHOOK    an address that takes JSON by POST; it may hold a secret, so it is not shown

Everything in a notice is public: the dataset, the release id and the kind of trouble.
"""

import json
import logging
import os
import threading
import urllib.request
from http.client import HTTPException

from tasks.workplace.events import record_event

LOGGER = logging.getLogger("dprelease.notify")

SECONDS = 10


def notify(dataset: str, release_id: str, trouble: str) -> None:
    """Log the trouble and post it to the webhook; a webhook that fails is only logged."""
    line = f"{dataset} {release_id}: {trouble}"
    LOGGER.warning(line)
    record_event("notice", dataset=dataset, release_id=release_id, trouble=trouble)
    address = os.environ.get("DPRELEASE_WEBHOOK")
    if not address:
        return
    # In a thread that may be left behind: the timeout limits each single wait, so a receiver that
    # answers byte by byte could block the run for ever.
    sending = threading.Thread(
        target=_post, args=(address, line, dataset, release_id, trouble), daemon=True
    )
    sending.start()
    sending.join(1.1 * SECONDS)
    if sending.is_alive():
        LOGGER.error(f"{line}; posting to DPRELEASE_WEBHOOK took longer than {SECONDS} s")


def _post(address: str, line: str, dataset: str, release_id: str, trouble: str) -> None:
    body = {"text": line, "dataset": dataset, "release_id": release_id, "trouble": trouble}
    try:
        request = urllib.request.Request(
            address, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass
    except (OSError, ValueError, HTTPException) as error:
        LOGGER.error(f"{line}; posting to DPRELEASE_WEBHOOK failed ({type(error).__name__})")
