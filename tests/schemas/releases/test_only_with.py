"""A key that only some mechanisms use is refused with any other, and described with these."""

import re
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from docs.reference.mechanisms import options
from schemas.releases import AnyRelease

SECTIONS = {options(each, "kind")[0]: each for each in get_args(get_args(AnyRelease)[0])}

REQUIRED: dict[str, dict[str, Any]] = {
    "classifier": {"features": ["age"], "label": {"column": "sex", "positive": ["F"]}},
    "count": {"condition": {"column": "age", "at_least": 20}},
    "density": {"columns": ["age"], "bandwidth": 0.1},
    "histogram": {"columns": ["sex"]},
    "near-records": {"column": "age", "draws": 1},
}
GIVEN: dict[tuple[str, str], Any] = {
    ("classifier", "bandwidth"): 0.5,
    ("classifier", "regularisation"): 0.01,
    ("classifier", "loss"): "logistic",
    ("classifier", "frequencies"): 64,
    ("classifier", "weights"): "balanced",
    ("count", "prior"): 0.3,
    ("density", "terms"): 5,
    ("histogram", "occupied"): 9,
    ("near-records", "terms"): 3,
    ("near-records", "bins"): {"age": 6},
}


def stated(kind: str, mechanism: str) -> dict[str, Any]:
    given = {"name": "r", "kind": kind, "mechanism": mechanism} | REQUIRED[kind]
    if mechanism == "gaussian-process":
        given |= {"bandwidth": 0.5, "regularisation": 0.01}
    return given


@pytest.mark.parametrize(("kind", "key"), GIVEN)
def test_a_key_is_refused_with_a_mechanism_that_does_not_use_it(kind, key):
    section = SECTIONS[kind]
    used = section.only_with()[key]
    other = next(name for name in options(section, "mechanism") if name not in used)
    keys = stated(kind, other)
    published = section.model_validate(keys).model_dump()
    assert section.model_validate(published).model_dump() == published, "defaults may be stated"
    says = f"{key}: the mechanism {other} does not use it, only {' and '.join(used)}; leave it out"
    with pytest.raises(ValidationError, match=re.escape(says)):
        section.model_validate(keys | {key: GIVEN[kind, key]})


def test_descriptions_name_the_mechanisms_of_every_such_key():
    found = {(kind, key) for kind, section in SECTIONS.items() for key in section.only_with()}
    assert found == {*GIVEN}
    for kind, key in found:
        node = SECTIONS[kind].model_json_schema()["properties"][key]
        used = " or ".join(SECTIONS[kind].only_with()[key])
        assert node["description"].endswith(f". Only with {used}.")
