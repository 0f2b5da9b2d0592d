"""How fast an audit approaches the true loss, and whether it finds planted faults.

    python -m benchmarks.audit            one JSON line per mechanism
    python -m benchmarks.audit --tables   what it finds in wrong mechanisms and in correct ones, as text
    python -m benchmarks.audit --power    how narrow noise must be for audits to find it, as text
    python -m benchmarks.audit --short PLAN ...    CPU seconds of the short audit of plans, as text

A line has the CPU seconds until a lower bound of 0.9 alpha at 95% confidence, the bound reached
and the number of fresh draws on each side; search, learning and all pairs of inputs are included.
Draws start at 2,000 and are multiplied by 4 until the bound is reached (``reached``).  Attempt i has
5% / (i (i + 1)) of the error, and the seconds of all attempts count.

Mechanisms, alpha = 1 unless stated, queries of sensitivity 1:

    laplace               one query; exact noise in steps of 2**-16
    laplace in floats     the same with numpy's floating point noise: its last digits leak
    noisy max             index of the largest of 5 queries + Laplace noise of scale 2 / alpha
    sparse vector, SVT1   Lyu, Su & Li (2017), Algorithm 1, 10 queries, 1 answer above threshold
    sparse vector, SVT3   their Algorithm 3, which is wrong: it prints the noisy query that passed the
                          threshold, and with it a limit on the noise of the threshold, and its
                          noise is half of SVT1's.  Its loss grows with the number of queries; the
                          line has the seconds to a bound above alpha (``violation``)
    randomised response   truth with probability e / (1 + e)
    exponential mechanism 5 choices, utility of sensitivity 1
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.audit import Audited, AuditResult, Simulated, audit_mechanism
from dpcore.audit.draws import as_outputs
from dpcore.sampling.discrete_laplace import discrete_laplace
from dpcore.sampling.source import RandomSource, SeededSource
from schemas.plan import Plan, load_plan
from tasks.audit.audit import audit_shortly

FIRST, LAST = 2_000, 2_048_000
QUERIES, BELOW = 10, -1000.0
STEPS = 2**16


@dataclass(frozen=True)
class LatticeLaplace:
    """One query of sensitivity 1 with exact Laplace noise, in whole steps."""

    alpha: float
    name = "laplace"

    def draw(self, side: int, size: int, source: RandomSource) -> Integers:
        noise = discrete_laplace(Fraction(STEPS) / Fraction(self.alpha), size, source)
        return as_outputs(noise + side * STEPS)

    def scores(self) -> tuple[()]:
        return ()


def noisy_max(alpha: float) -> Callable[..., Integers]:
    """Index of the largest noisy query."""

    def run(answers: Floats, size: int, generator: np.random.Generator) -> Integers:
        noisy = answers + generator.laplace(scale=2 / alpha, size=(size, len(answers)))
        return np.asarray(noisy.argmax(axis=1))

    return run


def sparse_vector(alpha: float, noise: float, numeric: bool) -> Callable[..., Floats]:
    """The first query above a noisy threshold: its position, and its noisy value if ``numeric``.

    Outputs are BELOW before it and NaN after it.  The threshold is 0 with noise of scale 2 / alpha;
    queries have noise of scale ``noise`` / (alpha / 2).
    """

    def run(answers: Floats, size: int, generator: np.random.Generator) -> Floats:
        threshold = generator.laplace(scale=2 / alpha, size=(size, 1))
        shape = (size, len(answers))
        # Noise in whole steps: the last digits of floats must not be what is found.
        exact = generator.laplace(scale=2 * noise / alpha, size=shape)
        noisy = answers + np.rint(exact * STEPS) / STEPS
        above = noisy >= threshold
        passed = np.cumsum(above, axis=1)
        outputs = np.where(above, noisy if numeric else 1.0, BELOW)
        outputs[(passed > 1) | ((passed == 1) & ~above)] = np.nan
        return outputs

    return run


def exponential(alpha: float) -> Callable[..., Integers]:
    """A choice with probability proportional to exp(alpha utility / 2)."""

    def run(utilities: Floats, size: int, generator: np.random.Generator) -> Integers:
        weights = np.exp(alpha / 2 * (utilities - utilities.max()))
        cuts = np.cumsum(weights / weights.sum())[:-1]
        return np.searchsorted(cuts, generator.random(size), side="right")

    return run


def randomised_response(alpha: float) -> Callable[..., Integers]:
    """A bit that is true with probability e^alpha / (1 + e^alpha)."""

    def run(bit: int, size: int, generator: np.random.Generator) -> Integers:
        honest = generator.random(size) < 1 / (1 + math.exp(-alpha))
        return np.where(honest, bit, 1 - bit)

    return run


def answer_pairs(count: int) -> list[tuple[Floats, Floats]]:
    """Answers to ``count`` queries on neighbouring tables, each at most 1 apart.

    All change, one changes, one changes against the rest, halves against each other (patterns after
    Ding et al. 2018); the first answers are all 0, or 4 except for one query.
    """
    first, last = np.eye(count)[0], np.eye(count)[-1]
    half = np.repeat([0.0, 1.0], [count // 2, count - count // 2])
    changes = [np.ones(count), first, 1 - first, half]
    changes += [sign * (2 * part - 1) for part in (first, last, half) for sign in (1, -1)]
    starts = [np.zeros(count), 4 * (1 - first), 4 * (1 - last)]
    return [(start, start + change) for start in starts for change in changes]


def simulated(name: str, run: Callable[..., NDArray[np.generic]], count: int) -> list[Audited]:
    """A mechanism on all pairs of answers."""
    return [Simulated(name, pair, run) for pair in answer_pairs(count)]


def mechanisms(alpha: float = 1.0) -> dict[str, list[Audited]]:
    """Every benchmark mechanism with its pairs of neighbouring inputs."""
    floats = Simulated("laplace in floats", (0.0, 1.0), _float_laplace(alpha))
    svt1, svt3 = sparse_vector(alpha, 2, False), sparse_vector(alpha, 1, True)
    return {
        "laplace": [LatticeLaplace(alpha)],
        "laplace in floats": [floats],
        "noisy max": simulated("noisy max", noisy_max(alpha), 5),
        "sparse vector, SVT1": simulated("SVT1", svt1, QUERIES),
        "sparse vector, SVT3": simulated("SVT3", svt3, QUERIES),
        "randomised response": [Simulated("response", (0, 1), randomised_response(alpha))],
        "exponential mechanism": simulated("exponential", exponential(alpha), 5),
    }


def _float_laplace(alpha: float) -> Callable[..., Floats]:
    def run(answer: float, size: int, generator: np.random.Generator) -> Floats:
        return answer + generator.laplace(scale=1 / alpha, size=size)

    return run


@dataclass(frozen=True)
class Reached:
    """The last audit, and the CPU seconds of all attempts."""

    result: AuditResult
    seconds: float


def until(
    pairs: Sequence[Audited], alpha: float, goal: float, seed: int = 1, most: int = LAST
) -> Reached:
    """Audit with ever more draws until the lower bound passes the goal; all attempts count."""
    source, draws, attempt = SeededSource(seed), FIRST, 1
    start = time.process_time()
    while True:
        error = 0.05 / (attempt * (attempt + 1))
        result = audit_mechanism(
            pairs,
            Budget.of(Fraction(alpha)),
            draws,
            source,
            level=1 - error,
            search_draws=draws // 2,
        )
        if result.lower_bound > goal or 4 * draws > most:
            return Reached(result, time.process_time() - start)
        draws, attempt = 4 * draws, attempt + 1


def line(name: str, alpha: float) -> dict[str, object]:
    """One measurement."""
    pairs = mechanisms(alpha)[name]
    wrong = name in ("sparse vector, SVT3", "laplace in floats")
    goal = alpha if wrong else 0.9 * alpha
    reached = until(pairs, alpha, goal)
    result = reached.result
    return {
        "mechanism": name,
        "alpha": alpha,
        "goal": "violation" if wrong else "0.9 alpha",
        "reached": result.lower_bound > goal,
        "cpu_seconds": round(reached.seconds, 3),
        "lower_bound": round(result.lower_bound, 3),
        "draws": result.draws,
        "pair": result.pair,
        "outcome": result.outcome,
    }


def short_lines(plans: Sequence[Plan]) -> Iterator[str]:
    """CPU seconds of the short audit of each plan, after one that loads the libraries."""
    yield "| plan | seconds |\n|---|---|"
    audit_shortly.fn(plans[0])
    for plan in plans:
        start = time.process_time()
        audit_shortly.fn(plan)
        yield f"| {plan.dataset} | {time.process_time() - start:.1f} |"


def power_lines_of_faults() -> Iterator[str]:
    """What one audit finds in each wrong mechanism."""
    from tests.dpcore.audit.gallery import WRONG, audited

    yield f"{'wrong mechanism':56} claim  true loss  at least  draws"
    for name, exhibit in WRONG.items():
        found = audited(exhibit, 1)
        yield (
            f"{name:56} {float(exhibit.claim.alpha):5.3g}  {exhibit.loss:>9}"
            f"  {found.lower_bound:8.2f}  {found.draws:,}  {found.outcome}"
        )


def silence_lines(repeats: int) -> Iterator[str]:
    """How often an audit at 95% confidence fails a right mechanism."""
    from tests.dpcore.audit.gallery import RIGHT, violations

    yield f"{'right mechanism':56} claim  largest bound  failed of {repeats}  draws"
    for name, exhibit in RIGHT.items():
        failed, largest = violations(exhibit, repeats)
        yield (
            f"{name:56} {float(exhibit.claim.alpha):5.3g}  {largest:13.2f}"
            f"  {failed:12}  {exhibit.draws:,}"
        )


def main() -> None:
    """Print the measurements, or the tables."""
    parser = argparse.ArgumentParser(description="Measure the audits of dprelease.")
    parser.add_argument(
        "--tables", action="store_true", help="tables of wrong and correct mechanisms"
    )
    parser.add_argument(
        "--power", action="store_true", help="how narrow noise must be to be found, by mechanism"
    )
    parser.add_argument(
        "--short", type=Path, nargs="+", metavar="PLAN", help="CPU seconds of the short audit"
    )
    parser.add_argument("--repeats", type=int, default=40, help="audits of each correct mechanism")
    arguments = parser.parse_args()
    if arguments.short:
        if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
            parser.error("set OPENBLAS_NUM_THREADS=1, as the command line does")
        for text in short_lines([load_plan(path) for path in arguments.short]):
            print(text, flush=True)
        return
    if arguments.power:
        from benchmarks.planted import power_lines

        for text in power_lines():
            print(text, flush=True)
        return
    if arguments.tables:
        print("\n".join([*power_lines_of_faults(), *silence_lines(arguments.repeats)]))
        return
    for name in mechanisms():
        print(json.dumps(line(name, 1.0)), flush=True)
    print(json.dumps(line("sparse vector, SVT3", 0.1)), flush=True)


if __name__ == "__main__":
    main()
