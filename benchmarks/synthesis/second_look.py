"""A second look at synthetic records: what gives them away, and what a model trained on them loses.

    python -m benchmarks.synthesis.second_look --dataset acs_ma --alpha 1 --json

publishes records as a first plan does (``dprelease.plan(table, questionnaire, records=True)``, with the
pairs of columns that are ``EQUAL`` and ``RULES`` of a codebook; add-remove, beta 1e-9), and prints

    auc           of boosted trees that tell records from rows, on those held out (0.5: they cannot)
    loss          what boosted trees that predict a target lose in AUC when trained on records instead
                  of rows, in points, on average; ``loss_of``: by target
    tv2, tv3      mean total variation of all tables of two and three columns, coded as in ``tables``
    absurd        share of records that contradict themselves, and of rows (``absurd_rows``); null where
                  the codes of a table have no meaning
    cpu_seconds   from the tally to the records

``--records FILE`` scores somebody else's records instead (CSV or Parquet, with the columns and codes of
the table); ``--show 5`` prints five rows and five records, for human eyes.

``acs_ma`` is the whole table of NIST but for codes of industries that no dictionary lists, as its
codebook describes it; ``adult`` and ``nltcs`` are the coded tables of other implementations.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

import dprelease
from benchmarks import DATA
from benchmarks.synthesis.recognised import drawn
from benchmarks.synthesis.tables import ACS_CATEGORIES, adult_coded, coded_acs, nltcs, plain
from dpcore.domain.axes import Bins, Categories
from dpcore.domain.domain import Domain
from dpcore.estimates.distances import margin_errors
from schemas.plan import Plan

HEADER = "column,type,values,lower,upper,step,missing,special,universe,levels"
ACS_NUMBERS = (
    "AGEP,,,0,99,,,,,",
    "NOC,,,0,19,,,,HOUSING_TYPE = 1,",
    "NPF,,,2,20,,empty,,HOUSING_TYPE = 1,",
    "DENSITY,,,16.3,52864.7,0.1,,,,",
    "PINCP,,,-9000,1341000,,,,AGEP >= 15,",
    "POVPIP,,,0,501,,empty,501,,",
    "PWGTP,,,1,9999,,,,,",
    "WGTP,,,1,9999,,0=not asked,,HOUSING_TYPE = 1,",
)
ACS_UNIVERSES = {
    "MSP": "AGEP >= 15",
    "OWN_RENT": "HOUSING_TYPE = 1",
    "INDP_CAT": "AGEP >= 16",
    "EDU": "AGEP >= 3",
    "PINCP_DECILE": "AGEP >= 15",
    "DVET": "AGEP >= 17",
    "DREM": "AGEP >= 5",
    "DPHY": "AGEP >= 5",
}
"""What the codebook says of the columns of numbers, and who was asked the other questions."""

NOT_ASKED = {"OWN_RENT": "0", "WGTP": 0} | dict.fromkeys(
    ("MSP", "INDP_CAT", "EDU", "PINCP_DECILE", "DVET", "DREM", "DPHY"), "N"
)
"""By column of ACS, the code of who was not asked."""

ORDERED = ("EDU", "PINCP_DECILE")
"""Columns whose categories are in order."""

NO_ANSWER = ("INDP_CAT", "DVET")
"""Columns that are missing too for some who were asked: they did not work, or did not serve."""

RULES = {
    "acs_ma": [
        {"if": {"AGEP": {"below": 18}}, "then": {"EDU": [*range(1, 10), None]}},
        "NPF >= NOC + 1",
    ]
}
"""By dataset, what else is known: degrees need years, and own children belong to a family."""

EQUAL = {"acs_ma": [["PWGTP", "WGTP"]]}
"""By dataset, the pairs of columns that are often equal: a householder has the household's weight."""

RICH = "income over 50K"

Target = Callable[[pd.DataFrame], NDArray[np.bool_]]
TARGETS: dict[str, dict[str, tuple[Target, tuple[str, ...]]]] = {
    "acs_ma": {
        "top incomes": (
            lambda t: t["PINCP_DECILE"].isin(["8", "9"]).to_numpy(),
            ("PINCP", "PINCP_DECILE"),
        ),
        "rents": (lambda t: (t["OWN_RENT"] == "2").to_numpy(), ("OWN_RENT",)),
        "walks badly": (lambda t: (t["DPHY"] == "1").to_numpy(), ("DPHY",)),
        "married": (lambda t: (t["MSP"] == "1").to_numpy(), ("MSP",)),
    },
    "adult": {"income": (lambda t: (t[RICH] == 1).to_numpy(), (RICH,))},
    "nltcs": {},
}  # fmt: skip
"""By dataset and name: what is predicted, and the columns that would tell it."""


def acs_absurd(t: pd.DataFrame) -> NDArray[np.bool_]:
    """(rows,) whether a record holds one of ten absurdities of its codebook."""
    age, income = t["AGEP"], t["PINCP"]
    absurd = [
        (age < 15) != income.isna(),
        (t["PINCP_DECILE"] == "N") != income.isna(),
        (age < 15) & (t["MSP"] != "N"),
        (age >= 15) & (t["MSP"] == "N"),
        (age < 3) != (t["EDU"] == "N"),
        (age < 18) & t["EDU"].isin(["10", "11", "12"]),
        (age < 16) & (t["INDP_CAT"] != "N"),
        (age < 17) & (t["DVET"] != "N"),
        (t["HOUSING_TYPE"] == "1") != (t["OWN_RENT"] != "0"),
        t["NOC"].fillna(0) >= t["NPF"].fillna(99),
    ]
    return np.asarray(np.any([each.fillna(False).to_numpy(bool) for each in absurd], axis=0))


def table_of(name: str, folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """A table, and the lines of its questionnaire."""
    if name == "acs_ma":
        frame = pd.read_parquet(folder / "acs_nist_ma2019" / "ma2019.parquet").drop(columns="INDP")
        return frame, [*map(_of_categories, ACS_CATEGORIES), *ACS_NUMBERS]
    domain, codes = (adult_coded if name == "adult" else nltcs)(folder)
    lines = []
    for axis in domain.axes:
        if isinstance(axis, Categories):
            lines.append(f"{plain(axis.name)},,{'; '.join(map(str, axis.categories))},,,,,,,")
        else:
            lines.append(f"{plain(axis.name)},,,0,{axis.size - 1},,,,,")
    return pd.DataFrame(codes, columns=[plain(name) for name in domain.names]), lines


def _of_categories(name: str) -> str:
    """A line of the questionnaire of ACS."""
    values = "; ".join(code for code in ACS_CATEGORIES[name] if code != NOT_ASKED.get(name))
    code = NOT_ASKED.get(name, "")
    missing = code if name in NO_ANSWER or not code else f"{code}=not asked"
    universe = ACS_UNIVERSES.get(name, "")
    if name in ORDERED:
        return f"{name},integer,,,,,{missing},,{universe},{values}"
    return f"{name},,{values},,,,{missing},,{universe},"


def coded(name: str, table: pd.DataFrame, folder: Path) -> tuple[Domain, NDArray[np.int64]]:
    """A table in the cells of its coding."""
    if name == "acs_ma":
        return coded_acs(table)
    domain, _ = (adult_coded if name == "adult" else nltcs)(folder)
    assert all(isinstance(axis, Bins | Categories) for axis in domain.axes)
    return domain, table.to_numpy(np.int64)


def planned(name: str, table: pd.DataFrame, lines: list[str], alpha: str) -> Plan:
    """The plan that is proposed, with its blanks filled in."""
    with TemporaryDirectory() as folder:
        questionnaire = Path(folder) / "questions.csv"
        questionnaire.write_text("\n".join([HEADER, *lines]) + "\n")
        text = str(dprelease.plan(table, questionnaire, records=True))
    text = re.sub(r"(?m)^rows: FILL-IN", f"rows: {len(table)}", text)
    text = re.sub(r"title: FILL-IN", "title: Second look", text)
    text = re.sub(r"(?m)^neighbours: .*", "neighbours: add-remove", text)
    document = yaml.safe_load(text)
    asked = {"alpha": alpha, "beta": "1e-9"}
    document["budget"] |= {"granted": asked, "requested": asked}
    records = document["releases"][0]
    if name in EQUAL:
        records["often_equal"] = EQUAL[name]
    if name in RULES:
        records["rules"] = [*records["rules"], *RULES[name]]
    return Plan.model_validate(document | {"dataset": name.replace("_", "-")})


def ours(
    name: str, table: pd.DataFrame, lines: list[str], alpha: str
) -> tuple[pd.DataFrame, float]:
    """Records of one draw, and how many seconds they took."""
    plan = planned(name, table, lines, alpha)
    started = time.process_time()
    made = drawn(plan, table, [len(table)])[len(table)]
    return as_frame(made, table), round(time.process_time() - started, 1)


def theirs(file: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Somebody else's records."""
    texts = {name: str for name in table if table[name].dtype.kind not in "iuf"}
    read = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file, dtype=texts)
    if lacking := [name for name in table if name not in read]:
        raise ValueError(f"{file} has no column {', '.join(lacking)}")
    return as_frame(
        {
            name: np.ma.masked_array(read[name].to_numpy(object), read[name].isna().to_numpy())
            for name in table
        },
        table,
    )


def looked_at(
    name: str, table: pd.DataFrame, records: pd.DataFrame, folder: Path
) -> dict[str, Any]:
    """All that is measured of records."""
    rows, of_records = coded(name, table, folder), coded(name, records, folder)
    strange = (of_records[1] < 0) | (of_records[1] >= rows[0].shape)
    if strange.any():
        where = ", ".join(table.columns[strange.any(axis=0)])
        raise ValueError(f"some records have codes that the table does not know: {where}")
    loss = {what: lost(*how, table, records) for what, how in TARGETS[name].items()}
    absurd = acs_absurd if name == "acs_ma" else None
    return {
        "auc": round(told_apart(table, records), 4),
        "loss": round(float(np.mean([*loss.values()])), 2) if loss else None,
        "loss_of": {what: round(points, 2) for what, points in loss.items()},
        **{
            f"tv{ways}": round(margin_errors(rows[1], of_records[1], rows[0].shape, ways).mean, 5)
            for ways in (2, 3)
        },
        "absurd": round(float(absurd(records).mean()), 4) if absurd else None,
        "absurd_rows": round(float(absurd(table).mean()), 4) if absurd else None,
    }


def as_frame(columns: Mapping[str, NDArray[Any]], table: pd.DataFrame) -> pd.DataFrame:
    """Records with the columns and types of the table."""
    found = {}
    for name in table:
        values, missing = (part(columns[name]) for part in (np.ma.getdata, np.ma.getmaskarray))
        if table[name].dtype.kind not in "iuf":
            found[name] = pd.Series(values).astype(str).mask(missing)
        else:
            found[name] = pd.to_numeric(pd.Series(values).mask(missing)).astype("Float64")
    return pd.DataFrame(found)


def numbers(table: pd.DataFrame) -> NDArray[np.float64]:
    """(rows, columns) numbers for trees: texts by their order, which is that of their codes."""
    return np.column_stack(
        [
            pd.to_numeric(table[name].replace("N", "-1"), errors="coerce").astype("Float64").to_numpy(
                np.float64, na_value=np.nan
            )
            if table[name].dtype.kind in "iuf" or name != "PUMA"
            else table[name].astype("category").cat.codes
            for name in table
        ]
    )  # fmt: skip


def told_apart(table: pd.DataFrame, records: pd.DataFrame) -> float:
    """AUC of trees that learn on two thirds of both, three times."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import cross_val_score

    both = np.concatenate([numbers(table), numbers(records)])
    side = np.repeat([0, 1], [len(table), len(records)])
    trees = HistGradientBoostingClassifier(random_state=0)
    return float(cross_val_score(trees, both, side, cv=_folds(), scoring="roc_auc").mean())


def lost(
    target: Target, telling: tuple[str, ...], table: pd.DataFrame, records: pd.DataFrame
) -> float:
    """In points of AUC: trees trained on other rows, and trees trained on records, both on rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    x, y = numbers(table.drop(columns=list(telling))), target(table)
    trees = HistGradientBoostingClassifier(random_state=0)
    own = cross_val_predict(trees, x, y, cv=_folds(), method="predict_proba")[:, 1]
    trees.fit(numbers(records.drop(columns=list(telling))), target(records))
    theirs = trees.predict_proba(x)[:, 1]
    return 100 * float(roc_auc_score(y, own) - roc_auc_score(y, theirs))


def _folds() -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(3, shuffle=True, random_state=0)


def main() -> None:
    """Print what one draw of a dataset's records looks like."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis.second_look")
    parser.add_argument("--dataset", choices=TARGETS, required=True)
    parser.add_argument("--alpha", default="1", help="of our records; default: 1")
    parser.add_argument("--records", type=Path, metavar="FILE", help="score these instead")
    parser.add_argument("--show", type=int, metavar="N", help="print N rows and N records too")
    parser.add_argument("--json", action="store_true", help="one line")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA}: not found; set DPRELEASE_TEST_DATA to the folder of the test tables")
    name = options.dataset
    table, lines = table_of(name, DATA)
    if options.records:
        alpha, seconds, records = None, None, theirs(options.records, table)
    else:
        alpha = float(options.alpha)
        records, seconds = ours(name, table, lines, options.alpha)
    records = records.fillna(NOT_ASKED if name == "acs_ma" else {})
    for each in (table, records) if options.show else ():
        print(each.sample(options.show).to_string(index=False))
    facts = {"dataset": name, "alpha": alpha} | looked_at(name, table, records, DATA)
    found = facts | {"cpu_seconds": seconds}
    print(json.dumps(found, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
