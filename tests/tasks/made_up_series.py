"""A series of four weeks, of which the first runs are published in no time."""

from pathlib import Path

from schemas.plan import Plan
from tests.shortest import document
from tests.tasks.made_up import publish_made_up

WEEKS = [f"w{week}" for week in range(1, 5)]


def plan_of(run: int, **changes: object) -> Plan:
    releases = [
        {"name": "events", "kind": "histogram", "columns": ["kind"]},
        {"name": "tables", "kind": "margins", "columns": ["kind", "sex"], "ways": [1, 2]},
    ]
    columns = {
        "week": {"type": "categorical", "categories": WEEKS},
        "kind": {"type": "categorical", "categories": ["a", "b"]},
        "sex": {"type": "categorical", "categories": ["F", "M"]},
    }
    more = {
        "dataset": "events",
        "rows": 400 + run,
        "neighbours": "add-remove",
        "series": {
            "period": "week",
            "periods": 4,
            "in_periods": 1,
            "year": 2,
            "run": run,
            "measures": "to-date",
        },
        "budget": {"granted": {"alpha": "100"}, "requested": {"alpha": "2"}},
        "publication": {"title": f"Events, week {run}"},
    }
    return Plan.model_validate(document(columns, releases, **more | changes))


def published(out: Path, *runs: int) -> list[Path]:
    return [publish_made_up(plan_of(run), f"week-{run}", out) for run in runs]
