"""How much the square-root weights of a series save, beside months that are added up and fresh totals.

    python -m benchmarks.series

prints one JSON line for each number of periods and each quantity (``dpcore.post.series``).  Every
method publishes the same counts at the same price for the whole series, the rho that implies (alpha,
beta) = (2, 1e-6), to units of one record in one period.  ``square_root``, ``months`` and ``totals`` are
the root mean squared errors of the three methods over all periods, in records, of draws across the
privacy line; ``stated`` are those that follow from the laws of the noise.  ``months_ratio`` and
``totals_ratio`` are how many times larger the errors of the other two are than that of the first, and
``held`` is the share of its 90% intervals that hold the exact number.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from dpcore.accounting.budget import Budget
from dpcore.accounting.zcdp import affordable_rho
from dpcore.arrays import Integers
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.series import Factor, each_alone, square_root, totals
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Exact
from dpcore.mechanisms import DiscreteGaussian
from dpcore.post.series import QUANTITIES, counted, estimate
from dpcore.sampling.source import SystemSource

METHODS = {"square_root": square_root, "months": each_alone, "totals": totals}
PROMISE = Budget.of("2", "1e-6")
RELATION = Adjacency("add-remove")


def main() -> None:
    """Print the comparison at every number of periods."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--periods", type=int, nargs="+", default=[12, 60], help="default: 12 60")
    parser.add_argument("--cells", type=int, default=20_000, help="independent draws of a series")
    options = parser.parse_args()
    for periods in options.periods:
        counts = np.random.default_rng(periods).poisson(1000, (periods, options.cells))
        draws = {name: Drawn(make(periods), counts) for name, make in METHODS.items()}
        for quantity in QUANTITIES:
            if counted(quantity, periods) is not None:
                print(json.dumps(compared(periods, quantity, draws)), flush=True)


class Drawn:
    """One method's draws of all runs at the price of ``PROMISE``; ``counts``: (periods, cells)."""

    def __init__(self, factor: Factor, counts: Integers) -> None:
        squared = factor.l2_sensitivity_squared(len(counts), 1, RELATION)
        rho = affordable_rho(PROMISE.alpha, PROMISE.beta)
        self.counts, self.factor = counts, factor
        self.noise = DiscreteGaussian(counts.size, squared, squared / (2 * rho))
        exact = [np.array(factor.run(t)) @ counts[:t] for t in range(1, len(counts) + 1)]
        drawn = perturb(Exact(np.concatenate(exact)), self.noise, PROMISE, SystemSource())
        self.runs = drawn.values.reshape(counts.shape)

    def errors(self, quantity: str) -> tuple[float, float, float]:
        """Root mean squared error as drawn and as stated, and how many intervals hold."""
        squared, stated, held = [], [], []
        for t in range(1, len(self.runs) + 1):
            found = estimate(self.factor, [self.noise] * t, self.runs[:t], quantity)
            if found is not None:
                exact = counted(quantity, t) @ self.counts[:t]
                squared.append(np.mean((found.values - exact) ** 2))
                stated.append(found.standard_error**2)
                held.append(np.mean((found.lower <= exact) & (exact <= found.upper)))
        return float(np.mean(squared)) ** 0.5, float(np.mean(stated)) ** 0.5, float(np.mean(held))


def compared(periods: int, quantity: str, draws: dict[str, Drawn]) -> dict[str, object]:
    """One line of the table."""
    found = {name: drawn.errors(quantity) for name, drawn in draws.items()}
    drawn, stated, held = ({name: numbers[i] for name, numbers in found.items()} for i in range(3))
    ratios = {
        f"{name}_ratio": round(drawn[name] / drawn["square_root"], 2)
        for name in ("months", "totals")
    }
    return {
        "periods": periods,
        "quantity": quantity,
        **{name: round(error, 2) for name, error in drawn.items()},
        "stated": {name: round(error, 2) for name, error in stated.items()},
        **ratios,
        "held": round(held["square_root"], 3),
    }


if __name__ == "__main__":
    main()
