"""Texts that enough units have are found over the domain of all texts, and no text of one unit is."""

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.audit import Pair, ReleaseDraws
from dpcore.domain.tally import Tally
from dpcore.domain.texts import cells_of, texts
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.counts.found import FOUND, FoundCategories
from dpcore.sampling.source import SeededSource
from schemas.bundle.draws import draw_table, noisy_of

TOWN = texts("town")
SEARCH = FoundCategories(
    "f", TOWN, 1000, Budget.of("1", "0.01"), column="town", categories=("Bern", "Ulm")
)


def tally(**counts: int) -> Tally:
    return Tally.of(TOWN, cells_of([*counts]), np.array([*counts.values()]))


def repeated(counts: dict[str, int], times: int) -> np.ndarray:
    """(times, cells + 1) draws by the audit's own path."""
    sides = ReleaseDraws(SEARCH, Pair("", tally(**counts), tally(**counts)))
    return sides.draw(0, times, SeededSource(2))


def test_what_is_found_has_its_text_and_nothing_else_is_found():
    exact = SEARCH.statistic(tally(Bern=500, Genève=300, rare=1))
    noisy = perturb(exact, SEARCH.mechanism, SEARCH.share, SeededSource(1))
    assert list(SEARCH.found(noisy)) == ["Bern", "Genève"]
    table = SEARCH.publish(noisy).tables[0]
    assert table.columns["town"].tolist() == ["Bern"]  # the plan lists Bern alone of both
    public = Noisy(noisy.values, noisy.cells)
    assert noisy_of(draw_table("f", public).columns).to_bytes() == public.to_bytes()
    assert Noisy.from_bytes(public.to_bytes()).digest() == public.digest()


def test_as_many_units_as_are_stated_are_found_as_often_as_is_stated_and_one_hardly_ever():
    times = 20_000
    draws = repeated({"a": SEARCH.needed, "b": SEARCH.needed - 3, "c": 1}, times)
    needed, fewer, one = np.mean(~np.isnan(draws[:, :3]), axis=0)
    error = 5 * np.sqrt(0.05 * 0.95 / times)  # a chance below 1e-6
    assert needed >= FOUND - error
    assert fewer < FOUND - error
    assert one <= 0.01 + 5 * np.sqrt(0.01 / times)
    assert one >= 0.01 / 3  # the threshold is no larger than it must be
    assert np.all(draws[:, 3] == 0)


def test_nothing_found_is_a_table_without_rows():
    exact = SEARCH.statistic(Tally.of(TOWN, cells_of([])))
    noisy = perturb(exact, SEARCH.mechanism, SEARCH.share, SeededSource(1))
    assert SEARCH.found(noisy_of(draw_table("f", noisy).columns)) == {}
    assert all(len(part.values) == 0 for part in SEARCH.publish(noisy).tables[0].parts)
