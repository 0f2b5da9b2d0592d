"""Coverage of intervals for conclusions from noisy tables and synthetic records, whole path repeated.

    python -m benchmarks.inference --dataset nltcs --alpha 1 --rows 5000 --surveys 20 --json

A table is taken for the population.  Surveys of ``--rows`` are drawn from it with replacement, released
(all pairs of columns, ``microdata-margins``, discrete Gaussian noise, replace-one, beta 1e-6) and
analysed by ``fit``.  For each family of questions, over all surveys and all coefficients:

    coverage        how often the 95% interval holds the population's value
    naive           the same of intervals from synthetic records as if they were a survey
    survey          the same of the survey's own records, which are not published
    width_ratio     median width over that of the survey's own interval
    cpu_seconds     of ``fit`` for one formula, without the records that it starts from

``records_seconds`` is what the records take, once for a bundle.  Numbers are known by their cells, and
their value is the middle of the cell, in the population too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.synthesis.tables import TABLES, Table
from dpcore.arrays import Floats, Integers
from dpcore.budget import Budget
from dpcore.domain import Categories, Domain, Tally
from dpcore.errors import InputError
from dpcore.post.inference.calibrated import FAMILIES, fit_calibrated
from dpcore.privacy_line import perturb
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from schemas.plan import load_plan
from tasks.inference.designs import design_of, middles
from tasks.inference.evidence import Evidence
from tasks.inference.fit import fit

NORMAL_95 = 1.959963984540054

QUESTIONS: dict[str, dict[str, list[str]]] = {
    "nltcs": {
        "linear": ["v16 ~ v10 + v11 + v12 + v13", "v05 ~ v04 + v06 + v08 + v14 + v15"],
        "logistic": [
            "v16 ~ v10 + v11 + v12 + v13",
            "v13 ~ v01 + v04 + v07 + v16",
            "v05 ~ v06 + v14",
        ],
        "means": ["v12 ~ 0 + C(v10)", "v03 ~ 0 + C(v05)", "v09 ~ 0 + C(v01)"],
    },
    "adult_coded": {
        "linear": [
            "`hours-per-week` ~ age + `education-num` + sex",
            "`education-num` ~ age + sex",
        ],
        "logistic": [
            "`income>50K` ~ age + `education-num` + `hours-per-week` + sex",
            "sex ~ age + `hours-per-week`",
        ],
        "means": ["age ~ 0 + C(relationship)", "`education-num` ~ 0 + C(race)"],
    },
    "acs_nist_ma2019": {
        "linear": ["AGEP ~ C(SEX) + DENSITY", "WGTP ~ PWGTP + DENSITY"],
        "logistic": ["C(SEX) ~ AGEP + C(OWN_RENT)", "{DPHY == '1'} ~ AGEP + C(SEX)"],
        "means": ["AGEP ~ 0 + C(HOUSING_TYPE)", "AGEP ~ 0 + C(EDU)"],
    },
    "fair": {
        "linear": ["rate_marriage ~ age + religious + educ", "yrs_married ~ age + children"],
        "logistic": ["{affairs > 0.02} ~ rate_marriage + religious + yrs_married"],
        "means": ["rate_marriage ~ 0 + C(religious)", "children ~ 0 + C(occupation)"],
    },
}


class Answer(NamedTuple):
    """Names, estimates and standard errors, (k,) each."""

    names: tuple[str, ...]
    values: Floats
    errors: Floats


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
    found = repeated(
        domain, codes, release, options.surveys, QUESTIONS[options.dataset], options.seed
    )
    asked = {name: getattr(options, name) for name in ("dataset", "alpha", "rows", "surveys")}
    if options.json:
        print(json.dumps(asked | {"families": found}))
        return
    for family, result in found.items():
        print(asked | {"family": family} | result)


def fair(folder: Path) -> Table:
    """The survey of the demo, 6,366 readers of a magazine, in the cells of its plan."""
    frame = pd.read_parquet(folder / "fair_affairs" / "fair.parquet")
    plan = Path(__file__).parent.parent / "deployments" / "plans" / "fair.yaml"
    domain = load_plan(plan).built["all-pairs"].domain
    codes = []
    for axis in domain.axes:
        if isinstance(axis, Categories):
            codes.append(pd.Categorical(frame[axis.name], list(axis.categories)).codes)
        else:
            inside = np.clip(frame[axis.name], axis.lower, np.nextafter(axis.upper, axis.lower))
            codes.append(np.searchsorted(axis.edges, inside, side="right") - 1)
    return domain, np.stack(codes, axis=1).astype(np.int64)


def repeated(
    domain: Domain,
    population: Integers,
    release: Microdata,
    surveys: int,
    questions: dict[str, list[str]],
    seed: int,
) -> dict[str, dict[str, Any]]:
    """Coverage and width of each family, over surveys that are drawn from a population."""
    generator = np.random.default_rng(seed)
    truth = {
        (family, formula): _records_alone(domain, population, formula, family)
        for family, formulas in questions.items()
        for formula in formulas
    }
    seen: dict[str, list[Floats]] = {family: [] for family in questions}
    seconds: dict[str, list[float]] = {family: [] for family in questions}
    refused = dict.fromkeys(questions, 0)
    making = []
    for survey in range(surveys):
        rows = population[generator.integers(len(population), size=release.rows)]
        tally = _tally(domain, rows)
        exact = release.statistic(tally)
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(1000 * seed + survey))
        start = time.process_time()
        records = release.sample(noisy, release.rows)[1]
        agreement = release.agreement(noisy)
        making.append(time.process_time() - start)
        evidence = Evidence(domain, agreement, release.rows, records, _columns(domain, records))
        for (family, formula), exactly in truth.items():
            start = time.process_time()
            try:
                ours = fit(evidence, formula, "binomial" if family == "logistic" else "gaussian")
            except InputError:
                refused[family] += 1
                continue
            seconds[family].append(time.process_time() - start)
            own = _records_alone(domain, rows, formula, family)
            naive = _records_alone(domain, records, formula, family)
            found = Answer(
                tuple(c.name for c in ours.coefficients),
                np.array([c.estimate for c in ours.coefficients]),
                np.array([c.standard_error for c in ours.coefficients]),
            )
            seen[family].append(_compared(exactly, found, own, naive))
    result: dict[str, dict[str, Any]] = {}
    for family, parts in seen.items():
        ours_in, own_in, naive_in, width = np.concatenate(parts, axis=1)
        result[family] = {
            "coverage": round(float(ours_in.mean()), 4),
            "survey": round(float(own_in.mean()), 4),
            "naive": round(float(naive_in.mean()), 4),
            "width_ratio": round(float(np.median(width)), 3),
            "cpu_seconds": round(float(np.mean(seconds[family])), 3),
            "records_seconds": round(float(np.mean(making)), 2),
            "intervals": ours_in.size,
            "refused": refused[family],
        }
    return result


def _compared(truth: Answer, ours: Answer, own: Answer, naive: Answer) -> Floats:
    """(4, k): whether each of three intervals holds the truth, and the width over the survey's.

    A term that an answer lacks, as its category is in none of the records, is not held.
    """
    rows = []
    for name, value in zip(truth.names, truth.values, strict=True):
        held, widths = [], []
        for answer in (ours, own, naive):
            place = answer.names.index(name) if name in answer.names else None
            error = np.nan if place is None else answer.errors[place]
            at = np.nan if place is None else answer.values[place]
            held.append(float(abs(at - value) <= NORMAL_95 * error))
            widths.append(error)
        rows.append([*held, widths[0] / widths[1] if widths[1] > 0 else np.nan])
    found = np.array(rows).T
    found[3] = np.where(np.isfinite(found[3]), found[3], np.nanmedian(found[3]))
    return found


def _records_alone(domain: Domain, codes: Integers, formula: str, family: str) -> Answer:
    """As from an ordinary survey: the maximum likelihood fit and its sandwich errors."""
    binary = family == "logistic"
    design = design_of(formula, domain, codes, _columns(domain, codes), binary)
    z = np.column_stack([term.values for term in design.terms])
    y = design.response.values
    features = np.column_stack([np.ones(len(z)), z])
    found = fit_calibrated(
        z,
        y,
        FAMILIES["binomial" if binary else "gaussian"],
        features,
        features.mean(axis=0),
        len(z),
    )
    names = tuple(term.name for term in design.terms)
    return Answer(names, found.coefficients, np.sqrt(found.sampling.diagonal()))


def _columns(domain: Domain, codes: Integers) -> dict[str, Any]:
    return {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}


def _tally(domain: Domain, codes: Integers) -> Tally:
    cells, counts = np.unique(domain.pack(codes), return_counts=True)
    return Tally(domain, cells, counts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", choices=[*QUESTIONS], default="nltcs")
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--surveys", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
