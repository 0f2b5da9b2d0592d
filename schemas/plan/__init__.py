"""The release plan: one document with all public facts of a release.

``load_plan`` reads a plan, and refuses it if it is incomplete or contradictory.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, ValidationInfo, field_validator, model_validator

from dpcore.errors import BundleError, PlanError
from dpcore.line.statistic import Noisy
from dpcore.releases.abilities import ColumnSearch
from dpcore.suggestion import suggestion
from schemas.document import faults_of, read_yaml, written_faults
from schemas.plan.best import chosen
from schemas.plan.coherence import require_coherent
from schemas.plan.contents import PlanDocument
from schemas.plan.searches import searches
from schemas.releases.density import BEST
from schemas.survey.blanks import blanks_of, touches
from schemas.survey.columns import Column, made_total
from schemas.survey.public_files import read_public_files
from schemas.survey.source import resolve_source
from schemas.text import look_alikes, refuse_treacherous, told_apart


class Plan(PlanDocument):
    """A valid plan: its sections are valid and consistent."""

    @field_validator("columns")
    @classmethod
    def _total(cls, columns: dict[str, Column], info: ValidationInfo) -> dict[str, Column]:
        invalid = info.data.get("invalid", "refuse")
        return {name: made_total(column, invalid) for name, column in columns.items()}

    @model_validator(mode="before")
    @classmethod
    def _as_it_looks(cls, document: Any) -> Any:
        refuse_treacherous(document)
        columns = document.get("columns") if isinstance(document, dict) else None
        if isinstance(columns, dict) and (alike := look_alikes(columns)):
            raise ValueError(f"columns: {told_apart(*alike)}")
        return document

    @model_validator(mode="after")
    def _found_first(self) -> Self:
        """Add searches for the categories and bounds of open columns without a search in the plan."""
        added = searches(self)
        return self.changed(releases=[*self.releases, *added]) if added else self

    @model_validator(mode="after")
    def _best(self) -> Self:
        """Replace every ``best`` by the chosen mechanism; request no beta if none is needed."""
        # After the searches were added, because they take a share of the budget.
        plan = self
        for i, section in enumerate(self.releases):
            if section.mechanism == BEST:
                releases = [*plan.releases[:i], chosen(plan, i), *plan.releases[i + 1 :]]
                plan = plan.changed(releases=releases)
        spends_beta = any(s.spends_beta("basic") for s in plan.releases)
        if plan is not self and plan.budget.composition == "basic" and not spends_beta:
            asked = plan.budget.requested.model_copy(update={"beta": Fraction(0)})
            plan = plan.changed(budget=plan.budget.model_copy(update={"requested": asked}))
        return plan

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        require_coherent(self)
        return self

    def as_found(self, draws: Mapping[str, Noisy]) -> Self:
        """The plan with the categories and bounds that these draws of ``finding`` found.

        If these contradict the rest of the plan, the result is the plan in which nothing was found,
        which was checked when this plan was read.
        """
        found: dict[str, Any] = {}
        for name, noisy in draws.items():
            search = self.built[name]
            assert isinstance(search, ColumnSearch)
            found[self.section(name).finds] = search.found(noisy)
        plan = self.with_found(found)
        try:
            published_plan(plan.public())
        except BundleError:
            return self.with_found({})
        return plan


def load_plan(
    plan: Path | str | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> Plan:
    """Read a plan; ``overrides`` replace values at dotted places, such as ``source``.

    ``plan``: a YAML file, or its document as a mapping. Relative paths start at the file's folder, or
    for a mapping at the working folder. Raises ``PlanError`` with one line for each fault.
    """
    if isinstance(plan, Mapping):
        path, document = Path("plan"), deepcopy(dict(plan))
    else:
        path, document = Path(plan), read_yaml(Path(plan))
    for place, value in (overrides or {}).items():
        _set(document, place, value)
    blanks = blanks_of(document)
    read_public_files(path, document)
    try:
        read = Plan.model_validate(document)
        faults = {}
    except ValidationError as error:
        faults = faults_of(error, document, Plan)
    if blanks:
        others = {place: reason for place, reason in faults.items() if not touches(place, blanks)}
        raise PlanError(f"{path}: the plan has blanks\n{written_faults(blanks | others)}")
    if faults:
        raise PlanError(f"{path}: the plan is not valid\n{written_faults(faults)}")
    # An overriding source starts at the working folder, like every path on the command line.
    if "source" in (overrides or {}):
        return read
    return read.model_copy(update={"source": resolve_source(path, read.source)})


def published_plan(public: Mapping[str, Any]) -> Plan:
    """The plan in a manifest; it lacks the private table's location and the operation.

    Raises ``BundleError`` if the plan is not valid for this version of dprelease.
    """
    document = {**public, "source": "withheld"}
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        faults = written_faults(faults_of(error, document, Plan))
        raise BundleError(
            "the plan in the manifest is not valid: it was changed, another version of dprelease wrote"
            f" it, or a package that brings one of its kinds is not installed\n{faults}"
        ) from None


def _set(document: dict[str, Any], place: str, value: Any) -> None:
    """Replace the value at a dotted place; positions in a list are numbers."""
    *parents, last = (
        int(part) if re.fullmatch("[0-9]{1,9}", part) else part for part in place.split(".")
    )
    node: Any = document
    try:
        for part in parents:
            node = node[part]
        node[last] = value  # an unknown key is refused when the document is validated
    except (KeyError, IndexError, TypeError):
        meant = suggestion(part, node) if isinstance(node, dict) else ""
        raise PlanError(f"--set {place}: the plan has no such key{meant}") from None
