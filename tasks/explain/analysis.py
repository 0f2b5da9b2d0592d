"""Whether a plan supports a model, and with what error: before anything is drawn, from public sizes."""

from __future__ import annotations

import numpy as np

from dpcore.domain import Domain
from dpcore.errors import InputError
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.joined import joined
from dpcore.releases.counts.unit import CountsRelease
from schemas.plan import Plan
from tasks.inference.designs import middles
from tasks.inference.evidence import Supposed
from tasks.inference.fit import Fit, fit

FEWEST, MOST = 5_000, 50_000
"""Made-up records."""


def expected_fit(plan: Plan, formula: str, family: str) -> tuple[str, Fit]:
    """The release that would answer, and the model fitted to records that were made up.

    Their columns are independent, with equally frequent cells.  Raises ``InputError`` where the plan
    does not support the model, naming what it would have to measure.
    """
    found = {
        name: (release, release.of_nothing)
        for name, release in plan.built.items()
        if isinstance(release, CountsRelease) and not release.adjacency.weighted
    }
    known = {name: (release, errors) for name, (release, errors) in found.items() if errors}
    if not known:
        raise InputError(
            "--analysis: the plan has no counts of records that models could be fitted to; add a"
            " release of kind microdata-margins or margins over the columns"
        )
    name = max(known, key=lambda name: len(known[name][0].domain.axes))
    domain = known[name][0].domain
    agreement = joined(
        [(errors, release.domain.axes) for release, errors in known.values()], domain.axes
    )
    return name, fit(_supposed(domain, agreement, plan.rows), formula, family)


def _supposed(domain: Domain, agreement: Agreement, rows: int) -> Supposed:
    generator, size = np.random.default_rng(0), min(max(rows, FEWEST), MOST)
    codes = np.stack([generator.integers(0, axis.size, size) for axis in domain.axes], axis=1)
    columns = {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}
    return Supposed(domain, agreement, float(rows), codes, columns)


def analysis_text(plan: Plan, formula: str, family: str) -> str:
    """The expected standard errors of a model's coefficients."""
    name, found = expected_fit(plan, formula, family)
    width = max(len(c.name) for c in found.coefficients)
    lines = [
        f"{formula}   ({family}), from {name}: supported",
        f"{'expected standard error':{width + 2}} {'sampling':>10} {'privacy':>10} {'together':>10}",
    ]
    width = max(width, len("expected standard error"))
    lines += [
        f"{c.name:{width + 2}} {c.sampling_error:10.3g} {c.privacy_error:10.3g}"
        f" {c.standard_error:10.3g}"
        for c in found.coefficients
    ]
    lines.append(
        "For independent columns with equally frequent cells; where cells are uneven, or columns"
        " strongly related, errors are larger."
    )
    lines += [f"Note: {note}" for note in found.notes]
    return "\n".join(lines)
