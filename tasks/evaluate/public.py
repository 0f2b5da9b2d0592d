"""Refuses comparisons with a table that a ledger may know as private.

A ledger knows datasets by name, but not their tables.  A table is refused if one of the following shows
that it may be such a dataset. It is also refused if its dataset is not named and the ledger knows any
dataset:

    the dataset's name   given by the user, in a given plan, or in the synthetic file's metadata
    a plan's source      the given plan or one in the agency's folder: the same file or the same bytes
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcore.errors import InputError
from schemas.plan import Plan, load_plan
from schemas.survey.source import Source, TableSource
from tasks.ledger import Ledger
from tasks.survey.sources import PACKAGE, find_in_package
from tasks.workplace.plans import usual_plans

NOT_FOR_RELEASE = "NOT FOR RELEASE: computed from the real records without noise"
_REMEDY = "; compare anyway with --not-for-release, and do not publish the result"


def require_public(
    real: Path,
    synthetic: Path,
    ledger: Ledger | None,
    dataset: str | None = None,
    plan: Plan | None = None,
) -> None:
    """Raise ``InputError`` if ``real`` may be the table of a dataset that the ledger knows.

    ``dataset``: the user's name for the table; ``ledger`` is None if there is none yet.  A ledger or a
    plan that cannot be read raises its own error.
    """
    for place, known in _plans(plan):
        if _is_table(real, known.source):
            raise InputError(f"{real}: is private: it is the survey table of {place}{_REMEDY}")
    private = set(ledger.datasets()) if ledger else set()
    names = {dataset, plan.dataset if plan else None, _dataset_of(synthetic)} - {None}
    for name in sorted(private & names):
        raise InputError(f"{real}: the ledger knows the dataset {name} as private{_REMEDY}")
    if private and not names:
        raise InputError(
            f"{real}: may be the table of one of the {len(private)} datasets that the ledger knows:"
            f" name its dataset with --dataset{_REMEDY}"
        )


def _plans(given: Plan | None) -> Iterator[tuple[str, Plan]]:
    if given is not None:
        yield "the plan", given
    for path in usual_plans().values():
        yield path.name, load_plan(path)


def _is_table(path: Path, source: Source) -> bool:
    if isinstance(source, TableSource):
        place = Path(source.database)
    elif isinstance(source, str):
        place = find_in_package(source) if source.startswith(PACKAGE) else Path(source)
    else:
        return False
    if not place.is_file() or not path.is_file():
        return False
    return place.samefile(path) or filecmp.cmp(place, path, shallow=False)


def _dataset_of(path: Path) -> str | None:
    """The dataset in the metadata of a file from a bundle."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    name = metadata.get(b"dprelease.dataset")
    return name.decode() if name else None
