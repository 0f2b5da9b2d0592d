"""The list of experiments, and how one is run."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path

from benchmarks.papers.experiment import Experiment, Line

MODULES = (
    "count_risk",
    "sparse_histogram",
    "truncation",
    "periodic_kernel",
    "functions",
    "support_vectors",
    "random_privacy",
    "bins",
    "rates",
)


def experiments() -> dict[str, Experiment]:
    """All experiments by name, in the order of the page."""
    modules = [import_module(f"benchmarks.papers.{name}") for name in MODULES]
    return {each.name: each for module in modules for each in module.EXPERIMENTS}


def run(name: str, images: Path, trials: int | None) -> list[Line]:
    """The figures of one experiment; draws papers-NAME.svg."""
    import matplotlib
    from matplotlib.figure import Figure

    start = time.process_time()
    experiment = experiments()[name]
    measured = experiment.measure(trials or experiment.trials)
    # The same figures always make the same file.
    matplotlib.rcParams.update({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    measured.draw(figure)
    figure.savefig(images / f"papers-{name}.svg", metadata={"Date": None})
    seconds = round(time.process_time() - start, 1)
    return [*measured.lines, {"seconds": seconds}]
