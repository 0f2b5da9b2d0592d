"""The rarer mechanisms of the source papers, as a package that adds kinds to dprelease.

Each folder holds all of one construction: its theorem, its mechanism, its release, its section of a
plan, its page and its tests.  Entry points of the group ``dprelease.kinds`` name the sections; nothing
in ``dpcore``, ``schemas``, ``tasks`` or ``flows`` imports from here.
"""

import schemas.releases  # noqa: F401 - loads the sections here in their order, whichever is imported first
from dpcore.line.mechanism import Mechanism
from papers.difference_body.mechanism import DifferenceBody
from papers.k_norm.mechanism import DiscreteKNorm
from papers.minimax_count.mechanism import TabulatedMechanism
from papers.near_records.by_distribution import NearRecordsMechanism
from papers.near_records.by_series import NearMeansMechanism
from papers.random_proportion.mechanism import RandomProportion
from papers.sampled_histogram.mechanism import Sampled
from papers.u_statistic.mechanism import PairLaplace

THEOREMS: tuple[type[Mechanism], ...] = (
    TabulatedMechanism,
    Sampled,
    NearRecordsMechanism,
    NearMeansMechanism,
    DiscreteKNorm,
    DifferenceBody,
    RandomProportion,
    PairLaplace,
)
"""The mechanism of theorem Pi has number i - 1. Other files cite these numbers, so append new ones."""
