"""Texts that try to be markup, links or scripts, and a plan that has one wherever it takes text."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from schemas.plan import load_plan
from tasks.ledger import Ledger
from tests.bare import PLAN

HOSTILE = [
    "![seen](http://evil0.example/x.png)",
    "<img src=http://evil1.example/x.png onerror=window.evil=1>",
    "<script>window.evil=2</script> </script> <b>evil2</b>",
    "[press](javascript:window.evil=3) <javascript:window.evil3=1>",
    "<a href=http://evil4.example>here</a> <svg onload=window.evil=4>",
    "http://evil5.example www.evil5.example me@evil5.example",
    "a | **evil6** | `evil6` | ~~evil6~~ | _evil6_ |",
    "``` # evil7 ---",
    "{{ evil8 }} ${evil8} {requester} %(evil8)s &lt;b&gt;",
    "long evil9 " + "x" * 150,
    "{% raw %} </textarea></title></style> evil10 <!-- ",
    "[evil11]: http://evil11.example [evil11][evil11] > - * +",
    ":smile: #1 @evil12 [ ] [x] $$evil12$$ \\(evil12\\)",
]
COLUMN = "www.evil20.example _evil20_"
IN_FILE_NAMES = "www-evil20-example-_evil20_"


def hostile_plan() -> dict[str, Any]:
    """The small plan of other tests, with a hostile text wherever it takes text."""
    document: dict[str, Any] = yaml.safe_load(PLAN)
    categories = ["F", *HOSTILE[:4]]
    document |= {"dataset": "hostile", "source": "hostile.parquet"}
    document["columns"] = {
        COLUMN: {
            "type": "categorical",
            "categories": categories,
            "labels": {category: HOSTILE[4] + f" {k}" for k, category in enumerate(categories)},
            "label": HOSTILE[5],
            "description": HOSTILE[6],
        },
        "age": {
            "type": "integer",
            "bounds": [18, 89],
            "unit": HOSTILE[1],
            "label": HOSTILE[7],
            "description": HOSTILE[0],
        },
    }
    people, sexes = document["releases"]
    document["releases"] = [
        people | {"columns": [COLUMN, "age"], "title": HOSTILE[1]},
        sexes | {"columns": [COLUMN, "age"], "title": HOSTILE[11]},
    ]
    document["synthesis"][0]["title"] = HOSTILE[2]
    document["publication"] = {
        "title": HOSTILE[0],
        "description": "\n\n".join(HOSTILE),
        "approval": True,
        **{
            field: HOSTILE[k]
            for k, field in enumerate(
                ("publisher", "contact", "licence", "citation", "region", "intended_use"), start=3
            )
        },
    }
    return document


def put_hostile(folder: Path) -> None:
    """Add the plan, its survey and its grant to a server's folder; both releases may be requested."""
    document = hostile_plan()
    opened = [release["name"] for release in document["releases"]]
    document["operation"] = {"requests": {"releases": opened, "part": 1}}
    budget = load_plan(document | {"source": "hostile.parquet"}).budget
    granted = budget.granted.budget, "the board", "a test", budget.composition
    Ledger(f"sqlite:///{folder}/ledger.sqlite").grant(document["dataset"], *granted)
    (folder / "plans" / "hostile.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    categories = document["columns"][COLUMN]["categories"]
    survey = pd.DataFrame({COLUMN: (categories * 8)[:40], "age": range(20, 60)})
    survey.to_parquet(folder / "plans" / "hostile.parquet")
