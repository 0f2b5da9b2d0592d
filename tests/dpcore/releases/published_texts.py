"""Every text that a release of any kind publishes: for tests of wording and spelling.

A case of every kind is published for all units that it serves: records, households of several records,
and survey weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpcore.domain.adjacency import Adjacency
from dpcore.line.privacy_line import perturb
from dpcore.post.records import denoise
from dpcore.post.tables import count_errors
from dpcore.releases.base import Release
from dpcore.releases.densities import density
from dpcore.releases.table import Published
from dpcore.sampling.source import SeededSource
from tests.dpcore.releases.contract import CASES, Case, kind_of, one_of_each, tally_of, under

HOUSEHOLDS = Adjacency("replace-one", 2, unit="household")


@dataclass(frozen=True)
class Text:
    """A published text: ``where`` it is; ``names``: columns and facts that are published with it;
    ``weighted``: whether its release counts weights."""

    where: str
    text: str
    names: frozenset[str]
    weighted: bool


@cache
def all_texts() -> tuple[Text, ...]:
    """Descriptions, uncertainty statements and facts of every table, and the expected errors.

    Made once in a process: none depends on how far a fit or a simulation goes.
    """
    with (
        patch.object(count_errors, "MOST_REPEATS", 1),
        patch.object(density, "REPEATS", 4),
        patch.object(denoise, "fit_mixture", partial(denoise.fit_mixture, steps=3)),
    ):
        return tuple(text for name, release in _releases() for text in _texts_of(name, release))


def kind_and_unit(release: Release) -> object:
    return kind_of(release), release.adjacency.weighted


def _releases() -> Iterator[tuple[str, Release]]:
    for name, case in one_of_each(kind_and_unit).items():
        yield name, case.release
        for adjacency in (Adjacency("add-remove"), HOUSEHOLDS):
            try:
                yield name, under(case, adjacency).release
            except ValueError:  # the kind is not proved for this relation
                continue


def _texts_of(case: str, release: Release) -> Iterator[Text]:
    published = _publish(CASES[case], release)
    names = {*published.facts, *release.domain.names}.union(*(t.columns for t in published.tables))
    place, weighted = f"{case}, {release.adjacency}", release.adjacency.weighted
    for where, text in _strings_of(release, published):
        if text:
            yield Text(f"{place}, {where}", text, frozenset(names), weighted)


def _publish(case: Case, release: Release) -> Published:
    """What the release publishes of one draw, from a seeded source."""
    exact = release.statistic(tally_of(release.domain, np.array(case.near + case.company)))
    return release.publish(perturb(exact, release.mechanism, release.share, SeededSource(1)))


def _strings_of(release: Release, published: Published) -> Iterator[tuple[str, str]]:
    for error in release.expected_error():
        yield "expected error", error.quantity
        yield f"note on {error.quantity!r}", error.note
    for table in published.tables:
        for column, text in table.descriptions.items():
            yield f"table {table.name}, column {column}", text
        for uncertainty in table.uncertainty:
            yield f"table {table.name}, error of {uncertainty.column}", uncertainty.statement
    for fact, value in published.facts.items():
        yield from ((f"fact {fact}", text) for text in _sentences(value))


def _sentences(fact: Any) -> Iterator[str]:
    """The texts of several words in a JSON value; a single word is a name."""
    if isinstance(fact, str) and " " in fact:
        yield fact
    elif isinstance(fact, dict):
        for value in fact.values():
            yield from _sentences(value)
    elif isinstance(fact, list):
        for value in fact:
            yield from _sentences(value)
