"""Every kind of release has a page, and the example on it is a plan that fits the made-up survey."""

import pytest

from docs.kinds import examples, people, plan
from docs.reference.mechanisms import offers


def test_every_kind_has_a_page():
    kinds = {section.model_fields["kind"].annotation.__args__[0] for section, _ in offers()}
    assert set(examples()) == kinds
    assert all(example["kind"] == kind for kind, example in examples().items())


@pytest.mark.slow
def test_the_examples_fit_the_made_up_survey():
    built = plan().built
    assert len(built) == len(examples())
    assert set(people().columns) == set(plan().columns)


@pytest.mark.slow
def test_one_plan_with_every_kind_is_drawn_published_and_shown(site):
    for kind in examples():
        page = (site / "kinds" / f"{kind}.html").read_text()
        shown = page.partition('<div class="figures">')[2]
        assert "<svg" in shown or "<table" in shown, kind
