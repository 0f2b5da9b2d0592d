"""Noisy margins with most of their noise removed, by shrinkage towards a model of all of them.

A mixture fitted to all margins (``mixture``) has little noise but may be wrong; a noisy table is
unbiased but mostly noise.  A better table lies between them, cell by cell (``shrinkage``), and keeps
the correlations that the noisy one shows (``trends``).

The result is biased, unlike the noisy margins.  It is meant for synthetic records, whose error it
halves on tables of many cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.mixture import fit_mixture
from dpcore.post.records.shrinkage import shrink
from dpcore.post.records.trends import Summed, keep_trends
from dpcore.post.tables.margins import Attributes, Margin, Residual


def denoise(
    columns: RecordColumns,
    margins: Sequence[Margin],
    generator: np.random.Generator,
    *,
    total: float,
    measured: Sequence[Margin | Residual] | None = None,
    sums: Mapping[Attributes, Summed] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
) -> list[Margin]:
    """The margins with less noise and some bias; their stated variance remains the noise variance.

    ``margins``: noisy tables; ``measured``: the tables from which they were computed, by default the
    margins themselves, to which the model is fitted; ``total``, ``progress``: as for ``fit_mixture``;
    ``sums``: as for ``keep_trends``.

    Tables may be slightly negative and need not agree.
    """
    noisy = [each for each in margins if each.variance > 0]  # a cell that is the total has no noise
    if total == 0 or not noisy:
        return list(margins)
    drawn = [each for each in measured or noisy if each.variance > 0 and each.attributes]
    known = {attribute for each in drawn for attribute in each.attributes}
    # A column of one cell may be in no measurement; its table is the total.
    constant = [
        Margin((a,), np.array([total]), 1.0) for a in range(len(columns.sizes)) if a not in known
    ]
    mixture = fit_mixture(columns, [*drawn, *constant], generator, total=total, progress=progress)
    models = [total * mixture.shares(margin.attributes) for margin in noisy]
    shrunken = [
        shrink(model, margin.table, margin.variance)
        for model, margin in zip(models, noisy, strict=True)
    ]
    keep_trends(shrunken, models, noisy, columns.in_order, sums)
    better = iter(
        margin._replace(table=table) for margin, table in zip(noisy, shrunken, strict=True)
    )
    return [next(better) if margin.variance > 0 else margin for margin in margins]
