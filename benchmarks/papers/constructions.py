"""Every construction of the source papers: where it lives, what runs it, and what was wrong in print.

``runs`` is a kind and mechanism of a plan, all of which the tests publish, or a file of tests.  Tests
hold every entry against the code.  The page lists only what is wrong in print.
"""

from __future__ import annotations

from typing import NamedTuple


class Construction(NamedTuple):
    """``home``: a file or module of the repository; empty where the construction is not built."""

    name: str
    source: str
    home: str
    runs: str
    corrected: str = ""


LEAST = "tests/dpcore/advice/test_count_limits.py"
NOT_BUILT = "Not built: "

CONSTRUCTIONS = (
    # Hall, thesis, chapter 1
    Construction(
        "Sums of budgets",
        "Hall 1.2.3",
        "tasks/ledger/ledger.py",
        "tests/tasks/ledger/test_composition.py",
        "betas add up too; gammas only for releases fixed beforehand",
    ),
    Construction(
        "Laplace noise",
        "Hall 1.3.1",
        "dpcore/mechanisms/laplace.py",
        "histogram: discrete-laplace",
    ),
    Construction(
        "Gaussian noise",
        "Hall 1.3.2, HRW 2.1",
        "dpcore/mechanisms/gaussian.py",
        "margins: discrete-gaussian",
        "the constant is not private for large alpha",
    ),
    Construction(
        "Gamma noise",
        "Hall 1.3.1",
        "papers/k_norm/mechanism.py",
        "density: spectral-gamma",
    ),
    Construction(
        "K-norm noise",
        "Hall 1.3.3",
        "papers/difference_body/mechanism.py",
        "density: difference-body",
        "right for symmetric bodies only",
    ),
    Construction(
        "Squared norms for (alpha, beta)",
        "Hall, table 1.1",
        "",
        "benchmarks/papers/techniques.py",
        NOT_BUILT + "false at the scale of Gaussian noise",
    ),
    Construction(
        "Exponential mechanism",
        "Hall 1.3.4",
        "dpcore/mechanisms/exponential.py",
        "quantiles: exponential",
        "a draw by a Markov chain is not private",
    ),
    Construction(
        "Choice of a tuning parameter by its risk",
        "Hall 1.2.3",
        "dpcore/releases/machines/tuned.py",
        "tests/dpcore/releases/machines/test_tuned_machine.py",
        "the example leaves out the budget of the refitted model",
    ),
    Construction(
        "Table of least mean loss",
        "Hall 1.3.5",
        "dpcore/releases/counts/best_answer.py",
        "count: discrete-laplace",
    ),
    # Chapter 2
    Construction(
        "Table of least worst-case loss",
        "Hall 2.3.3",
        "papers/minimax_count/table.py",
        "count: minimax-table",
    ),
    Construction(
        "Table of least loss for (alpha, beta)",
        "Hall 1.3.5, 2.3.3",
        "papers/minimax_count/table.py",
        "count: approximate-minimax-table",
        "the program covers beta = 0 only",
    ),
    Construction(
        "Least worst-case error of a count",
        "Hall 2.3.1",
        "dpcore/advice/count_limits.py",
        LEAST,
        "the bound needs at least 6/alpha records",
    ),
    Construction(
        "Least error on every table",
        "Hall 2.3.2, RDP 3.2",
        "dpcore/advice/count_limits.py",
        LEAST,
    ),
    Construction(
        "Least worst-case error of a table",
        "Hall 2.4, RDP 3.1",
        "dpcore/advice/count_limits.py",
        LEAST,
        "the hypercube needs (k - 1) tau <= n",
    ),
    Construction(
        "Sparse histogram",
        "Hall 2.4.1",
        "dpcore/mechanisms/thresholded.py",
        "histogram: thresholded-laplace",
    ),
    Construction(
        "Sparse histogram, number of occupied cells known",
        "Hall 2.4.1",
        "dpcore/mechanisms/thresholded.py",
        "tests/dpcore/releases/counts/test_histogram.py",
    ),
    Construction(
        "Least error of a sparse histogram",
        "Hall 2.4.1",
        "dpcore/advice/count_limits.py",
        LEAST,
    ),
    Construction(
        "Linear functions of a histogram",
        "Hall 2.4.2",
        "dpcore/releases/tables/margins.py",
        "margins: discrete-laplace",
    ),
    # Chapter 3, and Hall, Rinaldo & Wasserman 2013
    Construction(
        "Truncated expansion in a basis",
        "Hall 3.1.1",
        "dpcore/releases/densities/basis.py",
        "tests/benchmarks/test_papers.py",
    ),
    Construction(
        "Noise by the spectrum of a kernel",
        "Hall 3.2.2",
        "dpcore/releases/densities/spectral_density.py",
        "density: spectral-gaussian",
        "the covariance is printed as s K instead of s^2 K",
    ),
    Construction(
        "Kernel density with a Gaussian process",
        "Hall 3.2.4, 3.3.1, HRW 3.3, 4.1",
        "dpcore/releases/densities/process.py",
        "function: gaussian-process",
        "the covariance is printed as s K instead of s^2 K",
    ),
    Construction(
        "A process asked point by point",
        "Hall 3.2.5, HRW 5",
        "papers/online_function/online.py",
        "asked-function: gaussian-process",
        "the answers never use the data",
    ),
    Construction(
        "Bandwidth chosen from the data",
        "HRW 4.1.2",
        "dpcore/releases/densities/tuned.py",
        "tests/dpcore/releases/densities/test_tuned.py",
    ),
    Construction(
        "Functions in a Sobolev space",
        "Hall 3.3.2, HRW 4.2",
        "dpcore/releases/densities/kernels.py",
        "tests/dpcore/releases/densities/test_kernels.py",
        "the sensitivity is twice the sharp one",
    ),
    Construction(
        "Kernel machines",
        "Hall 3.3.3, HRW 4.3",
        "dpcore/releases/machines/machine.py",
        "classifier: gaussian-process",
        "a free intercept has unbounded sensitivity",
    ),
    Construction(
        "A choice among finitely many functions",
        "HRW 3.2",
        "papers/listed_function/release.py",
        "listed-function: nearest-function",
    ),
    # Chapter 4
    Construction(
        "Laplace noise on coefficients",
        "Hall 4.4.1",
        "papers/coefficient_laplace/release.py",
        "density: coefficient-laplace",
        "the scale is inverted",
    ),
    Construction(
        "Noise by the convex hull of the moment curve",
        "Hall 4.4.2 to 4.4.4",
        "papers/difference_body/body.py",
        "density: difference-body",
        "the sensitivity is printed as 2/n instead of (m + 1)/n: not private",
    ),
    # Chapter 5, and Hall, Rinaldo & Wasserman 2011
    Construction(
        "Proportion",
        "Hall 5.2.2",
        "papers/random_proportion/mechanism.py",
        "count: random-proportion",
        "the definition has one direction only",
    ),
    Construction(
        "Sparse histogram: empty cells",
        "Hall 5.2.3, RDP 5",
        "dpcore/mechanisms/random_laplace.py",
        "histogram: random-zero-cells",
        "2d is printed instead of 2k, and one norm in the proof is wrong",
    ),
    Construction(
        "Sparse histogram: low counts",
        "Hall 5.2.3",
        "dpcore/mechanisms/random_laplace.py",
        "histogram: random-low-counts",
        "the noise lacks a factor",
    ),
    Construction(
        "Mean by its sensitivity in the sample",
        "Hall 5.3, RDP 6",
        "dpcore/mechanisms/smooth_laplace.py",
        "mean: random-smooth-laplace",
        "the proof holds for large n only",
    ),
    Construction(
        "U-statistics",
        "RDP 6",
        "papers/u_statistic/mechanism.py",
        "u-statistic: random-smooth-laplace",
        "the proof holds for large n only",
    ),
    Construction(
        "Two stronger definitions",
        "Hall 5.4",
        "tests/dpcore/mechanisms/test_random_definitions.py",
        "tests/dpcore/mechanisms/test_random_definitions.py",
    ),
    # Wasserman & Zhou 2010
    Construction(
        "Smoothed histogram",
        "WZ 4",
        "papers/sampled_histogram/mechanism.py",
        "sampled-histogram: smoothed-histogram",
    ),
    Construction(
        "Perturbed histogram",
        "WZ 4",
        "dpcore/releases/counts/histogram.py",
        "histogram: discrete-laplace",
    ),
    Construction(
        "Exponential mechanism, Kolmogorov-Smirnov distance",
        "WZ 5",
        "papers/near_records/by_distribution.py",
        "near-records: ks-exponential",
    ),
    Construction(
        "Exponential mechanism, mean",
        "WZ 5.2",
        "papers/near_records/release.py",
        "near-records: mean-exponential",
    ),
    Construction(
        "Perturbed series",
        "WZ 6",
        "papers/coefficient_laplace/release.py",
        "density: coefficient-laplace",
    ),
    Construction(
        "Exponential mechanism on series",
        "WZ 6",
        "papers/near_records/by_series.py",
        "near-records: series-exponential",
    ),
    # Askin, Kutta & Dette 2022
    Construction(
        "Maximal privacy loss",
        "AKD, algorithm 1",
        "papers/maximum_loss/maximum_loss.py",
        "papers/maximum_loss/__main__.py",
        "in example 1 the loss is largest for negative outputs, not for large ones",
    ),
)


def errors_section() -> str:
    """What is wrong in print of the constructions that are built."""
    wrong = [each for each in CONSTRUCTIONS if each.home and each.corrected]
    errors = "\n".join(f"- {each.name} ({each.source}): {each.corrected}" for each in wrong)
    built = sum(bool(each.home) for each in CONSTRUCTIONS)
    return f"""## Errors in the papers

Of {len(CONSTRUCTIONS)} constructions {built} are built, with the errors corrected
(`benchmarks/papers/constructions.py`).

{errors}
"""
