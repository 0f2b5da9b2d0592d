"""The sensitivity of a kernel machine's weights to one record, and the tolerance of its solver.

``newton`` trains, over w in R^D, the minimiser w* of

    F(w) = (1 / n) sum_i c_i loss(<w, Phi_i>, y_i) + lambda ||w||^2,

the machine of Hall, Rinaldo & Wasserman (2013, section 4.3).  Rows with equal features and target are
one row with a weight c_i, n is the public number of records, and the penalty is lambda ||w||^2, not half
of it (so C = 1 / (2 lambda n) in the notation of LIBSVM).

**Sensitivity.** Replace one record.  F changes by (l(w) - l'(w)) / n, where the gradient of a term has
norm at most M kappa, M the largest slope of the loss and kappa >= ||Phi_i||.  F is 2 lambda-strongly
convex, so its gradients are strongly monotone: 2 lambda ||w* - w*'||^2 <= 2 M kappa ||w* - w*'|| / n,
and

    ||w* - w*'|| <= M kappa / (lambda n).

The bound is sharp: among rows at one point that all lie inside the margin, flip one label.  More
generally, let t records be in one table and not in the other, with n still public.
Then F changes by t terms l(w) / n, and w* moves by at most t M kappa / (2 lambda n): t = 2 if a record
is replaced, t = 1 if one is added or removed.  The sum of the c_i may differ from n.

**No intercept.**  An unregularised b has no strong convexity and no sensitivity: with 51 labels +1
and 50 labels -1 at one point, w = 0 and b = 1; flip one label and b = -1, whatever n and lambda.
For an intercept, append a constant coordinate to the features and pay for it in kappa.

**Solver slack.**  A solver stops near w*, and a privacy proof may not assume that it reaches w*.  It
stops where a certificate proves a gap g (``newton``) that is at most the *tolerance*, so

    ||w - w*|| <= sqrt(g / (2 lambda)),    sensitivity M kappa / (lambda n) + 2 sqrt(g / (2 lambda)).

The tolerance is a public number that every run meets; the gap that a run reaches is private.

>>> round(weight_sensitivity(rows=5, regularisation=0.25, slope=1.0, terms=2), 3)
0.808
"""

from __future__ import annotations

import math

from dpcore.machines.features import KAPPA

_UNIT_ROUNDOFF = 2.0**-53
_SLACK = 0.005


def smallest_gap(regularisation: float) -> float:
    """The smallest tolerance that float64 weights can always reach.

    The solver runs until its certificate holds, because giving up would depend on the data.

    ||w*|| <= min(1 / (2 lambda), 1 / sqrt(lambda)) for features in the unit ball and weights that sum
    to at most n, so the responses of float64 weights have a resolution of that size times 2^-53.
    """
    largest_weights = min(0.5 / regularisation, 1.0 / math.sqrt(regularisation))
    return 16.0 * _UNIT_ROUNDOFF * largest_weights


def default_gap(rows: int, regularisation: float, slope: float) -> float:
    """The tolerance that adds 1% to the sensitivity, or a little more where float64 needs it.

    ``slope``: M. Above about n = 230,000 ``smallest_gap`` is larger, and adds at most the fraction
    4.3e-8 n to the sensitivity: 4.3% for a million records.
    """
    wanted = 2.0 * (_SLACK * slope) ** 2 / (regularisation * float(rows) ** 2)
    return max(wanted, smallest_gap(regularisation))


def weight_sensitivity(rows: int, regularisation: float, slope: float, terms: float) -> float:
    """L2 sensitivity of the trained weights when ``terms`` losses are added or removed, rounded up.

    Replacing a record removes one and adds one.  ``slope``: M.
    """
    tolerance = default_gap(rows, regularisation, slope)
    exact = terms * slope * KAPPA / (2.0 * regularisation * rows)
    slack = 2.0 * math.sqrt(tolerance / (2.0 * regularisation))
    # At most nine roundings above, each a factor within 2^-53 of 1.
    return (exact + slack) * (1.0 + 16.0 * _UNIT_ROUNDOFF)
