"""Wide records become units and members without loss."""

import numpy as np

from dpcore.post.members import members_of


def test_every_member_has_a_unit_and_every_unit_its_members():
    random = np.random.default_rng(1)
    sizes = random.integers(1, 5, 50)
    values = random.integers(0, 9, (4, 50))
    sex = [
        np.ma.masked_array(np.array(["F", "M"] * 25), mask=random.random(50) < 0.3) for _ in "1234"
    ]
    number, place, (ages, sexes) = members_of(sizes, [list(values), sex])
    assert np.bincount(number, minlength=51)[1:].tolist() == sizes.tolist()
    assert (place <= sizes[number - 1]).all()
    assert place.min() == 1
    assert len(set(zip(number.tolist(), place.tolist(), strict=True))) == sizes.sum()
    for n, i, age, one in zip(number, place, ages, sexes, strict=True):
        assert age == values[i - 1, n - 1]
        assert one is np.ma.masked or one == sex[i - 1][n - 1]
    assert np.ma.is_masked(sexes)
    assert not np.ma.isMaskedArray(ages)
