"""Metrics of a ledger, its schedules and recorded events, as OpenMetrics text.

    dprelease_budget{dataset, coordinate, part}       granted, spent and left: alpha, beta, gamma, rho
    dprelease_releases_total{dataset, state}          releases in the ledger: drawn, reserved or void
    dprelease_last_draw_timestamp_seconds{dataset}    when the last release was drawn
    dprelease_late_releases{dataset}                  due times that have passed without a release;
                                                      at most 1,000 of a plan are counted
    dprelease_runs_total{dataset, outcome}            by exit code, waits or interrupted
    dprelease_steps_seconds{step}                     a summary: seconds, and how often
    dprelease_notices_total{dataset, trouble}         notices to the operator
    dprelease_events_unread                           lines that are not a complete event

The last four are computed from events (``tasks.workplace.events``); all of it is public.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError

from dpcore.accounting.budget import Budget
from dpcore.errors import InputError
from schemas.plan import Plan
from tasks.budget.schedule import MOST_LATE, late_releases
from tasks.ledger import Ledger, State


def metrics_text(
    ledger: Ledger, plans: Mapping[Path, Plan], events: Path | None, now: datetime
) -> str:
    """The metrics as text.  Raises ``InputError`` if the file of events cannot be read."""

    class Everything(Collector):  # the library writes only metrics from a registry
        def collect(self) -> Iterable[Metric]:
            yield from _of_ledger(ledger, plans, now)
            yield from _of_events(events)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Everything())
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def _of_ledger(ledger: Ledger, plans: Mapping[Path, Plan], now: datetime) -> Iterator[Metric]:
    amounts = GaugeMetricFamily(
        "dprelease_budget",
        "What a dataset was granted, has spent and has left",
        labels=("dataset", "coordinate", "part"),
    )
    releases = CounterMetricFamily(
        "dprelease_releases", "Releases in the ledger", labels=("dataset", "state")
    )
    drawn_at = GaugeMetricFamily(
        "dprelease_last_draw_timestamp",
        "When the last release was drawn",
        labels=("dataset",),
        unit="seconds",
    )
    late = GaugeMetricFamily(
        "dprelease_late_releases",
        f"Due times that passed without a release; at most {MOST_LATE:,} of a plan are counted",
        labels=("dataset",),
    )
    for dataset in ledger.datasets():
        granted = ledger.granted(dataset) or Budget()
        parts = {
            "granted": granted,
            "spent": ledger.spent(dataset),
            "left": ledger.remaining(dataset),
        }
        for part, budget in parts.items():
            for coordinate in granted.coordinates:
                amount = float(getattr(budget, coordinate))
                amounts.add_metric((dataset, coordinate, part), amount)
        made = ledger.releases(dataset)
        states = Counter(_state(charge.state for charge in each.values()) for each in made.values())
        for state, number in sorted(states.items()):
            releases.add_metric((dataset, state), number)
        times = [c.committed_at for each in made.values() for c in each.values() if c.committed_at]
        if times:
            drawn_at.add_metric((dataset,), datetime.fromisoformat(max(times)).timestamp())
    for dataset, number in sorted(_late(ledger, plans, now).items()):
        late.add_metric((dataset,), number)
    yield from (amounts, releases, drawn_at, late)


def _state(states: Iterable[State]) -> str:
    """A release is drawn if all of its charges are, and void if all are given up."""
    found = set(states) - {State.VOID}
    return "void" if not found else "drawn" if found == {State.COMMITTED} else "reserved"


def _late(ledger: Ledger, plans: Mapping[Path, Plan], now: datetime) -> Counter[str]:
    found: Counter[str] = Counter()
    for path, plan in plans.items():
        if plan.operation.schedule:
            found[plan.dataset] += len(late_releases(plan, path, ledger, now))
    return found


class _Run(BaseModel):
    event: Literal["run"]
    dataset: str
    outcome: str


class _Notice(BaseModel):
    event: Literal["notice"]
    dataset: str
    trouble: str


class _StepMetric(BaseModel):
    event: Literal["step"]
    step: str
    seconds: FiniteFloat


_EVENT = TypeAdapter[_Run | _Notice | _StepMetric](
    Annotated[_Run | _Notice | _StepMetric, Field(discriminator="event")]
)


def _of_events(path: Path | None) -> Iterator[Metric]:
    runs, notices = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    seconds, unread = defaultdict[str, list[float]](list), 0
    for line in _lines(path):
        try:
            event = _EVENT.validate_json(line)
        except ValidationError:
            unread += 1
            continue
        match event:
            case _Run():
                runs[event.dataset, event.outcome] += 1
            case _Notice():
                # The kind of trouble only: with its details, nearly every notice would be a series.
                notices[event.dataset, re.split("[:,;]", event.trouble)[0]] += 1
            case _StepMetric():
                seconds[event.step].append(event.seconds)
    ended = CounterMetricFamily(
        "dprelease_runs",
        "Runs that ended, by exit code; also waiting and interrupted runs",
        labels=("dataset", "outcome"),
    )
    for labels, number in sorted(runs.items()):
        ended.add_metric(labels, number)
    said = CounterMetricFamily(
        "dprelease_notices", "Notices to the operator", labels=("dataset", "trouble")
    )
    for labels, number in sorted(notices.items()):
        said.add_metric(labels, number)
    steps = SummaryMetricFamily(
        "dprelease_steps", "Seconds that steps took", labels=("step",), unit="seconds"
    )
    for step, times in sorted(seconds.items()):
        steps.add_metric((step,), count_value=len(times), sum_value=sum(times))
    left_out = GaugeMetricFamily(
        "dprelease_events_unread", "Incomplete lines in the file of events"
    )
    if path is not None:
        left_out.add_metric((), unread)
    yield from (ended, said, steps, left_out)


def _lines(path: Path | None) -> Iterator[bytes]:
    if path is None:
        return
    try:
        with path.open("rb") as file:
            yield from file
    except OSError:
        raise InputError(f"{path}: the events cannot be read") from None
