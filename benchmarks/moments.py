"""Coverage of the 95% intervals of ``moments``, whole path repeated.

    python -m benchmarks.moments --dataset adult_raw --alpha 1 --rows 5000 --surveys 200 --json

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

from typing import Any

import numpy as np
import pandas as pd

from benchmarks import models
from benchmarks.inference import counted
from benchmarks.models import BOUNDS
from benchmarks.surveys import options, show
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Grid
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.estimates.design import cells_of
from dpcore.line.privacy_line import perturb
from dpcore.post.levels import SIGMAS_95
from dpcore.post.points import Estimated, Points
from dpcore.releases.numbers.moments import Moments
from dpcore.releases.numbers.products import BITS
from dpcore.sampling.source import SeededSource
from tasks.inference.linear import linear_design

BETA = "1e-6"

NUMBERS = {
    "adult_raw": ["age", "education_num", "hours_per_week"],
    "california_housing": [*BOUNDS["california_housing"]],
    "fair_affairs": ["rate_marriage", "age", "yrs_married", "religious", "educ"],
    "acs_nist_ma2019": ["AGEP", "PINCP", "POVPIP"],
}
"""Columns of numbers; what lies beyond their bounds counts as the bound, in the population too."""

CATEGORIES = {"adult_raw": ["sex", "race"], "acs_nist_ma2019": ["SEX", "EDU"]}

CELLS = 4096
"""Of the grid of a number."""

MODELS = {
    "adult_raw": ["hours_per_week ~ age + education_num + sex", "education_num ~ age + race"],
    "california_housing": [
        "median_house_value ~ median_income + housing_median_age",
        "median_house_value ~ median_income + total_rooms + population",
    ],
    "fair_affairs": ["rate_marriage ~ age + religious + educ", "yrs_married ~ age"],
    "acs_nist_ma2019": ["PINCP ~ AGEP + C(SEX)", "POVPIP ~ AGEP + C(EDU)"],
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
    columns, frame = models.load(dataset)
    numbers, others = NUMBERS[dataset], CATEGORIES.get(dataset, [])
    frame = frame[[*numbers, *others]].dropna()
    axes: list[Axis] = [Grid(name, *BOUNDS[dataset][name], CELLS) for name in numbers]
    axes += [columns[name].axis(name) for name in others]
    codes = [cells_of(a, np.ma.masked_array(frame[a.name].to_numpy())) for a in axes]
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


def main() -> None:
    """Print a line for each family of estimates, or one JSON line."""
    asked = options(__doc__, MODELS)
    domain, codes = load(asked.dataset)
    release = Moments("moments", domain, asked.rows, Budget.of(asked.alpha, BETA))
    found = repeated(release, MODELS[asked.dataset], codes, asked.surveys, asked.seed)
    show(asked, {"families": found})


if __name__ == "__main__":
    main()
