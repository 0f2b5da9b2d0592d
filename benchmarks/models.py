"""Coverage and width of the 95% intervals of models that are measured directly, whole path repeated.

    python -m benchmarks.models --dataset adult_raw --rows 5000 --alpha 1 --surveys 100 --json

A table is taken for the population.  Surveys of ``--rows`` are drawn from it with replacement and
released (kind ``model``, the whole budget for each question, replace-one, beta 1e-6), or those of a
``--design`` (``benchmarks.designs``).  For each family of models, or each mean or share with
``--ask means``, over all surveys and all coefficients of its questions:

    coverage        how often the interval holds the population's value; null where none was given
    coverage_error  the standard error of that: surveys are independent, intervals of one are not
    survey          the same of the survey's own intervals, which are not published
    width_ratio     median width over that of the survey's own interval
    bias            the largest mean error of a coefficient, in stated standard errors
    refused         the share of intervals that were not given, and are not counted otherwise

The survey's own intervals are those of the same estimate without noise, robust to unequal variances
(Huber 1967), by units within strata where there are some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from benchmarks import DATA
from benchmarks.designs import DESIGNS, Survey
from benchmarks.inference import counted
from benchmarks.surveys import options, show
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats, Integers
from dpcore.domain.tally import Tally
from dpcore.estimates.design import cells_of
from dpcore.estimates.families import FAMILIES
from dpcore.line.privacy_line import perturb
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.design import CLUSTER, STRATUM
from dpcore.releases.models.model import MeasuredModel
from dpcore.sampling.source import SeededSource
from schemas.releases.model import ModelSection
from schemas.survey.columns import Column

BETA = "1e-6"

FILES = {
    "adult_raw": "adult_raw/adult_raw.parquet",
    "acs_nist_ma2019": "acs_nist_ma2019/ma2019.parquet",
    "eusilc_households": "eusilc_households/eusilc.parquet",
    "fair_affairs": "fair_affairs/fair.parquet",
    "slid": "first_hour/slid.csv",
    "vietnam_health": "first_hour/vietnam_health.csv",
    "medexp": "first_hour/medexp.csv",
    "california_housing": "california_housing/california_housing.parquet",
}

BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "adult_raw": {"age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99)},
    "acs_nist_ma2019": {"AGEP": (0, 99), "PINCP": (0, 150_000), "POVPIP": (0, 501), "NPF": (1, 10)},
    "eusilc_households": {"age": (0, 100), "hsize": (1, 10), "eqIncome": (0, 80_000)},
    "fair_affairs": {
        "rate_marriage": (1, 5),
        "age": (17, 42),
        "yrs_married": (0, 24),
        "children": (0, 6),
        "religious": (1, 4),
        "educ": (9, 20),
        "affairs": (0, 60),
    },
    "slid": {"wages": (0, 100), "education": (0, 30), "age": (16, 110)},
    "vietnam_health": {
        "pharmacy_visits": (0, 60),
        "household_spending": (0, 1000),
        "age": (0, 110),
        "educ": (0, 12),
        "illnesses": (0, 20),
    },
    "medexp": {
        "spending": (0, 100_000),
        "coinsurance": (0, 100),
        "income": (0, 50_000),
        "family_size": (1, 20),
        "educ_head": (0, 25),
        "age": (0, 99),
    },
    "california_housing": {
        "median_income": (0, 15),
        "housing_median_age": (0, 60),
        "total_rooms": (0, 12_000),
        "population": (0, 6_000),
        "median_house_value": (0, 510_000),
    },
}
"""Columns of numbers, rounded to a grid of 1,024 cells between bounds; what lies beyond counts as the
bound, in the population too.  All others are categories."""

LOGARITHMS = ("wages", "household_spending")
"""Columns with a point mass at 0, because a question uses their logarithm."""

QUESTIONS: dict[str, list[tuple[str, str]]] = {
    "adult_raw": [
        ("gaussian", "hours_per_week ~ age + education_num + sex + {race == 'White'}"),
        (
            "binomial",
            "{income == '>50K'} ~ age + education_num + hours_per_week + sex + {race == 'White'}",
        ),
        ("poisson", "education_num ~ age + sex + {race == 'White'} + hours_per_week"),
    ],
    "acs_nist_ma2019": [
        ("gaussian", "POVPIP ~ AGEP + SEX + {OWN_RENT == '1'} + {DPHY == '1'}"),
        ("binomial", "{DPHY == '1'} ~ AGEP + SEX + {OWN_RENT == '1'} + {RAC1P == '1'}"),
        ("poisson", "NPF ~ AGEP + SEX + {OWN_RENT == '1'} + {HISP == '0'}"),
    ],
    "eusilc_households": [
        ("gaussian", "log(eqIncome + 1000) ~ age + hsize + rb090 + pb220a"),
        ("binomial", "{pl030 == '1'} ~ age + rb090 + hsize + pb220a"),
        ("poisson", "hsize ~ age + rb090 + {db040 == 'Vienna'} + {db040 == 'Tyrol'}"),
    ],
    "fair_affairs": [
        ("gaussian", "rate_marriage ~ age + yrs_married + children + religious + educ"),
        ("binomial", "{affairs > 0.05} ~ rate_marriage + age + yrs_married + religious + educ"),
        ("poisson", "children ~ age + religious + educ + rate_marriage"),
    ],
    "slid": [
        ("gaussian", "log(wages + 1) ~ age + education + sex + language"),
        ("binomial", "{wages > 15} ~ age + education + sex + language"),
    ],
    "vietnam_health": [
        ("gaussian", "log(household_spending + 1) ~ age + sex + married + educ + illnesses"),
        ("binomial", "{insured == '1'} ~ age + sex + married + educ + illnesses"),
        ("poisson", "illnesses ~ age + sex + married + educ"),
    ],
    "medexp": [
        ("gaussian", "log(spending + 10) ~ coinsurance + age + sex + {health == 'excellent'}"),
        ("binomial", "{spending > 50} ~ coinsurance + age + sex + {health == 'excellent'}"),
        ("poisson", "family_size ~ age + income + educ_head + black"),
    ],
    "california_housing": [
        ("gaussian", "median_house_value ~ median_income + housing_median_age + total_rooms"),
        (
            "binomial",
            "{median_house_value > 200000} ~ median_income + housing_median_age + population",
        ),
    ],
}


MEANS = {
    "adult_raw": [
        ("gaussian", "hours_per_week ~ 1"),
        ("gaussian", "{income == '>50K'} ~ 1"),
        ("gaussian", "hours_per_week ~ 0 + C(sex)"),
        ("gaussian", "{income == '>50K'} ~ 0 + C(sex)"),
        ("gaussian", "hours_per_week ~ 0 + C(education)"),
    ],
    "acs_nist_ma2019": [
        ("gaussian", "PINCP ~ 1"),
        ("gaussian", "{DPHY == '1'} ~ 1"),
        ("gaussian", "PINCP ~ 0 + C(EDU)"),
        ("gaussian", "{DPHY == '1'} ~ 0 + C(SEX)"),
        ("gaussian", "POVPIP ~ 0 + C(OWN_RENT)"),
    ],
}
"""Means and shares, also of groups."""


class Answer(NamedTuple):
    """Coefficients (p,) and their standard errors."""

    values: Floats
    errors: Floats


def load(dataset: str) -> tuple[dict[str, Column], pd.DataFrame]:
    """The columns of a table as a plan describes them, and its records."""
    path = DATA / FILES[dataset]
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    columns: dict[str, Column] = {}
    for name in frame:
        if name in BOUNDS[dataset]:
            lower, upper = BOUNDS[dataset][name]
            frame[name] = np.clip(pd.to_numeric(frame[name], errors="coerce"), lower, upper)
            keys: dict[str, Any] = {"type": "continuous", "bounds": [lower, upper]}
            keys |= {"point_masses": [0]} if name in LOGARITHMS else {}
        elif frame[name].nunique() <= 20:
            frame[name] = frame[name].map(str, na_action="ignore")
            keys = {"type": "categorical", "categories": sorted(frame[name].dropna().unique())}
        else:
            continue
        columns[name] = TypeAdapter(Column).validate_python(keys)
    return columns, frame


def built(
    columns: dict[str, Column],
    rows: int,
    alpha: str,
    family: str,
    formula: str,
    design: str = "records",
) -> MeasuredModel:
    """The release of a question, for surveys of a design."""
    facts = DESIGNS[design].facts(columns, rows)
    section = ModelSection(name="model", kind="model", formula=formula, family=family)
    release = section.release(facts, Budget.of(alpha, BETA))
    assert isinstance(release, MeasuredModel)
    return release


def codes_of(release: MeasuredModel, frame: pd.DataFrame) -> Integers:
    """(rows, axes) of the records that have a value in every column."""
    assert release.terms is not None
    axes = release.terms.axes
    kept = frame[[axis.name for axis in axes]].dropna()
    columns = [cells_of(axis, np.ma.masked_array(kept[axis.name].to_numpy())) for axis in axes]
    return np.column_stack(columns)


def own_answer(release: MeasuredModel, survey: Survey) -> Answer:
    """The survey's own estimate and errors, by units within strata (Binder 1983)."""
    assert release.terms is not None
    codes, weights = survey.codes.reshape(-1, survey.codes.shape[2]), survey.weights.ravel()
    rows, responses = release.terms.rows(codes), release.terms.responses(codes)
    family, theta = FAMILIES[release.family], np.zeros(rows.shape[1])
    if release.family == "poisson":
        theta = np.linalg.lstsq(rows, np.log(responses + 0.5), rcond=None)[0]
    for _ in range(50):
        slope = weights * family.slope(rows @ theta)
        inverse = np.linalg.pinv(rows.T @ (slope[:, None] * rows))
        step = inverse @ rows.T @ (weights * (responses - family.mean(rows @ theta)))
        theta = theta + step
        if np.abs(step).max() < 1e-10:
            break
    scores = rows * (weights * (responses - family.mean(rows @ theta)))[:, None]
    units = scores.reshape(*survey.weights.shape, -1).sum(axis=1)
    clusters, first = np.unique(survey.clusters, return_index=True)
    sums = np.zeros((clusters.max() + 1, len(theta)))
    np.add.at(sums, survey.clusters, units)
    meat = np.zeros((len(theta), len(theta)))
    for stratum in np.unique(survey.strata):
        own = sums[clusters[survey.strata[first] == stratum]]
        apart = own - own.mean(axis=0)
        meat += len(own) / max(len(own) - 1, 1) * apart.T @ apart
    basis = release.terms.basis[0]
    covariance = basis @ inverse @ meat @ inverse @ basis.T
    values, (covariance, _) = release.terms.rescaled(basis @ theta, [covariance, covariance])
    return Answer(values, np.sqrt(np.diag(covariance)))


def direct_answer(release: MeasuredModel, survey: Survey, seed: int) -> Answer:
    """That of the release."""
    known = {STRATUM: survey.strata, CLUSTER: survey.clusters}
    groups = [known[name] for name in release.design.groups]
    groups_of = np.stack(groups, axis=1) if groups else np.zeros((len(survey.codes), 0), dtype=int)
    cells = release.design.packed(survey.codes, survey.weights, groups_of, release.domain)
    exact = release.statistic(Tally.of(release.domain, cells))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
    found = release.fitted(noisy)
    error = np.sqrt(np.diag(found.sampling) + np.diag(found.privacy))
    return Answer(found.values, np.where(found.hidden, np.inf, error))


def repeated(
    release: MeasuredModel,
    population: Integers,
    surveys: int,
    seed: int,
    answer: Callable[[MeasuredModel, Survey, int], Answer] = direct_answer,
    design: str = "records",
) -> pd.DataFrame:
    """A line for each survey and coefficient."""
    generator, lines = np.random.default_rng(seed), list[dict[str, Any]]()
    drawn = DESIGNS[design](release, population, generator)
    truth = own_answer(release, drawn.population).values
    for number in range(surveys):
        survey = drawn.survey(generator)
        own, ours = own_answer(release, survey), answer(release, survey, 1000 * seed + number)
        for j in range(len(truth)):
            away = ours.values[j] - truth[j]
            given = bool(np.isfinite(ours.errors[j]))
            with np.errstate(all="ignore"):
                ratio = ours.errors[j] / own.errors[j]
            lines.append(
                {
                    "s": number,
                    "term": f"{release.formula}: {j}",
                    "given": float(given),
                    "held": float(abs(away) <= SIGMAS_95 * ours.errors[j]) if given else np.nan,
                    "survey": float(abs(own.values[j] - truth[j]) <= SIGMAS_95 * own.errors[j]),
                    "width_ratio": ratio if given else np.nan,
                    "optimum_ratio": np.nan,
                    "z": away / ours.errors[j] if given else np.nan,
                }
            )
    return pd.DataFrame(lines)


def summary(lines: pd.DataFrame) -> dict[str, Any]:
    """As the head of this file says."""
    found = counted(lines)
    del found["optimum_ratio"]
    bias = lines.groupby("term")["z"].mean().abs().max()
    return found | {"bias": None if np.isnan(bias) else round(float(bias), 3)}


def main() -> None:
    """Print a line for each family of models or each mean, or one JSON line."""
    about = {"models": QUESTIONS, "means": MEANS}
    asked = options(__doc__, QUESTIONS, design=DESIGNS, ask=about)
    columns, frame = load(asked.dataset)
    found: dict[str, list[pd.DataFrame]] = {}
    for family, formula in about[asked.ask].get(asked.dataset, []):
        release = built(columns, asked.rows, asked.alpha, family, formula, asked.design)
        population = codes_of(release, frame)
        lines = repeated(release, population, asked.surveys, asked.seed, design=asked.design)
        found.setdefault(family if asked.ask == "models" else formula, []).append(lines)
    show(asked, {"families": {family: summary(pd.concat(own)) for family, own in found.items()}})


if __name__ == "__main__":
    main()
