"""Members of one group: how often they agree, against every pair counted by hand."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from tasks.evaluate import read_pair
from tasks.evaluate.groups import compared_groups


def homes(seed: int, alike: bool) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    home = np.repeat(np.arange(60), random.integers(1, 6, 60))
    region = np.array(["north", "south"])[random.integers(0, 2, 60)]
    lived = region[home] if alike else random.permutation(region[home])
    return pd.DataFrame(
        {"home": home, "region": lived, "age": random.integers(0, 4, len(home)), "one": 1}
    ).sample(frac=1, random_state=seed)


def found(tmp_path, real: pd.DataFrame, synthetic: pd.DataFrame):
    real.to_parquet(tmp_path / "real.parquet")
    synthetic.to_parquet(tmp_path / "synthetic.parquet")
    return compared_groups(
        read_pair(tmp_path / "real.parquet", tmp_path / "synthetic.parquet", key="home")
    )


def agreement(table: pd.DataFrame, column: str) -> float:
    agree = [
        one == other
        for _, members in table.groupby("home")[column]
        for one, other in permutations(members, 2)
    ]
    return float(np.mean(agree))


def test_agreement_is_that_of_all_pairs_of_members(tmp_path):
    real, synthetic = homes(1, alike=True), homes(2, alike=False)
    groups = found(tmp_path, real, synthetic)
    assert (groups.real, groups.synthetic) == (60, 60)
    assert list(groups.pairs) == ["region", "age", "one"]  # the key is compared with nothing
    for name, pairs in groups.pairs.items():
        assert pairs.agree_in_real == pytest.approx(agreement(real, name))
        assert pairs.agree_in_synthetic == pytest.approx(agreement(synthetic, name))
    assert groups.pairs["region"].agree_in_real == 1
    assert groups.pairs["region"].total_variation > 0.3
    sizes = [
        table.groupby("home").size().value_counts(normalize=True) for table in (real, synthetic)
    ]
    assert groups.sizes == pytest.approx(sizes[0].sub(sizes[1], fill_value=0).abs().sum() / 2)


def test_a_table_is_no_distance_from_itself_and_null_keys_are_alone(tmp_path):
    real = homes(1, alike=True).astype({"home": "Int64"})
    real.loc[real["home"] < 10, "home"] = pd.NA
    groups = found(tmp_path, real, real)
    assert groups.sizes == 0
    assert groups.real == 50 + real["home"].isna().sum()
    assert max(pairs.total_variation for pairs in groups.pairs.values()) == pytest.approx(0)
