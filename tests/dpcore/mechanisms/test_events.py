"""Events keep their meaning: every one that a mechanism records can be read back."""

import json
from dataclasses import replace

import pytest

from dpcore.adjacency import Adjacency
from dpcore.mechanism import Event
from dpcore.mechanisms import read_event
from tests.dpcore.releases.contract import CASES

EVENTS = {name: case.release.mechanism.event for name, case in CASES.items()}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_read_back_as_it_was_written(name: str):
    event = EVENTS[name]
    assert read_event(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize(
    ("adjacency", "written"),
    [
        (Adjacency("add-remove"), {"neighbours": "add-remove"}),
        (Adjacency("replace-one", 3), {"neighbours": "replace-one", "most": "3"}),
        (Adjacency(weighted=True), {"neighbours": "replace-one", "weighted": "yes"}),
    ],
)
def test_an_event_names_the_neighbours_that_its_sensitivity_is_for(
    adjacency: Adjacency, written: dict[str, str]
):
    release = replace(CASES["histogram"].release, adjacency=adjacency)
    document = release.event.to_dict()
    assert document.items() >= written.items()
    assert len(document) == 3 + len(written)
    assert read_event(document) == release.event


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
