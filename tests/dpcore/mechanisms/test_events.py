"""Events keep their meaning: every one that a mechanism records can be read back."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.line.mechanism import Event, affordable
from dpcore.mechanisms.exponential import ExponentialMechanism
from dpcore.mechanisms.within_share import WithinShare
from schemas.releases.events import read_event
from tests.dpcore.releases.contract import LAWS

EVENTS = {name: case.release.mechanism.event for name, case in LAWS.items()}
EVENTS["not known yet"] = WithinShare(Fraction(1), Fraction(1, 10**6), Fraction(0))


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_read_back_as_it_was_written(name: str):
    event = EVENTS[name]
    assert read_event(json.loads(json.dumps(event.to_dict()))) == event


def test_every_kind_of_event_is_recorded_by_some_mechanism():
    assert {type(event) for event in EVENTS.values()} == set(Event.kinds.values())


def test_the_form_of_stored_events_does_not_change():
    assert EVENTS["histogram"].to_dict() == {
        "event": "discrete-laplace",
        "neighbours": "replace-one",
        "l1_sensitivity": "2",
        "scale": "2",
    }
    assert EVENTS["smoothed histogram"].to_dict().keys() == {
        "event",
        "neighbours",
        "urn",
        "draws",
        "prior",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": "telepathy"}, "unknown kind: 'telepathy'"),
        ({"event": None}, "unknown kind"),
        ({"neighbours": "swap"}, "'discrete-laplace' in a form"),
        ({"most": "0"}, "in a form"),
        ({"most": "1"}, "in a form"),
        ({"weighted": "no"}, "in a form"),
        ({"scale": "1/0"}, "in a form"),
        ({"scale": "two"}, "in a form"),
        ({"scale": "4/2"}, "in a form"),
        ({"scale": 2}, "in a form"),
        ({"comment": "x"}, "in a form"),
    ],
)
def test_a_document_that_no_event_writes_is_refused(change: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        read_event({**EVENTS["histogram"].to_dict(), **change})


def test_an_event_that_lacks_a_number_is_refused():
    document = EVENTS["histogram"].to_dict()
    del document["scale"]
    with pytest.raises(ValueError, match="in a form"):
        read_event(document)


def renyi(near: Floats, far: Floats, order: float) -> float:
    """The Renyi divergence of two laws on the same finite set."""
    return float(logsumexp(order * near - (order - 1) * far)) / (order - 1)


@pytest.mark.parametrize("scale", ["1/3", "1", "4"])
def test_a_choice_has_the_concentrated_price_that_it_states(scale: str):
    """Over all neighbouring scores: each moves by the sensitivity, one way or the other."""
    mechanism = ExponentialMechanism(5, 5, Fraction(1), Fraction(scale), 1)
    price = mechanism.event.concentrated
    assert price[1] == 0
    worst = 0.0
    for scores in ([0, 0, 0, 0, 0], [0, 3, 1, 4, 9], [0, 0, 50, 50, 50]):
        near = log_softmax(-np.array(scores) / float(mechanism.scale))
        for moves in product((-1, 1), repeat=5):
            far = log_softmax(-(np.array(scores) + moves) / float(mechanism.scale))
            for order in (1.01, 1.5, 2, 4, 16, 128):
                worst = max(worst, renyi(near, far, order) / order)
    assert 0.4 * float(price[0]) < worst <= float(price[0])  # a half of it for far larger scales


@pytest.mark.parametrize("name", EVENTS)
def test_a_pure_event_has_a_concentrated_price_of_half_its_square_at_most(name: str):
    event = EVENTS[name]
    if event.pure_alpha is not None:
        assert 0 < event.concentrated[0] <= event.pure_alpha**2 / 2
        assert event.concentrated[1] == 0


@pytest.mark.parametrize("name", EVENTS)
def test_parameters_that_no_mechanism_has_are_worth_nothing(name: str):
    """A share of rho is as strict as one of alpha: a price is not taken from nonsense."""
    event = EVENTS[name]
    share = Budget(beta=Fraction(99, 100), gamma=Fraction(99, 100), rho=Fraction(10**9))
    assert affordable(event, share)
    for field in ("scale", "again_scale", "variance", "test_scale", "prior"):
        if hasattr(event, field):
            for value in (Fraction(0), Fraction(-1)):
                assert not affordable(replace(event, **{field: value}), share)


@pytest.mark.parametrize("name", EVENTS)
def test_a_share_of_rho_covers_the_chance_to_fail_and_gamma(name: str):
    event = EVENTS[name]
    rho, beta = event.concentrated
    share = Budget(beta=beta, gamma=event.spent_gamma, rho=rho)
    assert affordable(event, share)
    for coordinate in ("rho", "beta", "gamma"):
        amount = getattr(share, coordinate)
        if amount:
            less = replace(share, **{coordinate: amount * Fraction(99, 100)})
            assert not affordable(event, less)
