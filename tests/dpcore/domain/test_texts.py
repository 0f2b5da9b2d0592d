"""Every text that has a cell has one of its own, and it says which text it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcore.domain.tally import Tally
from dpcore.domain.texts import CODES, LONGEST, cells_of, has_cell, texts, texts_at
from dpcore.domain.words import ascending

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST)


@pytest.mark.slow
@given(st.lists(TEXT.filter(has_cell), max_size=5, unique=True))
def test_cells_are_different_and_say_their_text(several):
    cells = cells_of(several)
    assert texts_at(cells) == several
    tally = Tally.of(texts("town"), cells)
    assert ascending(tally.cells)
    assert len(tally.counts) == len(several)
    assert texts_at(texts("town").unpack(tally.cells)) == sorted(several, key=str.encode)


def test_what_is_too_long_or_holds_nul_has_no_cell():
    assert has_cell("a" * LONGEST)
    assert not has_cell("a" * (LONGEST + 1))
    assert not has_cell("東" * (LONGEST // 3 + 1))
    assert not has_cell("a\0")
    assert cells_of([]).shape == (0, CODES)
    assert np.all(cells_of(["\U0010ffff" * (LONGEST // 4)]) < texts("town").axes[0].size)
