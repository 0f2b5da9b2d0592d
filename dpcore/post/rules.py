"""Rules that every synthetic record obeys: public implications between columns.

    if age is below 15, then income is null             if: cells 0..2 of age; then: one of income

A record breaks a rule where each ``when`` column has one of its cells and some ``then`` column has
none of its own.  Rules are facts that an agency states (structural zeros); none is read from data.

A search that starts from records that obey, and changes one value at a time, stays among them if it
passes over the values in ``forbidden``.

>>> child = Rule(when=((0, (0,)),), then=((1, (2,)),))
>>> codes = np.array([[0, 2], [0, 1], [1, 1]])
>>> broken(codes, [child]).tolist()
[False, True, False]
>>> obeying(codes, (2, 3), [child], np.random.default_rng(7)).tolist()
[[0, 2], [0, 2], [1, 1]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.post.margins import Floats, Integers, Margin

Booleans = NDArray[np.bool_]
Condition = tuple[int, tuple[int, ...]]
"""An attribute, and the codes that it may have."""

PASSES = 20
"""Mending one rule may break another; so often all rules are gone through."""

TRIED = 4096
"""Records at random, of which one must obey: else the rules are taken to leave none."""


class Rule(NamedTuple):
    """Where all of ``when`` hold, so do all of ``then``; no attribute is in both."""

    when: tuple[Condition, ...]
    then: tuple[Condition, ...]

    @property
    def attributes(self) -> set[int]:
        return {attribute for attribute, _ in self.when + self.then}


def broken(codes: Integers, rules: Iterable[Rule]) -> Booleans:
    """(rows,) whether a record of codes (rows, k) breaks a rule."""
    result = np.zeros(len(codes), dtype=bool)
    for rule in rules:
        result |= _all(codes.T, rule.when) & ~_all(codes.T, rule.then)
    return result


def forbidden(columns: Integers, attribute: int, size: int, rules: Iterable[Rule]) -> Booleans:
    """(rows, size) values of one attribute with which a record would break a rule.

    ``columns``: (k, rows) codes of records.
    """
    result = np.zeros((columns.shape[1], size), dtype=bool)
    for rule in rules:
        if attribute in rule.attributes:
            applies = _all(columns, _others(rule.when, attribute))
            kept = _all(columns, _others(rule.then, attribute))
            value_applies = _values(rule.when, attribute, size)
            value_keeps = _values(rule.then, attribute, size)
            result |= np.outer(applies, value_applies) & ~np.outer(kept, value_keeps)
    return result


def obeying(
    codes: Integers, sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    """The records (rows, k), changed where they break a rule so that all obey all rules.

    A column that a rule is about takes a value that the rule allows, drawn as often as it occurs.
    Raises ``ValueError`` where no record is found that obeys.
    """
    mended = _mended(codes, sizes, rules, generator)
    bad = broken(mended, rules)
    if bad.any():
        good = mended[~bad] if not bad.all() else _some_that_obey(sizes, rules, generator)
        mended[bad] = good[generator.integers(len(good), size=bad.sum())]
    return mended


def require_obeyable(sizes: Sequence[int], rules: Sequence[Rule]) -> None:
    """Raise ``ValueError`` where the rules seem to allow no record at all."""
    _some_that_obey(sizes, rules, np.random.default_rng(0))


def without_forbidden(margin: Margin, rules: Iterable[Rule]) -> Margin:
    """The margin with zero in each cell that breaks a rule about its attributes alone."""
    table: Floats = margin.table
    within = [rule for rule in rules if rule.attributes <= set(margin.attributes)]
    if not within:
        return margin
    cells = np.indices(table.shape).reshape(table.ndim, -1)
    placed = [
        Rule(*(tuple((margin.attributes.index(a), v) for a, v in part) for part in rule))
        for rule in within
    ]
    return margin._replace(table=np.where(broken(cells.T, placed).reshape(table.shape), 0.0, table))


def _mended(
    codes: Integers, sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    mended = codes.copy()
    for _ in range(PASSES):
        for rule in rules:
            rows = np.flatnonzero(broken(mended, [rule]))
            for attribute, allowed in rule.then:
                wrong = rows[~np.isin(mended[rows, attribute], allowed)]
                weights = np.bincount(codes[:, attribute], minlength=sizes[attribute])[
                    list(allowed)
                ]
                weights = weights + (weights.sum() == 0)
                mended[wrong, attribute] = generator.choice(
                    allowed, len(wrong), p=weights / weights.sum()
                )
        if not broken(mended, rules).any():
            break
    return mended


def _some_that_obey(
    sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    """Records at random that obey, one at least."""
    tried = generator.integers(0, sizes, (TRIED, len(sizes)))
    tried = _mended(tried, sizes, rules, generator)
    found = tried[~broken(tried, rules)]
    if not len(found):
        raise ValueError("rules: contradict each other: no record was found that obeys them all")
    return found


def _all(columns: Integers, conditions: Iterable[Condition]) -> Booleans:
    """(rows,) whether all conditions hold; ``columns``: (k, rows)."""
    result = np.ones(columns.shape[1], dtype=bool)
    for attribute, allowed in conditions:
        result &= np.isin(columns[attribute], allowed)
    return result


def _others(conditions: Iterable[Condition], attribute: int) -> list[Condition]:
    return [condition for condition in conditions if condition[0] != attribute]


def _values(conditions: Iterable[Condition], attribute: int, size: int) -> Booleans:
    """(size,) the values of an attribute that meet its condition; all where it has none."""
    for other, allowed in conditions:
        if other == attribute:
            return np.isin(np.arange(size), allowed)
    return np.ones(size, dtype=bool)
