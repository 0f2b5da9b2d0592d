"""Private classifiers on public tables, beside diffprivlib's and a machine without privacy.

    python -m benchmarks.classifiers --splits 10
    python -m benchmarks.classifiers --splits 10 --svm magic adult
    python -m benchmarks.classifiers banknote --kernel 0.3 0.01
    python -m benchmarks.classifiers magic california htru2 --alphas 1000

prints one JSON line for each table and alpha: accuracy and F1 on a fifth of the records that was left
out, averaged over ``splits`` random ones.

    ours       kind ``classifier``, mechanism ``noisy-gradients``, defaults; beta = 1e-6
    balanced   the same with ``weights: balanced``
    kernel     mechanism ``gaussian-process`` at a bandwidth and a regularisation; with ``--kernel``
    logistic   diffprivlib's LogisticRegression, the best of three codings for each table and alpha
    bayes      diffprivlib's GaussianNB
    svm        scikit-learn's SVC, Gaussian kernel, without privacy: the better of C = 1 and 10, of one
               split and 15,000 records at most; with ``--svm``

diffprivlib's models have beta = 0.  Its columns are left out where it is not installed; versions that
it runs with are in ``benchmarks/scale/peers/diffprivlib.txt``.  All get the same public bounds, and
categories as coordinates of their own.  The codings: numbers scaled to [0, 1]; to [-1, 1]; and
categories by their number, in [0, 1].  Choosing the best with the answers at hand flatters the peer.

Tables, in ``DPRELEASE_TEST_DATA``: MAGIC gamma telescope, banknotes, Adult (income by 11 columns), block
groups of California (median value of at least 200,000), affairs of Fair (any).  Held out, and run only
where they are named, because nothing was chosen on them: HTRU2 (is it a pulsar), CPS1988 (is the work
part-time) and RandHIE (any visit to a physician), each as ``NAME/NAME.csv`` with columns as UCI, R's AER
and statsmodels have them.  Their bounds are round numbers, to which values are clipped.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import DATA
from dpcore.accounting.budget import Budget
from dpcore.arrays import Floats
from dpcore.domain.adjacency import REPLACE_ONE
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.machines.classifier import Classifier
from dpcore.releases.machines.curves import cells_at
from dpcore.releases.machines.gradients import GradientClassifier
from dpcore.sampling.source import SystemSource
from schemas.releases.base import SurveyFacts
from schemas.releases.classifier import ClassifierSection
from schemas.survey.columns import CategoricalColumn, Column, ContinuousColumn, IntegerColumn

ALPHAS, BETA = ("0.5", "1", "4"), "0.000001"
MOST_FOR_SVM = 15_000
LABEL = "label"

Private = GradientClassifier | Classifier


@dataclass(frozen=True)
class Example:
    """``frame``: features; ``positive``: (n,) whether the label is; ``columns``: their description."""

    frame: pd.DataFrame
    positive: np.ndarray
    columns: dict[str, Column]

    def numbers(self, names: bool) -> Floats:
        """Features in [0, 1]; categories have a coordinate each, or with ``names`` are numbered."""
        parts = []
        for name, column in self.columns.items():
            if isinstance(column, CategoricalColumn):
                codes = self.frame[name].map({c: i for i, c in enumerate(column.categories)})
                eye = np.eye(len(column.categories))[codes] / np.sqrt(2)
                parts.append(codes.to_numpy()[:, None] / (len(eye[0]) - 1) if names else eye)
            else:
                lower, upper = column.bounds
                parts.append(((self.frame[name] - lower) / (upper - lower)).to_numpy()[:, None])
        return np.hstack(parts).astype(np.float64)


def _numbers(bounds: dict[str, tuple[float, float]], whole: bool = False) -> dict[str, Column]:
    if whole:
        return {
            name: IntegerColumn(type="integer", bounds=(int(a), int(b)))
            for name, (a, b) in bounds.items()
        }
    return {n: ContinuousColumn(type="continuous", bounds=b) for n, b in bounds.items()}


def magic(data: Path) -> Example:
    bounds: dict[str, tuple[float, float]] = {"fLength": (0, 400), "fWidth": (0, 300)}
    bounds |= {"fSize": (1, 6), "fConc": (0, 1), "fConc1": (0, 1), "fAsym": (-500, 600)}
    bounds |= {"fM3Long": (-350, 250), "fM3Trans": (-250, 200), "fAlpha": (0, 90)}
    bounds["fDist"] = (0, 500)
    frame = pd.read_parquet(data / "svm_magic" / "magic04.parquet")
    return Example(frame, (frame["class"] == "g").to_numpy(), _numbers(bounds))


def banknote(data: Path) -> Example:
    bounds: dict[str, tuple[float, float]] = {"variance": (-8, 8), "skewness": (-14, 14)}
    bounds |= {"curtosis": (-6, 18), "entropy": (-9, 3)}
    frame = pd.read_csv(data / "svm_banknote" / "banknote.csv")
    return Example(frame, (frame["class"] == 1).to_numpy(), _numbers(bounds))


def adult(data: Path) -> Example:
    folder = data / "adult_coded"
    frame = pd.read_parquet(folder / "adult_coded.parquet")
    sizes = json.loads((folder / "adult-domain.json").read_text())
    numbers = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    columns = _numbers({name: (0, sizes[name] - 1) for name in numbers}, whole=True)
    for name in ("workclass", "marital-status", "occupation", "relationship", "race", "sex"):
        codes = [str(code) for code in range(sizes[name])]
        columns[name] = CategoricalColumn(type="categorical", categories=codes)
        frame[name] = frame[name].astype(int).astype(str)
    return Example(frame, (frame["income>50K"] == 1).to_numpy(), columns)


def california(data: Path) -> Example:
    bounds: dict[str, tuple[float, float]] = {"longitude": (-125, -114), "latitude": (32, 42)}
    bounds |= {"housing_median_age": (0, 55), "total_rooms": (0, 40_000)}
    bounds |= {"total_bedrooms": (0, 7_000), "population": (0, 36_000), "households": (0, 6_500)}
    bounds["median_income"] = (0, 15.001)
    frame = pd.read_parquet(data / "california_housing" / "california_housing.parquet").dropna()
    places = ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]
    columns = _numbers(bounds)
    columns["ocean_proximity"] = CategoricalColumn(type="categorical", categories=places)
    return Example(frame, (frame["median_house_value"] >= 200_000).to_numpy(), columns)


def fair(data: Path) -> Example:
    frame = pd.read_parquet(data / "fair_affairs" / "fair.parquet").astype(float)
    levels: dict[str, list[float]] = {
        "rate_marriage": [1, 2, 3, 4, 5],
        "age": [17.5, 22, 27, 32, 37, 42],
        "yrs_married": [0.5, 2.5, 6, 9, 13, 16.5, 23],
        "children": [0, 1, 2, 3, 4, 5.5],
        "religious": [1, 2, 3, 4],
        "educ": [9, 12, 14, 16, 17, 20],
        "occupation": [1, 2, 3, 4, 5, 6],
        "occupation_husb": [1, 2, 3, 4, 5, 6],
    }
    columns: dict[str, Column] = {
        name: ContinuousColumn(type="continuous", bounds=(each[0], each[-1]), levels=each)
        for name, each in levels.items()
    }
    return Example(frame, (frame["affairs"] > 0).to_numpy(), columns)


def htru2(data: Path) -> Example:
    ends = [(0, 255), (0, 128), (-2, 10), (-2, 70), (0, 255), (0, 128), (-4, 40), (-2, 1_200)]
    frame = pd.read_csv(data / "htru2" / "htru2.csv")
    bounds = dict(zip(frame.columns[:-1], ends, strict=True))
    return Example(
        _clipped(frame, bounds), (frame.iloc[:, -1] == "pulsar").to_numpy(), _numbers(bounds)
    )


def cps1988(data: Path) -> Example:
    bounds: dict[str, tuple[float, float]] = {"wage": (0, 20_000), "education": (0, 20)}
    bounds["experience"] = (-5, 65)
    frame = pd.read_csv(data / "cps1988" / "cps1988.csv")
    columns = _numbers(bounds)
    regions = ["northeast", "midwest", "south", "west"]
    known = {"ethnicity": ["cauc", "afam"], "smsa": ["no", "yes"], "region": regions}
    for name, categories in known.items():
        columns[name] = CategoricalColumn(type="categorical", categories=categories)
    return Example(_clipped(frame, bounds), (frame["parttime"] == "yes").to_numpy(), columns)


def randhie(data: Path) -> Example:
    bounds: dict[str, tuple[float, float]] = {"lncoins": (0, 5), "idp": (0, 1), "lpi": (0, 8)}
    bounds |= {"fmde": (0, 9), "physlm": (0, 1), "disea": (0, 60)}
    bounds |= {"hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1)}
    frame = pd.read_csv(data / "randhie" / "randhie.csv")
    return Example(_clipped(frame, bounds), (frame["mdvis"] > 0).to_numpy(), _numbers(bounds))


def _clipped(frame: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> pd.DataFrame:
    return frame.assign(**{name: frame[name].clip(*ends) for name, ends in bounds.items()})


EXAMPLES: dict[str, Callable[[Path], Example]] = {
    each.__name__: each for each in (magic, banknote, adult, california, fair)
}
HELD_OUT: dict[str, Callable[[Path], Example]] = {
    each.__name__: each for each in (htru2, cps1988, randhie)
}


def main() -> None:
    """Print the lines of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "tables", nargs="*", default=list(EXAMPLES), help="default: all but held-out ones"
    )
    parser.add_argument("--splits", type=int, default=10, help="default: 10")
    parser.add_argument("--svm", action="store_true", help="also the machine without privacy")
    parser.add_argument("--alphas", nargs="+", default=ALPHAS, help="default: 0.5 1 4")
    parser.add_argument("--kernel", type=float, nargs=2, help="bandwidth and regularisation")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    if unknown := set(options.tables) - set(every := EXAMPLES | HELD_OUT):
        parser.error(f"no tables {sorted(unknown)}; choose from {list(every)}")
    warnings.simplefilter("ignore")
    for name in options.tables:
        example = every[name](DATA)
        known = {"svm": without_privacy(example)} if options.svm else {}
        for alpha in options.alphas:
            scores = [
                compared(example, alpha, split, options.kernel) for split in range(options.splits)
            ]
            means = {k: np.mean([s[k] for s in scores], axis=0).tolist() for k in scores[0]}
            line = {"table": name, "alpha": alpha, **best_coding(means), **known}
            print(json.dumps(line, default=float), flush=True)


def best_coding(means: dict[str, list[float]]) -> dict[str, list[float]]:
    """With one column for the codings of the peer's logistic regression, rounded."""
    codings = [means.pop(key) for key in list(means) if key.startswith("logistic")]
    found = means | ({"logistic": max(codings)} if codings else {})
    return {key: [round(value, 4) for value in values] for key, values in found.items()}


def parts_of(rows: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Records to learn from, and a fifth to judge by."""
    order = np.random.default_rng(split).permutation(rows)
    return np.split(order, [4 * rows // 5])[0], order[4 * rows // 5 :]


def compared(
    example: Example, alpha: str, split: int, kernel: list[float] | None
) -> dict[str, tuple[float, float]]:
    """(accuracy, F1) of every private classifier on one split."""
    learn, judge = parts_of(len(example.positive), split)
    truth = example.positive[judge]
    means: dict[str, dict[str, Any]] = {"ours": {}, "balanced": {"weights": "balanced"}}
    if kernel:
        means["kernel"] = {
            "mechanism": "gaussian-process",
            "bandwidth": kernel[0],
            "regularisation": kernel[1],
        }
    found = {}
    for name, stated in means.items():
        release = release_of(example, alpha, len(learn), stated)
        found[name] = scored(ours(example, release, learn, judge), truth)
    for name, guess in theirs(example, float(alpha), learn, judge):
        found[name] = scored(guess, truth)
    return found


def ours(
    example: Example,
    release: Private,
    learn: np.ndarray,
    judge: np.ndarray,
) -> np.ndarray:
    """What the noisy classifier says of the records left out."""
    axes = release.feature_axes
    values = {axis.name: example.frame[axis.name].to_numpy() for axis in axes}
    codes = [cells_at(axis, values[axis.name][learn]) for axis in axes]
    labels = example.positive[learn].astype(np.int64)
    tally = Tally.of(release.domain, release.domain.pack(np.column_stack([*codes, labels])))
    noisy = perturb(release.statistic(tally), release.mechanism, release.share, SystemSource())
    points = {name: each[judge] for name, each in values.items()}
    return np.asarray(release.evaluate(noisy, points)["decision"] > 0)


def release_of(example: Example, alpha: str, rows: int, stated: dict[str, Any]) -> Private:
    """The release that a plan with these columns has; ``stated``: keys of its section."""
    label = CategoricalColumn(type="categorical", categories=["no", "yes"])
    columns = {**{name: example.columns[name] for name in example.columns}, LABEL: label}
    section = ClassifierSection.model_validate(
        {
            "name": "classifier",
            "kind": "classifier",
            "features": list(example.columns),
            "label": {"column": LABEL, "positive": ["yes"]},
            "mechanism": "noisy-gradients",
            **stated,
        }
    )
    release = section.build(SurveyFacts(columns, rows, REPLACE_ONE), Budget.of(alpha, BETA))
    assert isinstance(release, Private)
    return release


def theirs(
    example: Example, alpha: float, learn: np.ndarray, judge: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """What diffprivlib's classifiers say, where it is installed."""
    try:
        from diffprivlib.models import GaussianNB, LogisticRegression
    except ImportError:
        return
    apart, numbered, labels = example.numbers(False), example.numbers(True), example.positive
    norm = np.sqrt(len(example.columns))
    codings = {"logistic 01": apart, "logistic 11": 2 * apart - 1, "logistic codes": numbered}
    for name, points in codings.items():
        most = np.sqrt(points.shape[1]) if name == "logistic 11" else norm
        model: Any = LogisticRegression(epsilon=alpha, data_norm=most, max_iter=300)
        yield name, model.fit(points[learn], labels[learn]).predict(points[judge])
    model = GaussianNB(epsilon=alpha, bounds=(0, 1))
    yield "bayes", model.fit(numbered[learn], labels[learn]).predict(numbered[judge])


def without_privacy(example: Example) -> list[float]:
    """(accuracy, F1) of the better of two support vector machines."""
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    learn, judge = parts_of(len(example.positive), 0)
    learn = learn[:MOST_FOR_SVM]
    points = StandardScaler().fit(example.numbers(False)[learn]).transform(example.numbers(False))
    machines = (
        SVC(C=c, cache_size=1000).fit(points[learn], example.positive[learn]) for c in (1, 10)
    )
    truth = example.positive[judge]
    return list(max(scored(machine.predict(points[judge]), truth) for machine in machines))


def scored(guess: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy and F1 of the positive side."""
    both = float(np.sum(guess & truth))
    return float(np.mean(guess == truth)), 2 * both / max(float(np.sum(guess) + np.sum(truth)), 1.0)


if __name__ == "__main__":
    main()
