"""The expected errors of a model that is measured directly, found by drawing it for made-up records.

Whether noise leads a step astray depends on how the terms vary together and how many records a category
has: formulas that assume large samples promise too much.  So the whole release is drawn several times,
for records whose columns are independent and typical of their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.models.model import MeasuredModel, ModelFit
from dpcore.sampling.source import SeededSource

MOST_RECORDS, DRAWS = 20_000, 5
"""If there are more records, each made-up record counts several times."""

MOST_PRODUCTS, FEWEST = 10**7, 200
"""A limit on records times pairs of terms: with many terms fewer records are made up, and drawn once;
but at least the second number of records."""


def expected_model(release: MeasuredModel, shares: Mapping[str, Floats]) -> ModelFit:
    """The typical (median) covariances over some draws; ``shares``: for each column, (cells,).

    The coefficients are meaningless, because the columns are independent.
    """
    assert release.terms is not None
    return _expected(release, tuple(shares[a.name].tobytes() for a in release.terms.axes))


@lru_cache(maxsize=64)
def _expected(release: MeasuredModel, each: tuple[bytes, ...]) -> ModelFit:
    """The expected result; ``each``: for each axis of the terms, the shares of its cells."""
    assert release.terms is not None
    shares = [np.frombuffer(of) for of in each]
    pairs = release.terms.size**2
    most = min(max(MOST_PRODUCTS // pairs, FEWEST), MOST_RECORDS)
    generator, number = np.random.default_rng(0), min(release.rows, most)
    codes = [generator.choice(len(of), number, p=of) for of in shares]
    cells = _units(release, np.column_stack(codes), generator)
    counts = np.full(len(cells), release.rows // number)
    exact = release.statistic(Tally.of(release.domain, cells, counts))
    # The privacy error of means, whose scores are not clipped, hardly differs between draws.
    several = number == min(release.rows, MOST_RECORDS) and not release.scores.whole
    found = [
        release.fitted(perturb(exact, release.mechanism, release.share, SeededSource(seed)))
        for seed in range(DRAWS if several else 1)
    ]
    values, sampling, privacy = (
        np.median([fit[part] for fit in found], axis=0) for part in range(3)
    )
    if release.family == "gaussian" and not release.scores.whole:
        # The tails of residuals are unknown: the noise is the geometric mean of what these records need
        # and what residuals without long tails need.
        usual = (release.width_ratio**2 - 1) * np.diag(sampling)
        part = np.sqrt(usual / np.maximum(np.diag(privacy), 1e-300))
        privacy = privacy * np.sqrt(np.outer(part, part))
    hidden = np.mean([fit.hidden for fit in found], axis=0) >= 0.5
    if release.design.clusters:
        # Noise makes the estimated sampling error of clusters too large.  Made-up records are not
        # correlated within clusters, so the sampling error without clusters is used.
        alone = replace(release.design, strata=None, clusters=None, drawn_clusters=0)
        domain = alone.domain(release.terms.axes)
        own = _expected(replace(release, design=alone, domain=domain), each).sampling
        total = np.mean([np.diag(fit.sampling + fit.privacy) for fit in found], axis=0)
        sampling, privacy = own, np.diag(np.maximum(total - np.diag(own), np.diag(privacy)))
    return ModelFit(values, sampling, privacy, hidden)


def _units(release: MeasuredModel, codes: Integers, generator: np.random.Generator) -> Integers:
    """Cells of units, each with as many of these records (n, axes) as a unit may have."""
    design = release.design
    units = max(len(codes) // design.members, 1)
    records = codes[np.arange(units * design.members) % len(codes)]
    weights = np.ones((units, design.members))
    if design.steps:
        most = design.steps / design.usual
        weights = np.minimum(generator.exponential(size=weights.shape), most)
    sizes = [axis.size for axis in design.groups.values()]
    groups = generator.integers(0, sizes, (units, len(sizes)))
    records = records.reshape(units, design.members, -1)
    return design.packed(records, weights, groups, release.domain)
