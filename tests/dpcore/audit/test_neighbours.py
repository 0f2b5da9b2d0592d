import numpy as np
import pytest

from dpcore.audit.neighbours import neighbouring_pairs, survey_pairs
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Bins, Categories, Grid
from dpcore.domain.domain import Domain

PLACE = Categories("place", ("a", "b", "c"), nullable=True)
YES = Categories("yes", (False, True))
LINE = Grid("x", 0.0, 1.0, 72)
DOMAINS = {
    "one category column": Domain((YES,)),
    "categories": Domain((PLACE, YES)),
    "line": Domain((LINE,)),
    "square": Domain((LINE, Grid("y", 0.0, 1.0, 5))),
    "labelled": Domain((LINE, YES)),
    "many columns": Domain(tuple(Categories(f"c{i}", tuple(range(9))) for i in range(18))),
}


@pytest.mark.parametrize("rows", [1, 1000])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_every_pair_differs_in_exactly_one_record(domain: Domain, rows: int):
    pairs = neighbouring_pairs(domain, rows)
    assert pairs
    for pair in pairs:
        differences: dict[int, int] = {}
        for tally, sign in ((pair.near, 1), (pair.far, -1)):
            assert tally.counts.sum() == rows
            assert np.all(tally.counts > 0)
            assert np.all(np.diff(tally.cells) > 0)
            assert 0 <= tally.cells[0] <= tally.cells[-1] < domain.size
            for cell, count in zip(tally.cells.tolist(), tally.counts.tolist(), strict=True):
                differences[cell] = differences.get(cell, 0) + sign * count
        assert sorted(d for d in differences.values() if d) == [-1, 1]


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
def test_every_pair_of_a_private_number_of_records_differs_in_one_whole_unit(
    domain: Domain, relation: str, most: int
):
    adjacency = Adjacency(relation, most, weighted=most == 1)
    seen = set()
    for pair in neighbouring_pairs(domain, 7, adjacency):
        near, far = (
            dict(zip(t.cells.tolist(), t.counts.tolist(), strict=True))
            for t in (pair.near, pair.far)
        )
        moved = [far.get(c, 0) - near.get(c, 0) for c in near.keys() | far.keys()]
        moved = sorted(m for m in moved if m)
        assert moved in ([most], [-most, most])
        seen.add(len(moved))
        assert sum(far.values()) == 7
    assert seen == ({1} if relation == "add-remove" else {1, 2})
    (first, *_), *_ = survey_pairs([domain, domain], 7, adjacency)
    change = first.far.counts.sum() - first.near.counts.sum()
    assert change == (most if relation == "add-remove" else 0)


def test_a_unit_is_added_to_no_records_where_it_has_them_all():
    pairs = neighbouring_pairs(DOMAINS["line"], 2, Adjacency("add-remove", 5))
    assert all(len(pair.near.cells) == 0 and pair.far.counts.tolist() == [2] for pair in pairs)


def moves(domain: Domain, rows: int = 9) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(from, to) codes of the moved record over all pairs."""
    found = set()
    for pair in neighbouring_pairs(domain, rows):
        moved = pair.near.dense() - pair.far.dense()
        ends = [domain.unpack(np.flatnonzero(moved == sign))[0] for sign in (1, -1)]
        found.add(tuple(tuple(end.tolist()) for end in ends))
    return found


def test_the_worst_cases_of_every_kind_of_release_are_among_them():
    assert ((0, 0), (2, 1)) in moves(DOMAINS["categories"])  # differs in every column
    assert ((0,), (71,)) in moves(DOMAINS["line"])  # opposite ends
    assert ((0, 0), (71, 4)) in moves(DOMAINS["square"])  # opposite corners
    for degree in (1, 2, 8):  # a zero of the Fejer kernel
        assert ((0,), (72 // (degree + 1),)) in moves(DOMAINS["line"])
    assert ((36, 0), (36, 1)) in moves(DOMAINS["labelled"])  # a label flips at one point


def test_all_records_lie_at_the_point_where_the_label_flips():
    flips = [
        pair
        for pair in neighbouring_pairs(DOMAINS["labelled"], 9)
        if pair.description == "yes end to end; others half like either"
    ]
    assert flips[0].near.cells.tolist() == [72, 73]
    assert flips[0].near.counts.tolist() == [5, 4]
    assert flips[0].far.counts.tolist() == [4, 5]


def test_a_table_without_records_is_refused():
    with pytest.raises(ValueError, match="no record to replace"):
        neighbouring_pairs(DOMAINS["line"], 0)


def test_the_only_table_of_one_cell_is_its_own_neighbour():
    (pair,) = neighbouring_pairs(Domain((Categories("a", (1,)),)), 5)
    assert pair.near.counts.tolist() == pair.far.counts.tolist() == [5]


def test_a_survey_is_seen_through_records_and_through_weights():
    domains = [Domain((PLACE,)), Domain((PLACE,))]
    seen = [Adjacency("add-remove", 2), Adjacency("add-remove", 20, weighted=True)]
    for records, steps in survey_pairs(domains, [9, 300], seen):
        assert records.far.counts.sum() - records.near.counts.sum() == 2
        assert steps.far.counts.sum() - steps.near.counts.sum() == 20
        added = [int(np.argmax(p.far.dense() - p.near.dense())) for p in (records, steps)]
        assert added[0] == added[1]


def test_survey_pairs_are_one_survey_seen_through_several_domains():
    """However a column is coded, the same record moves."""
    ages = Domain((Bins("age", (0.0, 40.0, 90.0)), PLACE))
    fine = Domain((Grid("age", 0.0, 90.0, 90),))
    both = survey_pairs((ages, fine, Domain((PLACE,))), 7)
    for first, second, third in both:
        assert first.description == second.description == third.description
        moved = [pair.near.dense() - pair.far.dense() for pair in (first, second, third)]
        changes = {"age": bool(moved[1].any()), "place": bool(moved[2].any())}
        assert bool(moved[0].any()) == any(changes.values())
        for pair, name in ((second, "age"), (third, "place")):
            rolled = first.far.roll_up((name,))
            assert rolled.counts.tolist() == pair.far.counts.tolist()
    assert {pair[0].description for pair in both} == {
        f"{columns} end to end; others {others}"
        for columns in ("all columns", "age", "place")
        for others in ("like the first", "half like either")
    }
