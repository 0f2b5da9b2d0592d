"""The columns of every table of estimates for the population."""

from __future__ import annotations

import numpy as np

from dpcore.arrays import Booleans, Floats
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.table import TableColumn, reason_column, unless


def estimate_columns(
    meaning: str,
    estimates: Floats,
    sampling: Floats,
    privacy: Floats,
    ends: tuple[Floats | float, Floats | float],
    hidden: Booleans,
    reason: str,
) -> list[TableColumn]:
    """Estimates (k,) with the parts of their errors, and 95% intervals within the possible ``ends``; all
    are null in ``hidden`` rows, for this ``reason``."""
    error = np.hypot(sampling, privacy)
    lower, upper = (np.clip(estimates + side * SIGMAS_95 * error, *ends) for side in (-1, 1))
    within = ", within the possible values" * bool(np.all(np.isfinite(ends[0])))
    columns = {
        "estimate": (estimates, meaning),
        "standard_error": (error, "Standard error from sampling and noise together"),
        "sampling_error": (
            sampling,
            "Standard error from sampling alone, estimated from noisy sums",
        ),
        "privacy_error": (privacy, "Standard error from privacy noise alone"),
        "lower_95": (lower, f"Lower end of a 95% interval{within}"),
        "upper_95": (upper, f"Upper end of a 95% interval{within}"),
    }
    return [
        *(TableColumn(name, unless(hidden, each), text) for name, (each, text) in columns.items()),
        reason_column(hidden, reason),
    ]
