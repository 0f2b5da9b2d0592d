"""Formulas over columns of records: what a plan may write, and nothing else.

    numbers, text in quotes, null, names of columns (`between these` if not a single word)
    + - * / **      < <= > >= == !=     and or not      A if CONDITION else B
    min(a, b, ...)  max(a, b, ...)  abs(a)  round(a)  round(a, digits)

A result is null if an operand that it needs is null, if it divides by zero, or if it is not finite.  ``A
if C else B`` needs C and the chosen operand.  A formula is checked when it is read: a name that is not a
column, text in a sum or any other Python is refused, with the position of the error.

>>> bmi = Formula.read("weight / (height / 100) ** 2", {"weight": "number", "height": "whole"})
>>> bmi.kind, bmi.names
('number', ('weight', 'height'))
>>> bmi.values({"weight": np.array([80.0, 70.0]), "height": np.array([200, 0])}).tolist()
[20.0, None]
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpcore.suggestion import suggestion

Kind = Literal["whole", "number", "truth", "text", "null"]
"""The kind of a formula's values: whole numbers, numbers, truth values or text; null fits all kinds."""

Values = NDArray[Any]
"""Values (rows,), or one value for all rows; a masked array."""

Columns = Mapping[str, Values]
Evaluate = Callable[[Columns], Values]

LONGEST = 1000
"""The most characters of a formula."""

DEEPEST = 150
"""The most levels of nested parts: Python allows a thousand nested calls."""

LARGEST_WHOLE = 2.0**53
"""Whole numbers up to here are exact."""

SUMS: Mapping[type[ast.operator], Any] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
SIGNS: Mapping[type[ast.operator], str] = {
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.FloorDiv: "//",
    ast.LShift: "<<",
    ast.MatMult: "@",
    ast.Mod: "%",
    ast.RShift: ">>",
}
"""Signs that Python knows, and formulas do not."""

COMPARISONS: Mapping[type[ast.cmpop], Any] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
NUMBERS = ("whole", "number")
EXTREMES: Mapping[str, Any] = {"min": np.minimum, "max": np.maximum}


@dataclass(frozen=True, eq=False)
class Formula:
    """A checked formula: the columns that it uses, and the kind of its values."""

    names: tuple[str, ...]
    kind: Kind
    _evaluate: Evaluate

    @classmethod
    def read(cls, text: str, kinds: Mapping[str, Kind]) -> Formula:
        """The formula, over columns of these kinds; raises ``ValueError`` at the first fault."""
        reader = _Reader(text, kinds)
        kind, evaluate = reader.read()
        if kind == "null":
            raise ValueError("at character 1: is always null")
        return cls(tuple(dict.fromkeys(reader.names)), kind, evaluate)

    def values(self, columns: Columns) -> Values:
        """The values (rows,), null masked, from columns (rows,) of the stated kinds."""
        rows = len(next(iter(columns.values())))
        with np.errstate(all="ignore"):
            found = self._evaluate({name: _plain(columns[name]) for name in self.names})
        mask = np.broadcast_to(np.ma.getmaskarray(found), rows).copy()
        values = np.broadcast_to(np.ma.getdata(found), rows).copy()
        if self.kind == "whole":
            mask |= np.abs(values) > LARGEST_WHOLE
            values = np.where(mask, 0, values).astype(np.int64)
        return np.ma.masked_array(values, mask=mask) if mask.any() else values


def _plain(values: Values) -> Values:
    """Numbers as doubles, which are exact for all whole numbers that a plan allows."""
    if values.dtype.kind in "iuf":
        return np.ma.masked_array(values, dtype=np.float64)
    return np.ma.masked_array(values)


@dataclass(frozen=True)
class Syntax:
    """The text of a formula as a tree; nodes have positions in ``source``, its bytes."""

    source: bytes
    tree: ast.expr

    @classmethod
    def of(cls, text: str) -> Syntax:
        """The tree of a text; raises ``ValueError``."""
        if len(text) > LONGEST:
            raise ValueError(f"at character {LONGEST}: a formula has at most {LONGEST} characters")
        source = re.sub(r"\s", " ", text).strip().encode()
        # Names of several words become words of the same length, so that positions do not change.
        words = re.sub(rb"`[^`]*`", lambda found: b"_" * len(found[0]), source)
        try:
            syntax = cls(source, ast.parse(words, mode="eval").body)
        except SyntaxError as error:
            place = error.offset or 1
            raise ValueError(f"at character {place}: is not a formula ({error.msg})") from None
        except (RecursionError, MemoryError, ValueError):
            raise ValueError("at character 1: cannot be read as a formula") from None
        level: list[ast.AST] = [syntax.tree]
        for _ in range(DEEPEST):
            level = [part for node in level for part in ast.iter_child_nodes(node)]
        if level:
            raise syntax.fault(level[0], f"has more than {DEEPEST} levels of nesting")
        return syntax

    def name(self, node: ast.Name) -> str:
        """A name as it was written."""
        return self.source[node.col_offset : node.end_col_offset].decode().strip("`")

    def fault(self, node: ast.AST, what: str) -> ValueError:
        """An error that names the position of a node."""
        before = self.source[: getattr(node, "col_offset", 0)]
        return ValueError(f"at character {len(before.decode()) + 1}: {what}")


class _Reader:
    """Turns Python's syntax tree into functions, and refuses what is not part of a formula."""

    def __init__(self, text: str, kinds: Mapping[str, Kind]) -> None:
        self.syntax = Syntax.of(text)
        self.kinds = kinds
        self.names: list[str] = []
        self._fault = self.syntax.fault

    def read(self) -> tuple[Kind, Evaluate]:
        return self._of(self.syntax.tree)

    def _of(self, node: ast.expr) -> tuple[Kind, Evaluate]:
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BinOp():
                return self._sum(node)
            case ast.Compare():
                return self._comparison(node)
            case ast.BoolOp():
                return self._logic(node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Call():
                return self._call(node)
        raise self._fault(node, f"{type(node).__name__} is not allowed in a formula")

    def _number(self, node: ast.expr) -> tuple[Kind, Evaluate]:
        kind, evaluate = self._of(node)
        if kind not in (*NUMBERS, "null"):
            raise self._fault(node, f"is {kind}, but a number is needed")
        return kind, evaluate

    def _truth(self, node: ast.expr) -> Evaluate:
        kind, evaluate = self._of(node)
        if kind not in ("truth", "null"):
            raise self._fault(node, "is not a condition")
        return evaluate

    def _constant(self, node: ast.Constant) -> tuple[Kind, Evaluate]:
        value = node.value
        if isinstance(value, str):
            return "text", lambda _: np.ma.masked_array(value)
        if isinstance(value, bool):
            return "truth", lambda _: np.ma.masked_array(value)
        if not isinstance(value, int | float):
            raise self._fault(node, "is neither a number nor text")
        if (abs(value) > LARGEST_WHOLE and isinstance(value, int)) or abs(value) == float("inf"):
            raise self._fault(node, "is too large a number")
        return _number_kind(isinstance(value, int)), lambda _: np.ma.masked_array(float(value))

    def _name(self, node: ast.Name) -> tuple[Kind, Evaluate]:
        name = self.syntax.name(node)
        if name not in self.kinds:
            if name == "null":
                return "null", lambda _: np.ma.masked_array(0.0, mask=True)
            meant = suggestion(name, self.kinds)
            raise self._fault(node, f"there is no column {name!r} to compute from{meant}")
        self.names.append(name)
        return self.kinds[name], lambda columns: columns[name]

    def _unary(self, node: ast.UnaryOp) -> tuple[Kind, Evaluate]:
        if isinstance(node.op, ast.Not):
            holds = self._truth(node.operand)
            return "truth", lambda columns: _applied(np.logical_not, holds(columns))
        kind, of = self._number(node.operand)
        if isinstance(node.op, ast.USub):
            return kind, lambda columns: _applied(np.negative, of(columns))
        if isinstance(node.op, ast.UAdd):
            return kind, of
        raise self._fault(node, "~ is not allowed in a formula")

    def _sum(self, node: ast.BinOp) -> tuple[Kind, Evaluate]:
        function = SUMS.get(type(node.op))
        if function is None:
            sign = SIGNS.get(type(node.op), "this sign")
            power = "; write a power as **" if sign == "^" else ""
            raise self._fault(node, f"{sign} is not allowed in a formula{power}")
        (one, left), (other, right) = self._number(node.left), self._number(node.right)
        whole = "number" not in (one, other) and not isinstance(node.op, ast.Div | ast.Pow)
        return _number_kind(whole), lambda columns: _applied(
            function, left(columns), right(columns)
        )

    def _comparison(self, node: ast.Compare) -> tuple[Kind, Evaluate]:
        sides = [node.left, *node.comparators]
        kinds, found = zip(*map(self._of, sides), strict=True)
        if not {type(op) for op in node.ops} <= COMPARISONS.keys():
            raise self._fault(node, "is not an allowed comparison")
        functions = [COMPARISONS[type(op)] for op in node.ops]
        for i in range(len(functions)):
            kind = self._one_kind(sides[i + 1], kinds[i], kinds[i + 1])
            if "null" in kinds[i : i + 2]:
                raise self._fault(sides[i + 1], "a comparison with null is always null")
            if kind in ("text", "truth") and not isinstance(node.ops[i], ast.Eq | ast.NotEq):
                raise self._fault(sides[i + 1], f"{kind} has no order; compare with == or !=")

        def holds(columns: Columns) -> Values:
            values = [side(columns) for side in found]
            each = (_applied(function, *values[i : i + 2]) for i, function in enumerate(functions))
            return _folded(np.logical_and, each)

        return "truth", holds

    def _logic(self, node: ast.BoolOp) -> tuple[Kind, Evaluate]:
        found = [self._truth(value) for value in node.values]
        function = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return "truth", lambda columns: _folded(function, (one(columns) for one in found))

    def _choice(self, node: ast.IfExp) -> tuple[Kind, Evaluate]:
        holds = self._truth(node.test)
        (one, yes), (other, no) = self._of(node.body), self._of(node.orelse)
        kind = self._one_kind(node.orelse, one, other)

        def chosen(columns: Columns) -> Values:
            test, left, right = holds(columns), yes(columns), no(columns)
            if one == "null" or other == "null":  # its values are never used
                left, right = (
                    np.ma.masked_array(np.ma.getdata(of), mask=mask)
                    for of, mask in (
                        (right if one == "null" else left, np.ma.getmaskarray(left)),
                        (left if other == "null" else right, np.ma.getmaskarray(right)),
                    )
                )
            truth = np.ma.getdata(test).astype(bool)
            masks = np.where(truth, np.ma.getmaskarray(left), np.ma.getmaskarray(right))
            values = np.where(truth, np.ma.getdata(left), np.ma.getdata(right))
            return np.ma.masked_array(values, mask=masks | np.ma.getmaskarray(test))

        return kind, chosen

    def _call(self, node: ast.Call) -> tuple[Kind, Evaluate]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in (*EXTREMES, "abs", "round") or node.keywords or not node.args:
            raise self._fault(node, "the functions of a formula are min, max, abs and round")
        digits = 0
        if name == "round" and len(node.args) == 2:
            places = node.args.pop()
            value = places.value if isinstance(places, ast.Constant) else None
            if not isinstance(value, int) or not 0 <= value < 16:
                raise self._fault(places, "digits must be a whole number from 0 to 15")
            digits = value
        kinds, found = zip(*map(self._number, node.args), strict=True)
        if name in ("abs", "round") and len(found) > 1:
            raise self._fault(node, f"{name} takes one number")
        if name == "round":
            rounded = partial(np.round, decimals=digits)
            return _number_kind(digits == 0), lambda columns: _applied(rounded, found[0](columns))
        whole = _number_kind("number" not in kinds)
        if name == "abs":
            return whole, lambda columns: _applied(np.abs, found[0](columns))
        return whole, lambda columns: _folded(EXTREMES[name], (one(columns) for one in found))

    def _one_kind(self, node: ast.expr, one: Kind, other: Kind) -> Kind:
        """The common kind of two values that are compared or chosen from."""
        if one == other or "null" in (one, other):
            return other if one == "null" else one
        if one in NUMBERS and other in NUMBERS:
            return "number"
        raise self._fault(node, f"is {other}, but the other value is {one}")


def _number_kind(whole: bool) -> Kind:
    return "whole" if whole else "number"


def _folded(function: Callable[..., Any], values: Iterable[Values]) -> Values:
    """The function of the first two values, then of the result and the next one, and so on."""
    result, *rest = values
    for one in rest:
        result = _applied(function, result, one)
    return result


def _applied(function: Callable[..., Any], *values: Values) -> Values:
    """The function of values; null where a value is null or the result is not finite."""
    found = np.asarray(function(*map(np.ma.getdata, values)))
    mask = np.zeros(found.shape, dtype=bool)
    for each in values:
        mask = mask | np.ma.getmaskarray(each)
    if found.dtype.kind == "f":
        mask = mask | ~np.isfinite(found)
        found = np.where(mask, 0.0, found)
    return np.ma.masked_array(found, mask=mask)
