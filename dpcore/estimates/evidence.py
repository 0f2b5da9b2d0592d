"""The data that models are fitted to: tables that agree, and synthetic records that follow them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcore.arrays import Floats, Integers
from dpcore.domain.domain import Domain
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Attributes, margins_of


@dataclass(frozen=True, eq=False)
class Evidence:
    """All public.

    ``agreement``: all tables; its first attributes are those of ``domain``; ``rows``: of the survey,
    public or estimated; ``codes`` (m, axes), ``columns``: of synthetic records; ``most``: the records
    that one unit may have; ``assumes``: assumptions of the sampling errors in addition to independent
    records; ``alone``: for each column of which other tables have merged cells, evidence in its own.
    """

    domain: Domain
    agreement: Agreement
    rows: float
    codes: Integers
    columns: dict[str, Any]
    most: int = 1
    assumes: tuple[str, ...] = ()
    alone: Mapping[str, Evidence] = field(default_factory=dict)

    def table(self, attributes: Attributes) -> Floats:
        """The best estimate of a table."""
        return self.agreement.margin(attributes).table


class SimulatedEvidence(Evidence):
    """Evidence before a draw: the tables count made-up records."""

    def table(self, attributes: Attributes) -> Floats:
        (counts,) = margins_of(self.codes, self.domain.shape, [attributes])
        return np.asarray(counts * (self.rows / len(self.codes)))
