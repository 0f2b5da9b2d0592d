"""The section ``microdata-margins``: what it builds, and what it refuses."""

from fractions import Fraction

import pytest

from dpcore.domain.axes import Bins
from dpcore.errors import PlanError
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.microdata import Microdata
from schemas.plan import Plan, load_plan
from tests.shortest import document as shortest


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


def built(document) -> Microdata:
    release = load_plan(document).built["everyone"]
    assert isinstance(release, Microdata)
    return release


def test_by_default_all_pairs_with_gaussian_noise_within_the_share(document):
    release = built(document)
    assert len(release.sets) == 6
    assert release.share.alpha == 1
    assert release.share.beta == Fraction("1e-6")
    assert release.noise == "discrete-gaussian"
    assert isinstance(release.domain.axes[2], Bins)


def test_laplace_noise_spends_no_beta(document):
    document["releases"][0]["mechanism"] = "discrete-laplace"
    document["budget"]["requested"]["beta"] = "0"
    release = built(document)
    assert release.share.beta == 0
    assert release.mechanism.event.l1_sensitivity == 12


def test_pairs_may_be_named_in_any_order(document):
    document["releases"][0]["pairs"] = [["income", "age"], ["sex", "age"], ["age", "region"]]
    assert built(document).sets == ((2, 3), (0, 2), (1, 2))


def test_more_sets_of_columns_are_measured_beside_the_pairs(document):
    document["releases"][0]["also"] = [["income", "sex", "age"], ["income", "age", "sex", "region"]]
    release = built(document)
    assert release.sets[6:] == ((0, 2, 3), (0, 1, 2, 3))
    document["releases"][0]["pairs"] = [["income", "region"]]
    assert built(document).sets == ((1, 3), (0, 2, 3), (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("also", "says"),
    [
        (
            [["sex", "age", "children"]],
            "also[0]: 'children' is not among the columns of the release",
        ),
        ([["sex", "age", "sex"]], "also[0]: ['sex', 'age', 'sex'] must be different names"),
        ([["sex", "age", "region"], ["sex"]], "also[1]: ['sex'] must have two to 6 columns"),
        ([["sex", "age"]], "measured together already; leave the set out"),
    ],
)
def test_bad_sets_are_refused_at_their_place(document, also, says):
    document["releases"][0]["also"] = also
    with pytest.raises(PlanError) as caught:
        load_plan(document)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("given", "keep", "part"),
    [({"keep": 4}, 4, "1/4"), ({"keep": 3, "share": "1/10"}, 3, "1/10")],
)
def test_wide_columns_are_compressed_where_the_plan_says_so(document, given, keep, part):
    document["releases"][0]["compress"] = given
    release = load_plan(document).built["everyone"]
    assert isinstance(release, CompressedMicrodata)
    assert (release.keep, release.first_share) == (keep, Fraction(part))
    assert [release.domain.names[m.position] for m in release.merged] == ["region", "age", "income"]


@pytest.mark.parametrize(
    ("stated", "bytes_"), [("2 GiB", 2**31), ("1.5 GiB", 3 * 2**29), ("500 MiB", 500 * 2**20)]
)
def test_memory_is_stated_in_binary_units(document, stated, bytes_):
    document["releases"][0]["memory"] = stated
    assert built(document).memory == bytes_


def test_more_records_than_memory_holds_are_refused_before_anything_is_drawn(document):
    document["releases"][0]["memory"] = "100 MiB"
    document["synthesis"][0]["rows"] = 2 * 10**6
    with pytest.raises(
        PlanError, match=r"synthesis\[0\].memory: the tables .*, and 2000000 records, need"
    ):
        built(document)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ways": 3, "pairs": [["sex", "age"]]}, "ways: not available with `pairs`"),
        ({"ways": 3, "columns": ["sex", "age"], "bins": {}}, "must lie between 1 and 2"),
        ({"compress": {"keep": 50}}, "no column has more than keep = 50 cells"),
        ({"compress": {"keep": 4, "share": "1"}}, "compress: share must lie between 1/1000"),
    ],
)
def test_choices_that_contradict_each_other_are_refused(document, given, says):
    document["releases"][0] |= given
    with pytest.raises(PlanError, match=says):
        built(document)


@pytest.mark.parametrize(("stated", "groups"), [({}, (9, 36)), ({"keep": 10}, (10, 10))])
def test_by_default_categories_have_four_times_as_many_groups_as_numbers(stated, groups):
    columns = {
        "trade": {"type": "categorical", "categories": [f"trade {i}" for i in range(50)]},
        "age": {"type": "integer", "bounds": [0, 99]},
    }
    section = {"name": "r", "kind": "microdata-margins", "columns": ["trade", "age"]}
    section |= {"bins": {"age": "fine"}, "compress": stated}
    release = Plan.model_validate(shortest(columns, [section], rows=500, beta="1e-6")).built["r"]
    assert isinstance(release, CompressedMicrodata)
    assert {m.position: m.keep for m in release.merged} == {0: groups[1], 1: groups[0]}
