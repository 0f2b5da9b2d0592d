"""Whether a table may be compared with: not if a ledger may know it as private.

A ledger knows datasets by name, and not their tables.  So a table is refused where any of these says
that it may be one of them, and, while the ledger knows any dataset at all, where nobody has said what
it is:

    the name of a dataset   given, in a plan that is given, or in the synthetic file's own metadata
    the source of a plan    given, or in the agency's folder of plans: the same file or the same bytes
"""

from __future__ import annotations

import filecmp
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpcore.errors import InputError
from schemas.plan import Plan, load_plan
from schemas.source import Source, TableSource
from tasks.ledger import Ledger
from tasks.plans import plans_folder, plans_in
from tasks.survey import PACKAGE, packaged

NOT_FOR_RELEASE = "NOT FOR RELEASE: computed from the real records without noise"
_REMEDY = "; with --not-for-release it is compared, and the result may not be published"


def require_public(
    real: Path,
    synthetic: Path,
    ledger: Ledger | None,
    dataset: str | None = None,
    plan: Plan | None = None,
) -> None:
    """Raise ``InputError`` where ``real`` may be the table of a dataset that the ledger knows.

    ``dataset``: what the user calls the table; ``ledger`` is None where there is none yet.  A ledger
    or a plan that cannot be read raises its own error.
    """
    for place, known in _plans(plan):
        if _is_table(real, known.source):
            raise InputError(f"{real}: is the survey table of {place}, and so private{_REMEDY}")
    private = set(ledger.datasets()) if ledger else set()
    names = {dataset, plan.dataset if plan else None, _dataset_of(synthetic)} - {None}
    for name in sorted(private & names):
        raise InputError(f"{real}: the ledger knows the dataset {name} as private{_REMEDY}")
    if private and not names:
        raise InputError(
            f"{real}: may be the table of a dataset that the ledger knows ({len(private)} in all):"
            f" say with --dataset what it is called{_REMEDY}"
        )


def _plans(given: Plan | None) -> Iterator[tuple[str, Plan]]:
    if given is not None:
        yield "the plan", given
    if plans_folder().is_dir():
        for path in plans_in(plans_folder()).values():
            yield path.name, load_plan(path)


def _is_table(path: Path, source: Source) -> bool:
    if isinstance(source, TableSource):
        place = Path(source.database)
    elif isinstance(source, str):
        place = packaged(source) if source.startswith(PACKAGE) else Path(source)
    else:
        return False
    if not place.is_file() or not path.is_file():
        return False
    return place.samefile(path) or filecmp.cmp(place, path, shallow=False)


def _dataset_of(path: Path) -> str | None:
    """The dataset that a file out of a bundle says it was made of."""
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    name = metadata.get(b"dprelease.dataset")
    return name.decode() if name else None
