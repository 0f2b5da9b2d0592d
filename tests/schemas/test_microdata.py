"""The section ``microdata-margins``: what it builds, and what it refuses."""

from fractions import Fraction

import pytest

from dpcore.domain import Bins
from dpcore.errors import PlanError
from dpcore.releases.microdata import Microdata
from schemas.plan import load_plan
from tests.conftest import write_plan


@pytest.fixture
def document(plan_document) -> dict:
    """The common plan with one release of the kind, and records from it."""
    plan_document["releases"] = [
        {
            "name": "everyone",
            "kind": "microdata-margins",
            "columns": ["sex", "region", "age", "income"],
            "bins": {"income": 5, "age": 6},
        },
        {"name": "people", "kind": "histogram", "columns": ["sex"], "weight": 3},
    ]
    plan_document["synthesis"] = [{"name": "records", "from": "everyone", "rows": 400}]
    return plan_document


def built(folder, document) -> Microdata:
    release = load_plan(write_plan(folder, document)).built["everyone"]
    assert isinstance(release, Microdata)
    return release


def test_by_default_all_pairs_with_gaussian_noise_within_the_share(tmp_path, document):
    release = built(tmp_path, document)
    assert len(release.sets) == 6
    assert release.share.alpha == 1
    assert release.share.beta == Fraction("1e-6")
    assert release.noise == "discrete-gaussian"
    assert isinstance(release.domain.axes[2], Bins)


def test_laplace_noise_spends_no_beta(tmp_path, document):
    document["releases"][0]["mechanism"] = "discrete-laplace"
    document["budget"]["requested"]["beta"] = "0"
    release = built(tmp_path, document)
    assert release.share.beta == 0
    assert release.mechanism.event.l1_sensitivity == 12


def test_pairs_may_be_named_in_any_order(tmp_path, document):
    document["releases"][0]["pairs"] = [["income", "age"], ["sex", "age"], ["age", "region"]]
    assert built(tmp_path, document).sets == ((2, 3), (0, 2), (1, 2))


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ([["sex", "children"]], "pairs[0]: ['sex', 'children'] must be two names from columns"),
        ([["sex", "sex"]], "pairs[0]"),
        ([["sex", "age"], ["age", "sex"]], "pairs: one at least, and none twice"),
        ([], "pairs: one at least"),
        ([["sex", "age"]], "columns of no set"),
    ],
)
def test_bad_pairs_are_refused_at_their_place(tmp_path, document, pairs, says):
    document["releases"][0]["pairs"] = pairs
    with pytest.raises(PlanError) as caught:
        load_plan(write_plan(tmp_path, document))
    assert says in str(caught.value)


def test_a_continuous_column_needs_bins(tmp_path, document):
    del document["releases"][0]["bins"]["income"]
    with pytest.raises(PlanError, match=r"bins\.income: missing"):
        load_plan(write_plan(tmp_path, document))


def test_its_records_follow_no_tree(tmp_path, document):
    document["synthesis"][0]["tree"] = "auto"
    with pytest.raises(PlanError, match="only records from margins follow a tree"):
        load_plan(write_plan(tmp_path, document))
