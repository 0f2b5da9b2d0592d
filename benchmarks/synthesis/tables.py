"""The public test tables, and how each is coded into cells.

The codings are public: domains and dictionaries that come with the tables, and for numbers of the
American Community Survey round bins, as explained in ``deployments/plans/acs_ma.yaml``.

    nltcs           16 columns   2 cells each
    adult_coded     14 columns   2 to 100 cells, as coded by the table's publisher
    acs_nist_ma2019 23 columns   2 to 20 cells; INDP is left out, as its codes are not in the
                                 dictionary (INDP_CAT groups them)
    made_up_wide     3 columns   2,000 cells each, made up: few of them frequent, most rare
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from dpcore.arrays import Integers
from dpcore.domain.axes import Axis, Bins, Categories
from dpcore.domain.domain import Domain

Table = tuple[Domain, Integers]

ADULT_NUMBERS = frozenset(
    ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
)
DIFFICULTIES = tuple("N12")
ACS_CATEGORIES: dict[str, Sequence[str]] = {
    "PUMA": ("25-00503", "25-00703", "25-01000", "25-01300", "25-02800"),
    "SEX": tuple("12"),
    "MSP": tuple("N123456"),
    "HISP": tuple("01234"),
    "RAC1P": tuple("123456789"),
    "HOUSING_TYPE": tuple("123"),
    "OWN_RENT": tuple("012"),
    "INDP_CAT": ("N", *map(str, range(19))),
    "EDU": ("N", *map(str, range(1, 13))),
    "PINCP_DECILE": ("N", *map(str, range(10))),
    "DVET": tuple("N123456"),
    "DREM": DIFFICULTIES,
    "DPHY": DIFFICULTIES,
    "DEYE": tuple("12"),
    "DEAR": tuple("12"),
}
# fmt: off
ACS_EDGES: dict[str, Sequence[float]] = {
    "AGEP": (0, 3, 5, 15, 16, 20, 25, 35, 45, 55, 65, 75, 100),
    "NOC": (0, 1, 2, 3, 4, 11),
    "NPF": (2, 3, 4, 5, 6, 13),
    "DENSITY": (0, 1000, 2000, 3000, 4000, 52865),
    "PINCP": (-10000, 0, 1, 10000, 20000, 35000, 50000, 75000, 100000, 150000, 250000, 500001),
    "POVPIP": (0, 50, 100, 150, 200, 300, 400, 501, 502),
    "PWGTP": (0, 25, 50, 75, 100, 150, 200, 1000),
    "WGTP": (0, 1, 25, 50, 75, 100, 150, 200, 1000),
}
# fmt: on
ACS_NULLABLE = frozenset(("NOC", "NPF", "PINCP", "POVPIP"))


def nltcs(folder: Path) -> Table:
    """16 disabilities of 21,574 elderly people."""
    frame = pd.read_parquet(folder / "nltcs" / "nltcs.parquet")
    return Domain(tuple(Categories(name, (0, 1)) for name in frame)), frame.to_numpy(np.int64)


def adult_coded(folder: Path) -> Table:
    """48,842 adults of the 1994 census, as coded for other implementations."""
    frame = pd.read_parquet(folder / "adult_coded" / "adult_coded.parquet")
    sizes = json.loads((folder / "adult_coded" / "adult-domain.json").read_text())

    def axis(name: str) -> Axis:
        if name in ADULT_NUMBERS:
            return Bins(name, tuple(map(float, range(sizes[name] + 1))), integer=True)
        return Categories(name, tuple(range(sizes[name])))

    return Domain(tuple(axis(name) for name in sizes)), frame[list(sizes)].to_numpy(np.int64)


def acs_nist_ma2019(folder: Path) -> Table:
    """7,634 people of Massachusetts in the NIST excerpts of the American Community Survey."""
    return coded_acs(pd.read_parquet(folder / "acs_nist_ma2019" / "ma2019.parquet"))


def coded_acs(frame: pd.DataFrame) -> Table:
    """The same of any records with its columns, in its order."""
    axes: list[Axis] = []
    codes = []
    for name in frame:
        if name in ACS_CATEGORIES:
            categories = tuple(ACS_CATEGORIES[name])
            axes.append(Categories(name, categories))
            codes.append(pd.Categorical(frame[name].astype(str), categories).codes)
        elif name in ACS_EDGES:
            edges = tuple(map(float, ACS_EDGES[name]))
            axes.append(Bins(name, edges, nullable=name in ACS_NULLABLE))
            values = frame[name].astype("Float64").to_numpy(np.float64, na_value=np.nan)
            clamped = np.clip(values, edges[0], np.nextafter(edges[-1], 0))
            inside = np.searchsorted(edges, clamped, side="right") - 1
            codes.append(np.where(np.isnan(values), len(edges) - 1, inside))
    return Domain(tuple(axes)), np.stack(codes, axis=1).astype(np.int64)


def decoded(domain: Domain, codes: Integers, generator: np.random.Generator) -> pd.DataFrame:
    """Records in the values of the tables: uniform in each bin, whole but for tenths of DENSITY."""
    columns: dict[str, object] = {}
    for axis, cells in zip(domain.axes, codes.T, strict=True):
        if isinstance(axis, Categories):
            columns[plain(axis.name)] = np.array(axis.categories)[cells]
        else:
            assert isinstance(axis, Bins)
            null = cells == len(axis.edges) - 1
            lower = np.where(null, 0, cells)
            edges = np.array(axis.edges)
            values = generator.uniform(edges[lower], edges[lower + 1])
            per_unit = 10 if axis.name == "DENSITY" else 1
            numbers = np.floor(values * per_unit) / per_unit
            columns[plain(axis.name)] = pd.Series(numbers, dtype="Float64").mask(null)
    return pd.DataFrame(columns)


def plain(name: str) -> str:
    """The name of a column as a plan can describe it."""
    return name.replace(">", " over ")


def made_up_wide(_: Path) -> Table:
    """100,000 made-up records of three columns of 2,000 categories, frequent by Zipf's law.

    In seven of ten records b has the same rank as a, and in five c has that of b.
    """
    generator = np.random.default_rng(0)
    rows, size = 100_000, 2000
    weights = 1 / np.arange(1, size + 1)

    def favourites(of: Integers | None, share: float) -> Integers:
        own = generator.choice(size, rows, p=weights / weights.sum())
        ranks = own if of is None else np.where(generator.random(rows) < share, of, own)
        return np.asarray(ranks)

    a = favourites(None, 0.0)
    b = favourites(a, 0.7)
    c = favourites(b, 0.5)
    codes = np.stack([generator.permutation(size)[ranks] for ranks in (a, b, c)], axis=1)
    return Domain(tuple(Categories(name, tuple(range(size))) for name in "abc")), codes


TABLES: dict[str, Callable[[Path], Table]] = {
    "nltcs": nltcs,
    "adult_coded": adult_coded,
    "acs_nist_ma2019": acs_nist_ma2019,
    "made_up_wide": made_up_wide,
}
