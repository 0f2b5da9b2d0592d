"""A plan with transformed columns, from the survey to the bundle, its reader and its page."""

from fractions import Fraction

import numpy as np
import pytest

from tests.conftest import plan_of_every_kind
from tests.tasks.made_up import opened_once
from tests.tasks.report.pages import page_of

SECTIONS = {
    "whole": {"kind": "density", "bandwidth": 0.05, "mechanism": "best"},
    "tuned": {
        "kind": "density",
        "bandwidth": {"private": "quantiles", "smallest": 0.05},
        "mechanism": "binned-laplace",
    },
    "path": {"kind": "function", "bandwidth": 0.05},
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    releases = [
        {"name": name, "columns": ["income"], "transform": "sqrt"} | section
        for name, section in SECTIONS.items()
    ]
    synthesis = [{"name": "incomes", "from": "whole", "rows": 400}]
    document = plan_of_every_kind() | {"releases": releases, "synthesis": synthesis}
    return opened_once(tmp_path_factory.mktemp("transforms"), document)


@pytest.mark.slow
def test_what_is_published_is_on_the_scale_of_the_column(bundle):
    for name in SECTIONS:
        table = bundle.table(name)
        found = bundle.evaluate(name, {"income": table["income"]})
        np.testing.assert_allclose(
            found["estimate"], table["estimate"], rtol=1e-4, atol=1e-3 * table["estimate"].max()
        )
        facts = next(r.facts for r in bundle.manifest.releases if r.name == name)
        assert facts["transforms"] == {"income": "sqrt"}
        assert facts["bounds"] == {"income": [0.0, 9000.0]}
        assert np.all(np.diff(table["income"], 2) > 0)
    whole = bundle.table("whole")
    steps = np.diff(np.linspace(0, np.sqrt(9000), len(whole["income"]) + 1) ** 2)
    assert (whole["density"] * steps).sum() == pytest.approx(1, abs=0.01)
    incomes = np.asarray(bundle.sample("incomes", 400)["income"], dtype=float)
    assert 0 <= incomes.min() < incomes.max() <= 9000
    mean = (whole["density"] * steps * whole["income"]).sum()
    assert incomes.mean() == pytest.approx(mean, rel=0.1)


def test_the_page_says_on_which_scale_a_density_was_estimated(bundle):
    captions = [" ".join(c.words.split()) for c in page_of(bundle.path).all("figcaption")]
    said = [c for c in captions if "Estimated on the scale of sqrt(income)" in c]
    assert len(said) == len(SECTIONS)


def test_the_page_says_which_bandwidth_was_drawn_and_what_it_cost(bundle):
    (said,) = [
        p.words for p in page_of(bundle.path).all("p") if "was drawn from the records" in p.words
    ]
    facts = next(r.facts for r in bundle.manifest.releases if r.name == "tuned")
    assert f"(`quantiles`): {facts['bandwidths']['income']:.3g} of income" in said
    assert f"alpha = {float(Fraction(facts['bandwidth_choice']['spent']['alpha'])):.3g}." in said
