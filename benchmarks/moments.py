"""Coverage of the 95% intervals of ``moments``, whole path repeated.

    python -m benchmarks.moments --dataset adult --alpha 1 --rows 5000 --surveys 200 --json

A public table is taken for the population.  Surveys of ``--rows`` are drawn from it with replacement,
released (discrete Gaussian noise, replace-one, beta 1e-6) and analysed.  For each family of estimates,
over all surveys:

    coverage        how often the interval holds the population's value; null where none was given
    coverage_error  the standard error of that: surveys are independent, intervals of one are not
    width_ratio     median width over that of the survey's own interval, which is not published
    optimum_ratio   median width over that of the same noisy moments if their errors were known: those of
                    the survey itself, and of the noise to first order around the survey's own moments
    refused         the share of intervals that were not given, and are not counted otherwise
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.inference import counted
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.post.levels import SIGMAS_95
from dpcore.post.points import Estimated, Points
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.products import BITS
from dpcore.sampling.source import SeededSource
from tasks.inference.linear import linear_design

BETA = "1e-6"

NUMBERS: dict[str, dict[str, tuple[float, float]]] = {
    "adult": {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)},
    "california": {
        "median_income": (0, 12),
        "housing_median_age": (0, 60),
        "total_rooms": (0, 12_000),
        "population": (0, 6_000),
        "median_house_value": (0, 510_000),
    },
    "fair": {
        "rate_marriage": (1, 5),
        "age": (17, 42),
        "yrs_married": (0, 24),
        "religious": (1, 4),
        "educ": (9, 20),
    },
    "acs_ma": {"AGEP": (0, 99), "PINCP": (0, 150_000), "POVPIP": (0, 501)},
}
"""Columns of numbers and their bounds; what lies beyond counts as the bound, in the population too."""

CATEGORIES = {"adult": ["sex", "race"], "acs_ma": ["SEX", "EDU"]}

FILES = {
    "adult": "adult_raw/adult_raw",
    "california": "california_housing/california_housing",
    "fair": "fair_affairs/fair",
    "acs_ma": "acs_nist_ma2019/ma2019",
}

MODELS = {
    "adult": ["hours_per_week ~ age + education_num + sex", "education_num ~ age + race"],
    "california": [
        "median_house_value ~ median_income + housing_median_age",
        "median_house_value ~ median_income + total_rooms + population",
    ],
    "fair": ["rate_marriage ~ age + religious + educ", "yrs_married ~ age"],
    "acs_ma": ["PINCP ~ AGEP + C(SEX)", "POVPIP ~ AGEP + C(EDU)"],
}


class Known(Points):
    """Points of which the sums are known, and the errors that noise of ``stddev`` would add."""

    def estimated(
        self, values: Floats, influence: Floats, usual: Floats, blur: Floats
    ) -> Estimated:
        sampling = np.sqrt(np.maximum(self.weights @ influence**2, 0.0))
        return Estimated(values, sampling, self.noise(influence))


def load(dataset: str) -> tuple[Domain, Integers]:
    """The table that is taken for the population; records with a null are left out."""
    columns = [*NUMBERS[dataset], *CATEGORIES.get(dataset, [])]
    frame = pd.read_parquet(DATA / f"{FILES[dataset]}.parquet")[columns]
    for name in NUMBERS[dataset]:
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    frame = frame.dropna()
    axes: list[Axis] = []
    codes = []
    for name, (lower, upper) in NUMBERS[dataset].items():
        values = np.clip(frame[name].to_numpy(dtype=float), lower, upper)
        axes.append(Grid(name, lower, upper, 4096))
        codes.append(np.minimum((values - lower) / (upper - lower) * 4096, 4095).astype(np.int64))
    for name in CATEGORIES.get(dataset, []):
        values, found = np.unique(frame[name].to_numpy().astype(str), return_inverse=True)
        axes.append(Categories(name, tuple(values.tolist())))
        codes.append(found)
    return Domain(tuple(axes)), np.column_stack(codes)


class Asked:
    """The questions to one release, by family."""

    def __init__(self, release: Moments, models: list[str]) -> None:
        self.release = release
        self.designs = [linear_design(release, model, "gaussian")[1:] for model in models]
        self.families: list[str] = []

    def answers(self, points: Points) -> Estimated:
        """All estimates in one order; a model without a solution is NaN, and has no interval."""
        labels, summary = self.release.summary(points)
        found, families = [summary], [_family(label) for label in labels]
        for terms, response in self.designs:
            size = terms.shape[1]
            try:
                found.append(points.regression(terms, response))
            except ValueError:
                hidden = np.full(size, np.inf)
                found.append(Estimated(np.full(size, np.nan), hidden, hidden))
            families += ["linear"] * size
        self.families = families
        return Estimated(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _family(label: tuple[str, ...]) -> str:
    return "means by group" if label[0] == "mean" and label[2] else f"{label[0]}s"


def known(release: Moments, codes: Integers, noise: bool) -> Known:
    """Points of the sums of all these records, scaled to as many as the release has."""
    products = release.products
    tally = Tally.of(release.domain, release.domain.pack(codes))
    exact = np.array(products.sums(tally), dtype=float) * 2.0**-BITS * release.rows / len(codes)
    stddev = np.full(len(exact), release.mechanism.stddev * 2.0**-BITS if noise else 0.0)
    stddev[0] = 0.0
    return Known(products.features(), exact, stddev)


def repeated(
    release: Moments, models: list[str], population: Integers, surveys: int, seed: int
) -> dict[str, Any]:
    """Coverage and width of each family, over surveys that are drawn from a population."""
    generator = np.random.default_rng(seed)
    asked = Asked(release, models)
    truth = asked.answers(known(release, population, False)).values
    lines = []
    for survey in range(surveys):
        rows = population[generator.integers(len(population), size=release.rows)]
        exact = release.statistic(Tally.of(release.domain, release.domain.pack(rows)))
        source = SeededSource(1000 * seed + survey)
        noisy = perturb(exact, release.mechanism, release.share, source)
        ours = asked.answers(release.points(noisy))
        own, best = (asked.answers(known(release, rows, noise)) for noise in (False, True))
        errors = [np.hypot(each.sampling, each.privacy) for each in (ours, own, best)]
        given = np.isfinite(errors[0])
        held = np.abs(ours.values - truth) <= SIGMAS_95 * errors[0]
        survey_held = np.abs(own.values - truth) <= SIGMAS_95 * errors[1]
        with np.errstate(all="ignore"):  # some surveys have hardly any record of a category
            columns = (given, held, survey_held, errors[0] / errors[1], errors[0] / errors[2])
        lines += [(f, survey, *line) for f, *line in zip(asked.families, *columns, strict=True)]
    names = ["family", "s", "given", "held", "survey", "width_ratio", "optimum_ratio"]
    frame = pd.DataFrame(lines, columns=names).astype({"held": float, "survey": float})
    return {family: counted(each) for family, each in frame.groupby("family", sort=False)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dataset", choices=[*NUMBERS], default="adult")
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--surveys", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Print a line for each family of estimates, or one JSON line."""
    options = _options()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    domain, codes = load(options.dataset)
    release = Moments("moments", domain, options.rows, Budget.of(options.alpha, BETA))
    found = repeated(release, MODELS[options.dataset], codes, options.surveys, options.seed)
    asked = {name: getattr(options, name) for name in ("dataset", "alpha", "rows", "surveys")}
    if options.json:
        print(json.dumps(asked | {"families": found}))
        return
    for family, result in found.items():
        print(asked | {"family": family} | result)


if __name__ == "__main__":
    main()
