"""Records from which a fit starts."""

import numpy as np

from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.initial import initial_records
from dpcore.post.records.rules import Rule, breaks_rules
from dpcore.post.tables.margins import Margin


def test_pairs_that_a_rule_ties_together_are_drawn_jointly():
    """Nobody is 0 in one and not in the other: independent draws would break that in many records."""
    tables = [
        Margin((0, 1), np.diag([40.0, 30.0, 30.0]), 1.0),
        Margin((1, 2), np.diag([40.0, 30.0, 30.0]), 1.0),
    ]
    tied = [Rule(when=((a, (0,)),), then=((b, (0,)),)) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))]
    free, codes = (
        initial_records(
            RecordColumns((3, 3, 3), rules=rules), tables, 100, np.random.default_rng(1), 100
        )
        for rules in ([], tied)
    )
    assert breaks_rules(free, tied).sum() > 20
    assert (codes == codes[:, :1]).all()
    assert np.bincount(codes[:, 0]).tolist() == [40, 30, 30]


def test_a_rule_about_several_columns_ties_each_two_of_them():
    """Nobody of 0 in attributes 0 and 1 has a value in 2; drawn apart, others would be without one."""
    tables = [
        Margin((0, 1), np.array([[40.0, 0.0], [0.0, 60.0]]), 1.0),
        Margin((0, 2), np.array([[0.0, 40.0], [60.0, 0.0]]), 1.0),
    ]
    rule = Rule(when=((0, (0,)), (1, (0,))), then=((2, (1,)),))
    columns = RecordColumns((2, 2, 2), rules=[rule])
    codes = initial_records(columns, tables, 100, np.random.default_rng(1), 100)
    assert (codes[:, 2] == 1 - codes[:, 0]).all()
