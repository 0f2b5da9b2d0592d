"""Reads model formulas over a plan's columns: checks their contents, and computes terms in each cell.

The library that reads formulas runs them as Python code. So formulas in a plan may contain only columns,
numbers, operators, comparisons with a text and a few functions.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from keyword import iskeyword
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, StrictStr

from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Axis, Bins, Categories, Grid, at_most, middles
from dpcore.domain.domain import Domain
from dpcore.errors import InputError
from dpcore.model_formula import INSTEAD, TOKEN, ModelFormula, backticks_wanted
from dpcore.releases.models.terms import MOST_CELLS, ModelTerms, TermGroup, cells_of
from dpcore.suggestion import suggestion

FUNCTIONS = ("C", "exp", "log")

MOST_PRODUCTS = 6
"""The most columns of an interaction. More columns would have too many terms for a model."""

MOST_TERMS = 60
"""A model has at most this many terms; the number of released features is nearly half its square."""

FEW_CELLS = 4096
"""To find the columns that a term combines, at most this many cells of each column are used."""

MOST_MOVED = 0.02
"""A value at a bound counts as the middle of its cell. This may change a term by at most this fraction
of half its range: if a fifth of 5,000 records lie at the bound, a mean moves by half of its sampling
error."""

CONSTANT = "Intercept"
"""The name of a model's intercept."""

ONE_NUMBER = (
    "the response must be a number; for a category write {status == 'married'} ~ ..., and arithmetic in"
    " braces, such as {debt / income} ~ ..."
)
TRUE_OR_FALSE = (
    "a binomial response is true or false; write a condition in braces, such as {hours > 40} ~ ..."
)

JOINED = ("and", "or", "not")
JOIN = "join conditions with & or |, each in brackets: {(debt > 0) & (income > 0)} ~ ..."

SAME = "the response is the same in every cell, because each value counts as the middle of its cell"

WORD = re.compile(r"""'[^']*'|"[^"]*"|(\w+)\b(?!\s*[(.])""")
"""The pattern of a name in a formula that is neither a function call nor in quoted text."""

COMPARED = re.compile(r"""(`[^`]+`|[^\W\d]\w*) *[=!]= *('[^']*'|"[^"]*"|-?[\d.]+)""")
"""A column, and a text or a number with which it is compared."""

WHOLE_LEVEL = re.compile(r"(C\(`?([\w ]+)[^\[\]]*\)\[(?:T\.)?-?\d+)\.0\]")
"""The library's name of a category that is a whole number: ``C(code)[T.2.0]``."""

WrittenFormula = Annotated[
    StrictStr,
    Field(
        max_length=300,
        description="The response, ~ and the terms, as in R: `y ~ a * b`, `{hours > 40} ~ C(code)`, with"
        " columns, numbers, comparisons, `C`, `exp` and `log`. Names with blanks or dots are in"
        " backticks.",
    ),
]
FamilyName = Annotated[
    Literal["gaussian", "binomial", "poisson"],
    Field(
        description="`gaussian` is a linear model, `binomial` a logistic model of a true-or-false"
        " response, and `poisson` a model of counts.",
    ),
]


def checked_columns(text: str, columns: Collection[str]) -> list[str]:
    """The columns of a formula. ``ValueError`` if it contains more than columns and arithmetic."""
    try:
        formula = ModelFormula.read(text)
    except ValueError as error:
        raise ValueError(f"formula: {backticks_wanted(text, columns) or error}") from None
    before, found = "", dict[str, None]()
    for kind, word, called in formula.tokens:
        if kind == "name" and not (called and word in FUNCTIONS):
            if word in JOINED and word not in columns:
                raise ValueError(f"formula: {JOIN}")
            if word not in columns and not called:
                reason = f"{word!r} is not one of {', '.join(columns)}"
                raise ValueError(f"formula: {backticks_wanted(text, columns) or reason}")
            if called:
                raise ValueError(
                    f"formula: {word!r} is not one of the functions {', '.join(FUNCTIONS)}; {INSTEAD}"
                )
            found[word] = None
        if kind == "text" and before != "compared":
            raise ValueError(f"formula: {word} may only be compared, with == or !=")
        if before == "text" and kind != "sign":
            raise ValueError(f"formula: {word!r} cannot follow a text")
        before = kind
    if sum(token.kind == "product" for token in formula.tokens) > MOST_PRODUCTS:
        raise ValueError(f"formula: has more than {MOST_PRODUCTS} of the signs * : /")
    return [*found]


def formula_frame(
    axes: Sequence[Axis], levels: Mapping[str, Integers], values: Mapping[str, Any]
) -> Any:
    """A data frame of columns for formulas; ``levels``: for categories, the codes to include."""
    import pandas as pd

    series: dict[str, Any] = {}
    for axis in axes:
        given = np.ma.asarray(values[axis.name])
        if isinstance(axis, Categories):
            listed = [axis.categories[i] for i in levels[axis.name]]
            if not all(isinstance(level, bool | int | float) for level in listed):
                texts = np.ma.filled(given.astype(object), None)
                series[axis.name] = pd.Categorical(texts, categories=listed)
                continue
        series[axis.name] = np.ma.filled(given.astype(object), np.nan).astype(float)
    return pd.DataFrame(series)


def _formulaic() -> Any:
    try:
        import formulaic  # takes half a second
    except ModuleNotFoundError as missing:
        raise InputError(
            f"models need {missing.name}, which is not installed; run: pip install formulaic"
        ) from None
    return formulaic


def read_formula(formula: str, domain: Domain) -> tuple[Any, list[str]]:
    """A formula as parsed by formulaic, and the columns that it names."""
    try:
        asked = _formulaic().Formula(formula)
        named = sorted(str(v) for v in asked.required_variables)
    except Exception as error:
        reason = "cannot be read as a formula: " + str(error).partition("\n")[0]
        wanted = backticks_wanted(formula, domain.names)
        raise InputError(f"{formula}: {wanted or reason}") from None
    if not hasattr(asked, "lhs") or not hasattr(asked, "rhs"):
        raise InputError(f"{formula}: write the response, ~ and the terms, such as y ~ a + b")
    if isinstance(asked.lhs, tuple) or isinstance(asked.rhs, tuple):
        raise InputError(f"{formula}: | outside braces separates models; write only one model")
    for name in named:
        if name not in domain.names:
            meant = suggestion(name, domain.names, most=3, least=0)
            reason = f"{name!r} is not a column of the records{meant}"
            raise InputError(f"{formula}: {backticks_wanted(formula, domain.names) or reason}")
    _require_kinds(formula, domain)
    return asked, named


def _require_kinds(formula: str, domain: Domain) -> None:
    """Refuse comparisons of a numeric column with a text, and of a text column with a number."""
    axes = {axis.name: axis for axis in domain.axes}
    for found in COMPARED.finditer(formula):
        name, value = found[1].strip("`"), found[2]
        listed = getattr(axes.get(name), "categories", ())
        texts = any(isinstance(each, str) for each in listed)
        truth = any(isinstance(each, bool) for each in listed)
        if name not in axes or truth or texts == (value[0] in "'\""):
            continue
        bare = value.strip("'\"")
        meant = bare if re.fullmatch(r"-?[\d.]+", bare) else "NUMBER"
        if texts:
            meant = repr(bare) if bare in listed else "'CATEGORY'"
        right = formula[: found.start(2)] + meant + formula[found.end(2) :]
        what, kind = "categories" if listed else "values", "texts" if texts else "numbers"
        raise InputError(f"{formula}: the {what} of {name} are {kind}; write {right}")


def matrices(formula: str, asked: Any, frame: Any, nulls: str = "raise") -> Any:
    """Both sides of a formula, computed by formulaic. ``nulls``: its treatment of nulls.

    Names of terms show categories as written in a plan: 2, not 2.0.
    """
    try:
        import formulaic

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found = formulaic.model_matrix(asked, frame, na_action=nulls)
    except Exception as error:
        bare = re.search(r"'r?(and|or)_'|unsupported operand type", str(error)) and "{" in formula
        reason = JOIN if bare and re.search(r"[&|]", formula) else f"cannot be computed: {error}"
        raise InputError(f"{formula}: {reason}") from None
    texts = {name for name in frame.columns if frame[name].dtype == "category"}
    # Categories that are whole numbers are floats in a data frame.
    found.rhs.columns = [
        WHOLE_LEVEL.sub(lambda of: of[0] if of[2] in texts else f"{of[1]}]", str(name))
        for name in found.rhs.columns
    ]
    if found.rhs.shape[1] > MOST_TERMS:
        raise InputError(
            f"{formula}: has {found.rhs.shape[1]} terms, more than {MOST_TERMS}; leave out"
            " the column with the most categories, or ask for a table of these columns"
        )
    return found


def computed(formula: str, asked: Any, frame: Any, binary: bool) -> tuple[Any, Floats]:
    """The terms and the response (m,) of a formula. Raises ``InputError`` if a value is not finite."""
    found = matrices(formula, asked, frame)
    response = response_of(formula, found.lhs, binary)
    for name, numbers in [
        *zip(found.rhs.columns, found.rhs.to_numpy(dtype=float).T, strict=True),
        ("the response", response),
    ]:
        if not np.all(np.isfinite(np.asarray(numbers, dtype=float))):
            shifted = "; of numbers that may be 0, write log(x + 1)" if "log(" in formula else ""
            raise InputError(f"{formula}: {name} is not a finite number for some records{shifted}")
    return found, response


def plain_name(name: str) -> str:
    """A column's name, changed if formulas would misread it.

    `age.1` would be an attribute of `age`; `exp` is a function, and `class` a word of Python.
    """
    if iskeyword(name) or name in (CONSTANT, *_formulaic().transforms.TRANSFORMS):
        return f"{name}_"
    return name.replace(".", "_")


class PlainNames(NamedTuple):
    """A formula and its columns, renamed for the library; ``former``: the old names of the new ones."""

    formula: str
    domain: Domain
    columns: Mapping[str, Any]
    former: Mapping[str, str]

    def own(self, term: str) -> str:
        """A term in the names of the survey."""
        for new, name in self.former.items():
            term = term.replace(new, name)
        return term


def with_plain_names(formula: str, domain: Domain, columns: Mapping[str, Any]) -> PlainNames:
    """Rename columns by ``plain_name``, each differently."""
    names = {name: name for name in domain.names}
    categories = [str(c) for a in domain.axes if isinstance(a, Categories) for c in a.categories]
    for name in names:
        if (other := plain_name(name)) != name:
            # No other text in a term may contain the new name, so that ``own`` replaces only the name.
            others = [*domain.names, *categories, *(n for of, n in names.items() if of != name)]
            while any(other in text for text in others):
                other += "_"
            names[name] = other
    if wanted := backticks_wanted(formula, [name for name in names if "." in name]):
        raise InputError(f"{formula}: {wanted}")

    def plain(found: re.Match[str]) -> str:
        name = found["quoted"] or found["name"]
        called = found["name"] in FUNCTIONS and found.string[found.end() :].lstrip().startswith("(")
        new = name if called else names.get(name, name)
        return found[0] if new == name else found[0].replace(name, new)

    axes = tuple(replace(axis, name=names[axis.name]) for axis in domain.axes)
    renamed = {names.get(name, name): each for name, each in columns.items()}
    # A column with the constant's name keeps its new name.
    former = {new: name for name, new in names.items() if name not in (new, CONSTANT)}
    return PlainNames(TOKEN.sub(plain, formula), Domain(axes), renamed, former)


def columns_of_term(spec: Any, place: int, axes: Sequence[Axis]) -> tuple[int, ...]:
    """The positions of the survey columns that one column of a model matrix uses."""
    used = {
        str(used)
        for term, places in spec.term_indices.items()
        if place in places
        for used in spec.term_variables[term]
    }
    return tuple(i for i, axis in enumerate(axes) if axis.name in used)


def response_of(formula: str, found: Any, binary: bool) -> Floats:
    values = found.to_numpy(dtype=float)
    if binary and values.shape[1] == 2 and set(np.unique(values)) <= {0.0, 1.0}:
        values = values[:, 1:]  # the second of two categories
    if values.shape[1] != 1:
        raise InputError(f"{formula}: {ONE_NUMBER}")
    if binary and not set(np.unique(values)) <= {0.0, 1.0}:
        raise InputError(f"{formula}: {TRUE_OR_FALSE}")
    if np.all(values == values[0]):
        raise InputError(
            f"{formula}: the response is the same in all records; use an edge of the column's bins in"
            " the condition"
        )
    return np.asarray(values[:, 0])


@lru_cache(maxsize=32)
def terms_of(formula: str, family: str, axes: tuple[Axis, ...]) -> ModelTerms:
    """The terms of a formula in the cells of these columns. The formula must name all of them.

    Raises ``ValueError`` if it cannot be computed in some cell, or a term is a linear combination of
    others.
    """
    try:
        plain = with_plain_names(formula, Domain(axes), {})
        asked, _ = read_formula(plain.formula, plain.domain)
        found = _Cells(plain.formula, plain.domain.axes).terms(asked, family, axes)
        return replace(found, names=tuple(map(plain.own, found.names)))
    except InputError as error:
        raise ValueError(f"formula: {error}") from None


def _cell_values(axis: Axis) -> Any:
    """A value (size,) for each cell: its middle, or the nearest multiple of the column's step."""
    found = middles(axis)
    if isinstance(axis, Categories) or axis.integer or axis.step is None:
        return found
    number = np.arange(axis.cells)
    above, below = axis.edge(number), axis.edge(number + 1)
    below[-1] = np.nextafter(axis.upper, np.inf)  # the last cell contains its end
    up, down = axis.step.numerator, axis.step.denominator
    # The lower of two nearest multiples. The dividend is exact, so each quotient is rounded only once.
    multiples = np.ceil(found[: axis.cells].data * (down / up) - 0.5 - 1e-6) * up / down
    inside = (above <= multiples) & (multiples < below)
    found[: axis.cells] = np.where(inside, multiples, found[: axis.cells].data)
    return found


def columns_together(formula: str, axes: Sequence[Axis]) -> set[tuple[str, ...]]:
    """The sets of columns that each term of a formula combines, and the set of its response.

    Raises ``InputError`` if the formula cannot be read.
    """
    some = tuple(at_most(axis, FEW_CELLS) for axis in axes)
    plain = with_plain_names(formula, Domain(some), {})
    asked, _ = read_formula(plain.formula, plain.domain)
    sets = _Cells(plain.formula, plain.domain.axes).together(asked)
    return {tuple(axes[i].name for i in used) for used in sets}


class _Cells:
    """The values of all cells of some columns, without null."""

    def __init__(self, formula: str, axes: tuple[Axis, ...]) -> None:
        self.formula, self.axes = formula, axes
        self.sizes = [axis.size - axis.nullable for axis in axes]
        self.levels = {a.name: np.arange(n) for a, n in zip(axes, self.sizes, strict=True)}
        self.values = [_cell_values(axis) for axis in axes]

    def frame(self, codes: Integers) -> Any:
        """A data frame of the values of records with these codes (n, axes)."""
        values = {axis.name: self.values[i][codes[:, i]] for i, axis in enumerate(self.axes)}
        return formula_frame(self.axes, self.levels, values)

    def together(self, asked: Any) -> set[tuple[int, ...]]:
        """The positions of the columns of each term, and of the response."""
        few = np.arange(max(min(size, MOST_TERMS) for size in self.sizes))
        found = matrices(self.formula, asked, self.frame(few[:, None] % self.sizes), "ignore")
        sides = found.rhs, found.lhs
        return {
            columns_of_term(side.model_spec, place, self.axes)
            for side in sides
            for place in range(side.shape[1])
        }

    def terms(self, asked: Any, family: str, own: tuple[Axis, ...]) -> ModelTerms:
        """The terms of a formula, and its response; ``own``: the axes with their names in the plan."""
        # The rows contain every value of every column, because the library learns categories from them.
        every = np.arange(max(self.sizes))[:, None] % np.array(self.sizes)
        found = matrices(self.formula, asked, self.frame(every), "ignore")
        axes, names = self.axes, tuple(map(str, found.rhs.columns))
        groups = dict[tuple[int, ...], list[int]]()
        if not names:
            raise InputError("has no term; for a mean write 1 on the right side")
        for place in range(len(names)):
            used = columns_of_term(found.rhs.model_spec, place, axes)
            groups.setdefault(used, []).append(place)
        made = [self._group(found.rhs.model_spec, used, at) for used, at in groups.items()]
        last = found.lhs.shape[1] - 1
        asked_for = columns_of_term(found.lhs.model_spec, last, axes)
        answer = self._group(found.lhs.model_spec, asked_for, [last])
        values = answer.values[:, 0]
        if last > 0 and not (family == "binomial" and last == 1):
            values = values[:0]
        fault = self._fault(values, family)
        if fault:
            raise InputError(f"{self.formula}: {fault}")
        scale = (0.0, 1.0)
        if family == "gaussian":  # only a model with a constant can centre the response
            middle = float(values.min() + values.max()) / 2 if () in groups else 0.0
            scale = (middle, float(np.abs(values - middle).max()))
        return ModelTerms(own, names, tuple(made), answer, scale)

    @staticmethod
    def _fault(values: Floats, family: str) -> str:
        """The reason why a response cannot have these values; empty if it can."""
        if not len(values):
            return ONE_NUMBER
        if values.min() == values.max():
            finer = "state a finer `grid`, or list single values in `point_masses`"
            return f"{SAME}; a condition must lie within the bounds; otherwise {finer}"
        if family == "binomial" and not {*np.unique(values)} <= {0.0, 1.0}:
            return TRUE_OR_FALSE
        if family == "poisson" and values.min() < 0:
            return "a poisson response must be a count, but the bounds allow negative numbers"
        return ""

    def _group(self, spec: Any, attributes: tuple[int, ...], places: list[int]) -> TermGroup:
        cells = math.prod(self.sizes[a] for a in attributes)
        if cells > MOST_CELLS:
            columns = ", ".join(self.axes[a].name for a in attributes)
            raise InputError(
                f"{self.formula}: {columns} together have {float(cells):,.0f} cells,"
                f" more than {MOST_CELLS:,}; leave out the product, or merge categories"
            )
        codes = cells_of(self.sizes, attributes)
        values = self._matrix(spec, attributes, places, self.frame(codes))
        for axis, end, cell in self._blurred(attributes):
            at = codes[:, self.axes.index(axis)] == cell
            frame = self.frame(codes[at]).assign(**{axis.name: end})
            there = self._matrix(spec, attributes, places, frame)
            moved, half = np.abs(there - values[at]).max(axis=0), np.ptp(values, axis=0) / 2
            if np.any((moved > max(MOST_MOVED, 4 / axis.cells) * half) & (half > 0)):
                raise InputError(
                    f"{self.formula}: changes too much in the cell of {axis.name} at {end:g}, where all"
                    f" values count as {_cell_values(axis)[cell]:.4g}; if many people have it, write"
                    f" `point_masses: [{end:g}]`, otherwise a finer `grid` or narrower bounds"
                )
        return TermGroup(attributes, tuple(places), values)

    def _blurred(self, attributes: tuple[int, ...]) -> Iterator[tuple[Bins | Grid, float, int]]:
        """Yield columns of real numbers, a bound that is no point mass, and its cell."""
        for axis in (self.axes[a] for a in attributes):
            if isinstance(axis, Categories) or axis.integer:
                continue
            for end, cell in ((axis.lower, 0), (axis.upper, axis.cells - 1)):
                if not (isinstance(axis, Grid) and end in axis.points):
                    yield axis, end, cell

    def _matrix(
        self, spec: Any, attributes: tuple[int, ...], places: list[int], frame: Any
    ) -> Floats:
        """The values (n, k) of terms for a data frame of n records."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matrix = spec.get_model_matrix(frame, na_action="ignore")
        values = np.asarray(matrix.to_numpy(dtype=float))[:, places]
        if not np.all(np.isfinite(values)):
            columns = ", ".join(self.axes[a].name for a in attributes)
            raise InputError(
                f"{self.formula}: has no finite value somewhere inside the bounds of {columns};"
                " change the bounds: log(x) needs a lower bound above 0, and log(x + 1) one above -1"
            )
        return values
