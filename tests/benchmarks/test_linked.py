"""The benchmark of linked tables notices tables that do not fit together."""

import pandas as pd
import pytest

from benchmarks import linked


def test_tables_that_do_not_fit_together_are_noticed():
    units = pd.DataFrame({"number": [1, 2], "size": [2, 1]})
    members = pd.DataFrame({"number": [1, 1, 2], "place": [1, 2, 1]})
    linked.require_whole(units, members)
    for wrong in (members.iloc[:2], members.iloc[1:], members.assign(number=[1, 2, 3])):
        with pytest.raises(SystemExit, match="do not fit"):
            linked.require_whole(units, wrong)
