"""Noise narrower than stated, planted into every mechanism, and how narrow it must be to be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from dpcore.audit import audit_release, short_audit
from dpcore.line.mechanism import Mechanism
from dpcore.mechanisms import THEOREMS
from dpcore.releases.base import Release
from papers import THEOREMS as OF_PAPERS
from papers.minimax_count.mechanism import TabulatedMechanism
from papers.minimax_count.table import TOTAL

WIDTHS = {
    "scale": 1,
    "test_scale": 1,
    "variance": 2,
    "prior": 1,
    "alpha": -1,
    "level_alpha": -1,
}
"""Fields that say how wide noise is, and the power of the factor by which each is multiplied."""


@contextmanager
def narrower_noise(factor: Fraction) -> Iterator[None]:
    """All mechanisms draw with noise of ``factor`` times the width that they state."""
    with ExitStack() as faults:
        for kind in _leaves():
            faults.enter_context(patch.object(kind, "draw", _narrower(kind, factor)))
        yield


def _leaves() -> list[type[Mechanism]]:
    """Mechanisms that draw by themselves, and not by others."""
    every = (*THEOREMS, *OF_PAPERS)
    return [kind for kind in every if "draw" in vars(kind) and _widths(kind)]


def _widths(kind: type[Mechanism]) -> list[str]:
    names = set(kind.__dataclass_fields__)
    return ["table"] if kind is TabulatedMechanism else [n for n in WIDTHS if n in names]


def _narrower(kind: type[Mechanism], factor: Fraction) -> Any:
    honest = vars(kind)["draw"]

    def draw(self: Any, *arguments: Any) -> Any:
        return honest(_narrow(self, kind, factor), *arguments)

    return draw


def _narrow(mechanism: Any, kind: type[Mechanism], factor: Fraction) -> Any:
    if kind is TabulatedMechanism:
        return _sharper(mechanism, float(factor))
    changed = {}
    for name in _widths(kind):
        value = getattr(mechanism, name) * factor ** WIDTHS[name]
        changed[name] = max(1, round(value)) if name == "prior" else value
    narrow = copy(mechanism)
    for name, value in changed.items():  # past all checks: this is a fault
        object.__setattr__(narrow, name, value)
    return narrow


def _sharper(mechanism: TabulatedMechanism, factor: float) -> Any:
    """The table with every chance to the power of 1/factor; no longer private, so it is not checked."""
    chances = (np.array(mechanism.table) / TOTAL) ** (1 / factor)
    whole = np.floor(chances / chances.sum(axis=1, keepdims=True) * TOTAL * (1 - 1e-12))
    table = whole.astype(np.int64)
    table[np.arange(len(table)), table.argmax(axis=1)] += TOTAL - table.sum(axis=1)
    narrow = object.__new__(TabulatedMechanism)
    narrow.__dict__.update(vars(mechanism), table=tuple(map(tuple, table.tolist())))
    narrow.__dict__.pop("_ends", None)
    return narrow


FACTORS = [Fraction(i, 20) for i in range(19, 5, -1)]

UNATTENDED, ATTENDED = 1 - 0.001 / 6, 1 - 0.05 / 6
"""The levels of one release in a plan of five, as the short audit and the others have them."""

ROWS = 500
"""How many records audited releases have, unless their mechanism would take long with that many."""

SLOW = ("near records", "near series", "minimax", "classifier", "regression")


def power_lines() -> Iterator[str]:
    """For each mechanism the largest factor that the short, quick and full audit find, twice of two."""
    from tests.dpcore.releases.contract import CASES

    yield "| release | mechanism | short | quick | full |\n|---|---|---|---|---|"
    seen = set()
    for name, case in CASES.items():
        release = case.release
        kind = type(release.mechanism)
        if kind in seen:
            continue
        seen.add(kind)
        if not any(word in name for word in SLOW):
            release = replace(release, rows=ROWS)
        found = [_largest_found(partial(audit, release)) for audit in AUDITS]
        yield f"| {name} | `{kind.__name__}` | {' | '.join(found)} |"


def _short(release: Release) -> bool:
    return short_audit([release], UNATTENDED)[1].passed


def _quick(release: Release) -> bool:
    return audit_release(release, draws=1_000, level=ATTENDED, pairs=8).passed


def _full(release: Release) -> bool:
    return audit_release(release, draws=20_000, level=ATTENDED).passed


AUDITS = (_short, _quick, _full)


def _largest_found(passes: Callable[[], bool]) -> str:
    """The largest factor at which two audits of two fail; factors descend by a twentieth."""
    for factor in FACTORS:
        with narrower_noise(factor):
            if not passes() and not passes():
                return f"{float(factor):.2f}"
    return f"< {float(FACTORS[-1]):.2f}"
