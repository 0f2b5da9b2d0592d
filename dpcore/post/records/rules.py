"""Rules that every synthetic record obeys: public implications between columns.

    if age is below 15, then income is null             if: cells 0..2 of age; then: one of income
    end >= start                                        orders: the first cell of end for each of start

A record breaks a rule if every condition in ``when`` holds, and some condition in ``then`` or some order
does not.
Rules are facts that an agency states (structural zeros); none is read from data.

A search that starts from records that obey the rules, and changes one value at a time, keeps obeying
them if it never uses ``forbidden_values``.

>>> child = Rule(when=((0, (0,)),), then=((1, (2,)),))
>>> codes = np.array([[0, 2], [0, 1], [1, 1]])
>>> breaks_rules(codes, [child]).tolist()
[False, True, False]
>>> repair_records(codes, (2, 3), [child], np.random.default_rng(7)).tolist()
[[0, 2], [0, 2], [1, 1]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dpcore.arrays import Booleans, Floats, Integers
from dpcore.post.records.differences import Difference
from dpcore.post.tables.margins import Margin

Condition = tuple[int, tuple[int, ...]]
"""An attribute, and the codes that it may have."""

PASSES = 20
"""How often all rules are repaired in turn, because repairing one rule may break another."""

TRIED = 4096
"""How many random records are tried before the rules are taken to contradict each other."""


class Order(NamedTuple):
    """The code of ``high`` is at least ``least[i]`` if the code of ``low`` is i; both are attributes."""

    low: int
    high: int
    least: tuple[int, ...]

    def kept(self, low: Integers, high: Integers) -> Booleans:
        """Whether codes (rows,) are in this order."""
        return np.asarray(high >= np.asarray(self.least)[low])


class Rule(NamedTuple):
    """If all conditions in ``when`` hold, then all conditions in ``then`` and all orders hold.

    An attribute in ``then`` is in neither ``when`` nor the orders.  ``differences``: further
    constraints on the numbers inside the cells.
    """

    when: tuple[Condition, ...]
    then: tuple[Condition, ...]
    orders: tuple[Order, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def attributes(self) -> set[int]:
        stated = {attribute for attribute, _ in self.when + self.then}
        return stated.union(*({order.low, order.high} for order in self.orders))

    def applies(self, columns: Integers) -> Booleans:
        """Whether (rows,) the conditions in ``when`` hold for records of ``columns`` (k, rows)."""
        return _all(columns, self.when)

    def kept(self, columns: Integers) -> Booleans:
        """Whether (rows,) the consequence holds, whether or not the rule applies."""
        result = _all(columns, self.then)
        for order in self.orders:
            result &= order.kept(columns[order.low], columns[order.high])
        return result


def breaks_rules(codes: Integers, rules: Iterable[Rule]) -> Booleans:
    """Whether (rows,) each record of codes (rows, k) breaks a rule."""
    result = np.zeros(len(codes), dtype=bool)
    for rule in rules:
        result |= rule.applies(codes.T) & ~rule.kept(codes.T)
    return result


def forbidden_values(
    columns: Integers, attribute: int, size: int, rules: Iterable[Rule]
) -> Booleans:
    """Whether (rows, size) each record would break a rule with each value of one attribute.

    ``columns``: (k, rows) codes of records.
    """
    result = np.zeros((columns.shape[1], size), dtype=bool)
    values = np.arange(size)
    for rule in rules:
        if attribute in rule.attributes:
            rows = np.flatnonzero(_all(columns, _others(rule.when, attribute)))
            kept = np.ones(len(rows), dtype=bool)
            for other, allowed in _others(rule.then, attribute):
                kept &= _allowed(columns[other][rows], allowed)
            of_when, of_then = (_values(c, attribute, size) for c in (rule.when, rule.then))
            if not rule.orders:
                result[np.ix_(rows[~kept], np.flatnonzero(of_when))] = True
                result[np.ix_(rows, np.flatnonzero(of_when & ~of_then))] = True
                continue
            keeps = kept[:, None] & of_then
            for order in rule.orders:
                lows, highs = columns[order.low][rows], columns[order.high][rows]
                if attribute == order.low:
                    keeps &= order.kept(values[None, :], highs[:, None])
                elif attribute == order.high:
                    keeps &= order.kept(lows[:, None], values[None, :])
                else:
                    keeps &= order.kept(lows, highs)[:, None]
            result[rows] |= of_when & ~keeps
    return result


def repair_records(
    codes: Integers, sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    """The records (rows, k), changed where they break a rule, so that all records obey all rules.

    A column in ``then`` of a broken rule gets an allowed value, drawn in proportion to its frequency.
    Raises ``ValueError`` if no record is found that obeys.
    """
    mended = _repaired(codes, sizes, rules, generator)
    # Repairs of several rules may undo each other for ever: such records become copies of valid ones.
    bad = breaks_rules(mended, rules)
    if bad.any():
        good = mended[~bad] if not bad.all() else _valid_records(sizes, rules, generator)
        mended[bad] = good[generator.integers(len(good), size=bad.sum())]
    return mended


def require_satisfiable(sizes: Sequence[int], rules: Sequence[Rule]) -> None:
    """Raise ``ValueError`` if the rules seem to allow no record at all."""
    _valid_records(sizes, rules, np.random.default_rng(0))


def clear_forbidden_cells(margin: Margin, rules: Iterable[Rule]) -> Margin:
    """The margin with zero in each cell that breaks a rule about its attributes only."""
    table: Floats = margin.table
    within = [rule for rule in rules if rule.attributes <= set(margin.attributes)]
    if not within:
        return margin
    cells = np.indices(table.shape).reshape(table.ndim, -1)
    place = margin.attributes.index
    placed = [
        Rule(
            tuple((place(a), v) for a, v in rule.when),
            tuple((place(a), v) for a, v in rule.then),
            tuple(Order(place(low), place(high), least) for low, high, least in rule.orders),
        )
        for rule in within
    ]
    return margin._replace(
        table=np.where(breaks_rules(cells.T, placed).reshape(table.shape), 0.0, table)
    )


def _repaired(
    codes: Integers, sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    mended = codes.copy()
    for _ in range(PASSES):
        for rule in rules:
            rows = np.flatnonzero(breaks_rules(mended, [rule]))
            for attribute, allowed in rule.then:
                wrong = rows[~np.isin(mended[rows, attribute], allowed)]
                _redraw(mended, wrong, attribute, allowed, codes, generator)
            for order in rule.orders:
                wrong = rows[~order.kept(mended[rows, order.low], mended[rows, order.high])]
                # In blocks, because each makes a table of records by values.
                for block in np.array_split(wrong, 1 + len(wrong) // TRIED):
                    _put_in_order(mended, block, order, sizes, rules, codes, generator)
        if not breaks_rules(mended, rules).any():
            break
    return mended


def _redraw(
    mended: Integers,
    rows: Integers,
    attribute: int,
    allowed: tuple[int, ...],
    codes: Integers,
    generator: np.random.Generator,
) -> None:
    """Give some records allowed codes of an attribute, in proportion to their frequency."""
    if len(allowed) and len(rows):
        weights = np.bincount(codes[:, attribute], minlength=max(allowed) + 1)[list(allowed)]
        weights = weights + (weights.sum() == 0)
        mended[rows, attribute] = generator.choice(allowed, len(rows), p=weights / weights.sum())


def _put_in_order(
    mended: Integers,
    rows: Integers,
    order: Order,
    sizes: Sequence[int],
    rules: Sequence[Rule],
    codes: Integers,
    generator: np.random.Generator,
) -> None:
    """Give some records a code of the order's high attribute that obeys all rules, or at least this
    order, in proportion to its frequency."""
    high, size, columns = order.high, sizes[order.high], mended[rows].T
    kept = order.kept(columns[order.low][:, None], np.arange(size))
    allowed = kept & ~forbidden_values(columns, high, size, rules)
    allowed = np.where(allowed.any(axis=1, keepdims=True), allowed, kept)
    # The allowed values may occur in no record.
    weights = allowed * (np.bincount(codes[:, high], minlength=size) + 1e-9)
    ends = np.cumsum(weights, axis=1)
    found = (ends <= generator.random((len(rows), 1)) * ends[:, -1:]).sum(axis=1)
    some = allowed.any(axis=1)
    mended[rows[some], high] = np.minimum(found, size - 1)[some]


def _valid_records(
    sizes: Sequence[int], rules: Sequence[Rule], generator: np.random.Generator
) -> Integers:
    """At least one random record that obeys the rules."""
    # The second generator is the one with which ``require_satisfiable`` found a record.
    for source in (generator, np.random.default_rng(0)):
        tried = source.integers(0, sizes, (TRIED, len(sizes)))
        tried = _repaired(tried, sizes, rules, source)
        found = tried[~breaks_rules(tried, rules)]
        if len(found):
            return found
    raise ValueError("rules: contradict each other: no record was found that obeys them all")


def _all(columns: Integers, conditions: Iterable[Condition]) -> Booleans:
    """Whether (rows,) all conditions hold for each record of ``columns`` (k, rows)."""
    result = np.ones(columns.shape[1], dtype=bool)
    for attribute, allowed in conditions:
        result &= _allowed(columns[attribute], allowed)
    return result


def _allowed(codes: Integers, allowed: tuple[int, ...]) -> Booleans:
    """Whether (rows,) each code is among the allowed codes."""
    known = _mask(allowed)
    return known[np.minimum(codes, len(known) - 1)]


@lru_cache(maxsize=4096)
def _mask(allowed: tuple[int, ...]) -> Booleans:
    """For each code up to one above the largest allowed code, whether it is allowed."""
    known = np.zeros(max(allowed, default=-1) + 2, dtype=bool)
    known[list(allowed)] = True
    return known


def _others(conditions: Iterable[Condition], attribute: int) -> list[Condition]:
    return [condition for condition in conditions if condition[0] != attribute]


def _values(conditions: Iterable[Condition], attribute: int, size: int) -> Booleans:
    """The values (size,) of an attribute that meet its condition; all values if it has none."""
    for other, allowed in conditions:
        if other == attribute:
            return _allowed(np.arange(size), allowed)
    return np.ones(size, dtype=bool)
