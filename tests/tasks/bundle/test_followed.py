"""Records of a bundle say what its other tables say of the same columns."""

import numpy as np
import pandas as pd
import pytest

import dprelease
from tests.bare import leave_out_audits
from tests.shortest import document

ROWS = 6000


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    generator = np.random.default_rng(1)
    health = generator.choice(["good", "fair", "poor"], ROWS, p=[0.6, 0.3, 0.1])
    mean = pd.Series(health).map({"good": 1.0, "fair": 4.0, "poor": 12.0}).to_numpy()
    visits = np.minimum(generator.poisson(mean), 59)
    survey = pd.DataFrame({"health": health, "visits": visits, "sex": generator.choice(2, ROWS)})
    for i in range(6):
        survey[f"other{i}"] = generator.choice(8, ROWS)
    others = {f"other{i}": {"type": "integer", "bounds": [0, 7]} for i in range(6)}
    columns = {
        "health": {"type": "categorical", "categories": ["good", "fair", "poor"]},
        "visits": {"type": "integer", "bounds": [0, 59]},
        "sex": {"type": "integer", "bounds": [0, 1]},
    }
    pairs = {"name": "all-pairs", "kind": "microdata-margins", "columns": [*survey], "compress": {}}
    table = {
        "name": "visits-by-health",
        "kind": "margins",
        "columns": ["health", "visits"],
        "ways": 2,
        "bins": {"visits": [0, 1, 5, 12, 60]},
        "mechanism": "discrete-gaussian",
    }
    records = [{"name": "records", "from": "all-pairs", "rows": ROWS}]
    plan = document(columns | others, [pairs, table], beta="1e-6", rows=ROWS, synthesis=records)
    folder = tmp_path_factory.mktemp("followed")
    with pytest.MonkeyPatch.context() as patch:
        leave_out_audits(patch.setattr)
        done = dprelease.release(
            plan, survey, ledger=folder / "ledger.sqlite", out=folder, progress=False
        )
    return done, survey


def often(table: pd.DataFrame) -> pd.Series:
    """Who goes twelve times or more, by health."""
    return (table.visits >= 12).groupby(table.health).mean()


@pytest.mark.slow
def test_records_follow_a_table_of_their_columns_that_is_more_precise(bundle):
    done, survey = bundle
    table = done.table("visits-by-health.health.visits")
    shares = table.pivot_table(index="health", columns="visits_from", values="estimate")
    published = shares[12] / shares.sum(axis=1)
    for records in (done.table("microdata/records"), done.sample("records", 20_000)):
        found = often(pd.DataFrame(records))
        assert (found - published).abs().max() < 0.12  # with the pairs alone, 0.4
        assert (found - often(survey)).abs().max() < 0.2
    assert done.reader.manifest.synthesis[0].followed == ["visits-by-health"]
