"""Whether industries contradict their own group, on the public excerpt of the ACS, in a million records.

    python -m benchmarks.synthesis.nested --alpha 1

measures all pairs of the 23 columns, INDP in place of the group INDP_CAT that it refines, in groups of
32 (``compress``), and prints one JSON line.  The dictionary of the excerpt does not list the 233 codes,
so they are those of the excerpt itself; a plan takes them from the census' list.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import DATA
from benchmarks.synthesis.recognised import MILLION, drawn
from benchmarks.synthesis.tables import ACS_CATEGORIES, ACS_EDGES, ACS_NULLABLE
from schemas.plan import Plan


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.nested")
    parser.add_argument("--alpha", default="1")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    survey = pd.read_parquet(DATA / "acs_nist_ma2019" / "ma2019.parquet")
    groups = dict(zip(survey["INDP"].astype(str), survey["INDP_CAT"].astype(str), strict=True))
    begun = time.process_time()
    made = drawn(
        Plan.model_validate(planned(len(survey), groups, options.alpha)), survey, [MILLION]
    )
    records = made[MILLION]
    of_detail = np.array([groups[code] for code in records["INDP"].tolist()])
    facts = {
        "alpha": options.alpha,
        "records": len(of_detail),
        "codes": len(np.unique(records["INDP"])),
        "contradictions": int((of_detail != records["INDP_CAT"]).sum()),
        "cpu_s": round(time.process_time() - begun),
    }
    print(json.dumps(facts))


def planned(rows: int, groups: dict[str, str], alpha: str) -> dict[str, Any]:
    """A plan of all pairs of the columns, with INDP for INDP_CAT."""
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
    return {
        "dprelease": 1,
        "dataset": "acs",
        "source": "t.parquet",
        "rows": rows,
        "privacy_unit": "row",
        "neighbours": "replace-one",
        "columns": columns | {"INDP": detail},
        "budget": {"granted": budget, "requested": budget},
        "releases": [
            {
                "name": "everyone",
                "kind": "microdata-margins",
                "columns": [*(name for name in columns if name != "INDP_CAT"), "INDP"],
                "bins": {name: [*edges] for name, edges in ACS_EDGES.items()},
                "compress": {"keep": 32, "share": "1/10"},
            }
        ],
        "synthesis": [{"name": "people", "from": "everyone", "rows": rows}],
        "publication": {"title": "ACS"},
    }


if __name__ == "__main__":
    main()
