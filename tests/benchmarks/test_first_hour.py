"""Promised errors beside actual ones, where the tables are there."""

import numpy as np
import pytest

from benchmarks import DATA, first_hour
from benchmarks.first_hour import CASES, Term, measured


def test_a_term_is_right_within_a_factor_two():
    assert Term("mean", "x", 1.0, False, [1.9, -2.0]).right
    assert not Term("mean", "x", 1.0, False, [2.5, -2.0]).right
    assert not Term("mean", "x", 1.0, False, [0.1, 0.4]).right


def test_without_tables_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(first_hour, "DATA", tmp_path / "nowhere")
    monkeypatch.setattr("sys.argv", ["first_hour"])
    with pytest.raises(SystemExit, match="DPRELEASE_TEST_DATA"):
        first_hour.main()


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / CASES["fair"].table).exists(), reason="no test tables")
def test_nine_terms_in_ten_come_as_promised():
    """The draws have seeds, so no chance is left."""
    terms = [term for term in measured(CASES["fair"], "2", 5) if not term.hidden]
    assert {term.kind for term in terms} == {"share", "pair", "mean", "model"}
    assert np.mean([term.right for term in terms]) >= 0.9
