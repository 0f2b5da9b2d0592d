"""Time and memory of training a kernel machine, compared with scikit-learn on the same rows.

    python -m benchmarks.machines --rows 20000

prints one JSON line per loss.  Both tools minimise (nearly) the same objective on the same features in
the same process, one thread each:

    loss        scikit-learn
    hinge       LinearSVC(loss="hinge"), liblinear's dual coordinate descent, whose corner is not rounded
    logistic    LogisticRegression(solver="newton-cholesky")
    huber       none: HuberRegressor fits its scale too

``cpu_seconds`` and ``sklearn_cpu_seconds``: CPU time; ``ratio``: scikit-learn's time over ours, null
without scikit-learn; ``objective`` and ``sklearn_objective``: the value reached, lower is better;
``gap``: the certified bound on our distance to the optimum, which scikit-learn does not
offer; ``peak_gib``: the peak memory of the process so far.  The rows are made up: all distinct, four
columns, a curved boundary with noise; lambda = 1e-3.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcore.machines.features import FourierFeatures
from dpcore.machines.losses import Hinge, Huber, Logistic, Loss
from dpcore.machines.newton import train
from dpcore.machines.sensitivity import default_gap

REGULARISATION = 1e-3
LOSSES: tuple[Loss, ...] = (Hinge(), Logistic(), Huber(0.1))


def main() -> None:
    """Print one JSON line per loss."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000, help="distinct rows; default: 20000")
    parser.add_argument("--frequencies", type=int, default=256, help="default: 256")
    options = parser.parse_args()
    if min(options.rows, options.frequencies) < 1:
        parser.error("--rows and --frequencies must be positive")
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1, so that both tools have one thread")
    for loss in LOSSES:
        print(json.dumps(measured(loss, options.rows, options.frequencies)), flush=True)


def measured(loss: Loss, rows: int, frequencies: int) -> dict[str, Any]:
    """One line of results."""
    features, targets = made_up(loss, rows, frequencies)

    def objective(weights: np.ndarray) -> float:
        losses = loss.value(features @ weights, targets)
        return float(losses.mean()) + REGULARISATION * float(weights @ weights)

    ours, seconds = timed(
        lambda: train(loss, features, targets, np.ones(rows), rows, REGULARISATION).weights
    )
    result = {
        "loss": loss.name,
        "rows": rows,
        "dimensions": features.shape[1],
        "cpu_seconds": round(seconds, 3),
        "objective": objective(ours),
        "gap": default_gap(rows, REGULARISATION, loss.slope),
    }
    theirs = sklearn_machine(loss, rows)
    if theirs is not None:
        weights, other = timed(lambda: np.ravel(theirs.fit(features, targets).coef_))
        result |= {"sklearn_cpu_seconds": round(other, 3), "sklearn_objective": objective(weights)}
        result["ratio"] = round(other / seconds, 3)
    else:
        result["ratio"] = None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return result | {"peak_gib": round(peak, 3)}


def made_up(loss: Loss, rows: int, frequencies: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, D) features and (rows,) labels or targets."""
    random = np.random.default_rng(0)
    points = random.random((rows, 4))
    curve = np.sin(6 * points[:, 0]) + points[:, 1] - 0.5 + 0.4 * random.standard_normal(rows)
    classifies = loss.name in ("hinge", "logistic")
    targets = np.where(curve > 0, 1.0, -1.0) if classifies else np.clip(curve / 4, -0.5, 0.5)
    return FourierFeatures((0.3,) * 4, frequencies).transform(points), targets


def sklearn_machine(loss: Loss, rows: int) -> Any:
    """The machine of scikit-learn for the same objective: C = 1 / (2 lambda n)."""
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC
    except ImportError:
        return None
    strength, rest = 1 / (2 * REGULARISATION * rows), {"fit_intercept": False, "tol": 1e-6}
    if isinstance(loss, Hinge):
        return LinearSVC(loss="hinge", C=strength, dual=True, max_iter=10_000, **rest)
    if isinstance(loss, Logistic):
        return LogisticRegression(C=strength, solver="newton-cholesky", **rest)
    return None


def timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """The result of one run, and the CPU seconds that it took."""
    start = time.process_time()
    found = run()
    return found, time.process_time() - start


if __name__ == "__main__":
    main()
