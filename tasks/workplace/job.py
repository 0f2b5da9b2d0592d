"""One release to be made: what every step needs to know, from the first check to the bundle."""

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from schemas.plan import Plan
from tasks.workplace.plans import published_folder


@dataclass(frozen=True)
class ReleaseJob:
    """A plan that is carried out under one id; the same id never charges or draws twice.

    ``out``: the folder of all bundles.  ``open_fraction``: the fraction of the grant that all requests
    together may spend; None for a release that nobody requested.
    """

    plan: Plan
    release_id: str
    out: Path = field(default_factory=published_folder)
    open_fraction: Fraction | None = None

    @property
    def dataset(self) -> str:
        return self.plan.dataset

    @property
    def folder(self) -> Path:
        """The folder of the dataset's bundles."""
        return self.out / self.dataset

    @property
    def bundle(self) -> Path:
        """The place of the bundle: OUT/DATASET/RELEASE_ID."""
        return self.folder / self.release_id
