"""The fields that a request without the agency's key may contain, for a new run or a run's state.

Prefect accepts dangerous fields too. The ``data`` of a state names a file of the worker and a way to
read it, which can run a program. A state's details can redirect the answer to a form, and a run's policy
can skip the wait for an answer. So only the fields that Prefect's pages fill in are allowed; any other
field must be empty.
"""

from collections.abc import Callable, Mapping
from typing import Any

Document = Any
"""A value read from JSON."""

_STATES = ("SCHEDULED", "CANCELLING", "CANCELLED")
"""Start a run, now, again or later, or end it. Only the worker sets other states."""

_RUN = {"name", "tags", "idempotency_key", "parameters", "enforce_parameter_schema", "state"}
_STATE = {"type", "name", "message", "state_details"}


def may_ask(document: Document) -> bool:
    """Whether the document only requests a run of a deployment, with parameters, now or later."""
    if not _has_only(document, _RUN | {"work_queue_name"}):
        return False
    state = document.get("state")
    return (
        document.get("work_queue_name") in (None, "", "default")
        and (not state or (_is_state(state) and state["type"] == "SCHEDULED"))
        and not _is_rendered(document.get("parameters"))
    )


def may_set(document: Document) -> bool:
    """Whether the document only starts a run, again or later, or ends it."""
    return _has_only(document, {"state", "force"}) and _is_state(document.get("state"))


def may_answer(document: Document) -> bool:
    """Whether the document only fills in the form of a waiting run."""
    return _has_only(document, {"run_input"})


RULES: Mapping[str, Callable[[Document], bool]] = {
    "create_flow_run": may_ask,
    "set_state": may_set,
    "resume": may_answer,
}
"""The rule for each last part of a path."""


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
    """Whether the server would compute the value from a template or from a variable."""
    if isinstance(value, dict):
        kind = value.get("__prefect_kind")
        return kind not in (None, "none", "json") or any(map(_is_rendered, value.values()))
    return isinstance(value, list) and any(map(_is_rendered, value))
