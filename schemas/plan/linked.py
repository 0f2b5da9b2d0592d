"""Linked tables: each privacy unit is one wide record, with its members in a public order.

privacy_unit: {column: hid, max_rows: 3, name: household}
linked: {order: [-age], shared: [region]}

    hid  region  age  sex         region  size  age.1  sex.1  age.2  sex.2  age.3  sex.3
    7    north    31  F           north   2     34     M      31     F      null   null
    7    north    34  M   ----->  south   1     80     F      null   null   null   null
    9    south    80  F

Neighbouring tables differ in the records of one unit, that is, in one wide record. So counts of wide
records cost as much as for one record.  A member's columns are null in the positions after the last
member; ``size`` is the number of members.

Tables of all pairs of the many wide columns would be mostly noise.  So a release of synthetic records
(``Linked.widened``) measures only pairs within members and between adjacent ones, and its records obey
the rules that follow from the layout: members fill the first positions, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import Any

from pydantic import Field, StrictStr

from dpcore.domain.axes import Bins, Grid
from dpcore.suggestion import suggestion
from schemas.document import Section
from schemas.releases.binning import binned_domain
from schemas.releases.microdata import MicrodataSection
from schemas.releases.rules import Range, RuleSection
from schemas.survey.columns import CategoricalColumn, Column, IntegerColumn
from schemas.survey.unit import UnitColumn

SIZE, NUMBER, PLACE = "size", "number", "place"
"""Added columns: number of members of a unit, its made-up number, and position of a member."""

MOST_MEMBERS, MOST_BINS = 50, 32

JOINT = 3
"""All pairs of this many first members are measured; later ones only in adjacent pairs."""


class Linked(Section):
    """Makes one record of each privacy unit: shared columns, then the columns of each member."""

    order: list[StrictStr] = Field(
        min_length=1,
        description="Columns by which the members of a unit are sorted. `-` before a name puts the"
        " largest value first. Ties are broken by the values of all other columns. The first"
        " `max_rows` members are used.",
    )
    shared: list[StrictStr] = Field(
        default_factory=list,
        description="Columns that describe the unit, such as a region; the unit gets the values of its"
        " first member. All other columns describe members, and `age` becomes `age.1`,"
        " `age.2`, and so on.",
    )

    @property
    def sorted_by(self) -> list[tuple[str, bool]]:
        """The columns that sort members, and for each whether its largest value comes first."""
        return [(name.removeprefix("-"), name.startswith("-")) for name in self.order]

    def check(self, columns: Mapping[str, Column], unit: UnitColumn | None, invalid: str) -> None:
        """Raise ``ValueError`` if the plan's columns or its unit cannot be linked."""
        if unit is None:
            raise ValueError("linked: needs a privacy_unit with a column")
        if not 2 <= unit.max_rows <= MOST_MEMBERS:
            raise ValueError(
                f"privacy_unit.max_rows: with linked, must be from 2 to {MOST_MEMBERS}"
            )
        if invalid == "clamp":
            raise ValueError(
                "invalid: with linked, clamp would make invalid values look like absent members; write"
                " own-cell or drop"
            )
        for place, names in (("order", [n for n, _ in self.sorted_by]), ("shared", self.shared)):
            unknown = [name for name in names if name not in columns]
            if unknown:
                meant = suggestion(unknown[0], columns)
                raise ValueError(
                    f"linked.{place}: the plan declares no column {unknown[0]!r}{meant}"
                )
            if len(set(names)) != len(names):
                raise ValueError(f"linked.{place}: a column is named twice")
        if set(columns) <= set(self.shared):
            raise ValueError("linked.shared: leave at least one column for members")
        made = {SIZE, NUMBER, PLACE}
        made |= {name.lower() for of in self.places(columns, unit).values() for name in of}
        taken = next((name for name in columns if name.lower() in made), None)
        if taken:
            raise ValueError(f"columns: linked adds a column {taken!r}; rename the survey's column")

    def places(self, columns: Mapping[str, Column], unit: UnitColumn) -> dict[str, list[str]]:
        """For each column that describes members, its wide columns in the order of members."""
        return {
            name: [f"{name}.{i + 1}" for i in range(unit.max_rows)]
            for name in columns
            if name not in self.shared
        }

    def wide(self, columns: Mapping[str, Column], unit: UnitColumn) -> dict[str, Column]:
        """The columns of wide records."""
        found: dict[str, Column] = {name: columns[name] for name in self.shared}
        found[SIZE] = IntegerColumn(
            type="integer",
            bounds=(1, unit.max_rows),
            description=f"Members of the {unit.name}, at most {unit.max_rows}",
        )
        for i in range(unit.max_rows):
            for name, names in self.places(columns, unit).items():
                column = columns[name]
                about = f"{column.description or name} (member {i + 1})"
                label = column.label and f"{column.label} (member {i + 1})"
                # Every unit has a first member, and may have no other.
                later = {"nullable": True} if i else {}
                words = {"label": label, "description": about}
                found[names[i]] = column.model_copy(update=words | later)
        return found

    def widened(
        self, section: MicrodataSection, columns: Mapping[str, Column], unit: UnitColumn
    ) -> MicrodataSection:
        """A section of synthetic records over wide columns.

        The name of a member's column stands for this column of every member, also in bins and rules. By
        default these pairs are measured: two columns of one member; one column of two members, if both
        are among the first three or adjacent; and ``size`` with each shared column and each column of
        the first member. The weight of a table is the square of its number of cells, like the squared
        distance that noise causes. This is multiplied by 4 for tables of two members, by 1/4 for tables
        of ``size``, which pairs of members imply, and by 1/2 for each member after the third.
        """
        places = self.places(columns, unit)
        if section.compress:
            raise ValueError(
                "compress: cannot be combined with linked, because linked rules need every category"
            )
        if any(name in places for pair in section.often_equal for name in pair):
            raise ValueError("often_equal: with linked, use only columns that members share")
        listed = [name for name in section.columns if name in places]
        if not listed:
            raise ValueError("columns: name at least one that describes members")
        shared = [name for name in section.columns if name not in places and name != SIZE]
        names = [*shared, SIZE, *(places[n][i] for i in range(unit.max_rows) for n in listed)]
        bins: dict[str, Any] = {}
        for name, edges in section.bins.items():
            bins |= dict.fromkeys(places.get(name, [name]), edges)
        chosen = {name: places[name] for name in listed}
        rules = [*self._structure(section, columns, unit.max_rows)]
        for i, rule in enumerate(section.rules):
            place = f"rules[{i}]"
            rules += [each.stated_at(place) for each in _in_all_places(rule, place, chosen)]
        changed: dict[str, Any] = {"columns": names, "bins": bins, "rules": rules}
        if section.pairs is None and section.ways == 2:
            domain = binned_domain(self.wide(columns, unit), names, bins)
            cells = dict(zip(domain.names, domain.shape, strict=True))
            found = _pairs([n for n in shared if n in columns], chosen, unit.max_rows)
            weights = {pair: w * (cells[pair[0]] * cells[pair[1]]) ** 2 for pair, w in found}
            changed["pairs"] = list(weights)
            if section.optimise is None:
                changed["optimise"] = {".".join(pair): w for pair, w in weights.items()}
        return section.model_copy(update=changed)

    def _structure(
        self, section: MicrodataSection, columns: Mapping[str, Column], most: int
    ) -> Iterator[RuleSection]:
        """Yield the rules that all wide records obey: members fill the first positions, in order.

        Later rules follow from earlier rules, but apply to other measured tables.
        """
        chosen = [name for name in section.columns if name not in self.shared and name in columns]
        always = [name for name in chosen if not columns[name].nullable]
        if always:
            yield from _sizes(always[0], columns, most)
        first, largest = self.sorted_by[0]
        edges = _edges(section, columns, first) if first in always else ()
        for i in range(2, most + 1):
            for name in chosen:
                yield _rule({SIZE: {"below": i}}, {f"{name}.{i}": [None]})
            for name in always:
                if name != first or not edges:
                    yield _rule({SIZE: {"from": i}}, {f"{name}.{i}": _any(columns[name])})
            for low, high in pairwise(edges):
                before = {SIZE: {"from": i}, f"{first}.{i - 1}": {"from": low, "below": high}}
                then = {"from": edges[0], "below": high} if largest else {"from": low}
                yield _rule(before, {f"{first}.{i}": then})
            # The rules above compare bins; members in the same bin must be in order too.
            if edges:
                compared = ">=" if largest else "<="
                yield _rule({}, f"`{first}.{i - 1}` {compared} `{first}.{i}`")
        for i in range(2, most + 1):
            for name, other in permutations(chosen, 2):
                if name in always:
                    yield _rule({f"{name}.{i}": [None]}, {f"{other}.{i}": [None]})
            for j in range(1, i):
                for name in always if j > 1 else ():
                    yield _rule({f"{name}.{j}": [None]}, {f"{name}.{i}": [None]})
                for edge in edges[1:-1]:
                    beyond = {"from": edge} if largest else {"below": edge}
                    yield _rule({f"{first}.{i}": beyond}, {f"{first}.{j}": beyond})


def _sizes(name: str, columns: Mapping[str, Column], most: int) -> Iterator[RuleSection]:
    """Yield rules for ``size``, the position of the last member; its column ``name`` is never null."""
    for i in range(1, most + 1):
        here = {f"{name}.{i}": _any(columns[name])} if i > 1 else {}
        last = {f"{name}.{i + 1}": [None]} if i < most else {}
        yield _rule(here | last, {SIZE: {"from": i, "below": i + 1}})


def _edges(
    section: MicrodataSection, columns: Mapping[str, Column], name: str
) -> tuple[float, ...]:
    """The edges of a numeric column's bins; empty for categories, or for too many bins."""
    if isinstance(columns[name], CategoricalColumn):
        return ()
    axis = binned_domain(
        columns, [name], {n: b for n, b in section.bins.items() if n == name}
    ).axes[0]
    return axis.edges if isinstance(axis, Bins | Grid) and axis.cells <= MOST_BINS else ()


def _pairs(
    shared: list[str], places: Mapping[str, list[str]], most: int
) -> Iterator[tuple[tuple[str, str], Fraction]]:
    """Yield pairs of wide columns, each with a factor. Weight: factor times squared cells."""
    yield from (((name, SIZE), Fraction(1, 4)) for name in shared)
    yield from (((SIZE, names[0]), Fraction(1, 4)) for names in places.values())
    for i in range(most):
        weight = Fraction(1, 2 ** max(i + 1 - JOINT, 0))
        for one, other in combinations(places.values(), 2):
            yield (one[i], other[i]), weight
        for j in range(i):
            if i - j == 1 or i < JOINT:
                yield from (((names[j], names[i]), 4 * weight) for names in places.values())


def _in_all_places(
    rule: RuleSection, place: str, places: Mapping[str, list[str]]
) -> Iterator[RuleSection]:
    """Yield a rule about members once for each member, with the condition that this member exists."""
    then_of = rule.then
    if isinstance(then_of, str):
        yield from _inequalities(rule, then_of, places)
        return
    named = {*rule.if_, *then_of}
    if not named & set(places):
        yield rule
        return
    if SIZE in named:
        raise ValueError(
            f"{place}: in a rule with {SIZE!r}, write a column with the number of its member, such as"
            f" {places[min(named & set(places))][0]!r}"
        )
    there = _only_of_present(rule, places)
    for i in range(len(next(iter(places.values())))):
        when, then = (
            {places[name][i] if name in places else name: given for name, given in part.items()}
            for part in (rule.if_, then_of)
        )
        if i and not there:
            when[SIZE] = _present(i)
        yield rule.model_copy(update={"if_": when, "then": then})


def _only_of_present(rule: RuleSection, places: Mapping[str, list[str]]) -> bool:
    """Whether absent members never meet the conditions, because null fails at least one."""
    return any(
        name in places and (isinstance(given, Range) or None not in given)
        for name, given in rule.if_.items()
    )


def _present(i: int) -> Range:
    """The sizes of units with a member in position i, counted from 0."""
    return Range.model_validate({"from": i + 1})


def _inequalities(
    rule: RuleSection, then: str, places: Mapping[str, list[str]]
) -> Iterator[RuleSection]:
    """Yield an inequality for each member, or unchanged if it only names columns such as `age.1`."""
    # The longest name first, so that no name matches the beginning of a longer one.
    every = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    member = re.compile(rf"`(?P<quoted>{every})`|(?<![\w`.])(?P<bare>{every})(?![\w`.])")
    compared = member.search(then) is not None
    if not compared and not set(rule.if_) & set(places):
        yield rule
        return
    # An inequality of an absent member's columns never applies, because they are null.
    there = compared or SIZE in rule.if_ or _only_of_present(rule, places)
    for i in range(len(next(iter(places.values())))):
        of = {name: names[i] for name, names in places.items()}
        when = {of.get(name, name): given for name, given in rule.if_.items()}
        if i and not there:
            when[SIZE] = _present(i)
        parts = member.split(then)[:: member.groups + 1]
        named = [f"`{of[m['quoted'] or m['bare']]}`" for m in member.finditer(then)]
        written = "".join(part + name for part, name in zip(parts, [*named, ""], strict=True))
        yield rule.model_copy(update={"if_": when, "then": written})


def _any(column: Column) -> Any:
    """All values except null, in the form of a rule."""
    if isinstance(column, CategoricalColumn):
        return list(column.categories)
    return {"from": column.bounds[0]}


def _rule(when: dict[str, Any], then: dict[str, Any] | str) -> RuleSection:
    return RuleSection.model_validate({"if": when, "then": then})
