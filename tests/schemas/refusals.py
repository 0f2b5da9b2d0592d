"""What a plan that is refused says."""

from collections.abc import Mapping
from typing import Any

import pytest

from dpcore.errors import PlanError
from schemas.plan import load_plan


def refused(document: Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> str:
    """The refusal of a plan with other values at dotted places."""
    with pytest.raises(PlanError) as caught:
        load_plan(document, changes)
    return str(caught.value)
