"""Coverage: draw, publish, and compare with the same release published without noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Grid
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import ABSENT, Noisy, Statistic
from dpcore.releases.base import Release
from dpcore.releases.densities.density import Density
from dpcore.releases.machines.machine import KernelMachine
from dpcore.releases.numbers.quantiles import ColumnQuantiles
from dpcore.releases.table import ENDS, TWO_SIDED, Uncertainty
from dpcore.sampling.source import SeededSource

AWAY = 3.0
"""Numbers this many standard errors from zero are not affected by cutting off at zero."""

TOGETHER = ("lower_simultaneous", "upper_simultaneous")

FACTORS = 4
"""The factor of a band is itself simulated: coverage is averaged over this many simulations."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """Coverage of the intervals of one column, over draws; NaN where there are none.

    ``doubt``: the standard error of ``cover``, given that the intervals of one draw are correlated.
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
    # The tables are made up, so reading their exact statistic reveals nothing.
    values, cells = exact._statistic
    truth = dict(zip(_cells(cells, values), values.tolist(), strict=True))
    for draw in range(draws):
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed + draw))
        if isinstance(release, ColumnQuantiles):
            for uncertainty in (
                Uncertainty("rank", None, each, "exact", "") for each in (ENDS, TOGETHER)
            ):
                seen.setdefault(uncertainty, []).append(_ranks(release, values, noisy))
            continue
        cells = _cells(noisy.cells, noisy.values)
        exactly = [truth.get(cell % release.mechanism.size, 0) for cell in cells]
        without = np.where(noisy.values == ABSENT, ABSENT, np.array(exactly, dtype=np.int64))
        quiet = Noisy(without, noisy.cells)
        for uncertainty, found in _compared(release, noisy, quiet):
            seen.setdefault(uncertainty, []).append(found)
    return [_coverage(uncertainty, found) for uncertainty, found in seen.items()]


def _ranks(release: ColumnQuantiles, scores: Integers, noisy: Noisy) -> _Seen:
    """By how many records each published cell misses the rank of its level."""
    cells = release.sorted_cells(noisy).ravel()
    missed = scores.reshape(len(cells), -1)[np.arange(len(cells)), cells]
    unit = release.largest_statistic / release.most_rows
    ends = np.full(len(cells), -1.0), np.full(len(cells), release.rank_error)
    return _Seen(missed / unit, missed / unit, np.full(len(cells), np.nan), ends)


def _cells(cells: Integers | None, values: Integers) -> list[int]:
    return list(range(len(values))) if cells is None else cells.tolist()


def _compared(release: Release, noisy: Noisy, quiet: Noisy) -> Iterator[tuple[Uncertainty, _Seen]]:
    tables = release.publish(noisy).tables
    if noisy.cells is not None:  # only some cells were published
        (table,) = tables
        yield from ((u, _seen(u, table.columns, quiet.values)) for u in table.uncertainty)
        return
    for table, exact in zip(tables, release.publish(quiet).tables, strict=True):
        for u in table.uncertainty:
            # Intervals are for the unbiased column, published without noise.
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
    known = ~(np.ma.getmaskarray(number) | np.ma.getmaskarray(exact))  # a few groups have no value
    number, exact, stated = (np.ma.getdata(each)[known] for each in (number, exact, stated))
    if ends is not None:
        ends = np.ma.getdata(ends[0])[known], np.ma.getdata(ends[1])[known]
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


def band_coverage(release: Density, draws: int, seed: int = 0) -> dict[str, float]:
    """The share of covered points and of covering bands, each with its standard error.

    The noise in the coefficients does not depend on the records, so no table is published, and
    thousands of draws are quick: enough to distinguish 88 from 90 per cent.
    """
    nothing, source = np.zeros(release.mechanism.size, dtype=np.int64), SeededSource(seed)
    errors = np.sqrt(release.grid_variance(release.printed))
    factors = np.array([release.band_factor(Noisy(nothing + k)) for k in range(FACTORS)])
    at_points, at_once = np.zeros(draws), np.zeros(draws)
    for i in range(draws):
        theta = release.coefficients(release.mechanism.draw(Statistic(nothing), source))
        deviations = np.abs(release.printed.density(theta) - 1) / errors
        at_points[i] = np.mean(deviations <= TWO_SIDED)
        at_once[i] = np.mean(deviations.max() <= factors)
    return {
        "each": float(at_points.mean()),
        "doubt of each": float(at_points.std() / draws**0.5),
        "simultaneous": float(at_once.mean()),
        "doubt of simultaneous": float(at_once.std() / draws**0.5),
    }
