"""``dprelease schema``: print the JSON Schema of a plan."""

import json


def schema() -> None:
    """Print the JSON Schema of a plan."""
    from schemas.plan import Plan

    print(json.dumps(Plan.model_json_schema(by_alias=True), indent=2))
