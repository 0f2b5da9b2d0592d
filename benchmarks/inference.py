"""Coverage of intervals for conclusions from noisy tables and synthetic records, whole path repeated.

    python -m benchmarks.inference --dataset nltcs --alpha 1 --rows 5000 --surveys 100 --json

A table is taken for the population.  Surveys of ``--rows`` are drawn from it with replacement, released
(all pairs of columns, ``microdata-margins``, discrete Gaussian noise, replace-one, beta 1e-6) and
analysed.  One release serves all questions.  For each family of questions, over all surveys and all
coefficients:

    coverage        how often the 95% interval holds the population's value; null where none was given
    coverage_error  the standard error of that: surveys are independent, intervals of one are not
    naive           the same of intervals from synthetic records as if they were a survey
    survey          the same of the survey's own records, which are not published
    width_ratio     median width over that of the survey's own interval
    optimum_ratio   median width over that of the same noisy moments if their errors, and those of the
                    survey, were known (to first order): the least for a linear model
    refused         the share of intervals that were not given, and are not counted otherwise
    cpu_seconds     of one question, without the records that it starts from

``records_seconds`` is what the records take for a survey.  Numbers are known by their cells, and their
value is the middle of the cell, in the population too; a population's quantiles are found by
interpolation inside a cell.  Tests of independence are of columns that are drawn apart from all others,
so their coverage is one minus their size.  Records follow the tables of the columns that are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from benchmarks import DATA
from benchmarks.surveys import options, show
from benchmarks.synthesis.tables import TABLES, Table
from dpcore.accounting.budget import Budget
from dpcore.arrays import Integers
from dpcore.domain.axes import Categories, middles
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence, SimulatedEvidence
from dpcore.estimates.questions import correlation, independence, quantile
from dpcore.line.privacy_line import perturb
from dpcore.post.levels import SIGMAS_95
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.denoise import denoise
from dpcore.post.records.weighted import fit_weighted
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from dpcore.releases.tables.microdata import TOLERANCE, Microdata
from dpcore.sampling.source import SeededSource
from schemas.plan import load_plan
from tasks.inference.fit import fit

NAMES = {"adult": "adult_coded", "acs_ma": "acs_nist_ma2019"}

QUIET = 1e-9
"""The variance of tables that have no noise."""

MODELS = {"linear": "gaussian", "means": "gaussian", "logistic": "binomial", "poisson": "poisson"}

Interval = tuple[float, float, float, float]
"""An estimate, the ends of its 95% interval, and its standard error, if there is one."""

QUESTIONS: dict[str, dict[str, list[Any]]] = {
    "nltcs": {
        "linear": ["v16 ~ v10 + v11 + v12 + v13", "v05 ~ v04 + v06 + v08 + v14"],
        "logistic": ["v16 ~ v10 + v11 + v12 + v13", "v13 ~ v01 + v04 + v16", "v05 ~ v06 + v14"],
        "poisson": ["v12 ~ v10 + v13", "v06 ~ v05 + v14"],
        "means": ["v12 ~ 0 + C(v10)", "{v03 == 0} ~ 0 + C(v05)", "v09 ~ 0 + C(v01)"],
        "correlations": [("v04", "v05"), ("v10", "v11"), ("v01", "v16")],
        "independence": [("v02", "v07"), ("v02", "v15"), ("v07", "v15"), ("v02", "v10")],
    },
    "adult": {
        "linear": [
            "`hours-per-week` ~ age + `education-num` + sex",
            "`education-num` ~ age + sex",
        ],
        "logistic": [
            "`income>50K` ~ age + `education-num` + `hours-per-week` + sex",
            "sex ~ age + `hours-per-week`",
        ],
        "poisson": ["`education-num` ~ age + sex", "`hours-per-week` ~ sex + `income>50K`"],
        "means": ["age ~ 0 + C(relationship)", "{sex == 1} ~ 0 + C(race)"],
        "correlations": [("age", "education-num"), ("education-num", "hours-per-week")],
        "quantiles": [("age", 0.25), ("age", 0.5), ("hours-per-week", 0.9)],
        "independence": [
            ("workclass", "marital-status"),
            ("workclass", "race"),
            ("marital-status", "sex"),
        ],
    },
    "acs_ma": {
        "linear": ["AGEP ~ C(SEX) + DENSITY", "WGTP ~ PWGTP + DENSITY"],
        "logistic": ["C(SEX) ~ AGEP + C(OWN_RENT)", "{DPHY == '1'} ~ AGEP + C(SEX)"],
        "poisson": ["NOC ~ AGEP + C(SEX)", "NPF ~ PWGTP"],
        "means": ["AGEP ~ 0 + C(HOUSING_TYPE)", "{SEX == '2'} ~ 0 + C(EDU)"],
        "correlations": [("AGEP", "DENSITY"), ("PWGTP", "WGTP"), ("PINCP", "AGEP")],
        "quantiles": [("AGEP", 0.25), ("AGEP", 0.75), ("PINCP", 0.5), ("PWGTP", 0.9)],
        "independence": [("PUMA", "HISP"), ("PUMA", "DREM"), ("HISP", "SEX"), ("DREM", "OWN_RENT")],
    },
    "fair": {
        "linear": ["rate_marriage ~ age + religious + educ", "yrs_married ~ age + children"],
        "logistic": ["{affairs > 0} ~ rate_marriage + religious + yrs_married"],
        "poisson": ["children ~ age + religious", "{affairs > 0} ~ rate_marriage"],
        "means": ["rate_marriage ~ 0 + C(religious)", "{children > 0} ~ 0 + C(educ)"],
        "correlations": [("age", "yrs_married"), ("rate_marriage", "religious")],
        "quantiles": [("rate_marriage", 0.5), ("religious", 0.25), ("affairs", 0.9)],
        "independence": [
            ("occupation", "occupation_husb"),
            ("occupation", "religious"),
            ("occupation_husb", "rate_marriage"),
        ],
    },
}

APART = {
    "nltcs": ("v02", "v07", "v15"),
    "adult": ("workclass", "marital-status"),
    "acs_ma": ("PUMA", "HISP", "DREM"),
    "fair": ("occupation", "occupation_husb"),
}
"""Columns that are drawn apart from all others, for tests of independence; in no other question."""

ASKED = {
    "nltcs": "v01 v03 v04 v05 v06 v08 v09 v10 v11 v12 v13 v14 v16",
    "adult": "age education-num relationship race sex hours-per-week income>50K",
    "acs_ma": "AGEP SEX NOC NPF HOUSING_TYPE OWN_RENT DENSITY EDU PINCP DPHY PWGTP WGTP",
    "fair": "rate_marriage age yrs_married children religious educ affairs",
}
"""Columns that records must have for the other questions."""


@dataclass
class Seen:
    """What is known of one family: a list of lines for each survey."""

    surveys: list[list[dict[str, float]]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """As the head of this file says."""
        lines = pd.DataFrame([line | {"s": i} for i, s in enumerate(self.surveys) for line in s])
        return counted(lines) | {"cpu_seconds": round(float(np.mean(self.seconds)), 3)}


def counted(lines: pd.DataFrame) -> dict[str, Any]:
    """Coverage and widths of lines of intervals, of which ``s`` is the survey."""
    given = lines[lines["given"] == 1]
    found: dict[str, Any] = {"coverage": None, "coverage_error": None}
    if len(given):
        coverage = float(given["held"].mean())
        of_survey = (given["held"] - coverage).groupby(given["s"]).sum()
        least = 0.95 * 0.05 * len(given)  # of independent intervals that hold as they should
        error = max(float((of_survey**2).sum()), least) ** 0.5 / len(given)
        found = {"coverage": round(coverage, 4), "coverage_error": round(error, 4)}
    for name in ("survey", "naive"):
        if name in lines:
            found[name] = round(float(lines[name].mean()), 4)
    for name in ("width_ratio", "optimum_ratio"):
        middle = float(given[name].median())
        found[name] = round(middle, 3) if np.isfinite(middle) else None
    found["refused"] = round(1 - len(given) / len(lines), 4)
    found["intervals"] = len(given)
    return found


def main() -> None:
    """Print a line for each family of questions, or one JSON line."""
    asked = options(__doc__, QUESTIONS, surveys=20)
    domain, codes = load(asked.dataset)
    share = Budget.of(asked.alpha, "1e-6")
    release = Microdata("records", domain, asked.rows, share, noise="discrete-gaussian", aim="mean")
    found = repeated(asked.dataset, domain, codes, release, asked.surveys, asked.seed)
    show(asked, found)


def load(dataset: str) -> Table:
    """The table that is taken for the population."""
    return fair(DATA) if dataset == "fair" else TABLES[NAMES.get(dataset, dataset)](DATA)


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
            above, below = (np.searchsorted(axis.edges, inside, side=s) for s in ("right", "left"))
            # An edge that stands twice is a cell of that value alone.
            codes.append(np.where(above - below > 1, below, above - 1))
    return domain, np.stack(codes, axis=1).astype(np.int64)


def repeated(
    dataset: str, domain: Domain, population: Integers, release: Microdata, surveys: int, seed: int
) -> dict[str, Any]:
    """Coverage and width of each family, over surveys that are drawn from a population."""
    generator = np.random.default_rng(seed)
    asked = [(family, each) for family, all_of in QUESTIONS[dataset].items() for each in all_of]
    # Of the population: what is true, and the errors of a survey and a release if they were known.
    truth = _answers(_of(domain, release.of_nothing, population, release.rows), asked)
    pairs = combinations(range(len(domain.axes)), 2)
    silent = Agreement(
        domain.shape,
        [Margin(pair, np.zeros([domain.shape[a] for a in pair]), QUIET) for pair in pairs],
        float(release.rows),
    )
    seen = {family: Seen() for family in QUESTIONS[dataset]}
    making = []
    for survey in range(surveys):
        rows = _drawn(domain, population, release.rows, APART[dataset], generator)
        cells, counts = np.unique(domain.pack(rows), return_counts=True)
        exact = release.statistic(Tally(domain, cells, counts))
        noisy = perturb(exact, release.mechanism, release.share, SeededSource(1000 * seed + survey))
        start = time.process_time()
        agreement = release.agreement(noisy)
        records = _records(
            domain, agreement, release.rows, {*ASKED[dataset].split(), *APART[dataset]}, generator
        )
        making.append(time.process_time() - start)
        evidence = Evidence(domain, agreement, release.rows, records, _columns(domain, records))
        ours = _answers(evidence, asked, {family: each.seconds for family, each in seen.items()})
        own = _answers(_of(domain, silent, rows, release.rows), asked)
        naive = _answers(_of(domain, silent, records, release.rows), asked)
        for each in seen.values():
            each.surveys.append([])
        for question, exactly in truth.items():
            for name, (value, _, _, error) in exactly.items():
                answers = (answer[question].get(name) for answer in (ours, own, naive))
                seen[question[0]].surveys[-1].append(_compared(value, error, *answers))
    return {
        "families": {family: each.summary() for family, each in seen.items()},
        "records_seconds": round(float(np.mean(making)), 2),
    }


def _compared(
    value: float, error: float, ours: Interval | None, own: Interval | None, naive: Interval | None
) -> dict[str, float]:
    """Whether intervals hold a value, and their widths; a missing one of the records does not."""

    def held(answer: Interval) -> float:
        return float(answer[1] <= value <= answer[2])

    def over(width: float) -> float:
        return (ours[2] - ours[1]) / width if ours and 0 < width < np.inf else np.nan

    ours, own = (answer if answer and not np.isinf(answer[3]) else None for answer in (ours, own))
    return {
        "given": float(ours is not None),
        "held": held(ours) if ours else np.nan,
        "survey": held(own) if own else np.nan,
        "naive": held(naive) if naive else 0.0,
        "width_ratio": over(own[2] - own[1]) if own else np.nan,
        "optimum_ratio": over(2 * SIGMAS_95 * error),
    }


def _answers(
    evidence: Evidence, asked: list[tuple[str, Any]], seconds: dict[str, list[float]] | None = None
) -> dict[tuple[str, Any], dict[str, Interval]]:
    """For each question its intervals by their names."""
    found = {}
    for family, question in asked:
        start = time.process_time()
        try:
            found[family, question] = _intervals(evidence, family, question)
        except InputError:
            found[family, question] = {}
        if seconds is not None:
            seconds[family].append(time.process_time() - start)
    return found


def _intervals(evidence: Evidence, family: str, question: Any) -> dict[str, Interval]:
    if family in MODELS:
        fitted = fit(evidence, question, MODELS[family])
        return {c.name: (c.estimate, *c.interval, c.standard_error) for c in fitted.coefficients}
    if family == "correlations":
        one = correlation(evidence, *question)
        return {"": (one.estimate, *one.interval, one.standard_error)}
    if family == "quantiles":
        at = quantile(evidence, *question)
        return {"": (at.value, *at.interval, np.nan)}
    test = independence(evidence, *question)
    # The columns are independent: the statistic exceeds its 95% point, or the test is right.
    return {"": (0.0, test.statistic - float(chi2.ppf(0.95, test.degrees)), np.inf, np.nan)}


def _drawn(
    domain: Domain,
    population: Integers,
    rows: int,
    apart: Collection[str],
    generator: np.random.Generator,
) -> Integers:
    """A survey (rows, axes), some columns of which are drawn apart from all others."""
    found = population[generator.integers(len(population), size=rows)]
    for name in apart:
        place = domain.names.index(name)
        found[:, place] = population[generator.integers(len(population), size=rows), place]
    return found


def _records(
    domain: Domain,
    agreement: Agreement,
    rows: int,
    asked: Collection[str],
    generator: np.random.Generator,
) -> Integers:
    """As ``Microdata.sample`` does, of some columns and their noisy tables; zero in the others."""
    places = sorted(domain.names.index(name) for name in asked)
    columns = RecordColumns.of(Domain(tuple(domain.axes[place] for place in places)))
    margins = [
        agreement.margin((places[i], places[j]))._replace(attributes=(i, j))
        for i, j in combinations(range(len(places)), 2)
    ]
    denoised = denoise(columns, margins, generator, total=rows)
    # As if no column were in order: correlations are not followed.
    columns = RecordColumns(columns.sizes)
    fitted = fit_weighted(columns, denoised, rows, generator, total=rows, tolerance=TOLERANCE)
    records = np.zeros((rows, len(domain.axes)), dtype=np.int64)
    records[:, places] = fitted.records()
    return records


def _of(domain: Domain, agreement: Agreement, codes: Integers, rows: int) -> SimulatedEvidence:
    """Evidence whose tables are those of records, with the errors of an agreement."""
    return SimulatedEvidence(domain, agreement, rows, codes, _columns(domain, codes))


def _columns(domain: Domain, codes: Integers) -> dict[str, Any]:
    return {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}


if __name__ == "__main__":
    main()
