"""What a request without the agency's key may say: of a run that is asked for, and of a run's state.

Prefect's documents can say much more.  The ``data`` of a state names a file of the worker and how to
read it, which can run a program.  Details of a state say where the answer to a form is kept, and a
policy of a run that it does not wait for an answer.  So a document may hold the fields that Prefect's
pages fill in for people, and others only if they are empty.
"""

from collections.abc import Callable, Mapping
from typing import Any

Document = Any
"""What JSON holds."""

_STATES = ("SCHEDULED", "CANCELLING", "CANCELLED")
"""Start it, again or later, or end it.  What else happens to a run is for its worker to say."""

_RUN = {"name", "tags", "idempotency_key", "parameters", "enforce_parameter_schema", "state"}
_STATE = {"type", "name", "message", "state_details"}


def may_ask(document: Document) -> bool:
    """Whether it only asks for a run of a deployment, with these parameters, now or at some time."""
    if not _has_only(document, _RUN | {"work_queue_name"}):
        return False
    state = document.get("state")
    return (
        document.get("work_queue_name") in (None, "", "default")
        and (not state or (_is_state(state) and state["type"] == "SCHEDULED"))
        and not _is_rendered(document.get("parameters"))
    )


def may_set(document: Document) -> bool:
    """Whether it only starts a run, again or later, or ends it."""
    return _has_only(document, {"state", "force"}) and _is_state(document.get("state"))


def may_answer(document: Document) -> bool:
    """Whether it only fills in the form of a run that waits."""
    return _has_only(document, {"run_input"})


RULES: Mapping[str, Callable[[Document], bool]] = {
    "create_flow_run": may_ask,
    "set_state": may_set,
    "resume": may_answer,
}
"""By the last part of a path."""


def _has_only(document: Document, fields: set[str]) -> bool:
    return isinstance(document, dict) and all(
        name in fields or _is_empty(value) for name, value in document.items()
    )


def _is_empty(value: Document) -> bool:
    return not value or (isinstance(value, dict) and all(map(_is_empty, value.values())))


def _is_state(state: Document) -> bool:
    return (
        _has_only(state, _STATE)
        and state.get("type") in _STATES
        and _has_only(state.get("state_details") or {}, {"scheduled_time"})
    )


def _is_rendered(value: Document) -> bool:
    """Whether the server would make the value from a template, or from a variable of its own."""
    if isinstance(value, dict):
        kind = value.get("__prefect_kind")
        return kind not in (None, "none", "json") or any(map(_is_rendered, value.values()))
    return isinstance(value, list) and any(map(_is_rendered, value))
