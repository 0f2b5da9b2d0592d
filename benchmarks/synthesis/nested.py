"""Industries and their groups in records, on the public excerpt of the ACS.

    python -m benchmarks.synthesis.nested --alpha 1

measures all pairs of the 23 columns three times: INDP with the group INDP_CAT that it refines, as it is
and in 32 groups of its codes (``compress``), and the group alone.  For each it prints one JSON line: how
many of the records contradict their own group, and how far their tables of the group and another column
are from the exact ones (total variation), in the mean and at most.

The dictionary of the excerpt does not list the 233 codes, so they are those of the excerpt itself; a
plan takes them from the census' list.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import DATA
from benchmarks.synthesis.recognised import MILLION, drawn
from benchmarks.synthesis.tables import ACS_CATEGORIES, ACS_EDGES, ACS_NULLABLE
from schemas.plan import Plan


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.nested")
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--records", type=int, default=MILLION)
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    survey = pd.read_parquet(DATA / "acs_nist_ma2019" / "ma2019.parquet")
    groups = dict(zip(survey["INDP"].astype(str), survey["INDP_CAT"].astype(str), strict=True))
    for what in ("detail", "compressed", "group"):
        begun = time.process_time()
        plan = Plan.model_validate(planned(len(survey), groups, options.alpha, what))
        records = drawn(plan, survey, [options.records])[options.records]
        group = records["INDP_CAT"].astype(str)
        facts: dict[str, Any] = {"measured": what, "alpha": options.alpha, "records": len(group)}
        if what != "group":
            stated = np.array([groups[code] for code in records["INDP"].tolist()])
            facts["contradictions"] = int((stated != group).sum())
        far = [
            distance(survey, records, name)
            for name in ACS_CATEGORIES
            if name not in ("INDP", "INDP_CAT")
        ]
        facts |= {"mean": round(float(np.mean(far)), 4), "most": round(max(far), 4)}
        print(json.dumps(facts | {"cpu_s": round(time.process_time() - begun)}), flush=True)


def distance(
    survey: pd.DataFrame, records: Mapping[str, NDArray[Any]], name: str, group: str = "INDP_CAT"
) -> float:
    """Of the table of the group and a categorical column, in records and in the survey."""
    made = pd.DataFrame(
        {column: np.ma.filled(records[column].astype(object), None) for column in (group, name)}
    )
    shares = [
        table.astype(str).value_counts(normalize=True) for table in (made, survey[[group, name]])
    ]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def planned(rows: int, groups: dict[str, str], alpha: str, what: str) -> dict[str, Any]:
    """A plan of all pairs of the columns, with INDP for INDP_CAT or with the group alone."""
    columns: dict[str, Any] = {
        name: {"type": "categorical", "categories": [*categories]}
        for name, categories in ACS_CATEGORIES.items()
    }
    for name, edges in ACS_EDGES.items():
        whole = name != "DENSITY"
        columns[name] = {
            "type": "integer" if whole else "continuous",
            "bounds": [edges[0], edges[-1] - whole],
            "outside": "clamp",
            "nullable": name in ACS_NULLABLE,
        }
    detail = {"type": "categorical", "categories": sorted(groups), "refines": {"INDP_CAT": groups}}
    budget = {"alpha": alpha, "beta": "1e-9"}
    release = {
        "name": "everyone",
        "kind": "microdata-margins",
        "columns": [name for name in columns if name != "INDP_CAT"]
        + ["INDP_CAT" if what == "group" else "INDP"],
        "bins": {name: [*edges] for name, edges in ACS_EDGES.items()},
    }
    if what == "compressed":
        release["compress"] = {"keep": 32, "share": "1/10"}
    return {
        "dprelease": 1,
        "dataset": "acs",
        "source": "t.parquet",
        "rows": rows,
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "columns": columns | {"INDP": detail},
        "budget": {"granted": budget, "requested": budget},
        "releases": [release],
        "synthesis": [{"name": "people", "from": "everyone", "rows": rows}],
        "publication": {"title": "ACS"},
    }


if __name__ == "__main__":
    main()
