"""Reads wishes for statistics of a table, as stated on the command line or in Python.

    --records                               synthetic records of all columns
    --table "health x visits"               counts of all combinations
    --mean "income by region"               a mean, of everyone or of each group
    --mean "insured by region"              a share, of a yes-or-no column or of {visits > 2}
    --density income                        a curve
    --map "lon lat"                         a density of two columns
    --model "visits ~ chronic + insurance"  a linear model; a logistic one of a yes-or-no column
    --model "poisson: visits ~ chronic"     by a family that is named

A column that the plan does not have is refused, with the reason and the most similar names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args

from dpcore.errors import InputError
from dpcore.model_formula import ModelFormula, backticks_wanted, with_backticks
from schemas.first_plan.described import ColumnType, Described
from schemas.plan.analysis import Analysis
from schemas.releases.formulas import FUNCTIONS, JOIN, JOINED, MOST_TERMS, checked_columns

Purpose = Literal["tables", "records", "functions"]
Family = Literal["gaussian", "binomial", "poisson"]
MODELS: dict[str, Family] = {"linear": "gaussian", "logistic": "binomial"}
"""Common names of these families."""

NUMERIC = (ColumnType.WHOLE, ColumnType.REAL, ColumnType.PART, ColumnType.OPEN)
GROUPS = (
    ColumnType.TRUTH,
    ColumnType.TEXT,
    ColumnType.WHOLE,
    ColumnType.PART,
    ColumnType.LEVELS,
    ColumnType.OPEN,
)
YES = ("yes", "true", "1", "y")
FEWEST_VALUES = 3
"""A column with fewer steps between its bounds cannot have a density."""
POWER = re.compile(r"(`[^`]+`|[^\W\d]\w*) *(?:\*\*|\^) *([23])(?![\w.])")
"""A square or a cube, as in Python or R."""

EVENT = re.compile(r"\{[^{}]+ == ([^{}]+)\} ~")
"""A formula whose response is the event that a column has a given category."""

QUOTES = "'\""

MOST_IN_RECORDS = 200
MOST_LISTED = 12
MOST_TITLE = 200


@dataclass(frozen=True)
class Wish:
    """One wish; ``columns``: for a mean, only the averaged column; ``by``: the groups of a mean.

    The kind ``tables`` means tables of all pairs of columns. A mean also has a formula, because a model
    may measure it. ``share``: whether the mean is the share of records with a condition.
    """

    kind: Literal["records", "tables", "table", "mean", "density", "map", "model"]
    text: str = ""
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    formula: str = ""
    family: Family = "gaussian"
    share: bool = False

    @property
    def meaning(self) -> tuple[object, ...]:
        """Equal for wishes with the same meaning; the order of a table's columns does not matter."""
        columns = tuple(sorted(self.columns)) if self.kind == "table" else self.columns
        return self.kind, columns, self.by, self.formula, self.family

    @property
    def as_model(self) -> Wish:
        """The model that answers a mean or a share."""
        columns = (*self.columns, *self.by)
        return Wish("model", self.title, columns, formula=self.formula, family=self.family)

    @property
    def title(self) -> str:
        """A mean or a share in words, such as "Share: insured = yes by region"."""
        answer, by, groups = self.text.partition(" by ")
        event = EVENT.match(self.formula)
        # The column's name alone would not show which of its two categories is meant.
        if event and "{" not in answer:
            answer = f"{answer} = {event[1].strip(QUOTES)}"
        return f"{'Share' if self.share else 'Mean'}: {answer}{by}{groups}"


@dataclass(frozen=True)
class Said:
    """The texts of wishes, before they are parsed; ``purpose``: wishes about all columns."""

    purpose: Purpose | None = None
    _: KW_ONLY
    records: bool = False
    tables: Sequence[str] = ()
    means: Sequence[str] = ()
    densities: Sequence[str] = ()
    maps: Sequence[str] = ()
    models: Sequence[str] = ()

    @property
    def title(self) -> str:
        """All wishes in one line of text."""
        said = [
            f"{kind} {text.strip()}"
            for name, (kind, _) in READERS.items()
            for text in self._of(name)
        ]
        return ", ".join(["Synthetic records"] * self.records + said)[:MOST_TITLE]

    def read(self, of: Described) -> list[Wish]:
        """The wishes about a plan's columns, without duplicates; if there are none, tables of all pairs.

        Raises ``InputError``, with a line for each wish that cannot be answered.
        """
        found, faults = [*self._of_all(of)], []
        for name, (_, reader) in READERS.items():
            for text in self._of(name):
                try:
                    found.append(reader(text.strip(), of))
                except InputError as fault:
                    faults.append(str(fault))
        if faults:
            raise InputError("\n".join(faults))
        found = found or [Wish("tables", columns=self._for_readers(of))]
        # Keeps the first of equal wishes; from the end, because a dictionary keeps the last.
        return [*{wish.meaning: wish for wish in reversed(found)}.values()][::-1]

    def _of(self, name: str) -> Sequence[str]:
        """The texts of one kind; a single text may stand for a list."""
        texts = getattr(self, name)
        return [texts] if isinstance(texts, str) else texts

    def _of_all(self, of: Described) -> Iterator[Wish]:
        if self.records or self.purpose == "records":
            columns = self._for_readers(of)
            if len(columns) > MOST_IN_RECORDS:
                raise InputError(
                    f"synthetic records have at most {MOST_IN_RECORDS} columns, not {len(columns)};"
                    " describe fewer of them in a questionnaire"
                )
            yield Wish("records", columns=columns)
        if self.purpose == "tables":
            yield Wish("tables", columns=self._for_readers(of))
        if self.purpose == "functions":
            kinds = {*NUMERIC} - {ColumnType.PART}
            numeric = [name for name in self._for_readers(of) if of.columns[name] in kinds]
            if not numeric:
                raise InputError("--for functions: the table has no numeric column")
            yield from (Wish("density", name, (name,)) for name in numeric)

    @staticmethod
    def _for_readers(of: Described) -> tuple[str, ...]:
        """All columns except the clusters, which only say where people were found."""
        drawn = of.design.get("cluster")
        return tuple(name for name in of.columns if name != drawn) or tuple(of.columns)


def _table(text: str, of: Described) -> Wish:
    names = _names("--table", text, of, r"\s+x\s+|\s*[×*,]\s*|\s+and\s+")
    if len({*names}) != len(names):
        raise InputError(f"--table {text!r}: names a column twice")
    return Wish("table", text, names)


def _mean(text: str, of: Described) -> Wish:
    what, *groups = re.split(r"\s+by\s+", text, maxsplit=1)
    what = _bare(what)
    share = what.startswith("{") or of.columns.get(what) in (ColumnType.TRUTH, ColumnType.TEXT)
    if not share:
        _known("--mean", text, [what], of, NUMERIC, "a mean needs numbers")
    by: tuple[str, ...] = ()
    if groups:
        named = _names("--mean", text, of, r"\s+x\s+|\s*[×*,]\s*|\s+and\s+", groups[0])
        why = "groups need categories or whole numbers"
        by = _known("--mean", text, named, of, GROUPS, why)
    groups_of = math.prod(map(of.number_of_values, {*by} - {what}))
    if share and what in of.columns and (_kinds_of(what, of) > 2 or groups_of > MOST_TERMS):
        return Wish("table", text, (what, *by))  # a share for each of its cells
    if share and groups_of > MOST_TERMS:
        raise InputError(
            f"--mean {text!r}: has {groups_of} groups, more than {MOST_TERMS}; ask for a --table of"
            " these columns, or describe fewer categories"
        )
    terms = ":".join(f"C({_written(name)})" for name in by)
    response = what if share else _written(what)
    found = _model(
        f"gaussian: {response} ~ {f'0 + {terms}' if by else '1'}", of, f"--mean {text!r}"
    )
    columns = tuple(name for name in found.columns if name not in by)
    if len(columns) + len({*by}) != len(found.columns) or len({*by}) != len(by):
        raise InputError(f"--mean {text!r}: names a column twice")
    return Wish("mean", text, columns, by, found.formula, share=share)


def _kinds_of(name: str, of: Described) -> int:
    """The number of categories; of whole numbers 1, because a mean of a scale may be meant."""
    listed = of.said[name].keys.get("categories") if name in of.said else None
    whole = isinstance(listed, list) and all(isinstance(each, int) for each in listed)
    return 1 if whole else of.number_of_values(name)


def _written(name: str) -> str:
    """A column's name in a formula."""
    return name if name.isidentifier() else f"`{name}`"


def _bare(name: str) -> str:
    """A column's name without backticks."""
    return name[1:-1] if re.fullmatch("`[^`]+`", name) else name


def _density(text: str, of: Described) -> Wish:
    text = _bare(text)
    if re.search(r"\s+by\s+", text) and text not in of.columns:
        raise InputError(
            f"--density {text!r}: name only the column; then add `by` and a numeric bandwidth to the"
            " plan"
        )
    name = _known("--density", text, [text], of, NUMERIC, "a density needs numbers")
    question = of.said.get(text)
    bounds = question.keys.get("bounds") if question and question.type == "integer" else None
    if isinstance(bounds, list) and bounds[1] - bounds[0] < FEWEST_VALUES:
        raise InputError(
            f"--density {text!r}: it has only {bounds[1] - bounds[0] + 1} whole values; use --table"
            f" {text!r}. If it has decimals, write the type continuous in the questionnaire"
        )
    return Wish("density", text, name)


def _map(text: str, of: Described) -> Wish:
    names = _names("--map", text, of, r"\s+x\s+|\s*[×*,]\s*|\s+by\s+|\s+and\s+|\s+")
    names = _known("--map", text, names, of, NUMERIC, "a map needs two numbers")
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"--map {text!r}: name two columns, such as 'longitude latitude'")
    return Wish("map", text, names)


def named_family(text: str) -> tuple[str, str]:
    """The family named before a formula, if any, and the formula in a plan's notation.

    >>> named_family("logistic: insured ~ age"), named_family("pay ~ age + I(age^2)")
    (('logistic', 'insured ~ age'), ('', 'pay ~ age + {age * age}'))
    """
    text = re.sub(r"\bI\(([^(){}]*)\)", r"{\1}", text)
    # Outside braces, powers mean interactions.
    text = re.sub(r"\{[^{}]*\}", lambda part: POWER.sub(_product, part[0]), text)
    text = re.sub(r"\{\(([^(){}]*)\)\}", r"{\1}", text)
    named = re.fullmatch(r"(\w+)\s*:\s*([^~:]*~.*)", text)
    return (named[1], named[2]) if named else ("", text)


def _product(power: re.Match[str]) -> str:
    return f"({' * '.join([power[1]] * int(power[2]))})"


def _model(text: str, of: Described, option: str = "") -> Wish:
    option, (family, formula) = option or f"--model {text!r}", named_family(text)
    # Dots and blanks have no other meaning in a formula; a hyphen may be a minus.
    formula = with_backticks(formula, [name for name in of.columns if "-" not in name])
    family = MODELS.get(family, family)
    if family and family not in get_args(Family):
        known = [*MODELS, *(each for each in get_args(Family) if each not in MODELS.values())]
        raise InputError(f"{option}: there is no {family!r} model, only {', '.join(known)}")
    try:
        read = ModelFormula.read(formula)
    except ValueError as error:
        raise InputError(f"{option}: {backticks_wanted(formula, of.columns) or error}") from None
    for token in read.tokens:
        if token.kind == "name" and token.word not in of.columns:
            if token.word in JOINED:
                raise InputError(f"{option}: {JOIN}")
            if token.called and token.word not in FUNCTIONS:
                functions = ", ".join(FUNCTIONS)
                raise InputError(
                    f"{option}: {token.word!r} is not one of the functions {functions}"
                )
    names = dict.fromkeys(
        token.word
        for token in read.tokens
        if token.kind == "name" and not (token.called and token.word in FUNCTIONS)
    )
    if not names.keys() <= {*of.columns} and (wanted := backticks_wanted(formula, of.columns)):
        raise InputError(f"{option}: {wanted}")
    columns = _known(option, "", [*names], of, tuple(ColumnType), "")
    response = read.response.strip("`")
    if of.columns.get(response) in (ColumnType.TRUTH, ColumnType.TEXT):
        formula = f"{_event(option, response, read.response, of)} ~ {read.terms}"
        family = family or "binomial"
    compared = re.search(r"[<>]|[=!]=", formula.split("~")[0])
    family = family or ("binomial" if compared else "gaussian")
    try:
        keys = {"name": "model", "title": text, "formula": formula, "family": family}
        asked = Analysis.model_validate(keys)
        checked_columns(formula, of.columns)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None
    return Wish("model", text, columns, formula=formula, family=asked.family)


def _event(option: str, response: str, written: str, of: Described) -> str:
    """The formula for the event that a column of two categories has a given value."""
    question = of.said.get(response)
    if question is None and of.columns[response] is ColumnType.TRUTH:
        return written
    categories = question.keys["categories"] if question else []
    if {*categories} == {False, True} and all(isinstance(each, bool) for each in categories):
        return written
    if len(categories) != 2:
        scale = ""
        if categories and all(isinstance(each, int) for each in categories):
            scale = "; for their mean, describe the column by lower and upper instead of values"
        raise InputError(
            f"{option}: {response} is a column of categories; name a category, as in {{{written} =="
            f" 'CATEGORY'}}{scale}"
        )
    assert question is not None
    event = event_category(response, categories, question.keys.get("labels", {}))
    return f"{{{written} == {event!r}}}"


def event_category(column: str, categories: Sequence[Any], labels: Mapping[str, str]) -> Any:
    """The category whose probability a logistic model predicts: yes, or the column's own name, or else
    the second.

    >>> event_category("smokes", ["1. Yes", "2. No"], {}), event_category("home", ["Home", "Away"], {})
    ('1. Yes', 'Home')
    """
    meant = {*YES, column.lower()}
    texts = {c: (str(c).lower(), labels.get(str(c), "").lower()) for c in categories}
    said = [c for c in categories if {*texts[c]} & meant]
    said = said or [c for c in categories if re.search(r"\byes\b", " ".join(texts[c]))]
    return said[0] if len(said) == 1 else categories[1]


def _names(
    option: str, text: str, of: Described, between: str, part: str | None = None
) -> tuple[str, ...]:
    """The column names in a text; a name that contains the separator must be the whole text."""
    whole = _bare(text if part is None else part)
    if whole in of.columns:
        return (whole,)
    words = [_bare(word) for word in re.split(between, whole) if word]
    # Names separated by blanks alone, as in the wish for a map.
    if not {*words} <= {*of.columns} and {*whole.split()} <= {*of.columns}:
        words = whole.split()
    return _known(option, text, words, of, tuple(ColumnType), "")


def _known(
    option: str,
    text: str,
    names: Sequence[str],
    of: Described,
    kinds: Collection[ColumnType],
    why: str,
) -> tuple[str, ...]:
    """Return the names. Raise ``InputError`` if a name is not a column of these kinds."""
    faults = [fault for name in names if (fault := _fault(name, of, kinds, why))]
    if faults or not names:
        asked = f"{option} {text!r}" if text else option
        raise InputError(f"{asked}: {'; '.join(faults) or 'names no column'}")
    return tuple(names)


def _fault(name: str, of: Described, kinds: Collection[ColumnType], why: str) -> str:
    kind = of.columns.get(name)
    if kind in kinds:
        return ""
    if kind is ColumnType.REAL:
        return f"{name} is a column of real numbers, and {why}"
    if kind is ColumnType.LEVELS:
        return f"the questionnaire lists levels of {name}, and {why} between bounds"
    if kind is not None:
        return f"{name} is a column of categories, and {why}"
    if parts := of.parts(name):
        return f"{name} is a date; name one of its parts: {', '.join(parts)}"
    if name in of.unpublished:
        kind_of = of.unpublished[name].type
        return f"{name} has the type `{kind_of}` in the questionnaire, so it is not published"
    if name and name == of.period:
        return f"{name} is the period of the series; leave it out, as each run publishes one period"
    if name in of.table and of.questions:
        return f"the questionnaire does not describe {name}; add a line for it"
    if name in of.table:
        return f"{name} has a type or a name that a plan cannot describe"
    for own, question in of.questions.items():
        if question.keys.get("source_name") == name:
            return f"{name!r} is called {own!r} in the plan; write that"
    return f"there is no column {name!r}{_near(name, of.columns)}"


def _near(name: str, known: Collection[str]) -> str:
    """Text that suggests the known names most similar to an unknown one."""
    folded = {each.lower(): each for each in known}
    close = [folded[each] for each in get_close_matches(name.lower(), folded, n=3)]
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    listed = [*known][:MOST_LISTED]
    more = f" and {len(known) - len(listed)} more" if len(known) > len(listed) else ""
    return f"; there are {', '.join(listed)}{more}"


READERS: Mapping[str, tuple[str, Callable[[str, Described], Wish]]] = {
    "tables": ("Table", _table),
    "means": ("Mean", _mean),
    "densities": ("Density", _density),
    "maps": ("Map", _map),
    "models": ("Model", _model),
}
"""By the field of ``Said``: the word for a wish in titles, and the function that reads one."""
