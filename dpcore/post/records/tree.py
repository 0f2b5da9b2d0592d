"""Synthetic records from a tree of pair margins.

Chow & Liu (1968): among the distributions in which every attribute depends on only one other
attribute, the tree of the largest mutual informations is the closest to the data.  Here the mutual
informations come from noisy margins, made consistent, so choosing the tree is post-processing:

    margins of (0,1), (0,2), (1,2)            0 --- 1        sample 0 from its margin,
    informations .30, .02, .25        --->          |        then 1 given 0,
                                                    2        then 2 given 1

>>> import numpy as np
>>> margins = [Margin((0, 1), np.array([[40.0, 10.0], [5.0, 45.0]]), 1.0),
...            Margin((1, 2), np.array([[30.0, 15.0], [20.0, 35.0]]), 1.0)]
>>> edges = spanning_tree((2, 2, 2), margins)
>>> edges
[(0, 1), (1, 2)]
>>> codes = sample_tree((2, 2, 2), edges, margins, 100, np.random.default_rng(7))
>>> codes.shape, np.bincount(codes[:, 0]).tolist()
((100, 3), [50, 50])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.post.records.systematic import draw_systematically
from dpcore.post.tables.consistency import Agreement, estimated_total, make_consistent
from dpcore.post.tables.margins import (
    Attributes,
    Margin,
    summed_to,
)
from dpcore.post.tables.simplex import project_to_simplex

Edges = Sequence[tuple[int, int]]


def spanning_tree(
    sizes: Sequence[int], margins: Sequence[Margin], total: float | None = None
) -> list[tuple[int, int]]:
    """The pairs of attributes to join: the tree (or forest) of the largest mutual information.

    A pair can be joined if some margin contains both its attributes.  The information of a pair is
    that of its consistent, projected table less the part expected from noise (``_information``); a
    pair without more than that is not joined.  ``total``: the public number of rows, by default the
    sum of the margins.  Returns ascending pairs in ascending order; ties go to the first pair, so the
    result is deterministic.
    """
    total = estimated_total(margins) if total is None else total
    agreement = Agreement(tuple(sizes), margins, total)
    consistent = [agreement.margin(margin.attributes) for margin in margins]
    pairs = sorted({pair for margin in margins for pair in combinations(margin.attributes, 2)})
    informations = []
    for pair in pairs:
        table = _projected(consistent, pair, total)
        informations.append(dependence(table, agreement.margin(pair).variance))
    component = list(range(len(sizes)))
    edges = []
    for information, (one, other) in sorted(
        zip(informations, pairs, strict=True), key=lambda item: (-item[0], item[1])
    ):
        if information > 0 and component[one] != component[other]:
            edges.append((one, other))
            merged = component[other]
            component = [component[one] if c == merged else c for c in component]
    return sorted(edges)


def sample_tree(
    sizes: Sequence[int],
    edges: Edges,
    margins: Sequence[Margin],
    rows: int,
    generator: np.random.Generator,
    total: float | None = None,
) -> Integers:
    """Records with the margins of the tree's edges: (rows, k) codes.

    Each attribute is drawn from its conditional table given its parent, from the consistent,
    projected margins.  The draws are systematic (low variance): among the records with the same
    parent value, each value of the child appears as often as expected, up to less than one record.
    Attributes in no edge are drawn independently.  Every attribute must be in some margin and every
    edge inside one; edges that close a cycle are refused.
    """
    total = estimated_total(margins) if total is None else total
    order = _parents_first(sizes, edges, margins)
    consistent = make_consistent(sizes, margins, total)
    codes = np.zeros((rows, len(sizes)), dtype=np.int64)
    one_group = np.zeros(rows, dtype=np.int64)
    for attribute, parent in order:
        if parent is None:
            table = _projected(consistent, (attribute,), total)[None, :]
            codes[:, attribute] = draw_systematically(one_group, table, generator)
        else:
            ascending = (min(attribute, parent), max(attribute, parent))
            table = _projected(consistent, ascending, total)
            conditional = table if parent < attribute else table.T
            codes[:, attribute] = draw_systematically(codes[:, parent], conditional, generator)
    return codes


def _projected(consistent: Sequence[Margin], attributes: Attributes, total: float) -> Floats:
    """The table of ``attributes`` from a margin that covers it, non-negative and with the total."""
    covering = next(m for m in consistent if set(attributes) <= set(m.attributes))
    table = summed_to(covering.table, covering.attributes, attributes)
    return project_to_simplex(table.ravel(), total).reshape(table.shape)


def dependence(table: Floats, variance: float) -> float:
    """Mutual information (nats) of a pair table, less the expected contribution of its noise.

    To second order the information is sum (p_ab - p_a p_b)^2 / (2 p_a p_b), so noise of variance v
    in the counts adds about v (1 - 1/rows)(1 - 1/columns) / (2 n^2 p_a p_b) per cell.  Without this
    term, tables with many cells would always look informative.  Cells with an expected count below
    one standard deviation are mostly cut to zero; here one standard deviation replaces it.
    """
    total = table.sum()
    if total <= 0:
        return 0.0
    joint = table / total
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    occupied = joint > 0
    information = float(np.sum(joint[occupied] * np.log(joint[occupied] / independent[occupied])))
    if variance == 0:
        return information
    contrasts = (1.0 - 1.0 / table.shape[0]) * (1.0 - 1.0 / table.shape[1])
    floor = np.sqrt(variance) / total
    noise = contrasts * variance / total**2 / (2.0 * np.maximum(independent, floor))
    return information - float(noise.sum())


def _parents_first(
    sizes: Sequence[int], edges: Edges, margins: Sequence[Margin]
) -> list[tuple[int, int | None]]:
    """Every attribute with its parent (None for a root), each after its parent."""
    covered = {attribute for margin in margins for attribute in margin.attributes}
    for attribute in range(len(sizes)):
        if attribute not in covered:
            raise ValueError(f"attribute {attribute} is in no margin")
    neighbours: dict[int, list[int]] = {attribute: [] for attribute in range(len(sizes))}
    for one, other in edges:
        if one == other or one not in neighbours or other not in neighbours:
            raise ValueError(
                f"an edge must join two different attributes of 0..{len(sizes) - 1},"
                f" not ({one}, {other})"
            )
        if not any({one, other} <= set(margin.attributes) for margin in margins):
            raise ValueError(f"no margin contains both attributes of the edge ({one}, {other})")
        neighbours[one].append(other)
        neighbours[other].append(one)
    order: list[tuple[int, int | None]] = []
    seen: set[int] = set()
    for root in range(len(sizes)):
        waiting: list[tuple[int, int | None]] = [] if root in seen else [(root, None)]
        while waiting:
            attribute, parent = waiting.pop()
            if attribute in seen:
                raise ValueError(f"the edges close a cycle at attribute {attribute}")
            seen.add(attribute)
            order.append((attribute, parent))
            nexts = sorted(neighbours[attribute], reverse=True)
            if parent is not None:
                nexts.remove(parent)
            waiting.extend((child, attribute) for child in nexts)
    return order
