"""Writes a first plan for a table, from the names and types of its columns, a questionnaire and wishes.

The text is ``plan.yaml.jinja``.  If there are several ways to answer a wish, the planner takes the one
with the smallest sum of the expected errors of all wishes. These errors are computed at nominal rows and
budget.  If release i has the error c_i with the whole budget, it has the error c_i / w_i^p with the
share w_i, where p is 1, or 1/2 for shares of rho, and

    sum of c_i / w_i^p  is smallest for  w_i proportional to  c_i^(1 / (1 + p)).

Records get at least a third, because they answer all questions that nobody wished for.

A plan whose columns have no blank is validated, at nominal values, before it is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

from dpcore.advice.records import CLEARLY, record_distances
from dpcore.advice.usable import GOOD, ROUGH, pairs_error, read_axes, relative_error, table_error
from dpcore.arrays import Floats
from dpcore.errors import InputError, UnmeasuredError
from dpcore.releases.abilities import StatesMeans
from dpcore.releases.base import Release
from dpcore.releases.tables.compression import GROUPS, usual_categories
from schemas.first_plan.described import ColumnType, Described, with_names
from schemas.first_plan.question import Question
from schemas.first_plan.sections import (
    CATEGORIES,
    FOR_MODELS,
    GAUSSIAN_NOISE,
    UNWEIGHTED,
    WEIGHTLESS,
    ColumnUse,
    PlannedRelease,
    distinct,
)
from schemas.first_plan.wishes import Said, Wish
from schemas.first_plan.written import Written
from schemas.plan import Plan
from schemas.survey.supposed import supposed_shares

INSIDE = 0.2
"""Weight of errors inside bins relative to errors of bins, for records without a wish."""

MOST_WEIGHT = 20

HOPELESS = 20 * GOOD
"""Larger errors count as this error: noise hides the answer to the wish."""

OUT_OF_REACH = ROUGH
"""Larger errors, with the whole budget at alpha 1, are out of reach: no share of a protective budget
reduces them enough."""

HIDDEN = (
    "At {size} noise hides this release even with the whole budget, so its share"
    " is the smallest. Leave it out if `dprelease explain` calls it not usable."
)

OF_RECORDS = 1 / 3
"""The least share of the budget for records."""

MOST_TOGETHER = 2**16
"""If all columns together have more cells than this, a joint histogram is not tried."""

SHARED = "These shares of the budget minimise the sum of the expected errors of all releases."
WITH_RECORDS = f"{SHARED} Records get at least a third, because they are for all other questions."

REFUSED = re.compile(r"^no plan can fulfil these wishes:\s*releases\[0\]\.(formula: )?")
"""The beginning of the message that refuses a plan's only release."""

ModelError = Callable[[Plan, str, str], float]
"""Returns the privacy error of a plan's model, relative to its sampling error; raises ``InputError`` if
the plan has no answer."""


def first_plan(
    dataset: str,
    source: str | Mapping[str, str],
    columns: Mapping[str, ColumnType],
    said: Said | None = None,
    questions: Mapping[str, Question] | None = None,
    model_error: ModelError | None = None,
    rows: int | None = None,
    alpha: str = "",
) -> str:
    """The plan as YAML, with blanks.  ``columns``: names and kinds in the table's order; ``rows``,
    ``alpha``: the number of records and the budget of a release, at which choices are compared.

    With ``questions``, the plan has exactly the columns that they describe.  Raises ``InputError`` if no
    column can be described, or if no plan fulfils the wishes.
    """
    if rows is not None and rows < 1:
        raise InputError(f"--rows {rows}: must be a positive number of records")
    if alpha and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", alpha):
        raise InputError(f"--alpha {alpha}: must be a number such as 0.5")
    of, said = Described(*with_names(columns, questions or {}), rows, alpha), said or Said()
    wishes = said.read(of)
    kinds = {wish.kind for wish in wishes}
    if "records" in kinds <= {"records", "density", "map"}:  # and nothing for the population
        of = of.with_weight
        wishes = said.read(of)
    if of.period and of.role("unit"):  # units may be in several periods, so only tables can answer
        wishes = [wish.as_model if wish.kind == "mean" else wish for wish in wishes]
    draft = Draft(dataset, source, of, ColumnUse(of, wishes), model_error=model_error)
    done = draft.serve(wishes).finished()
    if hidden := done.hidden_models:  # so their budget is for other wishes
        done = replace(draft, fitted=hidden).serve(wishes).finished()
    return done.text


@dataclass(frozen=True)
class Draft(Written):
    """A plan under construction: its releases are chosen wish by wish."""

    model_error: ModelError | None = None
    known: dict[str, Sequence[float]] = field(default_factory=dict)
    """A cache of the errors of sections, which all drafts of one plan share."""
    fitted: frozenset[str] = frozenset()
    """The texts of models that are fitted to tables or moments, if these can answer."""

    def serve(self, wishes: Sequence[Wish]) -> Draft:
        """The draft that answers the wishes; each choice minimises the cost."""
        draft = self
        # In this order, because tables may be added to the records' tables, and models fitted to both.
        of_all = {wish.kind: wish for wish in wishes if wish.kind in ("records", "tables")}
        if "records" in of_all:  # synthetic records follow all pairs
            draft = draft.having(draft.together(self.use.records(of_all["records"])))
            if self.use.heaped and draft.section("microdata-margins"):
                draft = draft.having(self.use.heaping())
            if self.use.finer:
                draft = draft.having(self.use.alone())
        elif "tables" in of_all:
            draft = draft.having(draft.of_all_pairs(self.use.pairs(of_all["tables"])))
        draft = draft.with_tables([wish for wish in wishes if wish.kind == "table"])
        for wish in wishes:
            if wish.share:
                draft = draft.with_share(wish)
            elif wish.kind == "mean":
                draft = draft.with_mean(wish)
            elif wish.kind in ("density", "map"):
                draft = draft.having(self.use.density(wish))
        for wish in wishes:
            if wish.kind == "model":
                draft = draft.with_model(wish)
        return min((draft, *draft._sharing()), key=lambda each: each.cost)

    def quieter(self, section: PlannedRelease) -> PlannedRelease:
        """The section with the mechanism that adds less noise to its tables."""
        if section.keys["kind"] != "margins":
            return section
        why = {"mechanism": GAUSSIAN_NOISE}
        both = (section, section.but(why, mechanism="discrete-gaussian"))
        return min(both, key=lambda each: self.having(each).cost)

    def of_all_pairs(self, section: PlannedRelease) -> PlannedRelease:
        return self.usable(section, lambda each: self.together(self.quieter(each)))

    def usable(
        self, section: PlannedRelease, choose: Callable[[PlannedRelease], PlannedRelease]
    ) -> PlannedRelease:
        """The chosen form of the section, without weights if noise would hide their sums."""
        best = choose(section)
        if "weighted" in best.keys and self.of.complete:
            with suppress(InputError):
                if fmean(self.having(best)._errors_of(best)) > ROUGH:
                    return choose(section.without_weights(UNWEIGHTED))
        return best

    def together(self, section: PlannedRelease) -> PlannedRelease:
        """The section, or a histogram of all its columns if that is more accurate."""
        columns = section.keys["columns"]
        records = section.keys["kind"] == "microdata-margins"
        if len(columns) < 3 or "rules" in section.keys:
            return section
        if records and not {self.of.columns[name] for name in columns} <= {*CATEGORIES}:
            return section  # its bins are finer than the bins of a histogram
        joint = replace(self.use.histogram(columns), wishes=section.wishes)
        if "weighted" not in section.keys:
            joint = joint.without_weights(WEIGHTLESS if records else UNWEIGHTED)
        apart = self._distance(section, records)
        try:
            together = self._distance(joint, records)
        except InputError:  # more cells than a histogram may have
            return section
        return joint if together < (CLEARLY if records else 1) * apart else section

    def _distance(self, section: PlannedRelease, records: bool) -> float:
        """The simulated mean error of tables: of three columns for ``records``, otherwise of all pairs.

        Infinite if there are too many cells to simulate.
        """
        plan = self.having(section).trial
        built = plan.built[section.name] if plan else None
        if built is None or built.domain.size > MOST_TOGETHER:
            return math.inf
        return (record_distances(built) or {3: math.inf})[3] if records else pairs_error(built)

    def with_tables(self, wishes: Sequence[Wish]) -> Draft:
        """The draft with each table added to the records' tables, or to a joint release."""
        draft, own = self, list[Wish]()
        kinds = () if self.of.role("weight") else ("microdata-margins", "margins", "histogram")
        held = draft.section(*kinds)  # records do not count weights
        for wish in wishes:
            among = None if held is None else draft.among(held.name, wish)
            apart = draft.having(draft.usable(self.use.tables([*own, wish]), draft.quieter))
            if among is not None and among.cost <= apart.cost:
                draft = among
            else:
                own.append(wish)
        return draft.having(draft.usable(self.use.tables(own), draft.quieter)) if own else draft

    def among(self, name: str, wish: Wish) -> Draft | None:
        """The draft with a table added to release ``name``; None if its cells do not suit readers."""
        held = next(each for each in self.sections if each.name == name)
        bins = held.keys.get("bins", {})
        readable = self.use.bins(wish.columns, many=False)
        if any(bins.get(column) != readable.get(column) for column in wish.columns):
            return None
        if not {*wish.columns} <= {*held.keys["columns"]}:
            return None
        if "compress" in held.keys and any(self._may_merge(name) for name in wish.columns):
            return None
        also, kind = held.keys.get("also", []), held.keys["kind"]
        if len(wish.columns) <= 2 or kind == "histogram":
            text = f"{held.why['columns'][:-1]}; {wish.text}." if "columns" in held.why else ""
            text = text or f"These tables include {wish.text}."
        elif kind == "margins":
            return None
        else:
            held = held.but(also=[*also, [*wish.columns]])
            text = "You requested this table. Here it is more accurate than as a separate release."
        more = {"also" if len(wish.columns) > 2 and kind != "histogram" else "columns": text}
        return self.having(held.but(more).serving(wish))

    def _may_merge(self, name: str) -> bool:
        """Whether tables of records may count groups of a column's categories."""
        asked = self.of.said.get(name)
        listed = asked.keys.get("categories") if asked else None
        return isinstance(listed, list) and len(listed) > usual_categories(GROUPS[0])

    def with_share(self, wish: Wish) -> Draft:
        """The better draft: with a share in its own release, or computed from counts."""
        model = replace(wish.as_model, share=True)
        own = self.having(replace(self.use.model(wish), wishes=(model,)))
        counts = [] if self.use.designed or self.of.period else [*self._counting(model)]
        if model.text in self.fitted and counts:
            return counts[0]
        if self.of.role("unit"):  # from counts the records of a unit are supposed to be independent
            return own
        return min((*counts, own), key=lambda each: each.cost)

    def with_mean(self, wish: Wish) -> Draft:
        """The best draft that answers a mean: from its own release, or from the records' tables."""
        if self.use.measured(wish) or self.of.period:
            return self.having(self.use.model(wish))
        own, model = self.having(self.use.mean(wish)), wish.as_model
        held = next((s for s in self.sections if any(w.kind == "records" for w in s.wishes)), None)
        if held is None:
            return own
        fitted = replace(self, models=(*self.models, model)).having(held.serving(model))
        return fitted if fitted.cost < CLEARLY * own.cost else own

    def _counting(self, wish: Wish) -> Iterator[Draft]:
        """Yield the draft in which a model is fitted to counts of all combinations of its columns."""
        if (section := self.use.joint(wish)) is None:
            return
        same = (held for held in self.sections if held.counts_like(section))
        names = [each.name for each in self.sections]
        serving = next((held.serving(wish) for held in same), None)
        serving = serving or section.but(name=distinct(section.name, names))
        yield replace(self, models=(*self.models, wish)).having(serving)

    def with_model(self, wish: Wish) -> Draft:
        """The best draft that answers a model: from its own release, the records' tables, moments or new
        tables."""
        options = [self.having(self.use.model(wish))]
        if not self.use.measured(wish):
            options += [*self._counting(wish), *self._fitting(wish)]
        found = [each.measuring(wish) for each in options]
        own = found[0] if wish.text in self.fitted else None
        best = min(found, key=lambda each: (each.cost == math.inf, each is own, each.cost))
        if best.cost == math.inf:
            if self.sections:
                _ = self.trial  # raises if an earlier wish is at fault
            try:
                _ = options[0].errors  # the reason why the model cannot be measured comes first
                options[-1]._fit(wish)
            except InputError as error:
                reason = REFUSED.sub("", str(error))
                raise InputError(f"--model {wish.text!r}: {reason}") from None
        return best

    @property
    def hidden_models(self) -> frozenset[str]:
        """The texts of measured models that noise hides in this plan.

        Their errors grow faster than others as their share of the budget falls, so they are judged in
        the finished plan.
        """
        plan, measured = self.trial, [s for s in self.sections if s.keys["kind"] == "model"]
        return frozenset(
            wish.text
            for section in measured
            for wish in section.wishes
            if plan is not None and self._error(plan, section.name, wish) >= HOPELESS
        )

    def _fitting(self, wish: Wish) -> Iterator[Draft]:
        """Yield drafts in which a model is fitted to moments, or to tables."""
        draft = replace(self, models=(*self.models, wish))
        served = self.section("moments")
        linear = [w for w in (*(served.wishes if served else ()), wish) if w.family == "gaussian"]
        if wish.family == "gaussian":
            yield draft.having(self.use.moments(linear))
        held = self.section("microdata-margins", "histogram")
        if held is not None and any(w.kind == "records" for w in held.wishes):
            yield draft.having(held.serving(wish))
        else:
            own = next((each for each in self.sections if each.name == FOR_MODELS), None)
            before, also = (own.wishes, own.keys.get("also", ())) if own else ((), ())
            yield draft.having(self.use.for_models([*before, wish], also))

    def _sharing(self) -> Iterator[Draft]:
        """Yield drafts in which models share moments or tables. This may cost less than a release for
        each of many models."""
        alone = [s for s in self.sections if s.keys["kind"] == "model"]
        alone = [s for s in alone if not any(self.use.measured(wish) for wish in s.wishes)]
        wishes = [wish for section in alone for wish in section.wishes]
        if len(wishes) < 2:
            return
        bare = replace(self, sections=tuple(s for s in self.sections if s not in alone))
        for moments in (True, False):
            draft = bare
            for wish in wishes:
                *first, tables = draft._fitting(wish)
                way = next(iter(first), None) if moments else tables.measuring(wish)
                served = way is not None and way._answers(wish)
                draft = way if way and served else draft.having(self.use.model(wish))
            yield draft

    def measuring(self, wish: Wish) -> Draft:
        """The draft that also measures the larger sets of columns that the model needs."""
        held = next((s for s in self.sections if wish in s.wishes), None)
        if held is None or held.keys["kind"] != "microdata-margins":
            return self
        try:
            self._fit(wish)
        except UnmeasuredError as error:
            also = [*held.keys.get("also", []), *map(list, error.also)]
            return self.having(held.but({"also": f"For {wish.text}."}, also=also))
        except InputError:
            pass
        return self

    def _answers(self, wish: Wish) -> bool:
        try:
            self._fit(wish)
        except InputError:
            return False
        return True

    def _fit(self, wish: Wish) -> None:
        """Raise ``InputError`` if the draft cannot answer a model."""
        plan = self.trial
        if plan is not None and self.model_error is not None:
            self.model_error(plan, wish.formula, wish.family)

    @cached_property
    def cost(self) -> float:
        """The sum of the expected errors of all wishes, at these shares of the budget."""
        try:
            shares = self._shares
        except InputError:
            return math.inf
        return sum(
            min(error * math.pow(shares[section.name], -self._power), HOPELESS)
            for section in self.sections
            for error in self._errors_of(section)
        )

    @property
    def _power(self) -> float:
        """Errors fall with this power of the share of the budget."""
        return 0.5 if self.concentrated else 1.0

    @cached_property
    def _shares(self) -> Mapping[str, float]:
        """The share of the budget for each release; shares add up to 1 (see the module).

        A release that noise hides at any share gets the smallest share, so that it takes little from
        others. Raises ``InputError`` if no plan can answer the wishes.
        """
        reached = {name: error or GOOD for name, error in self.errors.items() if error is not None}
        fewest = min(reached.values(), default=1.0)
        sizes = {name: reached.get(name, fewest) ** (1 / (1 + self._power)) for name in self.errors}
        records = {s.name for s in self.sections for wish in s.wishes if wish.kind == "records"}
        others = sum(size for name, size in sizes.items() if name not in records)
        for name in records:
            sizes[name] = max(sizes[name], others * OF_RECORDS / (1 - OF_RECORDS))
        return {name: size / sum(sizes.values()) for name, size in sizes.items()}

    @cached_property
    def errors(self) -> Mapping[str, float | None]:
        """For each release, the sum of the errors of its wishes with the whole budget, without errors
        that are out of reach; None if all are.

        Raises ``InputError`` if no plan can answer the wishes.
        """
        found = dict[str, float | None]()
        for section in self.sections:
            within = [error for error in self._errors_of(section) if error < OUT_OF_REACH]
            found[section.name] = sum(within) if within else None
        return found

    def _errors_of(self, section: PlannedRelease) -> Sequence[float]:
        """The error of each wish that a section answers."""
        # The key is text, because a section contains dictionaries, which are not hashable.
        if (key := repr(section)) not in self.known:
            self.known[key] = self._computed(section)
        return self.known[key]

    def _computed(self, section: PlannedRelease) -> Sequence[float]:
        fitted = section.keys["kind"] != "model"
        models = tuple(wish for wish in section.wishes if wish.kind == "model" and fitted)
        plan = replace(self, sections=(section,), models=models).trial
        # Before the columns are described nothing is known, so all releases have the same error.
        if plan is None:
            return [1.0]
        if not section.wishes:
            error = relative_error(*_supposed(plan, section.name))
            return [INSIDE * error if error else GOOD]
        return [self._error(plan, section.name, wish) for wish in section.wishes]

    def _error(self, plan: Plan, name: str, wish: Wish) -> float:
        error = None
        built, shares = _supposed(plan, name)
        if wish.kind == "table":
            error = table_error(built, wish.columns, shares)
        elif wish.kind == "model":
            if self.model_error is not None:
                ratio = self.model_error(plan, wish.formula, wish.family)
                error = GOOD * ratio
        else:
            error = relative_error(built, shares)
            if error is not None and isinstance(built, StatesMeans):  # as for models
                error *= GOOD * math.sqrt(built.rows / built.groups)
        # Capped, because an infinite cost would mean that no plan answers the wish.
        return GOOD if error is None else min(error, HOPELESS)

    def finished(self) -> Draft:
        """The draft with the best weights of releases, and with the mechanisms that were compared."""
        plan = self.trial
        if plan is None:
            return self
        shares = self._shares
        least = max(min(shares.values()), max(shares.values()) / MOST_WEIGHT)
        weights = {name: max(round(share / least), 1) for name, share in shares.items()}
        why = WITH_RECORDS if any(self.synthesis) else SHARED
        made: list[PlannedRelease] = []
        for section in self.sections:
            if "mechanism" in section.keys:
                section = section.but(mechanism=plan.section(section.name).mechanism)
            if self.concentrated:
                section = section.with_gaussian_noise
            if self.errors[section.name] is None:
                hidden = HIDDEN.format(size=self.of.compared_at)
                section = section.but({"": f"{section.why.get('', '')} {hidden}".strip()})
            if len({*weights.values()}) > 1:
                section = section.but(
                    {"weight": why} if not made else {}, weight=weights[section.name]
                )
            made.append(section)
        done = replace(self, sections=tuple(made))
        _ = done.trial  # raises if the plan is refused with these weights and mechanisms
        return done


def _supposed(plan: Plan, name: str) -> tuple[Release, Mapping[str, Floats]]:
    """A release, and for each of its columns the assumed shares of the cells."""
    built = plan.built[name]
    return built, supposed_shares(plan.columns, read_axes(built))
