"""Arguments and options that several commands share, and how a command answers."""

import json
import logging
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from dpcore.errors import InputError, PlanError
from dpcore.suggestion import suggestion

if TYPE_CHECKING:
    from schemas.first_plan.wishes import Purpose, Said
    from schemas.plan import Plan
    from tasks.ledger import Ledger

PlanFile = Annotated[Path, Parameter(help="the release plan, a YAML file")]
Changes = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        help="replace a value of the plan, such as source=PATH or rows=1000; may be repeated",
    ),
]
Out = Annotated[
    Path | None,
    Parameter(metavar="DIR", help="the folder of bundles; default: DPRELEASE_OUT, or published"),
]
Plans = Annotated[
    Path | None,
    Parameter(metavar="DIR", help="the folder of plans; default: DPRELEASE_PLANS, or plans"),
]
Dataset = Annotated[str, Parameter(help="the dataset's name in the plan")]
Who = Annotated[str, Parameter(metavar="WHO", help="who decided")]
Why = Annotated[str, Parameter(metavar="WHY", help="the reason")]
AnyDataset = Annotated[str | None, Parameter(name="DATASET", help="default: all")]
Bundle = Annotated[Path, Parameter(help="the folder of a release")]


def _wish(option: str, what: str, example: str) -> Parameter:
    words = f"wish: {what}, such as {example}; may be repeated"
    return Parameter(name=f"--{option}", metavar="WISH", negative="", help=words)


Texts = tuple[str, ...]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The wanted statistics of a table: options that several commands share."""

    records: Annotated[
        bool,
        Parameter(name="--records", negative="", help="wish: synthetic records of all columns"),
    ] = False
    tables: Annotated[Texts, _wish("table", "counts of all combinations", '"health x visits"')] = ()
    means: Annotated[
        Texts,
        _wish("mean", "a mean or a share, of all or by group", '"income by region" or insured'),
    ] = ()
    densities: Annotated[Texts, _wish("density", "a curve", "income")] = ()
    maps: Annotated[Texts, _wish("map", "a density of two columns", '"lon lat"')] = ()
    models: Annotated[
        Texts, _wish("model", "a model", '"visits ~ chronic + age" or "poisson: visits ~ age"')
    ] = ()

    def said(self, purpose: "Purpose | None" = None) -> "Said":
        """The wishes as the planner reads them."""
        from schemas.first_plan.wishes import Said

        return Said(purpose, **asdict(self))


NO_WISHES = Wishes()


def file_option(words: str, metavar: str = "FILE") -> Parameter:
    """An option for a file or a folder."""
    return Parameter(metavar=metavar, help=words)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Progress:
    """The amount of progress messages on standard error."""

    quiet: Annotated[
        bool, Parameter(name=("--quiet", "-q"), help="print only the answer and errors")
    ] = False
    verbose: Annotated[
        bool,
        Parameter(name=("--verbose", "-v"), help="also print the start and progress of each step"),
    ] = False

    def shown(self, plan: "Plan | None" = None) -> AbstractContextManager[object]:
        """Within this context, print the progress of steps; with a ``plan``, as a bar on a terminal."""
        from flows.operation.progress import showing

        if self.quiet:
            return showing(None, logging.WARNING)
        if self.verbose:
            return showing(None, logging.DEBUG)
        return showing(plan, logging.INFO)

    def note(self, words: str) -> None:
        """Print a note on standard error."""
        if not self.quiet:
            print(words, file=sys.stderr)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output(Progress):
    """The options of ``Progress``, and the format of the answer on standard output."""

    as_json: Annotated[bool, Parameter(name="--json", help="print the answer as JSON")] = False

    def answer(self, text: str, facts: Any) -> None:
        """Print the answer: ``text``, or the ``facts`` as JSON."""
        print(json.dumps(facts, indent=2, allow_nan=False, default=str) if self.as_json else text)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerOption:
    """The ledger that a command uses; ``main`` puts it into the environment before the command runs."""

    ledger: Annotated[
        str | None,
        Parameter(
            name="--ledger",
            metavar="URL",
            help="sqlite:///FILE or postgresql://USER@HOST/DATABASE; default: DPRELEASE_LEDGER, or a"
            " file in dprelease's home",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerProgress(Progress, LedgerOption):
    """The options of ``Progress``, and the ledger."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LedgerOutput(Output, LedgerOption):
    """The options of ``Output``, and the ledger."""


ANSWER = Output()
DEFAULT_LEDGER, LINES, LEDGER_ANSWER = LedgerOption(), LedgerProgress(), LedgerOutput()


def read_changes(changes: tuple[str, ...]) -> dict[str, Any]:
    """The values of ``--set`` by their dotted keys in the plan."""
    from schemas.document import read_value

    values: dict[str, Any] = {}
    for setting in changes:
        place, separator, value = setting.partition("=")
        if not separator or not place:
            raise InputError(f"--set {setting}: write KEY=VALUE, such as source=survey.parquet")
        # A path is text, also where YAML would read a number.
        values[place] = value if place == "source" else read_value(value)
    return values


def write_file(option: str, path: Path, text: str) -> None:
    """Write the file that an option names; raises ``InputError`` if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written ({error.strerror})") from None


def valid_plans(folder: Path | None, output: Output) -> "dict[Path, Plan]":
    """The plans of the named or the default folder. Invalid plans are reported."""
    from schemas.plan import load_plan
    from tasks.workplace.plans import plans_in, usual_plans

    plans = {}
    for path in (plans_in(folder) if folder else usual_plans()).values():
        try:
            plans[path] = load_plan(path)
        except PlanError as error:
            output.note(f"skipped: {error}")
    return plans


def existing_ledger() -> "Ledger":
    """The ledger; raises ``InputError`` if there is none."""
    from tasks.ledger import Ledger
    from tasks.workplace.home import ledger_exists, ledger_url

    if not ledger_exists():
        raise InputError(
            "there is no ledger yet: `dprelease ledger grant` makes one; or name another with --ledger"
            " or DPRELEASE_LEDGER"
        )
    return Ledger(ledger_url(), create=False)


def require_dataset(ledger: "Ledger", dataset: str | None) -> None:
    """Raise ``InputError`` if the ledger lacks this dataset."""
    if dataset and dataset not in ledger.datasets():
        meant = suggestion(dataset, ledger.datasets())
        raise InputError(f"the ledger has no dataset {dataset!r}{meant}")
