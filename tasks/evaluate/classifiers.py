"""Asked of boosted trees: is a record synthetic, and what do synthetic records teach of real ones?

The trees are those of scikit-learn, always with the same seed.  They see numbers as they are and other
columns as categories, so they also notice what cells hide: ages of 36.5, incomes spread evenly where
people round them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import InputError
from tasks.evaluate.tables import Floats, Integers, Pair

MOST_CATEGORIES = 255
"""Beyond these, the trees of scikit-learn take categories for numbers."""


@dataclass(frozen=True)
class Transfer:
    """How well real records' ``label`` is told (AUC, one class against the rest, averaged)."""

    label: str
    trained_on_synthetic: float
    trained_on_real: float


def require_classifiers() -> None:
    """Raise ``InputError`` where scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        raise InputError('scikit-learn is not installed; run: pip install "dprelease[evaluation]"')


def _features(pair: Pair, without: str | None = None) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """(n, k) of the real and (m, k) of the synthetic records, and which columns are categories."""
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


def _trees(categories: NDArray[np.bool_]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # A validation set for stopping early is drawn by class, and fails where one has a single record.
    return HistGradientBoostingClassifier(
        categorical_features=categories, early_stopping=False, random_state=0
    )


def told_apart(pair: Pair) -> float:
    """AUC of the propensity score: every record's is learnt from the other four fifths."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    real, synthetic, categories = _features(pair)
    made = np.repeat([0, 1], [len(real), len(synthetic)])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    records = np.concatenate([real, synthetic])
    with threadpool_limits(1):  # threads that wait for a busy processor take twenty times as long
        scores = cross_val_predict(
            _trees(categories), records, made, cv=folds, method="predict_proba"
        )
    return float(roc_auc_score(made, scores[:, 1]))


def default_label(pair: Pair) -> str:
    """The last column of two values in the real table, or of the fewest."""
    return min(reversed(pair.columns), key=lambda name: abs(pair.real[name].nunique() - 2))


def transfer(pair: Pair, label: str) -> Transfer:
    """A third of the real records is told by trees grown on the rest, and on synthetic records."""
    if label not in pair.columns:
        raise InputError(f"label: {label!r} is not among the columns of both tables")
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
    """Mean over the classes in ``truth`` of the AUC of telling one from the rest."""
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    present = np.unique(truth)
    if len(present) < 2 or len(np.unique(classes)) < 2:
        return 0.5
    with threadpool_limits(1):
        trees.fit(features, classes)
        known, scores = list(trees.classes_), trees.predict_proba(unseen)
    blank = np.zeros(len(unseen))  # a class that was never seen is never told
    aucs = [
        roc_auc_score(truth == one, scores[:, known.index(one)] if one in known else blank)
        for one in present
    ]
    return float(np.mean(aucs))
