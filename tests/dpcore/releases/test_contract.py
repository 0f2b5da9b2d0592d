"""What every release owes under every relation: its stated sensitivity, its stated privacy, its price.

Neighbours are those that the cases are stated for, or units of one or two records where the number of
records is private.
"""

import gc
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.audit.bounds import loss_lower_bound
from dpcore.audit.outcomes import choose_outcomes
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.tally import Tally
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import affordable
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Statistic
from dpcore.mechanisms import (
    THEOREMS,
    CompressedMargins,
    DiscreteGaussian,
    DiscreteLaplace,
    Mechanism,
    SmoothLaplace,
    TunedNoise,
    laplace,
)
from dpcore.mechanisms.block_gaussian import BlockGaussianEvent
from dpcore.mechanisms.gaussian import GaussianEvent
from dpcore.releases.counts.found import FoundCategories
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.models.by_period import EstimatesRun
from dpcore.sampling.source import SeededSource
from papers import THEOREMS as OF_PAPERS
from papers.minimax_count.mechanism import TabulatedMechanism
from papers.sampled_histogram.mechanism import Sampled
from schemas.releases.events import read_event
from tests.conftest import those_slow
from tests.dpcore.releases.claims import ROUNDED, claim, moved, needs_beta, squares
from tests.dpcore.releases.contract import (
    CASES,
    KINDS,
    LAWS,
    RELATIONS,
    Case,
    concrete_mechanisms,
    concrete_releases,
    exact_vector,
    families,
    opened,
    repeated_draws,
    tally_of,
    under,
    units,
)

every_kind = pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)


def test_every_release_and_every_mechanism_of_dpcore_is_registered():
    # Its statistic and its noise are those of the release of one period (``test_by_period``).
    known = {type(case.release) for case in CASES.values()} | {EstimatesRun}
    assert known == concrete_releases()
    assert {type(case.release.mechanism) for case in CASES.values()} == concrete_mechanisms()
    theorems = [*THEOREMS, *OF_PAPERS]
    assert concrete_mechanisms() == set(theorems)
    assert len(theorems) == len(set(theorems))


@pytest.mark.slow
def test_a_release_or_mechanism_that_is_not_registered_is_noticed(monkeypatch: pytest.MonkeyPatch):
    unpriced = type("Unpriced", (laplace.DiscreteLaplace,), {})
    monkeypatch.setattr(laplace, "Unpriced", unpriced, raising=False)
    assert unpriced in concrete_mechanisms()

    forgotten = type("Forgotten", (Histogram,), {"__module__": "dpcore.releases.forgotten"})
    assert forgotten in concrete_releases()
    del forgotten
    gc.collect()


ONE_RECORD = [
    "histogram of occupied cells",
    "found categories",
    "found bounds",
    "minimax count",
    "approximate minimax count",
]
"""Proved for units of one record."""

REFUSED = [
    "random histogram",
    "random count",
    "mean",
    "Gaussian mean",
    "smooth mean",
    "smoothed histogram",
    "dirichlet-multinomial",
    "near records",
    "near series",
    "near mean",
    "listed function",
    "asked function",
    "u-statistic",
    "smooth u-statistic",
    "density at a private bandwidth",
    "density at the bandwidth of least error",
    "density at private bandwidths of two columns",
    "function at a private bandwidth",
    "classifier at a private regularisation",
    "body density",
    "periodic body density",
]
"""Proved for a public number of records."""


SERVED = {
    f"{name}, {adjacency.relation} {adjacency.most}": under(case, adjacency)
    for name, case in CASES.items()
    for adjacency in RELATIONS
    if adjacency == Adjacency("add-remove")
    or (name in KINDS and adjacency == Adjacency("replace-one", 2))
    if name not in REFUSED and not (name in ONE_RECORD and adjacency.most > 1)
}
"""Further forms under one relation: how a unit of several records counts does not depend on the axes.

``test_replay`` has units of two records that are added or removed.
"""

ALL = CASES | SERVED


def require_stated_sensitivity(case: Case) -> None:
    """Neighbours differ by at most what is claimed, and some do; no number is above its limit."""
    release, own = (
        case.release,
        case.release.adjacency.most == 1 and case.release.adjacency.public_rows,
    )
    near, far = (exact_vector(release, tuple(sorted(each))) for each in (case.near, case.far))
    attained, pairs = case.attained, units(release)
    if own:
        assert len(case.near) == len(case.far) == release.rows
        assert sum((Counter(case.far) - Counter(case.near)).values()) == 1
        pairs = ((family, family) for family in families(release))
    elif isinstance(release, KernelMachine):  # in a larger table each record counts less
        attained *= release.adjacency.taper(len(case.far), release.most_rows)
    found = [float(moved(release, far - near))]
    for family, tables in pairs:
        found += [float(moved(release, family - table).max()) for table in tables]
        assert np.abs(family).max() <= release.largest_statistic
    power = 2 if squares(release.mechanism) else 1
    some = found[0] if own else max(found)
    assert attained**power * claim(release) * (1 - ROUNDED) <= some
    assert max(found) <= claim(release) * (1 + ROUNDED)


@pytest.mark.parametrize("name", ALL)
def test_no_neighbours_lie_farther_apart_than_is_claimed_and_some_as_far(name: str):
    require_stated_sensitivity(ALL[name])


@pytest.mark.parametrize("name", [*REFUSED, *ONE_RECORD])
def test_what_is_not_proved_for_a_relation_is_refused(name: str):
    for adjacency in RELATIONS:
        if name in REFUSED or adjacency.most > 1:
            with pytest.raises(ValueError, match=r"^mechanism: .*(records? for|records is|unit)"):
                under(CASES[name], adjacency)


LASTING = (
    "compressed microdata",
    "compressed microdata of columns that may be equal",
    "compressed microdata of numbers",
    "gaussian compressed microdata",
    "gradient classifier",
    "near records",
)
"""Audits that are left to the slow run: faster tests have these laws too."""


@pytest.mark.parametrize("name", those_slow(LAWS, LASTING))
def test_an_audit_finds_no_more_loss_than_alpha_but_noise_that_is_too_small(name: str):
    require_stated_privacy(LAWS[name])


def require_stated_privacy(case: Case) -> None:
    """An audit finds no fault with either table as the likelier one, and finds the planted one."""
    alpha, mechanism = float(case.release.share.alpha), case.release.mechanism
    for company in {(), case.company}:
        assert audited(case, company, mechanism) <= alpha
    assert audited(case, case.company, with_less_noise(case)) > alpha


def with_less_noise(case: Case) -> Mechanism:
    """The mechanism of the case with a fault that an audit must find."""
    mechanism = case.release.mechanism
    if isinstance(mechanism, TabulatedMechanism):
        return replace(case.release, share=Budget.of("2")).mechanism
    if isinstance(mechanism, SmoothLaplace):
        return replace(mechanism, alpha=4 * mechanism.alpha)
    if isinstance(mechanism, Sampled):
        return replace(mechanism, prior=mechanism.prior // 3)
    if isinstance(mechanism, TunedNoise):
        generous = replace(case.release.share, alpha=case.fault * case.release.share.alpha)
        return replace(case.release, share=generous).mechanism
    if isinstance(mechanism, CompressedMargins):
        first, again = (quieter(each, case.fault) for each in (mechanism.first, mechanism.again))
        return replace(mechanism, first=first, again=again)
    if isinstance(mechanism.event, GaussianEvent | BlockGaussianEvent):
        return replace(mechanism, variance=mechanism.variance / case.fault**2)
    return replace(mechanism, scale=mechanism.scale / case.fault)


def quieter(
    noise: DiscreteGaussian | DiscreteLaplace, times: int
) -> DiscreteGaussian | DiscreteLaplace:
    """The noise at so many times smaller a scale."""
    if isinstance(noise, DiscreteGaussian):
        return replace(noise, variance=noise.variance / times**2)
    return replace(noise, scale=noise.scale / times)


SEARCHED, DRAWS = 5_000, 10_000
"""On each side, to choose events with and to count them in; every planted fault is found so."""


def audited(case: Case, company: tuple[int, ...], mechanism: Mechanism) -> float:
    """The audit's lower bound on alpha; it is above the true one with a chance below 1e-6."""
    release, beta, source = case.release, float(case.release.share.beta), SeededSource(5)
    plenty = replace(release.share, alpha=release.share.alpha * 10)
    tables = [tally_of(release.domain, cells + company) for cells in (case.near, case.far)]
    near, far = (Statistic(opened(release, table), np.arange(mechanism.size)) for table in tables)
    stated = mechanism.log_ratio(near, far)

    def scores(table: Tally, size: int) -> np.ndarray:
        draws = repeated_draws(release, table, size, source, mechanism, plenty)
        return draws if stated is None else stated(draws)[:, None]

    search, fresh = ([scores(table, size) for table in tables] for size in (SEARCHED, DRAWS))
    outcomes = choose_outcomes(*search, beta).outcomes
    bounds = []
    for event in outcomes:
        hits = [int(event.holds(side).sum()) for side in fresh]
        this, other = hits[event.favoured], hits[1 - event.favoured]
        bounds.append(
            loss_lower_bound(this, DRAWS, other, DRAWS, beta=beta, error=1e-6 / len(outcomes))
        )
    return float(max(bounds))


@every_kind
def test_what_is_drawn_can_be_afforded_exactly_up_to_the_share(case: Case):
    release = case.release
    exact = release.statistic(tally_of(release.domain, case.near))
    less = replace(release.share, alpha=release.share.alpha * Fraction(999, 1000))
    perturb(exact, release.mechanism, release.share, SeededSource(1))
    with pytest.raises(PrivacyLineError, match="no price within its share"):
        perturb(exact, release.mechanism, less, SeededSource(1))


@every_kind
def test_a_share_of_rho_buys_every_kind_and_is_used_up(case: Case):
    exact = case.release.statistic(tally_of(case.release.domain, case.near))
    for rho in (Fraction(1, 2), Fraction(1, 50)):
        share = replace(case.release.share, alpha=Fraction(0), rho=rho)
        try:
            mechanism = replace(case.release, share=share).mechanism
        except ValueError:  # a share that is too small for any noise
            continue
        perturb(exact, mechanism, share, SeededSource(1))
        with pytest.raises(PrivacyLineError, match="no price within its share"):
            perturb(exact, mechanism, share * Fraction(999, 1000), SeededSource(1))
        with pytest.raises(PrivacyLineError, match="no price within its share"):
            perturb(exact, mechanism, replace(share, alpha=Fraction(1)), SeededSource(1))
        assert mechanism.event.concentrated is not None


@every_kind
def test_a_share_without_beta_buys_a_pure_mechanism_or_none(case: Case):
    without = replace(case.release, share=replace(case.release.share, beta=Fraction(0)))
    pure = not isinstance(case.release, FoundCategories)  # a thresholded histogram has another form
    if pure and not needs_beta(case.release.mechanism):
        assert affordable(without.mechanism.event, without.share)
    else:
        with pytest.raises(ValueError, match="needs beta"):
            _ = without.mechanism


@every_kind
def test_expected_errors_are_positive_numbers_and_need_no_data(case: Case):
    statements = case.release.expected_error()
    assert statements
    assert all(0 < statement.value < np.inf and statement.quantity for statement in statements)


@pytest.mark.parametrize("name", [pair for pair in SERVED if pair.partition(", ")[0] in LAWS])
def test_an_event_is_recorded_with_its_neighbours(name: str):
    release = SERVED[name].release
    written = release.event.to_dict()
    assert written["neighbours"] == release.adjacency.relation
    assert written.get("most", "1") == str(release.adjacency.most)
    assert read_event(written) == release.event
