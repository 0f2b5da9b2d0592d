"""The pages of the kinds of release: the example on each page runs, on one made-up survey, and its
pictures are those of the report of that release."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

import dprelease
from dpcore.audit import AuditResult, short_audit
from schemas.plan import Plan
from tasks.report.page import ENVIRONMENT
from tasks.report.parts import Source
from tasks.report.release import ReportPart, release_part

HERE = Path(__file__).parent
OF_PAPERS = HERE.parent / "papers"
ROWS = 20_000
FIRST_ROWS = 8
DISTRICTS = {"north": ("n1", "n2"), "east": ("e1",), "south": ("s1", "s2"), "west": ("w1",)}
TRADES = [
    "shop",
    "school",
    "office",
    "clinic",
    "building",
    "transport",
    "farm",
    "cook",
    "law",
    "sea",
]

TIMES = range(0, 24, 3)

COLUMNS: dict[str, Any] = {
    "region": {"type": "categorical", "categories": list(DISTRICTS)},
    "district": {"type": "categorical", "categories": [d for ds in DISTRICTS.values() for d in ds]},
    "sex": {"type": "categorical", "categories": ["female", "male"]},
    "age": {"type": "integer", "bounds": [18, 90], "unit": "years"},
    "works": {"type": "categorical", "categories": ["no", "yes"], "description": "Works for pay"},
    "hours": {"type": "integer", "bounds": [0, 80], "description": "Hours of work a week"},
    "wage": {"type": "continuous", "bounds": [0, 100], "unit": "dollars an hour"},
    "trade": {"type": "categorical", "categories": "open"},
    "savings": {"type": "continuous", "bounds": "open", "unit": "dollars"},
    **{f"h{time:02}": {"type": "continuous", "bounds": [0, 3], "unit": "kW"} for time in TIMES},
}

CURVES = {"load": {"columns": [f"h{time:02}" for time in TIMES], "time": [*TIMES]}}


def examples() -> dict[str, dict[str, Any]]:
    """The release on each page, by its kind."""
    pages = [*(HERE / "pages" / "kinds").glob("*.md"), *OF_PAPERS.glob("*/*.md")]
    return {
        page.stem: yaml.safe_load(page.read_text().split("```yaml\n")[1].split("```")[0])[0]
        for page in sorted(pages, key=lambda page: page.stem)
    }


def plan() -> Plan:
    """All examples together, each at alpha 1 and beta 1e-6."""
    releases = list(examples().values())
    budget = {"alpha": str(len(releases)), "beta": f"{len(releases)}e-6", "gamma": "0"}
    return dprelease.load_plan(
        {
            "dprelease": 1,
            "dataset": "made-up-people",
            "rows": ROWS,
            "privacy_unit": "row",
            "neighbours": "replace-one",
            "budget": {"granted": budget, "requested": budget},
            "columns": COLUMNS,
            "curves": CURVES,
            "releases": releases,
            "synthesis": [{"name": "people", "from": "everyone", "rows": ROWS}],
            "publication": {"title": "Made-up people", "replicates": 40},
        }
    )


def people() -> pd.DataFrame:
    """20,000 made-up people: the older work less, and wages are skew."""
    random = np.random.default_rng(1)
    district = random.choice(
        COLUMNS["district"]["categories"], ROWS, p=[0.3, 0.1, 0.2, 0.2, 0.05, 0.15]
    )
    region = pd.Series(district).map({d: r for r, ds in DISTRICTS.items() for d in ds})
    age = np.where(
        random.random(ROWS) < 0.6, random.normal(38, 10, ROWS), random.normal(68, 9, ROWS)
    )
    age = np.clip(age.round(), 18, 90).astype(int)
    male = random.random(ROWS) < 0.5
    works = random.random(ROWS) < np.where(age < 62, 0.75 + 0.1 * male, 0.15)
    hours = (
        np.where(works, np.clip(random.normal(33 + 7 * male, 9, ROWS), 1, 80), 0)
        .round()
        .astype(int)
    )
    growth = 1.6 + 0.5 * np.sin((age - 18) / 72 * np.pi) + 0.1 * male + 0.1 * (region == "north")
    wage = np.clip(np.exp(growth + random.normal(0.6, 0.5, ROWS)), 0, 100)
    return pd.DataFrame(
        {
            "region": region,
            "district": district,
            "sex": np.where(male, "male", "female"),
            "age": age,
            "works": np.where(works, "yes", "no"),
            "hours": hours,
            "wage": wage,
            "savings": np.exp(random.normal(9, 1.5, ROWS)),
            "trade": random.choice(TRADES, ROWS, p=np.arange(10, 0, -1) / 55),
            **loads(works),
        }
    )


def loads(works: NDArray[np.bool_]) -> dict[str, Any]:
    """Electric power at home through a day: those who work are out at noon."""
    random, found = np.random.default_rng(2), {}
    for time, name in zip(TIMES, CURVES["load"]["columns"], strict=True):
        evening = np.exp(-((time - 19) ** 2) / 15)
        noon = 0.6 * ~works * np.exp(-((time - 13) ** 2) / 12)
        found[name] = np.clip(0.4 + evening + noon + random.normal(0, 0.2, len(works)), 0, 3)
    return found


@cache
def parts() -> dict[str, ReportPart]:
    """What the report shows of each example, by its kind.

    Only the first is audited: audits take longer than all else, and no page shows anything of them.
    """

    def audit_first(plan: Plan) -> list[AuditResult]:
        return short_audit([next(iter(plan.built.values()))])

    with TemporaryDirectory() as folder, patch("flows.course.audit_shortly", audit_first):
        bundle = dprelease.release(
            plan(), people(), ledger=Path(folder) / "ledger.sqlite", out=folder, progress=False
        )
        read = bundle.reader
        sources = [Source(read.plan, each, read.path) for each in read.manifest.releases]
        return dict(zip(examples(), map(release_part, sources), strict=True))


def style() -> str:
    """The report's style, for what is shown of it alone."""
    source = ENVIRONMENT.get_template("style.css").render()
    return f".figures {{ {source.replace(':root', '&')} }}"


def illustrated(page: str, kind: str) -> str:
    """A page, with the first picture of its example behind the example, or else rows of a table."""
    drawn = parts()[kind].drawn
    figures = [each if each.needed else replace(each, table=None) for each in drawn.figures[:1]]
    template = ENVIRONMENT.from_string(
        '{% import "parts.html" as parts %}'
        "{% for figure in figures %}{{ parts.chart(figure) }}{% endfor %}"
        "{% for table in tables %}{{ parts.numbers(table) }}{% endfor %}"
    )
    tables = [replace(each, rows=each.rows[:FIRST_ROWS]) for each in drawn.tables[:1]]
    shown = template.render(figures=figures, tables=[] if figures else tables)
    example, end, rest = page.partition("\n```\n")
    return f'{example}{end}\n<div class="figures">{shown}</div>\n{rest}'
