"""The page of what a budget buys, computed from plans, without data.

python -c "from docs.reference.budgets import budgets_page; print(budgets_page())"
"""

import math
from collections.abc import Iterator

from docs.reference.markdown import table
from dpcore.advice.usable import GOOD, relative_error, verdict
from schemas.plan import Plan, load_plan
from tasks.explain.analysis import model_error

ROWS = (1_000, 10_000, 100_000)
ALPHAS = ("0.1", "1", "3", "10")
BETA = "1e-6"

COLUMNS = {
    "health": {"type": "categorical", "categories": ["bad", "poor", "fair", "good", "very good"]},
    "region": {"type": "categorical", "categories": ["a", "b", "c", "d", "e", "f"]},
    "sex": {"type": "categorical", "categories": ["female", "male"]},
    "age": {"type": "integer", "bounds": [18, 99], "unit": "years"},
    "income": {"type": "integer", "bounds": [0, 200_000], "unit": "dollars"},
}
MODEL = "income ~ age + sex"

RELEASES = {
    "share": {"kind": "histogram", "columns": ["health"], "mechanism": "discrete-laplace"},
    "pair": {"kind": "histogram", "columns": ["health", "region"], "mechanism": "discrete-laplace"},
    "mean": {"kind": "mean", "column": "age", "mechanism": "discrete-laplace"},
    "model": {
        "kind": "moments",
        "columns": ["age", "sex", "income"],
        "mechanism": "discrete-gaussian",
    },
}


CHOSEN = (
    ("US Census Bureau, redistricting 2020, persons", "17.14", "1e-10", "census_redistricting_data"),
    ("Microsoft and IOM, records of trafficking 2023", "12", "5.8e-6",
     "microsoft_ctdc_victim_perpertartor_synthetic_dataset_2023"),
    ("Israel, Ministry of Health, births of 2014", "9.98", "0", "birth_dataset"),
    ("US Census Bureau, redistricting 2020, housing units", "2.47", "1e-10",
     "census_redistricting_data"),
    ("Wikimedia, page views of a device and day", "below 1", "1e-7", "wikimedia_current_usage_data"),
    ("Microsoft, broadband use by county, each count", "0.1", "0", "broadband_coverage"),
)  # fmt: skip
"""What organisations chose, with the names of their records in OpenDP's registry of deployments."""

PAGE = """\
# What a budget buys

Standard errors from privacy alone, if the whole budget goes to one question: the share of one of five
answers, a table of five answers by six regions, the mean of an age between 18 and 99 years, and a linear
model of income by age and sex. beta is 0, and 1e-6 for the model.

{bought}

A point is a hundredth of all records. Errors of models are in sampling errors, which the survey has
anyway. Good, rough and not usable are those of [`dprelease explain`](../how-to/choose-a-budget.md).
Errors of shares, tables and means fall like 1 / (n alpha): ten times the records are worth ten times
the alpha. If k questions share a budget, look k times lower.

## What others have chosen

{chosen}

epsilon is alpha, delta is beta; records are those of OpenDP's registry of deployments. Units differ: a
person, a household, a birth, or a day of a device.

## What to write in a plan

{advice}
"""

ADVICE = (
    (
        "`requested`",
        "alpha 1, at most 3",
        "At 10,000 records alpha 1 makes shares, tables and means good. The odds of any guess about a"
        " person change by a factor of at most 3; at alpha 3, of 20",
    ),
    (
        "`granted`",
        "three times the first request",
        "A correction and a later wave can be paid, and nothing more can be spent by mistake",
    ),
    (
        "`composition`",
        "basic for one release; concentrated for a schedule or several with Gaussian noise",
        "The noise of k releases then grows with the root of k; a single one has 6% more",
    ),
    (
        "`beta`",
        "at most one in ten times the records: 1e-6 up to 100,000",
        "With this probability the promise may fail. Releases with Laplace noise spend none",
    ),
)


def plan_of(name: str, rows: int, alpha: str) -> Plan:
    """A plan of one release."""
    grant = {"alpha": alpha, "beta": BETA if name == "model" else "0"}
    columns = RELEASES[name].get("columns", [RELEASES[name].get("column")])
    return load_plan(
        {
            "dprelease": 1,
            "dataset": "survey",
            "source": "survey.csv",
            "rows": rows,
            "privacy_unit": "row",
            "neighbours": "replace-one",
            "budget": {"granted": grant, "requested": grant},
            "columns": {column: COLUMNS[column] for column in columns},
            "releases": [{"name": name, **RELEASES[name]}],
            "publication": {"title": "A survey"},
        }
    )


def bought(name: str, rows: int, alpha: str) -> str:
    """The error in words, and how usable it is."""
    plan = plan_of(name, rows, alpha)
    release = plan.built[name]
    if name == "model":
        ratio = model_error(plan, MODEL, "gaussian")
        words = f"{ratio:.2g} sampling errors" if math.isfinite(ratio) else "hidden by noise"
        return f"{words}, {verdict(GOOD * ratio)}"
    error, first = relative_error(release), release.expected_error()[0].value
    assert error is not None
    words = {
        "share": f"{100 * first / rows:.2g} points",
        "pair": f"{100 * error:.2g}% of records moved",
        "mean": f"{first:.2g} years",
    }
    return f"{words[name]}, {verdict(error)}"


def rows_bought() -> Iterator[tuple[str, ...]]:
    for rows in ROWS:
        for alpha in ALPHAS:
            yield f"{rows:,}", alpha, *(bought(name, rows, alpha) for name in RELEASES)


def budgets_page() -> str:
    chosen = [(who, e, d, f"`{file}`") for who, e, d, file in CHOSEN]
    return PAGE.format(
        bought=table(
            ("records", "alpha", "a share", "a table", "a mean", "a model"), rows_bought()
        ),
        chosen=table(("release", "epsilon", "delta", "record"), chosen),
        advice=table(("key", "write", "because"), ADVICE),
    )
