"""What an event without beta costs by itself: the alpha of its noise, which its share may exceed."""

from __future__ import annotations

from fractions import Fraction

from dpcore.accounting.adaptive import adaptive_alpha
from dpcore.accounting.sampled import sampled_loss
from dpcore.events import (
    AdaptiveMarginsEvent,
    BodyEvent,
    Event,
    ExponentialEvent,
    KNormEvent,
    LaplaceEvent,
    NearMeansEvent,
    NearRecordsEvent,
    RandomLaplaceEvent,
    SampledEvent,
    StagedEvent,
    TableEvent,
)


def pure_alpha(event: Event) -> Fraction | None:
    """The alpha of an event whose beta is 0, exact or rounded up; None for any other event."""
    if isinstance(event, LaplaceEvent | RandomLaplaceEvent):
        return event.l1_sensitivity / event.scale
    if isinstance(event, ExponentialEvent):
        return 2 * event.sensitivity * event.selections / event.scale
    if isinstance(event, KNormEvent | BodyEvent):
        return event.sensitivity / event.scale
    if isinstance(event, NearRecordsEvent):
        return 2 / event.scale
    if isinstance(event, NearMeansEvent):
        return 4 * event.l2_sensitivity_squared / (event.rows * event.scale)
    if isinstance(event, SampledEvent):
        return Fraction(sampled_loss(event))
    if isinstance(event, TableEvent) and event.beta == 0:
        return event.alpha
    if isinstance(event, AdaptiveMarginsEvent):
        return adaptive_alpha(event)
    if isinstance(event, StagedEvent) and event.choice_beta == event.beta == 0:
        return event.choice_alpha + event.alpha
    return None
