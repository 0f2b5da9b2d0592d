"""The question of the privacy line: does a share of the budget cover an event?"""

from __future__ import annotations

from dpcore.accounting.adaptive import covers_adaptive
from dpcore.accounting.exponential import covers_exponential
from dpcore.accounting.gaussian import covers_gaussian
from dpcore.accounting.laplace import covers_laplace
from dpcore.accounting.random import covers_random
from dpcore.accounting.sampled import covers_sampled
from dpcore.accounting.stability import covers_stability, covers_tests
from dpcore.budget import Budget
from dpcore.events import (
    AdaptiveMarginsEvent,
    BodyEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    KNormEvent,
    LaplaceEvent,
    NearMeansEvent,
    NearRecordsEvent,
    ProposeTestReleaseEvent,
    RandomLaplaceEvent,
    SampledEvent,
    SmoothLaplaceEvent,
    StabilityEvent,
    StagedEvent,
    TableEvent,
)


def affordable(event: Event, share: Budget) -> bool:
    """Whether the event costs at most ``share``; an event without a price is never affordable."""
    if isinstance(event, LaplaceEvent):
        return covers_laplace(event, share)
    if isinstance(event, GaussianEvent):
        return covers_gaussian(event, share)
    if isinstance(event, ExponentialEvent):
        return covers_exponential(event, share)
    if isinstance(event, TableEvent):
        return 0 <= event.alpha <= share.alpha and 0 <= event.beta <= share.beta
    if isinstance(event, SampledEvent):
        return covers_sampled(event, share)
    if isinstance(event, RandomLaplaceEvent | SmoothLaplaceEvent):
        return covers_random(event, share)
    if isinstance(event, StabilityEvent):
        return covers_stability(event, share)
    if isinstance(event, KNormEvent | BodyEvent):
        return event.scale > 0 and 0 < event.sensitivity <= share.alpha * event.scale
    if isinstance(event, NearRecordsEvent):
        return event.scale > 0 and share.alpha * event.scale >= 2
    if isinstance(event, AdaptiveMarginsEvent):
        return covers_adaptive(event, share)
    if isinstance(event, NearMeansEvent):
        bought = share.alpha * event.rows * event.scale
        return event.scale > 0 and 0 < 4 * event.l2_sensitivity_squared <= bought
    if isinstance(event, ProposeTestReleaseEvent):
        return covers_tests(event, share)
    if isinstance(event, StagedEvent):
        parts = event.choice_alpha, event.choice_beta, event.alpha, event.beta
        spent = event.choice_alpha + event.alpha, event.choice_beta + event.beta
        return min(parts) >= 0 and spent[0] <= share.alpha and spent[1] <= share.beta
    return False
