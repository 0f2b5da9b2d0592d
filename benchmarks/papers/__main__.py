"""Run experiments, print their figures as JSON lines, draw their plots, write the page."""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.papers.experiment import experiments, run
from benchmarks.papers.page import page


def main() -> None:
    """Run what is asked for, two experiments at a time."""
    known = experiments()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--trials", type=int, help="instead of each experiment's own")
    parser.add_argument("--images", type=Path, default=Path("build/papers"), help="for the plots")
    parser.add_argument("--page", type=Path, help="write the page of all experiments here")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}")
    if options.page and options.names:
        parser.error("the page is of all experiments: name none")
    options.images.mkdir(parents=True, exist_ok=True)
    chosen = [known[name] for name in options.names or known]
    possible = [each.name for each in chosen if each.possible]
    found = {}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        each = partial(run, images=options.images, trials=options.trials)
        for name, lines in zip(possible, pool.map(each, possible), strict=True):
            for line in lines:
                print(json.dumps({"experiment": name} | line), flush=True)
            found[name] = lines[:-1]
    for experiment in chosen:
        if not experiment.possible:
            print(json.dumps({"experiment": experiment.name, "skipped": experiment.data}))
    if options.page:
        options.page.write_text(page(list(known.values()), found, options.images, options.page))


if __name__ == "__main__":
    main()
