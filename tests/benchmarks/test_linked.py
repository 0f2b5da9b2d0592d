"""The benchmark of linked tables sees records that are near, and tables that do not fit together."""

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks import linked
from schemas.plan import Plan


@pytest.fixture
def stays(tmp_path) -> Plan:
    document = yaml.safe_load(linked.STAYS_PLAN)
    document["budget"]["requested"]["alpha"] = "50"
    source = tmp_path / "stays.parquet"
    linked.made_up_stays().to_parquet(source)
    return Plan.model_validate(document | {"source": str(source)})


@pytest.mark.slow
def test_with_a_large_budget_pairs_of_members_are_those_of_the_real_table(stays, tmp_path):
    real = linked._coded(*linked._real_tables(stays), stays)
    (tables,) = linked.synthetic_tables(stays, 1, tmp_path / "work")
    made = linked._coded(*tables, stays)
    weights = np.ones(real.number)
    for pair in linked.STAYS[:5]:
        far = np.abs(real.table(*pair, weights) - made.table(*pair, weights)).sum() / 2
        assert far < 0.02
        mixed = real.table(*pair, weights).reshape(real.cells[pair[0][0]], -1)
        apart = np.outer(mixed.sum(axis=1), mixed.sum(axis=0)) - mixed
        if pair[0][0] != "month":
            assert far < np.abs(apart).sum() / 8  # members are not independent


def test_tables_that_do_not_fit_together_are_noticed():
    units = pd.DataFrame({"number": [1, 2], "size": [2, 1]})
    members = pd.DataFrame({"number": [1, 1, 2], "place": [1, 2, 1]})
    linked.require_whole(units, members)
    for wrong in (members.iloc[:2], members.iloc[1:], members.assign(number=[1, 2, 3])):
        with pytest.raises(SystemExit, match="do not fit"):
            linked.require_whole(units, wrong)
