"""The automations are ones that Prefect takes."""

import uuid

import yaml
from prefect.events.schemas.automations import AutomationCore

from flows.operation.lost import TAG
from tests.conftest import ROOT

FILE = ROOT / "deployments" / "automations.yaml"


def test_prefect_takes_the_automations_once_they_name_a_block():
    document = yaml.safe_load(FILE.read_text().replace("BLOCK", str(uuid.uuid4())))
    made = [AutomationCore.model_validate(each) for each in document["automations"]]
    assert {event for each in made for event in each.trigger.expect} == {
        "prefect.flow-run.Failed",
        "prefect.flow-run.Crashed",
        "prefect.flow-run.Suspended",
    }
    for each in document["automations"]:
        assert each["trigger"]["match_related"]["prefect.resource.id"] == f"prefect.tag.{TAG}"
