"""A plan under construction: its text with blanks, and the plan with nominal values in the blanks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import jinja2
import yaml

from dpcore.errors import InputError, PlanError
from schemas.first_plan.described import ROWS, ColumnType, Described, flow
from schemas.first_plan.question import Question
from schemas.first_plan.sections import ALONE, ColumnUse, PlannedRelease, distinct, named, titled
from schemas.first_plan.wishes import Wish
from schemas.plan import Plan, load_plan
from schemas.releases.base import GAUSSIAN
from schemas.survey.blanks import BLANK
from schemas.survey.found import OPEN
from schemas.survey.unit import MOST_STEPS

NOMINAL: Mapping[str, Any] = {
    "rows": ROWS,
    "alpha": "1",
    "beta": "1e-6",
    "max_rows": 4,
    "largest": "100",
    "step": "1",
    "total": "",  # follows from the largest
    "title": "A survey",
}
"""Nominal values for blanks; choices are compared at these values."""

GRANTED = 3
"""The grant, as a multiple of the request: see the plan's comment."""

STEPS_OF_WEIGHT = 1000

LARGEST = 10
"""The nominal largest weight, as a multiple of the mean weight."""

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("schemas", "first_plan"),
    autoescape=False,  # the output is YAML, where ``flow`` quotes every value
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


@dataclass(frozen=True)
class Written:
    """A plan under construction. ``sections``: its releases; ``models``: answered model wishes."""

    dataset: str
    source: str | Mapping[str, str]
    of: Described
    use: ColumnUse
    sections: tuple[PlannedRelease, ...] = ()
    models: tuple[Wish, ...] = ()

    def having(self, *sections: PlannedRelease) -> Self:
        """The plan with these sections, which replace sections with the same names."""
        given = {section.name: section for section in sections}
        kept = tuple(given.pop(each.name, each) for each in self.sections)
        return replace(self, sections=(*kept, *given.values()))

    def section(self, *kinds: str) -> PlannedRelease | None:
        """The first section of these kinds."""
        return next((each for each in self.sections if each.keys["kind"] in kinds), None)

    @cached_property
    def trial(self) -> Plan | None:
        """The plan with nominal values in its blanks; None if columns have blanks.

        Raises ``InputError`` with the faults if the plan is refused.
        """
        if not self.of.complete:
            return None
        # Parsed from the text, so that the tried plan is the written plan.
        document = yaml.safe_load(self.text)
        try:
            return load_plan(_filled(document, self.of.number))
        except PlanError as error:
            faults = str(error).partition("\n")[2] or str(error)
            raise InputError(f"no plan can fulfil these wishes:\n{faults}") from None

    @property
    def text(self) -> str:
        of, use = self.of, self.use
        lists = [of.said[name].keys.get("categories") for name in use.columns if name in of.said]
        types = {of.columns[name] for name in use.columns}
        return TEMPLATES.get_template("plan.yaml.jinja").render(
            dataset=self.dataset,
            source=self.source,
            questioned=bool(of.said),
            unit=_unit(*role) if (role := of.role("unit")) else None,
            weights=_weights(*role) if self.weighted and (role := of.role("weight")) else None,
            series=of.series,
            design=use.design,
            beta=self._beta if self._gaussian or OPEN in lists else '"0"',
            concentrated=self.concentrated,
            lines=of.lines([*use.columns, of.period], use.more),
            unnamed=of.unnamed,
            misnamed=of.misnamed,
            absent=of.absent,
            idle=[name for name in of.columns if name not in use.columns],
            untyped=ColumnType.OPEN in types or (not of.said and ColumnType.WHOLE in types),
            stated=of,
            granted=of.alpha and str(GRANTED * Decimal(of.alpha)),
            sections=self.sections,
            synthesis=[*self.synthesis],
            analyses=[*self._analyses()],
            BLANK=BLANK,
        )

    @property
    def _beta(self) -> str:
        """At most 1 / (10 x rows), and at most 1e-6, for a plan whose budget and size are known."""
        of = self.of
        return f'"1e-{max(len(str(10 * of.rows - 1)), 6)}"' if of.alpha and of.rows else BLANK

    @property
    def _gaussian(self) -> int:
        return sum(section.keys.get("mechanism") in GAUSSIAN for section in self.sections)

    @property
    def concentrated(self) -> bool:
        """Whether the budget is split by rho, which suits Gaussian noise."""
        return self._gaussian > (0 if self.of.period else 1)

    @property
    def weighted(self) -> bool:
        """Whether any release counts sums of weights."""
        of = (section.keys for section in self.sections)
        return any(keys.get("weighted") or keys["kind"] == "model" for keys in of)

    @property
    def synthesis(self) -> Iterator[Mapping[str, Any]]:
        """Yield the section of the synthetic records, if any are wished for."""
        of = [s.name for s in self.sections for wish in s.wishes if wish.kind == "records"]
        alone = any(section.name == ALONE for section in self.sections)
        within = dict.fromkeys(self.use.finer, ALONE) if alone else {}
        keys = {"rows": self.of.number, "within_bins": within}
        yield from ({"name": "records", "from": name, **keys} for name in of)

    def _analyses(self) -> Iterator[Mapping[str, str]]:
        taken = set[str]()
        for wish in self.models:
            title = titled(wish)
            answer = title if wish.share else title.partition(" by ")[0]
            name = distinct(named(answer) or "model", taken)
            taken.add(name)
            yield {"name": name, "title": title, "formula": wish.formula, "family": wish.family}


def _filled(node: Any, rows: int, why: str = "") -> Any:
    """A document with nominal values for its blanks; ``rows``: the number of records."""
    if isinstance(node, dict):
        found = {key: _filled(value, rows, key) for key, value in node.items()}
        if node.get("total") == BLANK:
            mean = max(Fraction(found["largest"]) / LARGEST, Fraction(found["step"]))
            found["total"] = str(mean * rows)
        return found
    if isinstance(node, list):
        return [_filled(each, rows, why) for each in node]
    return NOMINAL[why] if node == BLANK else node


def _unit(name: str, question: Question) -> Mapping[str, object]:
    most = question.keys["upper"]
    return {"column": name, "max_rows": BLANK if most is None else int(most)}


def _weights(name: str, question: Question) -> Mapping[str, object]:
    """The plan's section on weights; the largest is a whole number of steps, within a plan's limit."""
    largest, step = question.keys["upper"], question.keys["step"]
    of = {"column": name} | {key: question.keys[key] for key in ("format",) if key in question.keys}
    if largest is None:
        return {**of, "largest": BLANK, "step": str(step or BLANK), "total": BLANK}
    if step is None or largest / step > MOST_STEPS:
        step = largest / STEPS_OF_WEIGHT
    # Rounded up, so that no weight is cut.
    steps = (largest / step).to_integral_value(ROUND_CEILING)
    given = {"largest": steps * step, "step": step}
    return {**of, **{k: f"{v.normalize():f}" for k, v in given.items()}, "total": BLANK}


WIDTH = 96


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)


def _wrapped(entry: Mapping[str, Any]) -> str:
    """A key and its value as YAML; a long value gets one line for each of its parts."""
    ((key, value),) = entry.items()
    if len(line := f"{key}: {flow(value)}") <= WIDTH:
        return line
    if isinstance(value, list) and isinstance(value[0], dict):
        return "\n".join([f"{key}:", *(f"      - {flow(each)}" for each in value)])
    text = yaml.safe_dump(
        {key: value}, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    return textwrap.indent(text.strip(), " " * 4).strip()


TEMPLATES.filters |= {
    "flow": flow,
    "quoted": repr,
    "comment": _comment,
    "wrapped": _wrapped,
}
