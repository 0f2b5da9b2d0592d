"""What an audit draws has the law of the real path, one call of ``perturb`` after the other."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcore.accounting.budget import Budget
from dpcore.audit import Joint, ReleaseDraws, neighbouring_pairs
from dpcore.audit.draws import WIDE
from dpcore.audit.rehearsal import Rehearsal
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.errors import PrivacyLineError
from dpcore.line.mechanism import Mechanism, Outputs
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy, Statistic
from dpcore.mechanisms import DiscreteLaplace
from dpcore.mechanisms.repeated import Repeated
from dpcore.releases.counts.histogram import Histogram
from dpcore.sampling.source import RandomSource, SeededSource, SystemSource
from tests.chance import FALSE_ALARM
from tests.conftest import those_slow
from tests.dpcore.releases.contract import CASES, LAWS, opened

TABLE = Domain((Categories("place", ("a", "b", "c")), Categories("yes", (0, 1))))
RELEASE = Histogram("h", TABLE, 9, Budget.of("1"))


@dataclass(frozen=True, eq=False)
class LoopedDraws(ReleaseDraws):
    """One call of ``perturb`` for each output: slow, and nothing to argue about."""

    def draw(self, side: int, size: int, source: RandomSource) -> Outputs:
        release, rows = self.release, []
        for _ in range(size):
            noisy = perturb(self._exact[side], release.mechanism, release.share, Rehearsal(source))
            if release.mechanism.cell_by_cell and noisy.cells is None:
                noisy = replace(noisy, values=noisy.values[self.watched])
            rows.append(self._arranged(noisy, 1))
        return np.concatenate(rows)


def draws_of(release, kind=ReleaseDraws, pair=0):
    return kind(release, neighbouring_pairs(release.domain, release.rows)[pair])


def p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Of a chi-square test that two samples of numbers, NaN among them, have one law."""
    together = np.concatenate([first, second])
    cuts = (
        np.unique(np.nanquantile(together, np.linspace(0, 1, 9)[1:-1]))
        if np.any(~np.isnan(together))
        else np.zeros(0)
    )
    rows = []
    for sample in (first, second):
        places = np.searchsorted(cuts, sample, side="right")
        places[np.isnan(sample)] = len(cuts) + 1
        rows.append(np.bincount(places, minlength=len(cuts) + 2))
    counts = np.array(rows)[:, np.sum(rows, axis=0) > 0]
    return 1.0 if counts.shape[1] < 2 else float(stats.chi2_contingency(counts).pvalue)


LONG = ["near series"]
"""Its single draws take forty milliseconds."""


@pytest.mark.parametrize("name", those_slow(LAWS, LONG))
def test_batches_and_single_calls_of_the_privacy_line_have_one_law(name: str):
    release, size = CASES[name].release, 100 if name in LONG else 250
    many, one = draws_of(release), draws_of(release, LoopedDraws)
    fast = many.draw(1, size, SeededSource(1)).astype(float)
    slow = one.draw(1, size, SeededSource(2)).astype(float)
    assert fast.shape == slow.shape
    columns = range(min(12, fast.shape[1]))
    smallest = min(p_value(fast[:, j], slow[:, j]) for j in columns)
    assert smallest > FALSE_ALARM / len(columns)
    # Cells are independent of each other in batches too.
    sums = [
        np.nansum(sample * [(-1) ** j for j in range(sample.shape[1])], axis=1)
        for sample in (fast, slow)
    ]
    assert p_value(*sums) > FALSE_ALARM


def test_a_batch_is_drawn_from_the_words_of_its_source_in_order():
    """Side by side or one by one, the same words give the same Laplace noise."""
    one = draws_of(RELEASE).draw(0, 1, SeededSource(3))
    direct = perturb(draws_of(RELEASE)._exact[0], RELEASE.mechanism, RELEASE.share, SeededSource(3))
    np.testing.assert_array_equal(one[0], direct.values)


@pytest.mark.parametrize("name", LAWS)
def test_readings_are_the_exact_statistics(name: str):
    release = CASES[name].release
    drawn = draws_of(release)
    for table, (values, cells) in zip(
        (drawn.pair.near, drawn.pair.far), drawn.readings, strict=True
    ):
        np.testing.assert_array_equal(values, opened(release, table)[cells])


def test_draws_are_made_in_batches_of_bounded_size(monkeypatch):
    monkeypatch.setattr("dpcore.audit.draws.LARGEST_BATCH", 60)
    assert draws_of(RELEASE).draw(0, 1003, SeededSource(1)).shape == (1003, 6)


def test_a_price_above_the_share_is_refused_as_for_a_release():
    @dataclass(frozen=True)
    class TooDear(Histogram):
        @property
        def mechanism(self):
            return DiscreteLaplace(self.domain.size, Fraction(2), Fraction(1))

    with pytest.raises(PrivacyLineError, match="no price within its share"):
        draws_of(TooDear("h", TABLE, 9, Budget.of("1"))).draw(0, 10, SeededSource(1))


def test_repeated_draws_refuse_a_source_that_could_be_published():
    (exact, _) = draws_of(RELEASE)._exact
    repeated = Repeated.of(RELEASE.mechanism, 3)
    with pytest.raises(PrivacyLineError, match="only for audits"):
        perturb(exact, repeated, RELEASE.share, SystemSource())
    noisy = perturb(exact, repeated, RELEASE.share, Rehearsal(SystemSource()))
    assert noisy.reproducible
    assert len(noisy.values) == 18


def test_a_mechanism_of_unknown_kind_is_looped():
    """One that draws the same noise for all cells would look right if tables were laid side by side."""

    @dataclass(frozen=True)
    class Together(Mechanism):
        event = RELEASE.mechanism.event
        stddev = 1.0

        def half_width(self, level: float) -> float:
            return 1.0

        def draw(self, statistic, source):
            nothing = Statistic(np.zeros(1, dtype=np.int64))
            one = DiscreteLaplace(1, Fraction(2), Fraction(2)).draw(nothing, source)
            return Noisy(statistic.values + one.values, reproducible=source.reproducible)

    @dataclass(frozen=True)
    class Odd(Histogram):
        @property
        def mechanism(self):
            return Together(self.domain.size)

    outputs = draws_of(Odd("odd", TABLE, 9, Budget.of("1"))).draw(0, 50, SeededSource(1))
    noise = outputs - outputs[:, [0]]
    assert np.ptp(noise, axis=0).max() == 0
    assert len(np.unique(outputs[:, 0])) > 1


def test_a_wide_statistic_is_watched_where_it_differs():
    wide = Domain((Categories("a", tuple(range(2000))), Categories("b", (0, 1))))
    drawn = draws_of(Histogram("wide", wide, 9, Budget.of("1")))
    watched, (near, far) = drawn.watched, drawn.readings
    assert WIDE / 4 < len(watched) <= WIDE
    assert np.count_nonzero(near.values != far.values) == 2
    assert drawn.draw(0, 7, SeededSource(1)).shape == (7, len(watched))
    # The watched cells are drawn as when all are.
    every = draws_of(Histogram("wide", wide, 9, Budget.of("1")), LoopedDraws)
    assert every.draw(0, 7, SeededSource(1)).shape == (7, len(watched))


def test_joint_draws_stand_side_by_side_and_are_independent():
    part = draws_of(RELEASE)
    outputs = Joint((part, part)).draw(0, 4000, SeededSource(1)).astype(float)
    assert outputs.shape == (4000, 12)
    assert abs(np.corrcoef(outputs[:, 0], outputs[:, 6])[0, 1]) < 0.06
