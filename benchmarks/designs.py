"""Made-up designs of surveys, drawn from a table that is taken for the population.

    records     records drawn with replacement: the default
    weights     records drawn with probabilities that depend on their response, so that weights have a
                coefficient of variation of 1 and unweighted answers are wrong
    two-stage   clusters of records that are similar, in 8 strata: as many clusters of each stratum, by
                unequal probabilities (weights as above), and 4 records of each; the privacy unit
    clusters    the same with 20 records of each of larger clusters; a record is the privacy unit
    panel       persons in 2 to 5 waves, of which each has the person's own record 7 times in 10

A person is a privacy unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from dpcore.arrays import Floats, Integers
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.releases.models.model import MeasuredModel
from schemas.releases.base import SurveyFacts
from schemas.survey.columns import Column
from schemas.survey.unit import Weights

STRATA, CLUSTER, TAKEN, MANY, WAVES = 8, 10, 4, 20, 5

SAME = 0.7
"""Of the waves of a person have the same record."""

STEPS = 20
"""Of weight, in a mean one; the largest is ten times the mean."""


class Survey(NamedTuple):
    """``codes``: (n, m, axes) of the records of each unit; ``weights``: (n, m), about 1 on average, and
    0 of a record that is not there; ``strata``, ``clusters``: (n,)."""

    codes: Integers
    weights: Floats
    strata: Integers
    clusters: Integers


@dataclass
class Records:
    """A design for a model's release, and how its surveys are drawn from a table's records.

    ``codes``: (rows, axes).
    """

    release: MeasuredModel
    codes: Integers
    generator: np.random.Generator
    weights: ClassVar[bool] = False
    members: ClassVar[int] = 1
    strata: ClassVar[int] = 0
    clustered: ClassVar[bool] = False
    population: Survey = field(init=False)

    def __post_init__(self) -> None:
        self.population = self._population()

    @classmethod
    def facts(cls, columns: dict[str, Column], rows: int) -> SurveyFacts:
        """What a plan says of surveys with this number of records."""
        largest = {"column": "w", "largest": 10 * STEPS, "step": 1, "total": rows * STEPS}
        weights = Weights.model_validate(largest) if cls.weights else None
        own: dict[str, Any] = {"weights": weights}
        if cls.strata:
            listed = [str(i) for i in range(cls.strata)]
            written = {"type": "categorical", "categories": listed}
            columns = columns | {"stratum": TypeAdapter(Column).validate_python(written)}
            own["strata"] = "stratum"
        if cls.clustered:
            written = {"type": "integer", "bounds": [1, rows // MANY]}
            columns = columns | {"cluster": TypeAdapter(Column).validate_python(written)}
            own["cluster"] = "cluster"
        adjacency = REPLACE_ONE
        if cls.members > 1:
            adjacency = Adjacency("replace-one", cls.members, unit="unit")
        return SurveyFacts(columns, rows, adjacency, unit="unit" * (cls.members > 1), **own)

    def _population(self) -> Survey:
        return _all(self.codes[:, None])

    def survey(self, generator: np.random.Generator) -> Survey:
        """One survey of about ``release.rows`` records."""
        rows = generator.integers(len(self.codes), size=self.release.rows)
        return _all(self.codes[rows, None])

    def _drawn(self, number: int, size: Floats, generator: np.random.Generator) -> Any:
        """A sample of this size with unequal probabilities and replacement, and weights of mean 1."""
        chance = size / size.sum()
        taken = generator.choice(len(size), number, p=chance)
        return taken, 1 / (len(size) * chance[taken])

    def _sizes(self, scores: Floats) -> Floats:
        """Inverse weights with a coefficient of variation of 1, half of it by ranks of ``scores``."""
        normal = np.log(2.0) ** 0.5
        even = scores.argsort().argsort() / len(scores) - 0.5
        other = self.generator.normal(size=len(scores))
        return np.asarray(np.exp(normal * (12**0.5 * even + other) / 2**0.5))


def _all(codes: Integers) -> Survey:
    return Survey(codes, np.ones(codes.shape[:2]), 0 * codes[:, 0, 0], np.arange(len(codes)))


class Weighted(Records):
    weights = True

    def _population(self) -> Survey:
        assert self.release.terms is not None
        responses = self.release.terms.responses(self.codes)
        self.size = self._sizes(responses + 1e-9 * self.generator.random(len(responses)))
        return super()._population()

    def survey(self, generator: np.random.Generator) -> Survey:
        taken, weights = self._drawn(self.release.rows, self.size, generator)
        return _all(self.codes[taken, None])._replace(weights=_whole(weights[:, None]))


class TwoStage(Records):
    weights, members, strata, taken, size = True, TAKEN, STRATA, TAKEN, CLUSTER

    def _population(self) -> Survey:
        assert self.release.terms is not None
        responses = self.release.terms.responses(self.codes)
        ranks = responses / responses.std() + self.generator.normal(size=len(responses))
        number = len(self.codes) // (STRATA * self.size)
        order = np.argsort(ranks)[: number * STRATA * self.size]
        self.clusters = self.codes[order].reshape(STRATA, number, self.size, -1)
        means = ranks[order].reshape(STRATA, number, self.size).mean(axis=2)
        self.sizes = [self._sizes(each) for each in means]
        return _all(self.clusters.reshape(-1, 1, self.codes.shape[1]))

    def survey(self, generator: np.random.Generator) -> Survey:
        number, parts = self.release.rows // (self.taken * STRATA), list[Survey]()
        for stratum, size in enumerate(self.sizes):
            taken, weights = self._drawn(number, size, generator)
            places = generator.random((number, self.size)).argsort(axis=1)[:, : self.taken]
            codes = self.clusters[stratum][taken[:, None], places]
            weighed = _whole(np.repeat(weights[:, None], self.taken, axis=1))
            cluster = number * stratum + np.arange(number)
            parts.append(Survey(codes, weighed, np.full(number, stratum), cluster))
        return Survey(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class Clustered(TwoStage):
    members, clustered, taken, size = 1, True, MANY, 2 * MANY

    def survey(self, generator: np.random.Generator) -> Survey:
        found = super().survey(generator)
        alone = (np.repeat(each, self.taken) for each in found[2:])
        codes = found.codes.reshape(-1, 1, found.codes.shape[2])
        return Survey(codes, found.weights.reshape(-1, 1), *alone)


class Panel(Records):
    members = WAVES

    def _population(self) -> Survey:
        count = len(self.codes)
        same = self.generator.random((count, WAVES)) < SAME
        own, other = np.arange(count)[:, None], self.generator.integers(count, size=same.shape)
        last = self.generator.integers(2, WAVES + 1, count)
        there = (np.arange(WAVES) < last[:, None]).astype(float)
        return Survey(self.codes[np.where(same, own, other)], there, 0 * last, np.arange(count))

    def survey(self, generator: np.random.Generator) -> Survey:
        waves = self.population.weights.mean() * WAVES
        rows = generator.integers(len(self.codes), size=round(self.release.rows / waves))
        drawn = Survey(*(each[rows] for each in self.population))
        return drawn._replace(clusters=np.arange(len(rows)))


def _whole(weights: Floats) -> Floats:
    """As the plan reads them."""
    return np.asarray(np.minimum(np.rint(weights * STEPS), 10 * STEPS) / STEPS)


DESIGNS: dict[str, type[Records]] = {
    "records": Records,
    "weights": Weighted,
    "two-stage": TwoStage,
    "clusters": Clustered,
    "panel": Panel,
}
