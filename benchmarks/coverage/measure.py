"""Draw, publish, compare with the same published without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcore.domain import Grid, Tally
from dpcore.privacy_line import perturb
from dpcore.releases.base import Release, Uncertainty
from dpcore.releases.machine import KernelMachine
from dpcore.sampling.source import SeededSource
from dpcore.statistic import ABSENT, Noisy

Floats = NDArray[np.float64]

AWAY = 3.0
"""Standard errors from zero from which on cutting at zero plays no part."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """What intervals of one column held, over draws; NaN where there is none.

    ``doubt``: the standard error of ``cover``, counting that the intervals of one draw err together.
    """

    column: str
    interval: str
    method: str
    cover: float
    doubt: float
    large: float
    rms: float

    def row(self) -> dict[str, str]:
        names = ("cover", "doubt", "large", "rms")
        numbers = {name: getattr(self, name) for name in names}
        text = {name: "" if np.isnan(value) else f"{value:.3f}" for name, value in numbers.items()}
        return {"column": self.column, "interval": self.interval, "method": self.method, **text}


@dataclass(frozen=True, eq=False)
class _Seen:
    """One column of one draw: (k,) each; ends are None where the column has no interval."""

    number: Floats
    exact: Floats
    error: Floats
    ends: tuple[Floats, Floats] | None


def measure(release: Release, tally: Tally, draws: int, seed: int = 0) -> list[Coverage]:
    """Coverage of every interval that the release publishes, over ``draws`` draws."""
    seen: dict[Uncertainty, list[_Seen]] = {}
    exact = release.statistic(tally)
    # The tables are made up: their exact statistic may be looked at.
    truth = dict(zip(_cells(exact._cells, exact._values), exact._values.tolist(), strict=True))
    for draw in range(draws):
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed + draw))
        cells = _cells(noisy.cells, noisy.values)
        exactly = [truth.get(cell % release.mechanism.size, 0) for cell in cells]
        without = np.where(noisy.values == ABSENT, ABSENT, np.array(exactly, dtype=np.int64))
        quiet = Noisy(without, noisy.cells)
        for uncertainty, found in _compared(release, noisy, quiet):
            seen.setdefault(uncertainty, []).append(found)
    return [_coverage(uncertainty, found) for uncertainty, found in seen.items()]


def _cells(cells: NDArray[np.int64] | None, values: NDArray[np.int64]) -> list[int]:
    return list(range(len(values))) if cells is None else cells.tolist()


def _compared(release: Release, noisy: Noisy, quiet: Noisy) -> Iterator[tuple[Uncertainty, _Seen]]:
    tables = release.publish(noisy).tables
    if noisy.cells is not None:  # some cells alone were published, each about its exact count
        (table,) = tables
        yield from ((u, _seen(u, table.columns, quiet.values)) for u in table.uncertainty)
        return
    for table, exact in zip(tables, release.publish(quiet).tables, strict=True):
        for u in table.uncertainty:
            # An unbiased column, published without noise, is what all intervals stand for.
            unbiased = ("noisy_count", "estimate") if u.interval else ()
            names = (n for n in (*unbiased, u.column) if n in exact.columns)
            yield u, _seen(u, table.columns, exact.columns[next(names)])
    if isinstance(release, KernelMachine):
        axis = release.feature_axes[0]
        assert isinstance(axis, Grid)
        points = {axis.name: np.linspace(axis.lower, axis.upper, 50)}
        found = release.evaluate(noisy, points)
        name = next(iter(found))  # decision or prediction
        u = Uncertainty(name, "standard_error", ("lower_90", "upper_90"), "exact", "")
        yield u, _seen(u, found, release.evaluate(quiet, points)[name])


def _seen(u: Uncertainty, columns: object, exact: Floats) -> _Seen:
    assert isinstance(columns, dict)
    ends = None if u.interval is None else (columns[u.interval[0]], columns[u.interval[1]])
    number = columns[u.column]
    stated = np.full(len(number), np.nan) if u.standard_error is None else columns[u.standard_error]
    return _Seen(number, exact, stated, ends)


def _coverage(u: Uncertainty, seen: list[_Seen]) -> Coverage:
    errors = np.concatenate([s.number - s.exact for s in seen])
    stated = np.concatenate([s.error for s in seen])
    rms = float(np.sqrt(np.mean(stated**2) / np.mean(errors**2))) if errors.any() else np.nan
    held, away = [], []
    for s in seen:
        if s.ends is not None:
            inside = (s.ends[0] <= s.exact + 1e-9) & (s.exact <= s.ends[1] + 1e-9)
            together = "simultaneous" in (u.interval or ("",))[0]
            held.append(np.array([inside.all()]) if together else inside)
            away.append(np.abs(s.exact) > AWAY * s.error.max(initial=0))
    if not held:
        return Coverage(u.column, "", u.method, np.nan, np.nan, np.nan, rms)
    share = np.concatenate(held)
    far = np.concatenate(away)
    large = float(share[far].mean()) if far.shape == share.shape and far.any() else np.nan
    interval = "simultaneous" if far.shape != share.shape else "each"
    doubt = float(np.std([h.mean() for h in held if h.size]) / len(held) ** 0.5)
    return Coverage(u.column, interval, u.method, float(share.mean()), doubt, large, rms)
