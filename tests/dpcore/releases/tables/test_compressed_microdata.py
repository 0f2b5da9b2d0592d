"""Pairs of groups that noisy one-way tables suggest: what is measured, what it costs, what comes out.

The privacy of both rounds together is a claim of ``test_contract``.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit import Pair, ReleaseDraws
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.mechanisms.compressed_margins import Grouping
from dpcore.mechanisms.grouping import least_groups
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.rules import Rule, breaks_rules
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.compression import FREE, GROUPS, usual_groups
from dpcore.releases.tables.groups import kinds_of_cells
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import APPROXIMATE, CUBE, PURE, RELATIONS, drawn, tally_of

TRADES = tuple(f"trade {i:02}" for i in range(40))
AGES = Bins("age", tuple(float(i) for i in range(0, 101, 2)), nullable=True, integer=True)
DOMAIN = Domain((Categories("trade", TRADES), AGES, Categories("sex", ("F", "M"))))
ROWS, KEEP = 4000, 8
SHARE = Budget.of("1", "1e-6")
NOISES = ("discrete-laplace", "discrete-gaussian")


def release(**changes: object) -> CompressedMicrodata:
    made = CompressedMicrodata("x", DOMAIN, ROWS, SHARE, (), "discrete-gaussian", keep=KEEP)
    return replace(made, **changes)


def codes() -> np.ndarray:
    """Trades by Zipf's law; the first ten are men's; one in ten ages is null."""
    generator = np.random.default_rng(4)
    weights = 1 / np.arange(1, 41)
    trade = generator.choice(40, ROWS, p=weights / weights.sum())
    age = np.where(generator.random(ROWS) < 0.1, 50, generator.binomial(49, 0.4, ROWS))
    sex = np.where(trade < 10, 1, generator.integers(0, 2, ROWS))
    return np.stack([trade, age, sex], axis=1)


def tally() -> Tally:
    return tally_of(DOMAIN, DOMAIN.pack(codes()))


def noisy_of(of: CompressedMicrodata | Microdata, seed: int = 3) -> Noisy:
    return drawn(of, tally(), seed)


def exact_rounds(of: CompressedMicrodata, noisy: Noisy) -> tuple[np.ndarray, np.ndarray]:
    """What both rounds of a draw were noise on."""
    once, _, _ = of.settled(noisy)
    return of.mechanism.alone(tally()), of.mechanism.together(tally(), of.mechanism.grouping(once))


def partitions(domain: Domain, keep: int) -> Iterator[Grouping]:
    """Groupings from many first rounds, among them all that merge three cells into two groups."""
    made = CompressedMicrodata("x", domain, 2, APPROXIMATE, (), "discrete-gaussian", keep=keep)
    rounds = np.random.default_rng(1).integers(-2, 9, (300, made.mechanism.first.size))
    found = map(made.mechanism.grouping, rounds)
    yield from {grouping.to_bytes(): grouping for grouping in found}.values()


NUMBERS = Domain(
    (Bins("a", tuple(map(float, range(6))), nullable=True), Bins("b", tuple(map(float, range(5)))))
)
"""Two columns in order, the first with more cells than ``keep``: 6 and 4 cells."""


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, *RELATIONS])
@pytest.mark.parametrize(
    ("noise", "domain", "keep"),
    [
        ("discrete-laplace", CUBE, 2),
        ("discrete-gaussian", CUBE, 2),
        ("discrete-gaussian", NUMBERS, 4),
    ],
)
def test_no_groups_move_by_more_than_either_round_claims_and_some_by_as_much(
    noise, domain, keep, adjacency
):
    share = APPROXIMATE if "gauss" in noise else PURE
    made = CompressedMicrodata("x", domain, 2, share, (), noise, keep=keep, adjacency=adjacency)
    assert bool(made.products) == (domain is NUMBERS)
    sizes = range(adjacency.most + 1) if not adjacency.public_rows else (1,)
    units = [u for size in sizes for u in combinations_with_replacement(range(domain.size), size)]
    power = 2 if "gauss" in noise else 1

    def farthest(vectors: np.ndarray) -> int:
        others = vectors[:1] if adjacency.relation == "add-remove" else vectors
        return max(int((np.abs(vectors - one) ** power).sum(axis=1).max()) for one in others)

    tables = [tally_of(domain, unit) for unit in units]
    alone = np.stack([made.mechanism.alone(table) for table in tables])
    assert farthest(alone) == made.event.sensitivity
    of_groups = [
        farthest(np.stack([made.mechanism.together(table, grouping) for table in tables]))
        for grouping in partitions(domain, keep)
    ]
    assert max(of_groups) == made.event.again_sensitivity


def test_the_groups_look_at_the_first_noisy_round_only():
    loud = release(share=Budget.of("0.001"), noise="discrete-laplace", first_share=Fraction(1, 2))
    found = {loud.groups(noisy_of(loud, seed).values[:91])[0].tobytes() for seed in range(6)}
    assert len(found) == 6  # all noise: the frequent trades are not known any more


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_published_groups_say_what_the_pairs_count():
    """The reader needs the tables alone: groups by the table of a column, pairs by their numbers."""
    quiet = release(share=Budget.of(200), noise="discrete-laplace")
    published = quiet.publish(noisy_of(quiet))
    tables = {table.name: table.columns for table in published.tables}
    assert list(tables) == ["x.trade", "x.age", "x.trade.age", "x.trade.sex", "x.age.sex"]
    assert published.facts["groups"] == {"trade": KEEP, "age": KEEP}
    group_of = dict(zip(tables["x.trade"]["trade"], tables["x.trade"]["trade_group"], strict=True))
    assert set(group_of.values()) == set(range(1, KEEP + 1))
    records, pair, both = codes(), tables["x.trade.sex"], tables["x.trade.age"]
    groups = np.array([group_of[TRADES[trade]] for trade in records[:, 0]])
    for group, sex, noisy in zip(pair["trade_group"], pair["sex"], pair["estimate"], strict=True):
        assert round(noisy) == np.sum((groups == group) & (records[:, 2] == "FM".index(sex)))
    missing = np.ma.getmaskarray(both["age_from"])
    for group, noisy in zip(both["trade_group"][missing], both["estimate"][missing], strict=True):
        assert round(noisy) == np.sum((groups == group) & (records[:, 1] == 50))
    pair = tables["x.age.sex"]
    inside = ~np.ma.getmaskarray(pair["age_from"])
    assert (~inside).sum() == 2  # null is a group by itself
    for first, last, sex, noisy in zip(
        *(pair[name][inside] for name in ("age_from", "age_to", "sex", "estimate")), strict=True
    ):
        years = 2 * records[:, 1]
        held = (years >= first) & (years + 1 <= last) & (records[:, 1] < 50)
        assert round(noisy) == np.sum(held & (records[:, 2] == "FM".index(sex)))


@pytest.mark.slow
@pytest.mark.usefixtures("short_fits")
def test_counts_of_pairs_are_those_of_the_records_of_groups():
    made, noisy = release(), noisy_of(release())
    records = made.sample(noisy, ROWS)[1]
    groups, *_ = made.groups(made.settled(noisy)[0])
    tables = {t.name: t.columns["count"] for t in made.publish(noisy).tables if "." in t.name[2:]}
    counted = np.bincount(groups[records[:, 0]] * 2 + records[:, 2], minlength=2 * KEEP)
    assert counted.tolist() == tables["x.trade.sex"].tolist()


def test_tables_are_read_in_the_groups_that_they_were_measured_in():
    quiet = release(share=Budget.of(200), noise="discrete-laplace")
    noisy = noisy_of(quiet)
    read = quiet.as_measured(noisy)
    agreement, records = read.agreement(), codes()
    few = [
        read.groups.get(i, np.arange(size))[records[:, i]] for i, size in enumerate(DOMAIN.shape)
    ]
    for pair in ((0, 1), (0, 2), (1, 2)):
        shape = [read.release.domain.shape[a] for a in pair]
        exact = np.bincount(few[pair[0]] * shape[1] + few[pair[1]], minlength=np.prod(shape))
        assert agreement.covers(pair)
        assert np.round(agreement.margin(pair).table).ravel().tolist() == exact.tolist()


RULES = (
    Rule(when=((1, tuple(range(17))),), then=((0, (3, 9, 21)),)),
    Rule(when=((1, (50,)),), then=((2, (0,)),)),
)


@pytest.mark.slow
def test_rules_about_cells_hold_in_every_record_whatever_was_merged():
    made = release(rules=RULES, share=Budget.of("0.1", "1e-6"))
    for seed in (1, 2):
        noisy = noisy_of(made, seed)
        records = made.sample(noisy, 3000)[1]
        assert not breaks_rules(records, RULES).any()
        assert (records[:, 1] < 17).any()
        assert (records[:, 1] == 50).any()
        ages = made.groups(made.settled(noisy)[0])[1]
        assert not set(ages[:17]) & set(ages[17:])


@pytest.mark.usefixtures("short_fits")
def test_margins_of_groups_are_not_said_to_be_margins_of_cells():
    made, noisy = release(), noisy_of(release())
    assert made.supported_margin(noisy, ("trade", "sex")) is None
    counts, error = made.supported_margin(noisy, ("trade",))
    assert counts.tolist() == noisy.values[:40].tolist()
    assert error == made.mechanism.first.stddev
    sex, error = made.supported_margin(noisy, ("sex",))
    assert len(sex) == 2
    assert 0 < error < 10 * made.mechanism.again.stddev
    asked = [("sex",), ("trade", "sex"), ("trade",)]
    alike, none, alone = made.supported_margins(noisy, asked)
    assert alike[0].tolist() == sex.tolist()
    assert none is None
    assert alone[0].tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"keep": 60}, "compress: no column has more than keep = 60 cells"),
        ({"keep": 1}, "compress: keep must be at least 2 for trade, not 1"),
        ({"keep": 2, "rules": RULES}, "keep must be at least 3 for age, not 2: null and"),
        (
            {"first_share": Fraction(1)},
            "compress: share must lie between 1/1000 and 999/1000, not 1",
        ),
        ({"memory": 2**20}, "memory: the tables of counts and their model need"),
        ({"sets": ((0, 1),)}, r"no set contains the columns \['sex'\]"),
    ],
)
def test_what_cannot_be_compressed_is_refused_by_public_facts(changes, says):
    with pytest.raises(ValueError, match=says):
        release(**changes)


def test_a_single_column_has_no_pairs_to_compress():
    with pytest.raises(ValueError, match="there is only one column"):
        CompressedMicrodata("x", DOMAIN.select(("trade",)), ROWS, SHARE, keep=4)


@pytest.mark.usefixtures("short_fits")
@pytest.mark.parametrize("records", [(), (5,), 30 * (3,)])
def test_a_table_of_no_record_of_one_and_of_one_cell_alone_are_published(records):
    domain = Domain((Categories("a", tuple(range(6))), Categories("b", (1,))))
    made = CompressedMicrodata("x", domain, 30, PURE, keep=3, adjacency=Adjacency("add-remove"))
    noisy = drawn(made, records)
    assert len(made.publish(noisy).tables) == 2
    assert made.sample(noisy, 9)[1].shape == (9, 2)


def test_an_audit_draws_no_more_numbers_at_a_time_than_of_other_releases():
    wide = Domain(tuple(Categories(name, tuple(range(500))) for name in "ab"))
    made = CompressedMicrodata("x", wide, 100, PURE, keep=16)
    pair = Pair("", tally_of(wide, ()), tally_of(wide, (5,)))
    assert ReleaseDraws(made, pair).width == 1000 + 16**2


def test_whole_numbers_that_many_have_stay_alone():
    axis = Bins("x", (0.0, 1.0, 5.0, 6.0, 9.0), integer=True, masses=(0.0, 5.0))
    kinds = kinds_of_cells(0, axis, RecordColumns((4,)))
    assert len({*kinds.tolist()}) == 3
    assert kinds[1] == kinds[3]


def test_a_draw_of_another_layout_is_not_read():
    made = CompressedMicrodata("x", NUMBERS, 50, APPROXIMATE, (), "discrete-gaussian", keep=4)
    numbers = made.mechanism.numbers
    made.settled(Noisy(np.zeros(numbers, dtype=np.int64)))
    with pytest.raises(
        InputError, match=f"{numbers - 1} numbers, not {numbers}; .*another version"
    ):
        made.settled(Noisy(np.zeros(numbers - 1, dtype=np.int64)))


@pytest.mark.slow
def test_two_amounts_are_correlated_inside_their_largest_group():
    generator = np.random.default_rng(2)
    both = generator.normal(size=(6000, 1)) + 0.4 * generator.normal(size=(6000, 2))
    edges = (0.0, *np.geomspace(1, 400, 60))
    amounts = [Bins(name, edges) for name in ("pay", "tax")]
    domain = Domain((*amounts, Categories("sex", ("F", "M"))))
    cells = np.searchsorted(edges, np.exp(both + 1), side="right").clip(1, 60) - 1
    codes = np.column_stack([cells, generator.integers(0, 2, 6000)])
    made = CompressedMicrodata(
        "x", domain, 6000, Budget.of("4", "1e-6"), (), "discrete-gaussian", keep=8
    )
    exact = made.statistic(Tally.of(domain, domain.pack(codes)))
    noisy = perturb(exact, made.mechanism, made.share, SeededSource(1))
    _, records = made.sample(noisy, 6000)
    largest = [groups == groups.max() for groups in made.groups(made.settled(noisy)[0])]
    inside = largest[0][records[:, 0]] & largest[1][records[:, 1]]
    assert inside.sum() > 50
    assert np.corrcoef(records[inside, :2].T)[0, 1] > 0.25


def test_groups_that_rules_force_take_none_from_the_others():
    """Rules about every cell from 16 to 26 years leave few of nine groups for all other ages."""
    ruled = [Rule(when=((1, (cell,)),), then=((2, (0,)),)) for cell in range(8, 13)]

    def groups(columns: RecordColumns) -> int | None:
        of = DOMAIN, columns, 100, SHARE, (), "discrete-gaussian"
        return usual_groups(*of, first_share=Fraction(1, 5), adjacency=REPLACE_ONE)

    columns = RecordColumns.of(DOMAIN, ruled)
    forced = least_groups(kinds_of_cells(1, DOMAIN.axes[1], columns), ordered=True)
    assert groups(RecordColumns.of(DOMAIN)) == min(GROUPS)
    assert groups(columns) == forced + FREE > min(GROUPS)


def test_categories_may_have_more_groups_than_numbers():
    made = release(keep=6, categories=20)
    assert made.mechanism.shape == (20, 6, 2)
    assert made.cells_of_groups == [120, 40, 12]
    noisy = drawn(made, tuple(DOMAIN.pack(codes()).tolist()))
    assert made.publish(noisy).facts["groups"] == {"trade": 20, "age": 6}
    records = made.sample(noisy, ROWS)[1]
    assert records.max(axis=0).tolist() <= [39, 50, 1]
