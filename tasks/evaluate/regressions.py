"""Linear regressions on both tables: whether an analyst would come to the same coefficients.

Intervals treat the synthetic records as if they were a sample.  Categories become indicators against the
most frequent one of the real table, with the rare ones together; an outcome of two values is 1 for the
later one in the alphabet (a linear probability model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.estimates.least_squares import explained, least_squares, overlap
from dpcore.model_formula import ModelFormula
from tasks.evaluate.tables import TablePair

MOST_LEVELS = 8
"""More categories than this are rarely all of interest; the others are one."""

OTHERS = "(others)"
MOST_PREDICTORS = 4
CHOSEN_ON = 5000
"""Predictors are chosen on about as many real records."""


@dataclass(frozen=True)
class ComparedCoefficient:
    """One coefficient with its standard error in each table; NaN where the table does not say it."""

    term: str
    real: float
    real_error: float
    synthetic: float
    synthetic_error: float

    @property
    def overlap(self) -> float:
        """Overlap of the confidence intervals, between 0 and 1."""
        real, synthetic = (self.real, self.real_error), (self.synthetic, self.synthetic_error)
        return overlap(real, synthetic)


@dataclass(frozen=True)
class ComparedRegression:
    """A regression of ``outcome`` on ``predictors``; the intercept is left out."""

    outcome: str
    predictors: tuple[str, ...]
    coefficients: tuple[ComparedCoefficient, ...]

    @property
    def overlap(self) -> float:
        """Mean overlap of the coefficients' confidence intervals."""
        return float(np.mean([one.overlap for one in self.coefficients]))


def stated_regression(pair: TablePair, formula: str) -> ComparedRegression:
    """``outcome ~ predictor + predictor``; raises ``InputError`` if it is no such formula."""
    try:
        read = ModelFormula.read(formula)
    except ValueError:
        read = None
    predictors = read.added_columns() if read else None
    if not read or not predictors or not _are_different_columns(read.names, pair):
        raise InputError(
            f"--regression {formula!r}: write COLUMN ~ COLUMN + COLUMN, with different columns of both"
            " tables"
        )
    outcome = read.names[0]
    fitted = _fitted(pair, outcome, predictors)
    if fitted is None:
        raise InputError(
            f"--regression {formula!r}: {outcome!r} must be numeric, or have two values in the real"
            " table; and no column may be constant there"
        )
    return fitted


def _are_different_columns(names: Sequence[str], pair: TablePair) -> bool:
    return set(names) <= set(pair.columns) and len(set(names)) == len(names)


def some_regressions(pair: TablePair, label: str) -> list[ComparedRegression]:
    """Of the label and two numeric columns of many values, each on the columns that explain it best."""
    numeric = sorted(pair.numeric, key=lambda name: -pair.real[name].nunique())
    fitted = []
    for outcome in dict.fromkeys([label, *[name for name in numeric if name != label][:2]]):
        predictors = _best_predictors(pair.real.iloc[:: 1 + len(pair.real) // CHOSEN_ON], outcome)
        if predictors and (found := _fitted(pair, outcome, predictors)):
            fitted.append(found)
    return fitted


def _best_predictors(real: pd.DataFrame, outcome: str) -> list[str]:
    """Columns that explain most of the outcome's variance, one after the other."""
    y = _outcome(real[outcome], real[outcome])
    if y is None:
        return []
    chosen: list[str] = []
    explained = 0.0
    while len(chosen) < MOST_PREDICTORS:
        shares = {
            name: _explained(real, y[0], [*chosen, name])
            for name in real
            if name != outcome and name not in chosen
        }
        # What explains an outcome wholly is the outcome by another name.
        useful = {name: share for name, share in shares.items() if share < 0.999}
        best = max(useful, key=lambda name: useful[name], default=None)
        if best is None or useful[best] < explained + 0.002:
            break
        chosen, explained = [*chosen, best], useful[best]
    return chosen


def _outcome(column: pd.Series[float], real: pd.Series[float]) -> tuple[Floats, str] | None:
    """(n,) numbers and what is added to the column's name; None without numbers or two values."""
    values = sorted(real.dropna().unique())
    if len(values) < 2:
        return None
    if column.dtype == np.float64:
        return column.to_numpy(), ""
    if len(values) > 2:
        return None
    ones = (column == values[1]).astype(float).where(column.notna())
    return ones.to_numpy(), f" = {values[1]}"


def _terms(column: pd.Series[float], real: pd.Series[float], name: str) -> dict[str, Floats]:
    """Columns of the design (n,) by their terms; null makes a record unusable only among numbers."""
    if column.dtype == np.float64:
        return {name: column.to_numpy()}
    frequent = real.fillna("(null)").value_counts().index[: MOST_LEVELS + 1]
    levels = frequent[1:]
    found = column.fillna("(null)")
    others = (~found.isin(frequent)).to_numpy(dtype=np.float64)
    terms = {f"{name} = {level}": (found == level).to_numpy(dtype=np.float64) for level in levels}
    has_others = not real.fillna("(null)").isin(frequent).all()
    return terms | ({f"{name} = {OTHERS}": others} if has_others else {})


def _explained(real: pd.DataFrame, y: Floats, names: Sequence[str]) -> float:
    """The share of the outcome's variance that some columns explain among the real records."""
    terms = [term for name in names for term in _terms(real[name], real[name], name).values()]
    return explained(y, np.column_stack([*terms, np.ones(len(y))]))


def _fitted(pair: TablePair, outcome: str, predictors: Sequence[str]) -> ComparedRegression | None:
    tables, words = [], ""
    for frame in (pair.real, pair.synthetic):
        y = _outcome(frame[outcome], pair.real[outcome])
        if y is None:
            return None
        words = y[1]
        terms: dict[str, Floats] = {}
        for name in predictors:
            terms |= _terms(frame[name], pair.real[name], name)
        tables.append((terms, *least_squares(y[0], np.column_stack(list(terms.values())))))
    (terms, ours, errors), (_, theirs, their_errors) = tables
    if not terms or not np.isfinite(ours).any():
        return None
    rows = zip(terms, ours, errors, theirs, their_errors, strict=True)
    coefficients = tuple(ComparedCoefficient(term, *map(float, numbers)) for term, *numbers in rows)
    stated = tuple(one for one in coefficients if np.isfinite(one.real))
    return ComparedRegression(f"{outcome}{words}", tuple(predictors), stated)
