"""Records that contradict a rule that all real ones obey: one column determines another, or a formula.

If every real record of a district lies in one region, district determines region, and a synthetic record
of that district in another region is impossible.  Such columns are found in the real table, on exact
values without cells; a formula is stated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpcore.arrays import Floats
from dpcore.errors import InputError
from dpcore.estimates.shapes import decimals
from dpcore.formula import NUMBERS, Formula, Kind
from tasks.evaluate.tables import TablePair

LEAST_GROUP = 5
"""Real records per value of a determining column, on average; in smaller groups chance determines."""

LEAST_EXPECTED = 20
"""Real records that would contradict if the columns were independent; fewer may be absent by chance."""


@dataclass(frozen=True)
class Determined:
    """In the real table ``by`` determines ``column``.

    ``contradicted``: share of the synthetic records that have another value; ``if_independent``: that
    share if the two columns were independent; ``judged``: share of the synthetic records whose value of
    ``by`` occurs in the real table, out of which the first is taken.
    """

    by: str
    column: str
    contradicted: float
    if_independent: float
    judged: float


@dataclass(frozen=True)
class JudgedFormula:
    """A formula, and the shares of records of which it does not hold, out of those with all values.

    COLUMN = EXPRESSION is true if both sides differ by at most half a unit of the column's last decimal.
    """

    formula: str
    broken_in_real: float
    broken_in_synthetic: float


def determined_columns(pair: TablePair) -> list[Determined]:
    """Every two columns of which one determines the other in the real table, the worst first."""
    n, codes = len(pair.real), {}
    for name in pair.columns:
        both = pd.concat([pair.real[name], pair.synthetic[name]], ignore_index=True)
        codes[name] = pd.factorize(both, use_na_sentinel=False)[0]
    found = []
    for by, column in permutations(pair.columns, 2):
        groups, first, sizes = np.unique(codes[by][:n], return_index=True, return_counts=True)
        if not 2 <= len(groups) <= n / LEAST_GROUP:
            continue
        implied = np.full(int(codes[by].max()) + 1, -1)
        implied[groups] = codes[column][:n][first]
        if np.any(implied[codes[by][:n]] != codes[column][:n]):
            continue
        shares = np.bincount(codes[column][:n], minlength=int(codes[column].max()) + 1) / n
        chance = 1 - float((sizes / n) @ shares[implied[groups]])
        if chance * n < LEAST_EXPECTED:
            continue
        expected = implied[codes[by][n:]]
        known = expected >= 0
        wrong = known & (expected != codes[column][n:])
        contradicted = float(wrong.sum() / max(known.sum(), 1))
        found.append(Determined(by, column, contradicted, chance, float(known.mean())))
    return sorted(found, key=lambda one: -one.contradicted)


def judged_formula(pair: TablePair, formula: str) -> JudgedFormula:
    """A formula of the language of plans: ``COLUMN = EXPRESSION``, or a condition."""
    left, *right = re.split(r"(?<![<>=!])=(?!=)", formula, maxsplit=1)
    kinds: dict[str, Kind] = {
        name: "number" if name in pair.numeric else "text" for name in pair.columns
    }
    name = left.strip().strip("`")
    if right and name not in pair.numeric:
        raise InputError(
            f"--formula {formula!r}: write COLUMN = EXPRESSION, with a numeric column of both tables, or"
            " a condition, such as end >= start"
        )
    try:
        read = Formula.read(right[0] if right else left, kinds)
    except ValueError as error:
        side = "the right side, " if right else ""
        raise InputError(f"--formula {formula!r}: {side}{error}") from None
    if read.kind not in (NUMBERS if right else ("truth",)):
        wanted = "the right side is no number" if right else "is no condition, such as end >= start"
        raise InputError(f"--formula {formula!r}: {wanted}")
    shares = []
    for frame in (pair.real, pair.synthetic):
        found = read.values({n: _values(frame[n]) for n in read.names})
        broken = ~np.ma.getdata(found).astype(bool)
        if right:
            own, within = frame[name].to_numpy(), _tolerance(pair.real[name].dropna().to_numpy())
            found = np.ma.masked_where(np.isnan(own), found)
            broken = np.abs(own - np.ma.getdata(found)) > within + 1e-9 * np.abs(own)
        known = ~np.ma.getmaskarray(found)
        shares.append(float(broken[known].mean()) if known.any() else 0.0)
    return JudgedFormula(formula.strip(), *shares)


def _values(column: pd.Series[Any]) -> NDArray[Any]:
    """Numbers, or text, null masked."""
    null = column.isna().to_numpy()
    filled = column.fillna(0.0) if column.dtype == np.float64 else column.astype(str)
    return np.ma.masked_array(filled.to_numpy(), mask=null)


def _tolerance(values: Floats) -> float:
    """Half a unit of the last decimal, and a little for sums in floating point."""
    places = decimals(values)
    if places is None:
        return 1e-6 * float(np.std(values)) if len(values) else 0.0
    return 0.5000001 * 10.0**-places
