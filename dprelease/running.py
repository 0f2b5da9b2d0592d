"""Plans, releases and audits from Python: the steps of the flows, without Prefect."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dpcore.errors import InputError
from dprelease.bundle import Bundle, open_bundle
from schemas.plan import Plan
from schemas.plan import load_plan as read_plan
from schemas.plan.identity import check_release_id

if TYPE_CHECKING:
    from dpcore.audit import AuditResult

PlanLike = Plan | Mapping[str, Any] | str | Path
"""A plan: the result of ``load_plan``, a document as a dictionary, or the path of a YAML file."""

NOWHERE = "(given to release)"
"""A placeholder for the source if a plan names none."""


@dataclass(frozen=True, repr=False)
class Answer:
    """An answer in words (``text``) and in numbers (``facts``)."""

    text: str
    facts: Any

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def load_plan(plan: PlanLike, overrides: Mapping[str, Any] | None = None) -> Plan:
    """Read a plan from a YAML file, or from its document as a dictionary, which may lack ``source``.

    ``overrides`` replace values at dotted places, such as ``budget.requested.alpha``.  Raises
    ``PlanError`` with one line for each fault.
    """
    if isinstance(plan, Plan):
        if overrides:
            raise InputError(
                "overrides: change the plan's file or dictionary, not a plan that was read"
            )
        return plan
    if isinstance(plan, Mapping):
        plan = {"source": NOWHERE, **plan}
    elif not isinstance(plan, str | Path):
        raise InputError(
            "plan: is neither the name of a file nor a dictionary, but a"
            f" {type(plan).__name__}; a plan is a dictionary of its keys"
        )
    return read_plan(plan, overrides)


@dataclass(frozen=True, repr=False)
class FirstPlan:
    """The text of a plan that has blanks."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def write(self, path: str | Path) -> Path:
        """Write the plan to a new file."""
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(self.text)
        return Path(path)

    def filled(self, values: Mapping[str, Any]) -> Plan:
        """The plan with values at dotted places, such as ``{"rows": 9000, "publication.title": "Pay"}``.

        Raises ``PlanError`` with one line for each blank that is left.
        """
        return load_plan(yaml.safe_load(self.text), values)


def plan(
    table: Any,
    questionnaire: str | Path | None = None,
    *,
    records: bool = False,
    tables: Sequence[str] = (),
    means: Sequence[str] = (),
    densities: Sequence[str] = (),
    models: Sequence[str] = (),
    maps: Sequence[str] = (),
    rows: int | None = None,
    alpha: str = "",
) -> FirstPlan:
    """Write the plan that answers the wishes best; people must fill in its blanks.

    Args:
        table: A Parquet or CSV file, a pandas data frame or an Arrow table. Only the names and
            types of its columns are read, no value.
        questionnaire: A CSV file that describes each column from the questionnaire.
        records: Synthetic records of all columns.
        tables: Counts of all combinations, such as ``"health x visits"``.
        means: Means, also of each group, such as ``"income by region"``.
        densities: Columns that get a curve.
        models: Such as ``"visits ~ chronic + age"`` or ``"poisson: visits ~ age"``.
        maps: Densities of two columns, such as ``"lon lat"``.
        rows: The number of records, if the plan should suit it.
        alpha: The cost of a release, such as ``"0.5"``, if the plan should suit it.

    Raises:
        InputError: A wish names a column that the plan cannot have, or no plan can serve it.
    """
    from schemas.first_plan.planner import first_plan
    from schemas.first_plan.questionnaire import read_questionnaire
    from schemas.first_plan.sections import named
    from schemas.first_plan.wishes import Said
    from tasks.explain.analysis import model_error
    from tasks.survey.table_schema import frame_schema, table_schema

    if isinstance(table, str | Path):
        name, source, columns = (
            Path(table).name.partition(".")[0],
            str(table),
            table_schema(str(table)),
        )
    else:
        name, source, columns = "survey", NOWHERE, frame_schema(table)
    said = Said(
        records=records,
        tables=tables,
        means=means,
        densities=densities,
        maps=maps,
        models=models,
    )
    questions = read_questionnaire(Path(questionnaire)) if questionnaire else None
    dataset = named(name) or "survey"
    text = first_plan(dataset, source, columns, said, questions, model_error, rows, alpha)
    return FirstPlan(text)


def explain(plan: PlanLike, ledger: str | Path | None = None) -> Answer:
    """The cost and the expected accuracy of a plan, and what its grant in the ledger has left.

    Opens no data and spends nothing.  ``ledger``: as for ``release``; a missing one is not made.
    """
    from tasks.explain.account import in_the_ledger
    from tasks.explain.explain import explain, explanation

    the_plan = load_plan(plan)
    with _using(ledger):
        asked = in_the_ledger(the_plan)
        return Answer(explain(*asked), explanation(*asked))


def release(
    plan: PlanLike,
    source: Any = None,
    *,
    ledger: str | Path | None = None,
    release_id: str | None = None,
    out: str | Path = "published",
    progress: bool = True,
) -> Bundle:
    """Publish one release of a survey and open its bundle.

    Steps, ledger and guarantee are the same as in ``dprelease run``, without Prefect.

    Args:
        plan: A plan, its document, or its YAML file.
        source: The private table, if the plan names another or none: a path, a pandas, Arrow or
            Polars table, or a DuckDB relation.
        ledger: An SQLite file or a URL; by default DPRELEASE_LEDGER, or a file in dprelease's home.
        release_id: Names the release; the same id never charges or draws twice. Default: the plan's
            name and the time.
        out: Folder under which the bundle appears, as DATASET/RELEASE_ID.
        progress: Show a bar in a notebook and on a terminal.

    Raises:
        InputError: The plan, the survey or the signing key is not valid or cannot be read.
        BudgetError: The dataset has too little budget left. Nothing was charged.
        AuditError: The audit found more privacy loss than is claimed. Nothing was charged.
        LedgerError: The ledger cannot be used, or it has other charges under this release id.
        ApprovalError: A disclosure officer has not approved the release, or has rejected it.
    """
    from flows.course import carry_out
    from tasks.ledger import ledger_if_any
    from tasks.ledger.runs_and_grant import at_its_run
    from tasks.survey.memory import MemoryTable
    from tasks.workplace.job import ReleaseJob
    from tasks.workplace.schedule import due_of, run_id

    the_plan = load_plan(plan)
    path = Path(plan) if isinstance(plan, str | Path) else Path(the_plan.dataset)
    if source is None and the_plan.source == NOWHERE:
        raise InputError("source: the plan names no table; give one, release(plan, source=table)")
    name = release_id or run_id(path, datetime.now(UTC), own=secrets.token_hex(2))
    check_release_id(name)
    with _using(ledger), _shown(the_plan, progress):
        if the_plan.series:
            the_plan = at_its_run(the_plan, ledger_if_any(), name, due_of(path, name))
        if source is not None:
            named = isinstance(source, str | Path)
            private = str(source) if named else MemoryTable(source)
            the_plan = the_plan.model_copy(update={"source": private})
        return open_bundle(carry_out(ReleaseJob(the_plan, name, Path(out))))


def audit(
    plan: PlanLike, *, quick: bool = False, draws: int | None = None, progress: bool = True
) -> Answer:
    """Test a plan's privacy as an attacker would; reads no survey and charges nothing.

    ``facts``: one ``AuditResult`` for each release, then one for all together.

    Raises:
        InputError: The plan is not valid.
        AuditError: A lower bound is above its claim; the error contains the results.
    """
    from flows.course import audit_plan
    from tasks.audit.audit import result_rows
    from tasks.explain.tables import text_table

    the_plan = load_plan(plan)
    with _shown(None, progress):
        results: list[AuditResult] = audit_plan(the_plan, draws, quick)
    return Answer(text_table(result_rows(the_plan, results)), results)


def _shown(plan: Plan | None, wanted: bool) -> AbstractContextManager[None]:
    """Show progress on a terminal or in a notebook, but not in pipes and files."""
    from flows.operation.progress import showing

    return showing(plan, unseen=False) if wanted else nullcontext()


@contextmanager
def _using(ledger: str | Path | None) -> Iterator[None]:
    """Within this context, steps use this ledger."""
    before = os.environ.get("DPRELEASE_LEDGER")
    if ledger is not None:
        url = str(ledger) if "://" in str(ledger) else f"sqlite:///{Path(ledger).absolute()}"
        os.environ["DPRELEASE_LEDGER"] = url
    try:
        yield
    finally:
        os.environ.pop("DPRELEASE_LEDGER", None)
        if before is not None:
            os.environ["DPRELEASE_LEDGER"] = before
