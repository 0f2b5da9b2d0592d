"""Inequalities in a plan's rules: comparisons of two numeric columns, or of a column with a number.

end >= start      end > start + 5      weight < 30      mother - child >= 12      months >= 12 * age
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from fractions import Fraction

from dpcore.domain.axes import Axis, in_order
from dpcore.domain.domain import Domain
from dpcore.formula import Syntax
from dpcore.post.records.differences import Chain, Difference, chains
from dpcore.post.records.rules import Condition, Order, Rule

LARGEST = 2.0**53
"""The largest number in an inequality. Whole numbers up to this are exact."""

FORM = "write one comparison, such as end >= start + 5, months >= 12 * age or weight < 30"

Given = tuple[tuple[Condition, ...], Difference]
"""The conditions under which an inequality applies, and the inequality."""


def read_inequality(domain: Domain, text: str) -> Difference:
    """The inequality over columns of the domain. Raises ``ValueError`` with the place of the fault."""
    syntax = Syntax.of(text)
    node = syntax.tree
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        raise syntax.fault(node, FORM)
    (compared,) = node.ops
    if not isinstance(compared, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        raise syntax.fault(
            node,
            ("compare with <, <=, > or >=; if two columns are equal, derive one of them"),
        )
    greater, less = node.left, node.comparators[0]
    if isinstance(compared, ast.Lt | ast.LtE):
        greater, less = less, greater
    terms, constant = _terms(syntax, domain, greater)
    taken, less_constant = _terms(syntax, domain, less)
    if terms.keys() & taken.keys():
        raise syntax.fault(node, FORM)
    for name, multiple in taken.items():
        terms[name] = terms.get(name, Fraction(0)) - multiple
    high = [name for name, multiple in terms.items() if multiple > 0]
    low = [name for name, multiple in terms.items() if multiple < 0]
    if len(high) > 1 or len(low) > 1 or not high + low:
        raise syntax.fault(node, FORM)
    places = [domain.names.index(part[0]) if part else None for part in (high, low)]
    multiples = [abs(terms[part[0]]) if part else Fraction(1) for part in (high, low)]
    # Whole multiples, so that rounding cannot make one of two equal numbers larger.
    whole = math.lcm(*(multiple.denominator for multiple in multiples))
    numbers = (less_constant - constant, *multiples)
    if max(abs(whole * number) for number in numbers) > LARGEST:
        raise syntax.fault(node, "its numbers are too large")
    least, of_high, of_low = (float(whole * number) for number in numbers)
    strict = isinstance(compared, ast.Lt | ast.Gt)
    return Difference(places[0], places[1], least, strict, of_high, of_low)


def _terms(syntax: Syntax, domain: Domain, node: ast.expr) -> tuple[dict[str, Fraction], Fraction]:
    """The columns of a sum with their coefficients, and its constant."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        if abs(node.value) == math.inf:  # type: ignore[arg-type]
            raise syntax.fault(node, FORM)
        return {}, Fraction(repr(node.value))
    if isinstance(node, ast.Name):
        name = syntax.name(node)
        if name not in domain.names:
            raise syntax.fault(node, f"{name!r} is not among the columns of the release")
        if not in_order(domain.axes[domain.names.index(name)]):
            raise syntax.fault(node, f"{name} is not a column of numbers")
        return {name: Fraction(1)}, Fraction(0)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        terms, constant = _terms(syntax, domain, node.operand)
        return {name: -multiple for name, multiple in terms.items()}, -constant
    if not isinstance(node, ast.BinOp) or not isinstance(
        node.op, ast.Add | ast.Sub | ast.Mult | ast.Div
    ):
        raise syntax.fault(node, FORM)
    (left, one), (right, other) = (_terms(syntax, domain, side) for side in (node.left, node.right))
    if isinstance(node.op, ast.Add | ast.Sub):
        sign = 1 if isinstance(node.op, ast.Add) else -1
        nothing = Fraction(0)
        terms = {n: left.get(n, nothing) + sign * right.get(n, nothing) for n in (*left, *right)}
        return terms, one + sign * other
    if isinstance(node.op, ast.Div) and not right and other:
        other = 1 / other
    elif isinstance(node.op, ast.Div) or (left and right):
        raise syntax.fault(node, FORM)
    terms, factor = (right, one) if right else (left, other)
    return {n: multiple * factor for n, multiple in terms.items()}, one * other


def rules_of(domain: Domain, given: Sequence[Given]) -> list[Rule]:
    """The rules on cells that inequalities imply, singly and in chains. The first rules
    contain the inequalities.

    Raises ``ValueError`` if they contradict each other or form a cycle.
    """
    found: list[Rule] = []

    def conditions(used: Sequence[int]) -> list[Condition]:
        return [condition for i in used for condition in given[i][0]]

    def together(used: Sequence[int]) -> bool:
        return all(cells for _, cells in _merged(conditions(used)))

    for chain in chains(domain, [difference for _, difference in given], together):
        known = [(c, _values(domain.axes[c])) for c in chain.between if domain.axes[c].nullable]
        when = _merged([*conditions(chain.used), *known])
        if any(not cells for _, cells in when):
            continue  # they never apply together
        own = (given[chain.used[0]][1],) if len(chain.used) == 1 else ()
        found.append(_rule(domain, chain, when)._replace(differences=own))
    return found


def _rule(domain: Domain, chain: Chain, when: tuple[Condition, ...]) -> Rule:
    low, high, least = chain.low, chain.high, chain.least
    if low is not None and high is not None:
        whole = (*least, 0) if domain.axes[low].nullable else least
        return Rule(when, (), (Order(low, high, whole),))
    if high is not None:  # zero is below
        return Rule(when, ((high, tuple(range(least[0], domain.axes[high].size))),))
    if low is not None:  # zero is above
        cells = tuple(i for i, first in enumerate(least) if first == 0)
        null = (len(least),) if domain.axes[low].nullable else ()
        return Rule(when, ((low, cells + null),))
    return Rule(when, () if least[0] == 0 else ((chain.between[0], _null(domain, chain)),))


def _null(domain: Domain, chain: Chain) -> tuple[int, ...]:
    """The cell of null, if any: the only possible cell if a chain excludes all values."""
    axis = domain.axes[chain.between[0]]
    return (axis.size - 1,) if axis.nullable else ()


def _values(axis: Axis) -> tuple[int, ...]:
    return tuple(range(axis.size - axis.nullable))


def _merged(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """The conditions, with each attribute once and the cells that all its conditions allow."""
    merged: dict[int, set[int]] = {}
    for attribute, cells in conditions:
        merged[attribute] = merged.get(attribute, set(cells)) & set(cells)
    return tuple((attribute, tuple(sorted(cells))) for attribute, cells in merged.items())
