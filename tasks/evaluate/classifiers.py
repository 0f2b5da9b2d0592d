"""Two tests with boosted trees: recognising synthetic records, and learning from them.

The trees are scikit-learn's, always with the same seed.  They use exact numbers, and other columns as
categories. So they also find differences inside cells, such as ages of 36.5, or incomes that are spread
evenly instead of rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.errors import InputError
from tasks.evaluate.tables import TablePair

MOST_CATEGORIES = 255
"""A column with more categories is passed to scikit-learn's trees as numbers."""


@dataclass(frozen=True)
class Transfer:
    """How well trees predict ``label`` of real records: mean AUC of each class against the rest."""

    label: str
    trained_on_synthetic: float
    trained_on_real: float


def require_classifiers() -> None:
    """Raise ``InputError`` if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise InputError('scikit-learn is not installed; run: pip install "dprelease[evaluation]"')


def _features(pair: TablePair, without: str | None = None) -> tuple[Floats, Floats, Booleans]:
    """Features of the real (n, k) and synthetic (m, k) records, and which columns are categorical."""
    real, synthetic, sizes = pair.codes
    kept = [i for i, name in enumerate(pair.columns) if name != without]
    one, other = real.astype(np.float64), synthetic.astype(np.float64)
    for name in pair.numeric:
        i, numbers = pair.columns.index(name), (pair.real[name], pair.synthetic[name])
        null = np.fmin(*(column.min() for column in numbers)) - 1  # below all numbers
        one[:, i], other[:, i] = (np.nan_to_num(column, nan=null) for column in numbers)
    categories = [
        name not in pair.numeric and size <= MOST_CATEGORIES
        for name, size in zip(pair.columns, sizes, strict=True)
    ]
    return one[:, kept], other[:, kept], np.array(categories)[kept]


def _trees(categories: Booleans) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Early stopping would need two records of every class for its validation set.
    return HistGradientBoostingClassifier(
        categorical_features=categories, early_stopping=False, random_state=0
    )


def propensity_auc(pair: TablePair) -> float:
    """AUC of the propensity score, by five-fold cross-validation."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    real, synthetic, categories = _features(pair)
    made = np.repeat([0, 1], [len(real), len(synthetic)])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    records = np.concatenate([real, synthetic])
    with threadpool_limits(1):  # on a busy processor, several threads take twenty times as long
        scores = cross_val_predict(
            _trees(categories), records, made, cv=folds, method="predict_proba"
        )
    return float(roc_auc_score(made, scores[:, 1]))


def default_label(pair: TablePair) -> str:
    """The last column among those whose number of values in the real table is closest to two."""
    return min(reversed(pair.columns), key=lambda name: abs(pair.real[name].nunique() - 2))


def transfer(pair: TablePair, label: str) -> Transfer:
    """Predict a third of the real records by trees trained on the others, and on synthetic records."""
    if label not in pair.columns:
        raise InputError(f"label: {label!r} is not among the columns that are compared")
    position = pair.columns.index(label)
    real, synthetic, categories = _features(pair, without=label)
    ours, theirs = (codes[:, position] for codes in pair.codes[:2])
    held_out = np.random.default_rng(0).permutation(len(real)) < len(real) / 3
    tested = real[held_out], ours[held_out]
    return Transfer(
        label,
        _auc(_trees(categories), synthetic, theirs, *tested),
        _auc(_trees(categories), real[~held_out], ours[~held_out], *tested),
    )


def _auc(trees: Any, features: Floats, classes: Integers, unseen: Floats, truth: Integers) -> float:
    """The mean AUC of one class against the rest, over the classes in ``truth``."""
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    present = np.unique(truth)
    if len(present) < 2 or len(np.unique(classes)) < 2:
        return 0.5
    with threadpool_limits(1):
        trees.fit(features, classes)
        known, scores = list(trees.classes_), trees.predict_proba(unseen)
    blank = np.zeros(len(unseen))  # a class that was not in training is never predicted
    aucs = [
        roc_auc_score(truth == one, scores[:, known.index(one)] if one in known else blank)
        for one in present
    ]
    return float(np.mean(aucs))
