"""What every release owes under the other neighbouring relations, where the rows are private."""

from collections.abc import Iterator
from itertools import product

import pytest

from dpcore.domain.adjacency import Adjacency
from dpcore.releases.machines.machine import KernelMachine
from tests.conftest import those_slow
from tests.dpcore.releases.contract import (
    CASES,
    KINDS,
    LAWS,
    RELATIONS,
    exact_vector,
    further_forms,
    under,
    units,
)
from tests.dpcore.releases.test_contract import (
    ROUNDED,
    audited,
    claim,
    moved,
    require_stated_noise,
    squares,
    with_less_noise,
)

ONE_RECORD = [
    "histogram of occupied cells",
    "minimax count",
    "approximate minimax count",
]
"""Proved for units of one record."""

REFUSED = [
    "random histogram",
    "mean",
    "smooth mean",
    "smoothed histogram",
    "dirichlet-multinomial",
    "near records",
    "near series",
    "steady bandwidth",
    "density at a private bandwidth",
    "density at private bandwidths of two columns",
    "function at a steady bandwidth",
    "body density",
    "periodic body density",
]
"""Proved for a public number of records."""


def served() -> Iterator[tuple[str, Adjacency]]:
    for name, adjacency in product(CASES, RELATIONS):
        if name not in REFUSED and not (name in ONE_RECORD and adjacency.most > 1):
            yield name, adjacency


SERVED = {
    f"{name}, {adjacency.relation} {adjacency.most}": (name, adjacency)
    for name, adjacency in served()
}

MANY_NEIGHBOURS = [
    pair
    for pair, (name, adjacency) in SERVED.items()
    if adjacency.most > 1
    and name.startswith(("median by group", "optimised microdata of pairs and"))
]

DISTINCT = [
    pair
    for pair, (name, adjacency) in SERVED.items()
    if name in KINDS or adjacency == Adjacency("add-remove") or pair in MANY_NEIGHBOURS
]
"""What further axes change is what one record moves where it is added: a unit of several moves as many
times as much by a rule that is the same for all axes."""


@pytest.mark.parametrize("pair", those_slow(DISTINCT, MANY_NEIGHBOURS))
def test_no_unit_moves_the_statistic_by_more_than_the_claim_and_some_by_as_much(pair: str):
    name, adjacency = SERVED[pair]
    case = under(CASES[name], adjacency)
    farthest = max(
        float(moved(case.release, family - table).max())
        for family, tables in units(case.release)
        for table in tables
    )
    near, far = (exact_vector(case.release, tuple(sorted(t))) for t in (case.near, case.far))
    farthest = max(farthest, float(moved(case.release, far - near)))
    power = 2 if squares(case.release.mechanism.event) else 1
    attained = case.attained
    if isinstance(case.release, KernelMachine):  # in a larger table each record counts less
        attained *= adjacency.taper(len(case.far), case.release.most_rows)
    least, most = attained**power * claim(case.release), claim(case.release)
    assert least * (1 - ROUNDED) <= farthest <= most * (1 + ROUNDED)


@pytest.mark.parametrize("name", [*REFUSED, *ONE_RECORD])
def test_what_is_not_proved_for_a_relation_is_refused(name: str):
    for adjacency in RELATIONS:
        if name in REFUSED or adjacency.most > 1:
            with pytest.raises(ValueError, match=r"^mechanism: .*(records? for|records is|unit)"):
                under(CASES[name], adjacency)


LONG = [
    *further_forms(lambda release: type(release.mechanism)),
    "compressed microdata",
    "additive classifier",
    "gradient classifier",
]
"""Cases whose audits are left to the slow run, and to units of several records: the fast one has a case
of every other mechanism, and ``test_contract`` audits them for single records."""

FURTHER = further_forms(lambda release: (type(release), type(release.mechanism)))
"""Forms of a kind by the same mechanism: what a unit of several records moves follows from the kind."""

AUDITED = {
    pair: (name, adjacency)
    for pair, (name, adjacency) in SERVED.items()
    if name not in LONG or (adjacency.most > 1 and adjacency.relation == "replace-one")
    if name not in FURTHER
    if name != "gradient classifier"  # two steps as in an additive one, the second a descent
}


@pytest.mark.parametrize(
    "pair",
    those_slow(
        AUDITED, [p for p, (n, adjacency) in AUDITED.items() if adjacency.most > 1 or n in LONG]
    ),
)
def test_an_audit_finds_no_more_loss_than_alpha_but_noise_that_is_too_small(pair: str):
    name, adjacency = AUDITED[pair]
    case = under(CASES[name], adjacency)
    alpha, mechanism = float(case.release.share.alpha), case.release.mechanism
    assert audited(case, case.company, mechanism) <= alpha
    assert audited(case, case.company, with_less_noise(case)) > alpha


@pytest.mark.parametrize(
    "name", ["histogram", "gaussian margins", "mean of private rows", "spectral density"]
)
def test_the_noise_of_fewer_or_more_records_has_the_stated_scale(name: str):
    for adjacency in RELATIONS:
        require_stated_noise(under(CASES[name], adjacency))


@pytest.mark.parametrize("pair", [pair for pair, (name, _) in SERVED.items() if name in LAWS])
def test_the_event_is_recorded_with_its_neighbours(pair: str):
    name, adjacency = SERVED[pair]
    event = under(CASES[name], adjacency).release.event
    assert event.to_dict()["neighbours"] == adjacency.relation
    assert event.to_dict().get("most", "1") == str(adjacency.most)
