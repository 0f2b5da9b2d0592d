"""Coverage of the exact kernel density by simultaneous bands, by the shape of the data.

The exact estimate is that of the records' own values, before they are moved to any grid; noise is drawn
from the law of the mechanism, which does not depend on the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.axes import Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.domain.transforms import TransformName
from dpcore.line.statistic import Noisy
from dpcore.releases.densities.binned_density import BinnedDensity
from dpcore.releases.densities.density import Density
from dpcore.releases.densities.function import SmoothFunction
from dpcore.releases.densities.process import default_points
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.releases.table import TWO_SIDED
from papers.coefficient_laplace.release import CoefficientDensity
from papers.difference_body.release import BodyDensity
from papers.k_norm.release import GammaDensity

ALPHAS = ("1/2", "1", "4")

ROWS = 5000

Draw = Callable[[np.random.Generator, int], Floats]


def _mixed(share: float, one: Draw, other: Draw) -> Draw:
    return lambda g, n: np.where(g.random(n) < share, one(g, n), other(g, n))


def _normal(mean: float, stddev: float) -> Draw:
    return lambda g, n: g.normal(mean, stddev, n)


def _uniform(g: np.random.Generator, n: int) -> Floats:
    return g.random(n)


SHAPES: Mapping[str, Draw] = {
    "normal": _normal(0.5, 0.12),
    "two modes": _mixed(0.6, _normal(0.3, 0.07), _normal(0.75, 0.05)),
    "atom at zero": _mixed(0.22, lambda g, n: np.zeros(n), lambda g, n: g.gamma(2, 0.1, n)),
    "heaped": lambda g, n: np.round(g.normal(0.4, 0.15, n), 1),
    "uniform": _uniform,
    "heavy tail": lambda g, n: 0.5 + 0.04 * g.standard_cauchy(n),
    "exponential": lambda g, n: g.exponential(0.15, n),
    "narrow spike": _mixed(0.5, _normal(0.6, 0.003), _uniform),
    "one value": lambda g, n: np.full(n, 1 / 3),
    "whole minutes": lambda g, n: np.floor(1440 * g.beta(2, 5, n)) / 1440,
}
"""Ten shapes on [0, 1]; what falls outside is moved to the ends."""

KINDS: Mapping[tuple[str, int], tuple[type[Density | SmoothFunction], float, int]] = {
    ("binned-laplace", 1): (BinnedDensity, 0.05, 2**16),
    ("spectral-gaussian", 1): (SpectralDensity, 0.05, 2**16),
    ("spectral-gamma", 1): (GammaDensity, 0.2, 2**16),
    ("coefficient-laplace", 1): (CoefficientDensity, 0.2, 2**16),
    ("difference-body", 1): (BodyDensity, 0.25, 2**16),
    ("binned-laplace", 2): (BinnedDensity, 0.1, 2**12),
    ("spectral-gaussian", 2): (SpectralDensity, 0.1, 2**12),
    ("spectral-gamma", 2): (GammaDensity, 0.5, 2**12),
    ("gaussian-process", 1): (SmoothFunction, 0.05, 2**16),
    ("gaussian-process", 2): (SmoothFunction, 0.1, 2**12),
}
"""Mechanism and columns, with a bandwidth and the cells of the columns' own grid."""


def by_shape(
    draws: int,
    mechanism: str | None = None,
    cells: int | None = None,
    answered: float = 1.0,
    transform: TransformName = "none",
    periodic: bool = False,
) -> Iterator[dict[str, Any]]:
    """A row for each mechanism, number of columns, alpha and shape: ``cover``, the share of bands that
    hold the exact kernel density everywhere; ``each``, of pointwise intervals; and ``left``, the largest
    bound of what is left out over the half width of the band there.

    ``cells``: of the columns' own grid, instead of those of ``KINDS``; ``answered``: the share of the
    records that have values, where it is below 1; ``transform``: of columns from 1 to 1000, of which the
    bands are those of the columns' own scale; ``periodic``: densities whose ends meet.
    """
    null = answered < 1
    for (name, columns), (kind, bandwidth, size) in KINDS.items():
        if mechanism not in (None, name) or (null and kind is BodyDensity):
            continue
        if periodic and kind is SmoothFunction:
            continue
        bandwidth /= 1 + periodic  # a circle has room for half as many bumps
        exact: dict[str, Floats] = {}  # the same for every alpha
        bounds = (0.0, 1.0) if transform == "none" else (1.0, 1000.0)
        grid = Grid("x", *bounds, cells or size, null, transform=transform)
        axes = tuple(replace(grid, name=f"x{i}") for i in range(columns))
        for alpha in ALPHAS:
            release = _release(kind, Domain(axes), alpha, (bandwidth,) * columns, periodic)
            size, generator = release.mechanism.size, np.random.default_rng(3)
            if isinstance(release, SmoothFunction):
                noise = [release.mechanism.simulate(size, generator) for _ in range(draws)]
            else:
                noise = list(release._noise(Noisy(np.arange(3)), draws))
            factor = release.band_factor(Noisy(np.zeros(release.mechanism.size, dtype=np.int64)))
            for shape in SHAPES:
                values = records(shape, columns)[: round(answered * ROWS)]
                values = bounds[0] + values * (bounds[1] - bounds[0])
                if shape not in exact:
                    scaled = [axis.to_unit(x) for axis, x in zip(axes, values.T, strict=True)]
                    exact[shape] = exact_density(release, np.column_stack(scaled))
                row = {"mechanism": name, "columns": columns, "alpha": alpha, "shape": shape}
                yield row | _coverage(release, values, exact[shape], noise, factor)


def _release(
    kind: type[Density | SmoothFunction],
    domain: Domain,
    alpha: str,
    bandwidths: tuple[float, ...],
    periodic: bool,
) -> Density | SmoothFunction:
    share = Budget.of(alpha, "1e-6" if kind in (SpectralDensity, SmoothFunction) else "0")
    if issubclass(kind, SmoothFunction):
        points = default_points(bandwidths)
        return SmoothFunction("r", domain, ROWS, share, "gaussian", bandwidths, points)
    return kind("r", domain, ROWS, share, bandwidths, periodic=periodic)


def records(shape: str, columns: int, rows: int = ROWS) -> Floats:
    """(rows, columns) values in [0, 1]; further columns are uniform and depend on the first a little."""
    generator = np.random.default_rng(1)
    first = SHAPES[shape](generator, rows)
    others = [0.7 * generator.random(rows) + 0.3 * first for _ in range(columns - 1)]
    return np.clip(np.column_stack([first, *others]), 0.0, 1.0)


def exact_density(release: Density | SmoothFunction, values: Floats) -> Floats:
    """The kernel estimate of the values themselves on the published grid, by definition: for a
    density reflected at the bounds, or wrapped around."""
    shape = release.printed.shape if isinstance(release, Density) else release.points
    rows, counts = np.unique(values, axis=0, return_counts=True)
    total = np.zeros(shape)
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        first, *others = (
            bumps(size, h, x, _boundary(release))
            for size, h, x in zip(shape, release.bandwidths, rows[block].T, strict=True)
        )
        first *= counts[block]
        total += first @ others[0].T if others else first.sum(axis=1)
    return total / len(values)


def unit_density(release: Density | SmoothFunction) -> Floats:
    """At the published points, the density of the columns that is uniform on their transforms' scale."""
    shape = release.printed.shape if isinstance(release, Density) else release.points
    points = np.meshgrid(
        *(
            axis.from_unit((np.arange(size) + 0.5) / size)
            for axis, size in zip(release.axes, shape, strict=True)
        ),
        indexing="ij",
    )
    return release.unit_density([place.ravel() for place in points])


BLOCK = 2**13
"""Different records whose bumps are added up at once."""


def _boundary(release: Density | SmoothFunction) -> str:
    if not isinstance(release, Density):
        return "open"
    return "periodic" if release.periodic else "reflected"


def bumps(size: int, h: float, x: Floats, boundary: str = "reflected") -> Floats:
    """(size, len(x)) the kernel at the centres of so many cells for records at x."""
    points = (np.arange(size) + 0.5) / size
    total = np.zeros((size, len(x)))
    turns = {"reflected": (-2, 0, 2), "periodic": (-3, -2, -1, 0, 1, 2, 3), "open": (0,)}
    for turn in turns[boundary]:
        for image in (turn + x, turn - x) if boundary == "reflected" else (turn + x,):
            total += np.exp(-0.5 * ((points[:, None] - image[None, :]) / h) ** 2)
    return total / h / np.sqrt(2 * np.pi)


def _coverage(
    release: Density | SmoothFunction,
    values: Floats,
    exact: Floats,
    noise: list[Floats],
    factor: float,
) -> dict[str, float]:
    sizes, axes = np.array(release.answered.shape), release.axes
    found = [
        np.searchsorted(axis.edges, x, "right") - 1 for axis, x in zip(axes, values.T, strict=True)
    ]
    codes = np.minimum(np.column_stack(found), sizes - 1)
    unit = unit_density(release)
    codes = np.vstack([codes, np.tile(sizes, (ROWS - len(codes), 1))])
    cells, counts = np.unique(release.domain.pack(codes), return_counts=True)
    tally = Tally(release.domain, cells, counts)
    # The values are made up, so reading their exact statistic reveals nothing.
    clean = release.statistic(tally)._statistic.values
    if isinstance(release, Density):
        clean = release.coefficients(Noisy(clean))
        variance = release.printed_variance
    held, each, left = [], [], []
    for drawn in noise:
        if isinstance(release, SmoothFunction):
            stated = release.stated(Noisy(clean + drawn), factor)
        else:
            stated = release.stated(clean + drawn, factor, release.printed.density, variance)
        stated = {name: column.ravel() * unit for name, column in stated.items()}
        away = np.abs(stated["estimate"] - exact.ravel() * unit) - stated["left_out_bound"]
        held.append(bool(np.all(away <= factor * stated["standard_error"])))
        each.append(float(np.mean(away <= TWO_SIDED * stated["standard_error"])))
        half = stated["upper_simultaneous_90"] - stated["estimate"]
        left.append(float((stated["left_out_bound"] / half).max()))
    return {
        "cover": float(np.mean(held)),
        "each": float(np.mean(each)),
        "left": float(np.mean(left)),
    }
