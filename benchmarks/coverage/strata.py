"""Coverage by the TRUE size of cells: an interval that holds on average may fail where it matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.base import Release
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource

STRATA = ((0, 0), (1, 9), (10, 99), (100, 999), (1000, 10**12))
MOST_VALUES, BINS = 30, 20


def by_size(release: Release, tally: Tally, draws: int, seed: int = 0) -> Iterator[dict[str, str]]:
    """A row for each stratum and each column of counts with an interval, over all tables and draws."""
    exact = release.statistic(tally)
    # Without noise the unbiased column is the exact one.
    quiet = release.publish(Noisy(exact._statistic.values)).tables
    found: dict[tuple[str, int], list[tuple[float, float, int]]] = {}
    for draw in range(draws):
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed + draw))
        for table, without in zip(release.publish(noisy).tables, quiet, strict=True):
            assert without.unbiased is not None
            truth = np.rint(without.columns[without.unbiased])
            for u in table.uncertainty:
                if u.interval is None:
                    continue
                lower, upper = (table.columns[end] for end in u.interval)
                held, wide = (lower <= truth) & (truth <= upper), upper - lower
                for place, (low, high) in enumerate(STRATA):
                    here = (truth >= low) & (truth <= high)
                    sums = float(held[here].sum()), float(wide[here].sum()), int(here.sum())
                    found.setdefault((u.column, place), []).append(sums)
    for (column, place), several in sorted(found.items()):
        held, wide, cells = np.sum(several, axis=0)
        if cells:
            low, high = STRATA[place]
            size = f"{low}" if low == high else f"{low}-{high}" if high < 10**12 else f"{low}+"
            yield {
                "column": column,
                "exact": size,
                "cells": f"{cells / draws:.0f}",
                "cover": f"{held / cells:.3f}",
                "width": f"{wide / cells:.1f}",
            }


def of_file(path: Path, alpha: str) -> tuple[Release, Tally]:
    """All pairs of a public Parquet table; numbers of many values are cut into equal bins."""
    frame = pd.read_parquet(path)
    coded = pd.DataFrame({name: _codes(frame[name]) for name in frame})
    sizes = coded.max() + 1
    domain = Domain(
        tuple(Categories(name, tuple(range(int(sizes[name])))) for name in coded if sizes[name] > 1)
    )
    packed = domain.pack(coded[list(domain.names)].to_numpy().astype(np.int64))
    cells, counts = np.unique(packed, return_counts=True)
    share = Budget.of(alpha, "1e-6")
    release = Microdata("pairs", domain, len(coded), share, noise="discrete-gaussian")
    return release, Tally(domain, cells, counts)


def _codes(values: pd.Series) -> np.ndarray:
    if values.nunique() > MOST_VALUES and pd.api.types.is_numeric_dtype(values):
        low, high = values.quantile([0.005, 0.995])
        values = ((values - low) / (high - low) * BINS).clip(0, BINS - 1).fillna(-1) // 1
    codes, found = pd.factorize(values, sort=True, use_na_sentinel=False)
    return codes if len(found) <= 10 * MOST_VALUES else np.zeros(len(values), dtype=np.int64)
