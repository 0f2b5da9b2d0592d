"""What ``explain`` promises beside what comes: errors of shares, pairs, means and models over draws.

    python -m benchmarks.first_hour
    python -m benchmarks.first_hour fair --alpha 1 --draws 20 --terms

Each table goes the way of a first hour: its questionnaire, wishes, the plan that ``init`` writes, blanks
filled in.  The releases of the plan are drawn ``--draws`` times, without a ledger, and compared with the
table, which is public.  A line for each kind of term, with ``--terms`` for each of them:

    promised    share, pair   records that noise moves to wrong cells, as a share of all
                mean          the standard error; of a group, for its number of records
                model         the privacy error of a coefficient, in its sampling errors
    actual      the root mean square, over draws, of the same distance from the table; of a model, from
                the model that is fitted to the table itself, in that model's standard errors (Huber
                1967).  Coefficients without a published interval are left out
    right       the share of terms with actual / promised from 1/2 to 2
    hidden      terms of what ``explain`` calls not usable, which are not counted: nothing is promised

The constants of ``dpcore.advice`` and ``tasks.explain.analysis`` were chosen with these tables in view:
on tables that nobody saw, expect somewhat less.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from formulaic import model_matrix

from benchmarks import DATA
from dpcore.advice.usable import table_error
from dpcore.arrays import Floats
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.line.privacy_line import perturb
from dpcore.line.statistic import Noisy
from dpcore.releases.base import Release
from dpcore.releases.counts.histogram import Histogram
from dpcore.releases.counts.unit import TableOfCounts
from dpcore.releases.models.model import MeasuredModel
from dpcore.releases.numbers.mean import Mean
from dpcore.releases.numbers.ratio_mean import RatioMean
from dpcore.releases.tables.fitted import FittedTables
from dpcore.sampling.source import SeededSource
from schemas.first_plan.described import ColumnType
from schemas.first_plan.planner import first_plan
from schemas.first_plan.questionnaire import read_questionnaire
from schemas.first_plan.wishes import Said
from schemas.plan import Plan, load_plan
from schemas.survey.supposed import supposed_shares
from tasks.bundle.drawn import DrawnPlan
from tasks.draw import tally_releases
from tasks.explain.analysis import expected_fit, model_error
from tasks.explain.verdicts import verdicts
from tasks.survey.ingest import ingest

EUSILC = """\
column|type|values|lower|upper|unit|missing
db040||Burgenland; Carinthia; Lower Austria; Salzburg; Styria; Tyrol; Upper Austria; Vienna; Vorarlberg
rb090||female; male
age|||-1|99|years
pl030||1; 2; 3; 4; 5; 6; 7||||empty
hsize|||1|9|persons
"""
"""From the documentation of laeken's data ``eusilc``."""

FAIR = """\
column|type|values|lower|upper|levels|unit
rate_marriage|||1|5
age|||||17.5; 22.0; 27.0; 32.0; 37.0; 42.0|years
yrs_married|||||0.5; 2.5; 6.0; 9.0; 13.0; 16.5; 23.0|years
children|||||0.0; 1.0; 2.0; 3.0; 4.0; 5.5
religious|||1|4
educ|||||9; 12; 14; 16; 17; 20
affairs|continuous||0|60||a year
"""
"""From the codebook of Fair (1978), as statsmodels has it."""


@dataclass(frozen=True)
class Case:
    """A public table, its questionnaire (a file, or the text of one) and wishes."""

    table: str
    questions: str
    wishes: Said


CASES = {
    "medexp": Case(
        "first_hour/medexp.csv",
        "first_hour/medexp.questions.csv",
        Said(
            records=True,
            tables=["health x limited"],
            means=["spending", "income", "age by health"],
            models=["limited ~ age + health", "diseases ~ age + sex + income"],
        ),
    ),
    "slid": Case(
        "first_hour/slid.csv",
        "first_hour/slid.questions.csv",
        Said(
            records=True,
            tables=["sex x language"],
            means=["wages", "education", "age by language"],
            models=["wages ~ education + age + sex", "sex ~ education + age"],
        ),
    ),
    "vietnam_health": Case(
        "first_hour/vietnam_health.csv",
        "first_hour/vietnam_health.questions.csv",
        Said(
            records=True,
            tables=["educ x insured"],
            means=["illnesses", "age", "ill_days by sex"],
            models=["illnesses ~ age + sex + insured", "insured ~ age + educ"],
        ),
    ),
    "eusilc": Case(
        "eusilc_households/eusilc.parquet",
        EUSILC,
        Said(
            records=True,
            tables=["db040 x rb090"],
            means=["age by rb090", "hsize"],
            models=["hsize ~ age + rb090", "rb090 ~ age + hsize", "age ~ rb090 + hsize"],
        ),
    ),
    "fair": Case(
        "fair_affairs/fair.parquet",
        FAIR,
        Said(
            records=True,
            tables=["rate_marriage x religious"],
            means=["affairs", "rate_marriage"],
            models=[
                "rate_marriage ~ religious + yrs_married",
                "yrs_married ~ age + children",
                "{affairs > 0} ~ religious + age",
                "{affairs > 0} ~ rate_marriage + yrs_married + educ",
            ],
        ),
    ),
}


@dataclass
class Term:
    """``misses``: the distance from the table in each draw."""

    kind: str
    name: str
    promised: float
    hidden: bool
    misses: list[float] = field(default_factory=list)

    @property
    def actual(self) -> float:
        return float(np.sqrt(np.mean(np.square(self.misses))))

    @property
    def right(self) -> bool:
        return 0.5 <= self.actual / self.promised <= 2


def main() -> None:
    """Print a line for each kind of term of each table, and of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", default=[*CASES], help="default: all")
    parser.add_argument("--alpha", default="2", help="default: 2")
    parser.add_argument("--draws", type=int, default=10, help="default: 10")
    parser.add_argument("--terms", action="store_true", help="a line for each term")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    every = list[Term]()
    for name in options.tables:
        terms = measured(CASES[name], options.alpha, options.draws)
        if options.terms:
            for term in terms:
                verdict = "hidden" if term.hidden else "right" if term.right else "wrong"
                print(
                    f"{name:15}{term.kind:6} {term.name:45}{term.promised:10.3g}{term.actual:10.3g}"
                    f"{term.actual / term.promised:7.2f}  {verdict}"
                )
        report(name, terms)
        every += terms
    report("all", every)


def report(name: str, terms: list[Term]) -> None:
    by_kind = defaultdict[str, list[Term]](list)
    for term in terms:
        by_kind[term.kind].append(term)
    for kind, found in [*by_kind.items(), ("all", terms)]:
        kept = [term for term in found if not term.hidden]
        ratios = np.array([term.actual / term.promised for term in kept])
        middle = f"{np.median(ratios):.2f}" if kept else "-"
        right = f"{np.mean([term.right for term in kept]):.0%}" if kept else "-"
        print(
            f"{name:15}{kind:6} terms {len(kept):3}  right {right:>4}  median ratio {middle:>5}"
            f"  hidden {len(found) - len(kept)}",
            flush=True,
        )


def measured(case: Case, alpha: str, draws: int) -> list[Term]:
    """The terms of a table, with what came in each draw."""
    plan, frame, tallies, drawings = drawn(case, alpha, draws)
    said = {each.name: each.says == "not usable" for each in verdicts(plan)}
    terms: dict[tuple[str, str], Term] = {}
    for noisy in drawings:
        for name, release in plan.built.items():
            for term in of_release(
                plan, release, tallies[name], noisy[name], frame, said.get(name)
            ):
                known = terms.setdefault((name, term.name), term)
                known.misses += term.misses if known is not term else []
        for name, formula, family in models_of(plan):
            for term in of_model(plan, formula, family, noisy, frame, said[name]):
                known = terms.setdefault((name, term.name), term)
                known.misses += term.misses if known is not term else []
    return [term for term in terms.values() if term.misses]


def drawn(
    case: Case, alpha: str, draws: int, rows: int | None = None
) -> tuple[Plan, pd.DataFrame, dict[str, Tally], Iterator[dict[str, Noisy]]]:
    """The plan of a case, its table or a random sample of ``rows`` of it, the tally of each release, and
    draws of all releases."""
    with tempfile.TemporaryDirectory() as folder:
        plan, frame = planned(case, alpha, Path(folder), rows)
        survey = ingest(
            plan.source, plan.read_columns, plan.rows, Path(folder) / "w", plan.adjacency
        )
        tallies = tally_releases(plan, list(plan.built), survey)
    exact = {name: release.statistic(tallies[name]) for name, release in plan.built.items()}
    drawings = (
        {
            name: perturb(exact[name], release.mechanism, release.share, SeededSource(seed))
            for seed, (name, release) in enumerate(plan.built.items(), 1000 * draw)
        }
        for draw in range(draws)
    )
    return plan, frame, tallies, drawings


def planned(
    case: Case, alpha: str, folder: Path, rows: int | None = None
) -> tuple[Plan, pd.DataFrame]:
    """The plan that ``init`` writes, with its blanks filled in, and the table."""
    source = DATA / case.table
    read = pd.read_parquet if source.suffix == ".parquet" else pd.read_csv
    frame: pd.DataFrame = read(source)
    if rows and rows < len(frame):
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
        source = folder / f"part{source.suffix}"
        write = frame.to_parquet if source.suffix == ".parquet" else frame.to_csv
        write(source, index=False)
    questions = DATA / case.questions
    if "\n" in case.questions:
        questions, (first, *rest) = folder / "questions.csv", case.questions.splitlines()
        width = first.count("|")
        lines = (line + "|" * (width - line.count("|")) for line in (first, *rest))
        questions.write_text("\n".join(lines).replace("|", "\t"))
    columns = dict.fromkeys(frame, ColumnType.OPEN)
    said = read_questionnaire(questions)
    text = first_plan("first", str(source), columns, case.wishes, said, model_error)
    document = yaml.safe_load(text)
    document |= {"rows": len(frame), "publication": {"title": "First hour"}}
    for key in ("granted", "requested"):
        asked = document["budget"][key]
        asked |= {"alpha": alpha, "beta": "0" if asked["beta"] == "0" else "1e-6"}
    return load_plan(document), frame


def of_release(
    plan: Plan,
    release: Release,
    tally: Tally,
    noisy: Noisy,
    frame: pd.DataFrame,
    hidden: bool | None,
) -> Iterator[Term]:
    if isinstance(release, Mean | RatioMean):
        yield from of_mean(release, noisy, frame, bool(hidden))
    elif isinstance(release, TableOfCounts):
        yield from of_tables(plan, release, tally, noisy)


def of_mean(
    release: Mean | RatioMean, noisy: Noisy, frame: pd.DataFrame, hidden: bool
) -> Iterator[Term]:
    """Of everybody, or of each group."""
    (table,) = release.publish(noisy).tables
    name, promised = release.grid.name, release.expected_error()[0].value
    by = [axis.name for axis in release.domain.axes if axis.name != name]
    clipped = frame[name].clip(*release.grid.bounds)
    for row, value in enumerate(np.ma.filled(table.columns["noisy_mean"], np.nan)):
        group = {column: table.columns[column][row] for column in by}
        if not np.isfinite(value) or any(np.ma.is_masked(each) for each in group.values()):
            continue
        inside = np.logical_and.reduce([frame[c] == v for c, v in group.items()] or [True])
        of_group = clipped[inside] if by else clipped
        groups = max(len(table.columns["noisy_mean"]), 1)
        size = release.rows / groups / of_group.notna().sum() if by else 1.0
        label = ", ".join([name, *map(str, group.values())])
        yield Term("mean", label, promised * size, hidden, [float(value - of_group.mean())])


def of_tables(plan: Plan, release: TableOfCounts, tally: Tally, noisy: Noisy) -> Iterator[Term]:
    """Of each column and each pair of a release, in the cells that were measured."""
    names, count = release.domain.names, partial(Term, misses=[])
    supposed = supposed_shares(plan.columns, release.domain.axes)
    read = release.as_measured(noisy)
    found, draw, groups = read.release, read.noisy, read.groups
    shape = found.domain.shape
    sets = [
        s for ways in (1, 2) for s in combinations(range(len(names)), ways) if ways <= len(names)
    ]
    if isinstance(found, FittedTables):
        assert draw is not None
        made = found.fit(draw, found.total(draw))
        margins = made.margins(shape, sets)
    elif isinstance(found, Histogram):
        whole = np.asarray(found.publish(noisy).tables[0].columns["count"]).reshape(shape)
        margins = [whole.sum(axis=tuple(a for a in range(len(shape)) if a not in s)) for s in sets]
    else:
        return
    for attributes, margin in zip(sets, margins, strict=True):
        error = table_error(release, [names[a] for a in attributes], supposed)
        if error is None:
            continue
        exact = tally.margin(tuple(names[a] for a in attributes)).reshape(
            [release.domain.shape[a] for a in attributes]
        )
        for place, a in enumerate(attributes):
            if a in groups:
                exact = _merged(exact, place, groups[a], shape[a])
        missed = float(np.abs(margin - exact).sum()) / 2 / release.rows
        kind, label = (
            ("share", "pair")[len(attributes) - 1],
            " x ".join(names[a] for a in attributes),
        )
        yield count(kind, label, error, error > 0.25, misses=[missed])


def _merged(table: Floats, place: int, group: Floats, size: int) -> Floats:
    """A table in which cells of one column are added up by group."""
    found = np.zeros([size if a == place else n for a, n in enumerate(table.shape)])
    np.add.at(np.moveaxis(found, place, 0), group, np.moveaxis(table, place, 0))
    return found


def models_of(plan: Plan) -> list[tuple[str, str, str]]:
    """By name: the formulas and families of models that are measured, or that tables answer."""
    found = [(each.name, each.formula, each.family) for each in plan.analyses]
    releases = plan.built.items()
    return found + [(n, r.formula, r.family) for n, r in releases if isinstance(r, MeasuredModel)]


def of_model(
    plan: Plan,
    formula: str,
    family: str,
    drawn: Mapping[str, Noisy],
    frame: pd.DataFrame,
    hidden: bool,
) -> Iterator[Term]:
    """Of each coefficient but the constant."""
    truth = truly(formula, family, frame)
    expected = expected_fit(plan, formula, family)[1]
    try:
        _, fitted = DrawnPlan(plan, drawn.__getitem__).fit(formula, family)
    except InputError:
        return
    for each in expected.coefficients:
        if each.name in truth and np.isfinite(each.privacy_error):
            own, error = truth[each.name]
            given = np.isfinite(fitted[each.name].privacy_error)
            missed = [(fitted[each.name].estimate - own) / error] if given else []
            label, promised = f"{formula}: {each.name}", each.privacy_error / each.sampling_error
            yield Term("model", label, promised, hidden, missed)


def truly(formula: str, family: str, frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """The model of the table itself and its standard errors, by least squares, repeated for other
    families."""
    named = [column for column in frame if column in formula]
    for column in named:  # sorted as in the plan, so that both leave out the same category
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame = frame.assign(**{column: frame[column].astype(str).where(frame[column].notna())})
    response, terms = model_matrix(formula, frame.dropna(subset=named))
    y, x = np.asarray(response, float)[:, -1], np.asarray(terms, float)
    found: Any = np.zeros(x.shape[1])
    for _ in range(2 if family == "gaussian" else 50):
        mean, slope = x @ found, np.ones(len(y))
        if family == "binomial":
            mean = 1 / (1 + np.exp(-mean))
            slope = mean * (1 - mean)
        inverse, scores = np.linalg.inv((x.T * slope) @ x), x * (y - mean)[:, None]
        found = found + inverse @ scores.sum(axis=0)
    errors = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    return {
        str(name): (float(value), float(error))
        for name, value, error in zip(terms.columns, found, errors, strict=True)
        if name != "Intercept"
    }


if __name__ == "__main__":
    main()
