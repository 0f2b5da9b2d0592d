"""Coverage of intervals that analysts get from implicates with their own programs, whole path repeated.

    python -m benchmarks.implicates --dataset nltcs --alpha 1 --rows 5000 --surveys 40 --json

As ``benchmarks.inference``: surveys of ``--rows`` are drawn from a table, released as noisy pairs,
and here published as ``--number`` implicates.  Each is analysed by statsmodels as if it were the
survey (sandwich errors), and ``combine`` gives one answer.  For each family of questions:

    coverage        how often the 95% interval holds the population's value
    enough          the same for models of which every pair of columns has the grade `enough`
    enough_share    the share of intervals that are of these
    survey          the same of the survey's own records, which are not published
    width_ratio     median width over that of the survey's own interval

``cpu_seconds`` is for making the implicates of one survey.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import combinations
from typing import Any

import formulaic
import numpy as np
import pandas as pd
import statsmodels.api as sm

from benchmarks import DATA
from benchmarks.inference import QUESTIONS, fair
from benchmarks.synthesis.tables import TABLES
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import middles
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.estimates.combine import combine
from dpcore.estimates.joined import counted_releases
from dpcore.line.privacy_line import perturb
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from schemas.plan.synthesis import Synthesis
from tasks.bundle.implicates import make_implicates

NORMAL_95 = 1.959963984540054
MODELS = {"linear": "gaussian", "means": "gaussian", "logistic": "binomial"}


def main() -> None:
    """Print a line for each family of questions, or one JSON line."""
    options = _options()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    domain, codes = fair(DATA) if options.dataset == "fair" else TABLES[options.dataset](DATA)
    share = Budget.of(options.alpha, "1e-6")
    release = Microdata(
        "records", domain, options.rows, share, noise="discrete-gaussian", aim="mean"
    )
    asked = {n: getattr(options, n) for n in ("dataset", "alpha", "rows", "surveys", "number")}
    found = repeated(domain, codes, release, options)
    if options.json:
        print(json.dumps(asked | found))
        return
    for family, result in found.pop("families").items():
        print(asked | {"family": family} | result | found)


def repeated(
    domain: Domain, population: Integers, release: Microdata, options: argparse.Namespace
) -> dict[str, Any]:
    """Coverage and width of each family, over surveys that are drawn from a population."""
    generator = np.random.default_rng(options.seed)
    questions = {
        (family, formula): _as_survey(domain, population, formula, MODELS[family])
        for family, formulas in QUESTIONS[options.dataset].items()
        if family in MODELS
        for formula in formulas
    }
    seen: dict[str, list[tuple[float, ...]]] = {family: [] for family, _ in questions}
    section = Synthesis.model_validate(
        {"name": "records", "from": "records", "rows": 1, "implicates": options.number}
    )
    seconds = []
    for survey in range(options.surveys):
        rows = population[generator.integers(len(population), size=release.rows)]
        cells, counts = np.unique(domain.pack(rows), return_counts=True)
        exact = release.statistic(Tally(domain, cells, counts))
        source = SeededSource(1000 * options.seed + survey)
        noisy = perturb(exact, release.mechanism, release.share, source)
        start = time.process_time()
        counted = counted_releases({"records": release}, {"records": noisy})
        made = make_implicates(release, section, counted, lambda _, noisy=noisy: noisy)
        seconds.append(time.process_time() - start)
        little = {s.pair for s, fine in zip(made.slopes, made.enough, strict=True) if not fine}
        for (family, formula), truth in questions.items():
            own = _as_survey(domain, rows, formula, MODELS[family])
            each = [_as_survey(domain, one, formula, MODELS[family]) for one in made.codes]
            used = [i for i, n in enumerate(domain.names) if n in _named(formula)]
            enough = not little & set(combinations(used, 2))
            for name, value in truth[0].items():
                several = [(q[name], u[name]) for q, u in each if np.isfinite(u.get(name, np.nan))]
                if len(several) < 2 or name not in own[0].index:
                    continue  # no category, or complete separation
                combined = combine(*np.array(several)[:, :, None].transpose(1, 0, 2))
                low, high = (float(end[0]) for end in combined.interval())
                width = NORMAL_95 * own[1][name] ** 0.5
                in_own = abs(own[0][name] - value) <= width
                seen[family].append(
                    (low <= value <= high, in_own, (high - low) / 2 / width, enough)
                )
    families = {}
    for family, lines in seen.items():
        held, in_own, width, enough = np.array(lines, dtype=float).T
        families[family] = {
            "coverage": round(float(held.mean()), 4),
            "enough": round(float(held[enough == 1].mean()), 4) if enough.any() else None,
            "enough_share": round(float(enough.mean()), 3),
            "survey": round(float(in_own.mean()), 4),
            "width_ratio": round(float(np.median(width)), 3),
            "intervals": len(held),
        }
    return {"families": families, "cpu_seconds": round(float(np.mean(seconds)), 2)}


def _as_survey(
    domain: Domain, codes: Integers, formula: str, family: str
) -> tuple[pd.Series[float], pd.Series[float]]:
    """Estimates and their squared standard errors by term, as of an ordinary survey."""
    frame = pd.DataFrame(
        {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}
    )
    found = formulaic.model_matrix(formula, frame.dropna())
    response: Floats = np.asarray(found.lhs, dtype=float)[:, -1]
    kind = sm.families.Binomial() if family == "binomial" else sm.families.Gaussian()
    fitted = sm.GLM(response, found.rhs.astype(float), family=kind).fit(cov_type="HC0")
    return fitted.params, fitted.bse**2


def _named(formula: str) -> set[str]:
    return {str(each) for each in formulaic.Formula(formula).required_variables}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", choices=["nltcs", "fair"], default="nltcs")
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--surveys", type=int, default=40)
    parser.add_argument("--number", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
