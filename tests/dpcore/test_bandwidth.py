"""The private bandwidth: Silverman's rule on quartiles whose law and loss are exact."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

from dpcore.budget import Budget
from dpcore.domain import Categories, Domain, Grid
from dpcore.privacy_line import perturb
from dpcore.releases.bandwidth import Bandwidth
from dpcore.sampling.source import SeededSource
from dpcore.statistic import Noisy
from tests.dpcore.contract import opened, tally_of


def bandwidth(cells: int, rows: int, alpha: str = "1", smallest: float = 0.001) -> Bandwidth:
    return Bandwidth(
        "h", Domain((Grid("x", -5.0, 5.0, cells),)), rows, Budget.of(alpha), smallest=smallest
    )


def drawn(release: Bandwidth, records: np.ndarray, seed: int = 1) -> float:
    exact = release.statistic(tally_of(release.domain, records))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
    return release.publish(noisy).facts["bandwidth"]


@pytest.mark.parametrize("stddev", [0.5, 1.5])
def test_on_normal_records_it_is_silverman_s_rule(stddev: float):
    rows = 20_000
    quantiles = stats.norm(scale=stddev).ppf((np.arange(rows) + 0.5) / rows)
    cells = np.clip((quantiles + 5) / 10 * 1000, 0, 999).astype(int)
    expected = 1.06 * stddev / 10 * rows**-0.2
    assert drawn(bandwidth(1000, rows), cells) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("rows", [1, 1000])
def test_where_all_records_are_alike_it_is_the_smallest(rows: int):
    # Choices that miss the cell of all records miss many records: rows alpha / 8 > 30.
    release = bandwidth(10, rows, alpha=str(1000 / rows))
    assert drawn(release, np.full(rows, 4)) == release.smallest


def test_the_order_of_the_choices_does_not_matter_and_the_rule_is_the_printed_one():
    release = bandwidth(10, 32)
    for cells in ([2, 6], [6, 2]):
        found = release.bandwidth(Noisy(np.array(cells)))
        assert found == pytest.approx(1.06 / 2 * 0.4 / 1.34)  # 32^(-1/5) = 1/2


def test_replacing_any_record_changes_no_pair_of_quartiles_by_more_than_alpha():
    release, worst = bandwidth(4, 3), 0.0
    scale = float(release.mechanism.scale)

    def log_laws(records: tuple[int, ...]) -> np.ndarray:
        logs = -opened(release, tally_of(release.domain, records)).reshape(2, -1) / scale
        return logs - np.logaddexp.reduce(logs, axis=1)[:, None]

    for shared in combinations_with_replacement(range(4), 2):
        laws = np.array([log_laws((*shared, c)) for c in range(4)])
        worst = max(worst, np.abs(laws[:, None] - laws[None]).max(axis=3).sum(axis=2).max())
    assert 0.3 < worst <= float(release.share.alpha)


@pytest.mark.parametrize("smallest", [0.0, -1.0, math.inf, math.nan])
def test_a_smallest_bandwidth_that_is_none_is_refused(smallest: float):
    with pytest.raises(ValueError, match="smallest: must be positive"):
        bandwidth(10, 5, smallest=smallest)


def test_a_column_without_order_is_refused():
    with pytest.raises(ValueError, match="must be an integer or continuous"):
        Bandwidth("h", Domain((Categories("x", ("a", "b")),)), 5, Budget.of(1), smallest=1.0)
