"""How well boosted trees tell synthetic records from real ones, with and without what a plan can state.

    python -m benchmarks.synthesis.recognised --alpha 1 10

makes up 20,000 records of 20 mixed columns: amounts with a zero and a top code, hours in fives, a few
levels, a body mass index, trades and their sectors, a beginning and an end, two weights that nearly
agree.  It publishes them under two plans, one that states only columns and bins (``plain``) and one that
states how numbers are written and what follows from what (``stated``), and prints one JSON line for each
draw: the AUC of the trees on records held out (0.5: they cannot tell), and how many of a million
synthetic records contradict themselves.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SystemSource
from schemas.plan import Plan
from tasks.bundle.records import synthetic_records
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest

ROWS = 20_000
MILLION = 10**6
TRADES = {f"{sector}{i}": sector for sector in "ABCDEF" for i in range(4)}
LEVELS = (0, 120, 250, 400, 800, 1500)

PLAIN = f"""
dprelease: 1
dataset: made-up
source: made-up.parquet
rows: {ROWS}
privacy_unit: row
neighbours: replace-one
columns:
  age: {{type: integer, bounds: [0, 94]}}
  sex: {{type: categorical, categories: [F, M]}}
  region: {{type: categorical, categories: [a, b, c, d, e, f, g, h]}}
  trade: {{type: categorical, categories: [{", ".join(TRADES)}]}}
  sector: {{type: categorical, categories: [A, B, C, D, E, F]}}
  schooling: {{type: categorical, categories: [1, 2, 3, 4, 5]}}
  hours: {{type: integer, bounds: [0, 80]}}
  income: {{type: continuous, bounds: [0, 99999]}}
  benefit: {{type: integer, bounds: [0, 1500]}}
  height: {{type: integer, bounds: [140, 209]}}
  weight: {{type: continuous, bounds: [35, 160]}}
  bmi: {{type: continuous, bounds: [7, 85]}}
  start: {{type: integer, bounds: [0, 364]}}
  end: {{type: integer, bounds: [0, 364]}}
  person_weight: {{type: continuous, bounds: [0, 500]}}
  household_weight: {{type: continuous, bounds: [0, 500]}}
  owner: {{type: categorical, categories: [false, true]}}
  children: {{type: integer, bounds: [0, 5]}}
  smoker: {{type: categorical, categories: [never, former, now]}}
  rooms: {{type: integer, bounds: [1, 8]}}
releases:
  - name: everyone
    kind: microdata-margins
    columns: [age, sex, region, trade, sector, schooling, hours, income, benefit, height, weight, bmi,
      start, end, person_weight, household_weight, owner, children, smoker, rooms]
    bins:
      age: [0, 15, 25, 35, 45, 55, 65, 75, 95]
      hours: [0, 1, 20, 35, 42, 81]
      income: [0, 5000, 10000, 20000, 35000, 60000, 99999]
      benefit: [0, 120, 250, 400, 800, 1501]
      height: [140, 155, 165, 175, 185, 210]
      weight: [35, 50, 60, 70, 80, 95, 160]
      bmi: [7, 18, 22, 25, 30, 85]
      start: 5
      end: 5
      person_weight: [0, 25, 40, 50, 60, 75, 100, 500]
      household_weight: [0, 25, 40, 50, 60, 75, 100, 500]
synthesis:
  - {{name: people, from: everyone, rows: {ROWS}}}
publication: {{title: Made up}}
"""


def main() -> None:
    """Print one JSON line for each plan, alpha and draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.recognised")
    parser.add_argument("--alpha", type=Fraction, nargs="+", default=[Fraction(1), Fraction(10)])
    parser.add_argument("--draws", type=int, default=1)
    options = parser.parse_args()
    survey, unseen = made_up(0), made_up(1)
    for alpha in options.alpha:
        for name, document in (("plain", plain()), ("stated", stated())):
            document["budget"] = {
                part: {"alpha": str(alpha), "beta": "1e-9"} for part in ("granted", "requested")
            }
            for _ in range(options.draws):
                facts = published(Plan.model_validate(document), survey, unseen)
                found = {"plan": name, "alpha": float(alpha)} | facts
                print(json.dumps(found), flush=True)


def plain() -> dict[str, Any]:
    """A plan that states columns and bins alone."""
    document: dict[str, Any] = yaml.safe_load(PLAIN)
    return document


def stated() -> dict[str, Any]:
    """The same plan, and what is known of the numbers and of what follows from what."""
    document = plain()
    columns, release = document["columns"], document["releases"][0]
    columns["hours"] |= {"step": 5, "point_masses": [38]}
    columns["income"] |= {"step": 10, "point_masses": [0, 99999]}
    columns["end"] |= {"point_masses": [364]}  # what goes on after the year ends on its last day
    columns["benefit"] = {"type": "integer", "levels": list(LEVELS)}
    columns["weight"] |= {"step": 0.1}
    columns["trade"]["refines"] = {"sector": TRADES}
    for name in ("person_weight", "household_weight"):
        columns[name] |= {"step": 0.01}
    del columns["bmi"]
    release["columns"] = [c for c in release["columns"] if c not in ("bmi", "sector")]
    release["bins"] = {c: b for c, b in release["bins"].items() if c not in ("bmi", "benefit")}
    release["rules"] = ["end >= start"]
    document["synthesis"][0]["derived"] = {"bmi": "round(weight / (height / 100) ** 2, 1)"}
    return document


def made_up(seed: int) -> pd.DataFrame:
    """20,000 made-up records."""
    random = np.random.default_rng(seed)
    age = np.minimum(random.gamma(4, 11, ROWS).astype(int), 94)
    sex = random.choice(["F", "M"], ROWS)
    schooling = np.clip(random.normal(3, 1, ROWS) - (age > 60), 1, 5).astype(int)
    trade = random.choice(list(TRADES), ROWS, p=random_shares(len(TRADES)))
    works = (age > 15) & (age < 68) & (random.random(ROWS) < 0.8)
    fives = np.clip(np.rint(random.normal(7.5, 2, ROWS)), 1, 16) * 5
    hours = np.where(random.random(ROWS) < 0.2, 38, fives)
    pay = np.exp(9.3 + 0.25 * schooling + 0.01 * hours + random.normal(0, 0.5, ROWS))
    income = np.where(works, np.minimum(np.rint(pay / 10) * 10, 99999), 0)
    needs = np.clip(4 - income / 12000 + random.normal(0, 1, ROWS), 0, 5).astype(int)
    height = np.clip(np.rint(random.normal(165 + 12 * (sex == "M"), 7, ROWS)), 140, 209).astype(int)
    body = np.exp(random.normal(np.log(24) + 0.002 * (age - 40), 0.15, ROWS)) * (height / 100) ** 2
    weight = np.round(np.clip(body, 35, 160), 1)
    start = random.integers(0, 365, ROWS)
    household = np.round(np.minimum(np.exp(random.normal(4, 0.5, ROWS)), 500), 2)
    person = np.round(np.minimum(household * np.exp(random.normal(0, 0.1, ROWS)), 500), 2)
    children = np.where((age > 20) & (age < 55), random.poisson(1.2, ROWS), 0)
    return pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "region": random.choice(list("abcdefgh"), ROWS, p=random_shares(8)),
            "trade": trade,
            "sector": [TRADES[one] for one in trade],
            "schooling": schooling,
            "hours": np.where(works, hours, 0).astype(int),
            "income": income,
            "benefit": np.array(LEVELS)[needs],
            "height": height,
            "weight": weight,
            "bmi": np.round(weight / (height / 100) ** 2, 1),
            "start": start,
            "end": np.minimum(start + random.geometric(0.01, ROWS) - 1, 364),
            "person_weight": person,
            "household_weight": household,
            "owner": random.random(ROWS) < np.where(income > 25000, 0.7, 0.35),
            "children": np.minimum(children, 5),
            "smoker": random.choice(["never", "former", "now"], ROWS, p=[0.6, 0.2, 0.2]),
            "rooms": np.clip(random.poisson(3, ROWS) + (income > 40000), 1, 8),
        }
    )


def random_shares(size: int) -> NDArray[np.float64]:
    """Shares by rank, as of Zipf's law."""
    shares = 1 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


def published(plan: Plan, survey: pd.DataFrame, unseen: pd.DataFrame) -> dict[str, Any]:
    """One draw, through ingest and tally: the AUC of its records, and their contradictions."""
    made = drawn(plan, survey, (ROWS, MILLION))
    return {"auc": round(auc(made[ROWS], unseen), 3)} | contradictions(made[MILLION])


def drawn(
    plan: Plan, survey: pd.DataFrame, numbers: Sequence[int]
) -> dict[int, Mapping[str, NDArray[Any]]]:
    """By each number of records, the columns of that many, from one draw of the plan's releases."""
    with TemporaryDirectory() as folder:
        survey.to_parquet(Path(folder) / "t.parquet")
        database = ingest(
            f"{folder}/t.parquet", plan.read_columns, plan.rows, Path(folder) / "work"
        )
        tallies = tally_releases(plan, [*plan.built], database)
    noisy = {
        name: perturb(of.statistic(tallies[name]), of.mechanism, of.share, SystemSource())
        for name, of in plan.built.items()
    }
    return {
        rows: synthetic_records(plan, plan.synthesis[0], noisy.__getitem__, rows).columns
        for rows in numbers
    }


def auc(columns: Mapping[str, NDArray[Any]], unseen: pd.DataFrame) -> float:
    """Of boosted trees that learn on half of the records which are synthetic, on the other half."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    names = list(unseen)
    records = pd.concat([unseen, pd.DataFrame({name: columns[name] for name in names})])
    kinds = np.array([records[name].dtype.kind not in "if" for name in names])
    numbers = np.column_stack(
        [
            pd.factorize(records[name], sort=True)[0] if kind else records[name]
            for name, kind in zip(names, kinds, strict=True)
        ]
    ).astype(np.float64)
    synthetic = np.repeat([0, 1], [len(unseen), len(records) - len(unseen)])
    train = np.random.default_rng(0).random(len(records)) < 0.5
    trees = HistGradientBoostingClassifier(categorical_features=kinds, random_state=0)
    with threadpool_limits(1):
        trees.fit(numbers[train], synthetic[train])
        scores = trees.predict_proba(numbers[~train])[:, 1]
    return float(roc_auc_score(synthetic[~train], scores))


def contradictions(columns: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """How many records contradict themselves."""
    index = columns["weight"] / (columns["height"] / 100) ** 2
    sectors = np.array([TRADES[one] for one in columns["trade"].tolist()])
    return {
        "bmi_wrong": int((np.abs(columns["bmi"] - index) > 0.05001).sum()),
        "sector_wrong": int((sectors != columns["sector"]).sum()),
        "end_before_start": int((columns["end"] < columns["start"]).sum()),
        "benefit_no_level": int((~np.isin(columns["benefit"], LEVELS)).sum()),
    }


if __name__ == "__main__":
    main()
