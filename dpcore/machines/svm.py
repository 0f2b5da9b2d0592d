"""The support vector machine of a classifier release: exact, certified, and of known sensitivity.

``losses.Hinge.train`` finds, over w in R^D, the minimiser w* of

    F(w) = (1 / n) sum_i c_i max(0, 1 - y_i <w, Phi_i>) + lambda ||w||^2,

the hinge machine of Hall, Rinaldo & Wasserman (2013, section 4.3).  Rows with equal features and
label are one row with a weight c_i, n is the public number of records, and the penalty is
lambda ||w||^2, not half of it (so C = 1 / (2 lambda n) in the notation of LIBSVM).

**Sensitivity.** Replace one record.  F changes by (l(w) - l'(w)) / n, where every subgradient of a
hinge term has norm at most kappa >= ||Phi_i||.  F is 2 lambda-strongly convex, so its subgradients
are strongly monotone: 2 lambda ||w* - w*'||^2 <= ||w* - w*'|| 2 kappa / n, and

    ||w* - w*'|| <= kappa / (lambda n).

The bound is sharp: among rows at one point that all lie inside the margin, flip one label.  More
generally, let t records be in one table and not in the other, with n a public number all the same.
Then F changes by t terms l(w) / n, and w* moves by t kappa / (2 lambda n) at most: t = 2 where a
record is replaced, t = 1 where one is added or removed.  The sum of the c_i may differ from n.

**No intercept.**  An unregularised b has no strong convexity and no sensitivity: with 51 labels +1
and 50 labels -1 at one point, w = 0 and b = 1; flip one label and b = -1, whatever n and lambda.
For an intercept, append a constant coordinate to the features and pay for it in kappa.

**Solver slack.**  A solver stops near w*, and a privacy proof may not assume that it reaches w*.
The dual, for multipliers a in [0, 1]^N and w(a) = (1 / (2 lambda n)) sum_i c_i a_i y_i Phi_i, is

    D(a) = (1 / n) sum_i c_i a_i - lambda ||w(a)||^2 <= F(w*) .

F rises by lambda ||w - w*||^2 at least, D falls by lambda ||w(a) - w*||^2 at least (it is exactly
quadratic in w(a)), so at w = w(a) the gap g = F - D >= 2 lambda ||w - w*||^2, and

    ||w - w*|| <= sqrt(g / (2 lambda)),    sensitivity kappa / (lambda n) + 2 sqrt(g / (2 lambda)).

Here g is the *tolerance*, a public number that every run meets, not the gap that a run happens to
reach, which is private.  ``certificate`` proves the bound for the floats that are returned.

**What is assumed.** The Phi_i are the floats that are passed, and the row of one record does not depend
on other records (``features.transform`` ensures it).  Everything after them may round as it likes, in
any order of summation and with any number of threads: the certificate counts all of it.

>>> round(weight_sensitivity(rows=5, regularisation=0.25), 3)
0.808
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.machines.certificate import certified_gap
from dpcore.machines.features import KAPPA
from dpcore.machines.interior_point import Problem, iterates

_UNIT_ROUNDOFF = 2.0**-53
_SLACK = 0.005
_PATIENCE = 12
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Solution:
    """A trained machine: private until noise is added.

    ``weights``: (D,) w with ||w - w*|| <= sqrt(gap / (2 lambda)); ``gap``: the certified gap, at
    most the tolerance, and private like the weights; ``iterations``: Newton steps taken, private
    too.
    """

    weights: Floats
    gap: float
    iterations: int

    def __repr__(self) -> str:
        return "<trained machine: withheld>"


def smallest_gap(regularisation: float) -> float:
    """The least tolerance that training accepts: float64 weights can always meet it.

    ||w*|| <= min(1 / (2 lambda), 1 / sqrt(lambda)) for features in the unit ball and weights that
    sum to n at most, so the margins of float64 weights have a grain of that size times 2^-53.
    """
    largest_weights = min(0.5 / regularisation, 1.0 / math.sqrt(regularisation))
    return 16.0 * _UNIT_ROUNDOFF * largest_weights


def default_gap(rows: int, regularisation: float, slope: float = 1.0) -> float:
    """The tolerance that adds 1% to the sensitivity, or a little more where float64 needs it.

    ``slope``: the Lipschitz constant M of the loss.  Above n = 230,000 or so ``smallest_gap`` is the
    larger of the two, and adds at most the fraction 4.3e-8 n: 4.3% for a million records.
    """
    _require_public(rows, regularisation)
    wanted = 2.0 * (_SLACK * slope) ** 2 / (regularisation * float(rows) ** 2)
    return max(wanted, smallest_gap(regularisation))


def weight_sensitivity(
    rows: int,
    regularisation: float,
    kappa: float = KAPPA,
    gap: float | None = None,
    slope: float = 1.0,
    terms: float = 2,
) -> float:
    """L2 sensitivity of the trained weights when ``terms`` losses are added or removed, rounded up.

    Replacing a record removes one and adds one.

    ``kappa``: bound on ||Phi||; ``gap``: the tolerance given to the solver (``default_gap`` if
    None); 0 gives the sensitivity of the exact minimiser; ``slope``: the Lipschitz constant M of the
    loss, 1 for the hinge: terms slope kappa / (2 lambda n) (METHODS h).
    """
    _require_public(rows, regularisation)
    for name, value in (("kappa", kappa), ("slope", slope)):
        if not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be positive and finite, not {value!r}")
    tolerance = default_gap(rows, regularisation, slope) if gap is None else gap
    if not (math.isfinite(tolerance) and tolerance >= 0.0):
        raise ValueError(f"gap must not be negative or infinite, but is {gap!r}")
    exact = terms * slope * kappa / (2.0 * regularisation * rows)
    slack = 2.0 * math.sqrt(tolerance / (2.0 * regularisation))
    # At most nine roundings above, each a factor within 2^-53 of 1.
    return (exact + slack) * (1.0 + 16.0 * _UNIT_ROUNDOFF)


def solve(problem: Problem, tolerance: float) -> Solution:
    """The minimiser of a sum of hinges, to within a certified gap of ``tolerance``.

    Starts again on another path where one stalls.  (In thousands of random problems, degenerate ones
    among them, the first path always arrived.)
    """
    if not len(problem.shares):
        return Solution(np.zeros(problem.features.shape[1]), 0.0, 0)
    steps, detour = 0, 0.0
    while True:
        best, stale = math.inf, 0
        for multipliers, solution in iterates(problem, caution=0.005 + detour / 2.0):
            steps += 1
            proved = certified_gap(problem, multipliers, solution, good=tolerance)
            if proved <= tolerance:
                return Solution(solution, proved, steps)
            best, stale = (proved, 0) if proved < 0.9 * best else (best, stale + 1)
            if stale > _PATIENCE:
                break
        detour = (detour + _GOLDEN) % 1.0


def public_tolerance(
    rows: int, regularisation: float, gap: float | None, slope: float = 1.0
) -> float:
    """The tolerance to train to, refused where float64 may not reach it."""
    _require_public(rows, regularisation)
    tolerance = default_gap(rows, regularisation, slope) if gap is None else gap
    if not tolerance >= smallest_gap(regularisation):
        raise ValueError(
            f"gap must be at least {smallest_gap(regularisation):.3g} for regularisation "
            f"{regularisation!r}, not {gap!r}"
        )
    return tolerance


def checked_problem(
    features: Floats,
    labels: Floats,
    weights: NDArray[np.generic],
    rows: int,
    regularisation: float,
) -> Problem:
    """The arrays, checked for form, without rows of count zero; messages never hold values."""
    matrix = np.ascontiguousarray(features, dtype=np.float64)
    counts = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2 or labels.shape != (len(matrix),) or counts.shape != (len(matrix),):
        raise ValueError(
            "features, labels and weights must have shapes (N, D), (N,) and (N,), not "
            f"{matrix.shape}, {labels.shape} and {counts.shape}"
        )
    if not np.all(counts >= 0.0):
        raise ValueError("weights must not be negative")
    if float(np.sum(counts)) > rows * (1.0 + 2.0**-30):  # each of them may be rounded
        raise ValueError("weights must sum to at most rows")
    if not np.all(np.isfinite(matrix)):
        raise ValueError("features must be finite")
    present = counts > 0.0
    if not present.all():
        matrix, labels, counts = matrix[present], labels[present], counts[present]
    return Problem(matrix, labels, counts / rows, regularisation)


def _require_public(rows: int, regularisation: float) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows must be a positive integer, not {rows!r}")
    if not (math.isfinite(regularisation) and regularisation > 0.0):
        raise ValueError(f"regularisation must be positive and finite, not {regularisation!r}")
