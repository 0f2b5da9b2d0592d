"""The releases that answer wishes, as sections of a plan with the reason for each choice.

All releases of a plan have the same single values with separate cells and the same resolution of
numbers. So these depend on all wishes together (``ColumnUse``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from itertools import combinations, count
from typing import Any

from dpcore.errors import InputError
from schemas.first_plan.described import ColumnType, Described
from schemas.first_plan.universe import require_published, universe_rules
from schemas.first_plan.wishes import EVENT, QUOTES, Wish
from schemas.releases.binning import FINE
from schemas.releases.formulas import MOST_TERMS
from schemas.survey.blanks import BLANK
from schemas.survey.cells import MOST_IN_TABLES, MOST_VALUES, Cells, Numbers
from schemas.survey.found import OPEN, stated_ends

MOST_ON_A_MAP = 4096

FINEST = 65536
"""Real numbers are rounded to this many cells. The default is right for maps, whose cells are pairs."""

ALONE = "single-columns"
"""The release of single columns that records of a series follow inside their bins."""

CATEGORIES = (ColumnType.TRUTH, ColumnType.TEXT, ColumnType.LEVELS)

FOR_MODELS = "tables-for-models"
"""The release of tables to which models are fitted."""

WEIGHTLESS = (
    " Each record counts once, so the synthetic records represent the respondents, not the population."
    " Weights are not used because noise on their sums grows with the largest weight."
)

LOGARITHMIC = " For a logarithmic scale, state the type `continuous` in the questionnaire."

UNWEIGHTED = (
    " Each record counts once, so these tables describe the respondents, not the population: noise on"
    " sums of weights grows with the largest weight, and would hide them at 10,000 records and alpha 1."
)

GAUSSIAN_NOISE = "Noise grows with the root of the number of tables; the mechanism spends beta."

CONCENTRATED = "The budget is split in rho, which makes Gaussian noise smaller than Laplace noise."


COUNTED = ("table", "model")
"""Wishes that tables of requested columns answer."""


@dataclass(frozen=True)
class PlannedRelease:
    """A section. ``why``: reasons by key, "" for the section; ``wishes``: its wishes."""

    keys: Mapping[str, Any]
    why: Mapping[str, str] = field(default_factory=dict)
    wishes: tuple[Wish, ...] = ()

    @property
    def name(self) -> str:
        return str(self.keys["name"])

    def but(self, why: Mapping[str, str] | None = None, **keys: Any) -> PlannedRelease:
        """The section with some keys and reasons changed."""
        # The mechanism is the last key of every section, for readers.
        old = {**self.keys}
        ends = [key for key in ("mechanism", "weighted") if key in old and key not in keys]
        last: dict[str, Any] = {key: old.pop(key) for key in ends}
        return replace(self, keys={**old, **keys, **last}, why={**self.why, **(why or {})})

    def without_weights(self, reason: str) -> PlannedRelease:
        if "weighted" not in self.keys:
            return self
        kept = {key: value for key, value in self.keys.items() if key != "weighted"}
        return replace(self, keys=kept, why={**self.why, "": self.why.get("", "") + reason})

    @property
    def with_gaussian_noise(self) -> PlannedRelease:
        """The section with Gaussian noise if it counts or averages; a histogram becomes ``margins``."""
        if self.keys["kind"] == "mean":
            why = {**self.why, "mechanism": f"{self.why['mechanism']} {CONCENTRATED}"}
            return replace(self, keys={**self.keys, "mechanism": "discrete-gaussian"}, why=why)
        counts = self.keys["kind"] in ("histogram", "margins")
        if not self.wishes or not counts or any(w.kind not in COUNTED for w in self.wishes):
            return self
        keys = {**self.keys}
        if keys["kind"] == "histogram":
            keys |= {"kind": "margins", "sets": [keys["columns"]]}
        why = {**self.why, "mechanism": CONCENTRATED}
        return replace(self, keys={**keys, "mechanism": "discrete-gaussian"}, why=why)

    def counts_like(self, other: PlannedRelease) -> bool:
        """Whether a table of this section has the columns and the cells of the other, a histogram."""
        sets = (
            [self.keys["columns"]]
            if self.keys["kind"] == "histogram"
            else self.keys.get("sets", [])
        )
        columns, bins = other.keys["columns"], self.keys.get("bins", {})
        same = {name: edges for name, edges in bins.items() if name in columns}
        return same == other.keys.get("bins", {}) and {*columns} in map(set, sets)

    def serving(self, *wishes: Wish) -> PlannedRelease:
        return replace(self, wishes=(*self.wishes, *wishes))


@dataclass(frozen=True)
class ColumnUse:
    """The consequences of all wishes for the columns of the plan."""

    of: Described
    wishes: Sequence[Wish]

    def _in(self, *kinds: str) -> set[str]:
        return {name for wish in self.wishes if wish.kind in kinds for name in wish.columns}

    @cached_property
    def columns(self) -> list[str]:
        """The columns that wishes name, in the table's order."""
        needed = {name for wish in self.wishes for name in (*wish.columns, *wish.by)}
        needed |= {*self.design.values()}
        return [name for name in self.of.columns if name in needed]

    @property
    def design(self) -> Mapping[str, str]:
        """The columns of strata and clusters, by their key in the plan. Strata are only for models;
        clusters are also for tables, except in a series."""
        if any(self.measured(wish) for wish in self.wishes):
            return self.of.design
        return {k: n for k, n in self.of.design.items() if k == "cluster" and not self.of.period}

    def measured(self, wish: Wish) -> bool:
        """Whether only a separate model can answer: the wish is a share, or the survey has a design."""
        asked = wish.kind == "model" or (wish.kind == "mean" and not wish.share)
        return wish.share or (asked and self.designed)

    @property
    def designed(self) -> bool:
        """Whether estimates for the population depend on weights, strata or clusters."""
        return self.of.designed

    @cached_property
    def numbers(self) -> Mapping[str, Numbers]:
        """The columns whose numbers a questionnaire describes."""
        asked = {name: self.of.said[name] for name in self.columns if name in self.of.said}
        return {name: q.numbers for name, q in asked.items() if q.numbers}

    @cached_property
    def points(self) -> Mapping[str, Sequence[float]]:
        """Values with a separate cell."""
        fine, maps = self._in("records", "density", "model"), self._in("map")
        found: dict[str, Sequence[float]] = {}
        for name, of in self.numbers.items():
            if name in maps:
                found[name] = sorted((int if of.whole else float)(each) for each in {*of.special})
            else:
                found[name] = self._cells_of(of, name in fine)().points
        return found

    def bins(
        self, columns: Collection[str], many: bool
    ) -> Mapping[str, Sequence[float] | str | int]:
        """Bins by column: many or few, from the questionnaire, or a blank."""
        found: dict[str, Sequence[float] | str | int] = {}
        for name in columns:
            if of := self.numbers.get(name):
                cells = self._cells_of(of, many)(self.points[name])
                if cells.edges:
                    fine = many and self._fine(name) == cells.edges
                    found[name] = FINE if fine else cells.edges
            elif self.of.columns[name] is ColumnType.REAL:
                few = MOST_IN_TABLES if self._bounds_found(name) else BLANK
                found[name] = FINE if many and not self.of.period else few
        return found

    def _cells_of(self, of: Numbers, many: bool) -> Callable[..., Cells]:
        if not many:
            return of.for_tables
        return of.for_periods if self.of.period else of.for_records

    def _bounds_found(self, name: str) -> bool:
        """Whether the release finds the bounds of a column. Then no edges can be stated."""
        bounds = self.of.said[name].keys.get("bounds") if name in self.of.said else None
        return stated_ends(bounds) is not None

    def _fine(self, name: str) -> list[float] | None:
        """The edges that the plan's word `fine` stands for; None if each value has a cell."""
        points = [Decimal(str(point)) for point in self.points[name]]
        plain = replace(self.numbers[name], special=points, cuts=())
        return plain.for_records(self.points[name]).edges

    def scale(self, name: str) -> str:
        """The scale on which a density is estimated."""
        of = self.numbers.get(name)
        if of is None or of.whole or not of.amount:
            return "none"
        return "log1p" if of.lower <= 1 else "log"

    def _needless(self, name: str) -> str:
        """The special values that get separate cells even without ``point_masses``."""
        if name not in self.numbers or name in self._in("density"):
            return ""
        labels, points = self.of.said[name].keys.get("labels", {}), self.points[name]
        own = [str(each) for each in self.numbers[name].special if float(each) not in points]
        return ", ".join(each for each in own if each not in labels)

    @property
    def more(self) -> Mapping[str, Mapping[str, Any]]:
        """For each column, the keys that follow from the releases, and comments on values without
        keys."""
        exact, maps, found = self._in("mean", "density", "model"), self._in("map"), {}
        for name in self.columns:
            keys: dict[str, Any] = {}
            if self.points.get(name):
                keys["point_masses"] = self.points[name]
            if listed := self._needless(name):
                keys[f"# special {listed}"] = "each has a separate cell and needs no key"
            real = self.of.columns[name] is ColumnType.REAL
            if real and name in exact and name not in maps:
                keys["grid"] = FINEST
            found[name] = keys
        return found

    def no_private_bandwidth(self, columns: Sequence[str]) -> str:
        """The reason why no private bandwidth is possible; empty if it is."""
        asked = [self.of.said.get(name) for name in columns]
        if self.of.role("unit"):
            return "the number of records is private"
        if any(q and q.keys.get("nullable", bool(q.keys.get("missing"))) for q in asked):
            return "answers may be missing"
        if any(self.points.get(name) for name in columns) or any(
            q and q.keys.get("point_masses") for q in asked
        ):
            return "some values are counted separately"
        return ""

    def name(self, wish: Wish) -> str:
        """A name for the release of a wish, different for each wish."""
        taken: list[str] = []
        for each in self.wishes[: self.wishes.index(wish) + 1]:
            taken.append(distinct(_words(each), taken))
        return taken[-1]

    def records(self, wish: Wish) -> PlannedRelease:
        why = {
            "": "Synthetic records, and the counts of all pairs of columns from which they are made.",
            "bins": "Many bins, from the bounds, step and unit of a column; you may list edges.",
            "compress": (
                "Each column of many cells is measured alone first. Its noisy counts decide which"
                " small cells are merged in pairs, and how values lie inside them."
            ),
            "rules": "Who was asked: a column is missing in every record outside its universe.",
            "mechanism": GAUSSIAN_NOISE,
        }
        if self.of.period:
            why["bins"] = "Few bins, as a series does not merge bins in pairs; you may list edges."
        require_published(self.of.said, self.of.columns)
        rules = universe_rules(self.of.said, wish.columns)
        keys = {
            "name": "all-pairs",
            "kind": "microdata-margins",
            "columns": list(wish.columns),
            **self._bins(wish.columns, many=True),
            **({} if self.of.period else {"compress": {}}),
            **({"rules": rules} if rules else {}),
            "mechanism": "discrete-gaussian",
        }
        if self.of.role("weight"):
            why[""] += WEIGHTLESS
        for name, question in self.of.said.items():
            if question.role == "weight":
                why[""] += (
                    f" Each record counts once; {name} is the number of people it represents."
                )
        return PlannedRelease(
            keys, {k: text for k, text in why.items() if not k or k in keys}, (wish,)
        )

    @property
    def heaped(self) -> list[str]:
        """Columns of numbers with a step, and with several values in a cell of the records."""
        if self.of.period:
            return []
        roles = ("weight", "stratum", "cluster")
        return [
            name
            for name, of in self.numbers.items()
            if self.of.said[name].role not in roles and of.step_or_one and of.number > MOST_VALUES
        ]

    def heaping(self) -> PlannedRelease:
        why = (
            "Values that many people share, such as 50,000 or a top code, and the roundness of all"
            " others. The synthetic records follow both."
        )
        keys = {"name": "shared-values", "kind": "heaping", "columns": self.heaped}
        return PlannedRelease(keys | {"mechanism": "discrete-gaussian"}, {"": why})

    @property
    def finer(self) -> list[str]:
        """The columns of numbers with fewer cells because the plan is a series."""
        if not self.of.period:
            return []
        return [
            name
            for name, of in self.numbers.items()
            if of.for_periods(self.points[name]) != of.for_records(self.points[name])
        ]

    def alone(self) -> PlannedRelease:
        """Counts of single columns of numbers, which records follow inside their bins."""
        bins = {name: FINE for name in self.finer if self._fine(name)}
        keys = {"name": ALONE, "kind": "margins", "columns": self.finer, "ways": 1}
        why = "Counts in many bins, which the records follow inside their own bins."
        keys |= {"bins": bins} if bins else {}
        return PlannedRelease(keys | {"mechanism": "discrete-gaussian"}, {"": why})

    def for_models(
        self, wishes: Sequence[Wish], also: Sequence[Sequence[str]] = ()
    ) -> PlannedRelease:
        """Counts of records, to fit models that moments cannot answer."""
        needed = {name for wish in wishes for name in wish.columns}
        columns = tuple(name for name in self.columns if name in needed)
        made = self.records(Wish("records", columns=columns))
        keys = {**made.keys, "name": FOR_MODELS}
        pairs = [p for p in combinations(columns, 2) if any({*p} <= {*w.columns} for w in wishes)]
        if len(pairs) < math.comb(len(columns), 2):
            keys["pairs"] = [[*pair] for pair in pairs]
        if also:
            keys["also"] = [*also]
        ends = [key for key in ("bins", "compress", "rules", "mechanism") if key in keys]
        last: dict[str, Any] = {key: keys.pop(key) for key in ends}
        why = {**made.why, "": "Counts of the pairs of columns that occur together in a model."}
        return PlannedRelease(
            {**keys, **last}, {k: why[k] for k in why if not k or k in last}, (*wishes,)
        )

    def pairs(self, wish: Wish) -> PlannedRelease:
        columns, why = (
            [*wish.columns],
            "Counts for every pair of columns, in bins coarse enough to read.",
        )
        keys: dict[str, Any] = {"name": "all-pairs", "kind": "margins", "columns": columns}
        keys |= {"ways": min(2, len(columns)), **self._bins(columns, many=False)}
        return self._counts(PlannedRelease(keys, {"": why}, (wish,)))

    def histogram(self, columns: Sequence[str]) -> PlannedRelease:
        """A histogram of all these columns together."""
        why = "Counts of all columns together: here they are more accurate than tables of pairs."
        keys = {"name": "all-columns", "kind": "histogram", "columns": [*columns]}
        return self._counts(PlannedRelease(keys | self._bins(columns, many=False), {"": why}))

    def joint(self, wish: Wish) -> PlannedRelease | None:
        """A histogram to which a model is fitted without assumptions on values inside bins; None if
        there is none: each column has few values, or is compared with one number."""
        bins = dict[str, list[float]]()
        for name in wish.columns:
            asked = self.of.said.get(name)
            if asked and OPEN in (asked.keys.get("categories"), asked.keys.get("bounds")):
                return None
            listed = self.of.columns[name] in CATEGORIES
            few = listed or 1 < self.of.number_of_values(name) <= MOST_TERMS
            if edges := None if listed else self._compared(name, wish):
                bins[name] = edges
            elif not few:
                return None
        why = (
            "Counts from which a model is computed, with narrower intervals than measured directly."
        )
        keys: dict[str, Any] = {"name": named("counts", *wish.columns), "kind": "histogram"}
        keys |= {"columns": [*wish.columns]} | ({"bins": bins} if bins else {})
        return self._counts(PlannedRelease(keys, {"": why}, (wish,)))

    def _compared(self, name: str, wish: Wish) -> list[float] | None:
        """Edges between which a comparison of a column with a number does not change, or None."""
        of, found = self.numbers.get(name), COMPARISON.match(wish.formula)
        if of is None or of.step_or_one is None or found is None or found["name"] != name:
            return None
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", wish.formula.partition("~")[2]):
            return None
        # Between two possible values, because a cell has its lower edge and not its upper one.
        half = of.step_or_one / 2
        edge = Decimal(found["number"]) + (half if found["sign"] in (">", "<=") else -half)
        if of.whole:
            edge = edge.to_integral_value(ROUND_CEILING)
        edges = of.for_tables(self.points[name]).edges
        if not edges or not edges[0] < edge < edges[-1]:
            return None
        return [edges[0], int(edge) if of.whole else float(edge), edges[-1]]

    def tables(self, wishes: Sequence[Wish]) -> PlannedRelease:
        """The requested tables, in one release."""
        sets = [[*wish.columns] for wish in wishes]
        keys: dict[str, Any]
        if len(sets) == 1:
            keys = {"name": self.name(wishes[0]), "kind": "histogram", "columns": sets[0]}
        else:
            held = {name for each in sets for name in each}
            columns = [name for name in self.columns if name in held]
            keys = {"name": "tables", "kind": "margins", "columns": columns, "sets": sets}
        keys |= self._bins(keys["columns"], many=False)
        why = {"": "Counts, in bins coarse enough to read."}
        return self._counts(PlannedRelease(keys, why, tuple(wishes)))

    def mean(self, wish: Wish) -> PlannedRelease:
        (name,) = wish.columns
        by = {"by": wish.by[0] if len(wish.by) == 1 else [*wish.by]} if wish.by else {}
        keys = {"name": self.name(wish), "kind": "mean", "column": name, **by}
        why = "Noise is proportional to the range of the bounds. All groups cost as much as one."
        why = why if by else why.partition(". ")[0] + "."
        return PlannedRelease(keys | {"mechanism": "discrete-laplace"}, {"mechanism": why}, (wish,))

    def density(self, wish: Wish) -> PlannedRelease:
        """A density of one column or of two."""
        scales = {name: self.scale(name) for name in wish.columns}
        for name, of in self.numbers.items():
            if (
                wish.kind == "map"
                and name in wish.columns
                and of.whole
                and of.upper - of.lower > MOST_ON_A_MAP
            ):
                raise InputError(
                    f"--map {wish.text!r}: {name} has more than {MOST_ON_A_MAP:,} whole values;"
                    " give it the type `continuous` in the questionnaire, where values are rounded"
                )
        keys: dict[str, Any] = {
            "name": self.name(wish),
            "kind": "density",
            "columns": [*wish.columns],
        }
        why = {"mechanism": ("The mechanism with the smallest total error for this budget.")}
        if len(scales) == 1 and scales[wish.columns[0]] != "none":
            keys |= {"transform": scales[wish.columns[0]], "bandwidth": 0.02}
            why["transform"] = (
                "Most amounts are near zero. A logarithmic scale shows small and large amounts."
            )
            why["bandwidth"] = "A fraction of the range on that scale, chosen without the data."
        elif reason := self.no_private_bandwidth(wish.columns):
            crowded = any(self.numbers[n].lower <= 0 for n in wish.columns if n in self.numbers)
            keys["bandwidth"] = 0.01 if crowded else 0.03
            why["bandwidth"] = (
                f"A fraction of the range{self._wide(wish, keys['bandwidth'])}, because no private"
                f" bandwidth is possible: {reason}. Narrower details are smoothed away."
            )
        else:
            keys["bandwidth"] = {"private": "quantiles", "smallest": 0.01}
            why["bandwidth"] = (
                "The choice costs a fifth of the share. A stated number costs nothing."
            )
        if any(of.whole and of.amount for n, of in self.numbers.items() if n in wish.columns):
            why["bandwidth"] += LOGARITHMIC
        return PlannedRelease(keys | {"mechanism": "best"}, why, (wish,))

    def _wide(self, wish: Wish, bandwidth: float) -> str:
        """A bandwidth in the unit of a single column of numbers, for a comment."""
        of = self.numbers.get(wish.columns[0]) if len(wish.columns) == 1 else None
        if of is None:
            return ""
        return f" ({bandwidth * float(of.upper - of.lower):.2g} {of.unit}".rstrip() + ")"

    def moments(self, wishes: Sequence[Wish]) -> PlannedRelease:
        columns = [n for n in self.columns if any(n in wish.columns for wish in wishes)]
        keys = {"name": "moments", "kind": "moments", "columns": columns}
        why = (
            "Moments of the exact numbers, for linear models. Several models share them: this is more"
            " accurate here than tables, or than a separate share of the budget for each model."
        )
        return PlannedRelease(keys | {"mechanism": "discrete-gaussian"}, {"": why}, tuple(wishes))

    def model(self, wish: Wish) -> PlannedRelease:
        """A model, mean or share in a separate release."""
        keys = {"name": self.name(wish), "kind": "model", "title": titled(wish)[:100]}
        keys |= {"formula": wish.formula, "family": wish.family}
        why = (
            f"Measured separately: with {self.of.compared_at} its intervals are narrower than from"
            " tables or moments. `dprelease explain` compares them for this plan."
        )
        if wish.kind == "mean":
            why = "An estimate for the population, whose error includes sampling."
        return PlannedRelease(keys | {"mechanism": "noisy-scores"}, {"": why}, (wish,))

    def _bins(self, columns: Collection[str], many: bool) -> dict[str, Any]:
        bins = self.bins(columns, many)
        return {"bins": bins} if bins else {}

    def _counts(self, section: PlannedRelease) -> PlannedRelease:
        found = section.but(mechanism="discrete-laplace")
        return found.but(weighted=True) if self.of.role("weight") else found


COMPARISON = re.compile(
    r"\{ *`?(?P<name>[^`<>=!{}]+?)`? *(?P<sign>>=|<=|>|<) *(?P<number>-?\d+(\.\d+)?) *\} *~"
)
"""A formula whose response compares a column with a number."""

COMPARED = {">=": "from", "<=": "to", "!=": "not", "==": "", ">": "over", "<": "below"}


def _words(wish: Wish) -> str:
    if wish.kind == "model":
        return named("model", wish.text)
    if wish.share:
        what = wish.text.partition(" by ")[0] if wish.by else wish.text
        for sign, word in COMPARED.items():
            what = what.replace(sign, f" {word} ")
        return named("share", what, *(["by"] if wish.by else []), *wish.by)
    return named(wish.kind, *wish.columns, *(["by"] if wish.by else []), *wish.by)


def titled(wish: Wish) -> str:
    """The title of a model's release: its question in words."""
    if wish.kind == "mean":
        return wish.title
    if "~" not in wish.text:
        return wish.text
    answer, _, terms = wish.text.rpartition(":")[2].partition("~")
    answer, event = answer.strip(), EVENT.match(wish.formula)
    if event and "{" not in answer:  # readers could not tell which of the two categories is meant
        answer = f"{answer} = {event[1].strip(QUOTES)}"
    return f"{answer} by {' '.join(terms.split())}"


def distinct(name: str, taken: Collection[str]) -> str:
    """The name, with the smallest number that makes it unused if necessary."""
    return next(n for i in count(1) if (n := f"{name}-{i}" if i > 1 else name) not in taken)


def named(*words: str) -> str:
    """A name for a release."""
    return "-".join(re.findall("[a-z0-9]+", " ".join(words).lower()))[:60].rstrip("-")
