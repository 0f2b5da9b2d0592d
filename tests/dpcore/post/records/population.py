"""Made-up populations with strong associations, and their noisy margins."""

import numpy as np

from dpcore.post.tables.margins import Margin, margins_of


def population(sizes, rows, seed, kinds=4):
    """(rows, k) codes: every record is of one of a few kinds, each with its own habits."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, kinds, rows)
    columns = []
    for size in sizes:
        habits = generator.dirichlet(np.full(size, 0.5), kinds).cumsum(axis=1)
        columns.append(np.sum(generator.random(rows)[:, None] > habits[kind][:, :-1], axis=1))
    return np.stack(columns, axis=1)


def noisy_margins(codes, sizes, attributes, variance, seed):
    generator = np.random.default_rng(seed)
    return [
        Margin(attrs, table + generator.normal(0, variance**0.5, table.shape), variance)
        for attrs, table in zip(attributes, margins_of(codes, sizes, attributes), strict=True)
    ]


def total_variation(codes, other, sizes, attributes):
    """The mean total variation distance of the margins of two tables of records."""
    return float(
        np.mean(
            [
                np.abs(one / len(codes) - two / len(other)).sum() / 2
                for one, two in zip(
                    margins_of(codes, sizes, attributes),
                    margins_of(other, sizes, attributes),
                    strict=True,
                )
            ]
        )
    )


def misfit(codes, sizes, margins):
    """Sum over margins and cells of (count of the records - margin)^2 / variance.

    A margin of a single cell contains no information about the records and is left out.
    """
    counts = margins_of(codes, sizes, [margin.attributes for margin in margins])
    return float(
        sum(
            np.sum((count - margin.table) ** 2) / margin.variance
            for count, margin in zip(counts, margins, strict=True)
            if count.size > 1
        )
    )
