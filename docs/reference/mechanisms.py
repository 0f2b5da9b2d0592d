"""The page of mechanisms: what plans may ask for, and the theorem that opens each mechanism's file."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from docs.reference.markdown import docstring, table
from dpcore.line.mechanism import Mechanism
from dpcore.mechanisms import THEOREMS
from papers import THEOREMS as OF_PAPERS
from schemas.releases import AnyRelease
from schemas.releases.base import ReleaseSection
from schemas.releases.density import BEST

HEAD = """\
# Mechanisms

*Reviewed by nobody outside the project so far: [what to read][base].*

A mechanism turns an exact statistic into a noisy one that may be published. Each one is a numbered
theorem: here its claim, and the preconditions that the code checks before a draw; the proof, and the
range of integers and floats, are at the top of its file. alpha is epsilon and beta is delta; gamma is
the probability of random differential privacy; rho-zCDP is zero-concentrated differential privacy. All
noise is drawn from its stated law by integer arithmetic. Letters after METHODS are sections of
`docs/METHODS.md`, which has the corrections of the papers and the constants that were checked. The page
of each kind of release says which mechanism to choose.

[base]: ../explanation/trusted-base.md"""

PARTS = ("Claim", "Preconditions", "Proof", "Ranges", "Source")
"""What every theorem states, in this order."""

SHOWN = ("Claim", "Preconditions", "Source")
"""What a reader of the page needs; whoever checks a proof reads it beside the code."""


def mechanisms_page() -> str:
    """The kinds and mechanisms of a plan, then every theorem."""
    offered = table(["kind", "mechanism", "spends", "release"], _offers())
    parts = [HEAD, "## Kinds and mechanisms of a plan", offered, "## Theorems"]
    parts.append(table(["", "mechanism", "law"], _laws()))
    for number, mechanism in theorems():
        text = docstring(inspect.getmodule(mechanism))
        title, _, theorem = text.partition("\n\n")
        parts.append(f"## {number}: {title.rstrip('.')} {{#{number.lower()}}}")
        parts.append(f"`{mechanism.__module__}.{mechanism.__name__}`")
        _, *stated = re.split(rf"^({'|'.join(PARTS)})\.  ", theorem, flags=re.M)
        for part, said in zip(stated[::2], stated[1::2], strict=True):
            if part in SHOWN:
                parts.append(f"**{part}.** {said.strip()}")
    return "\n\n".join(parts) + "\n"


def law(mechanism: type[Mechanism]) -> str:
    """The first paragraph of its docstring."""
    return " ".join(docstring(mechanism).split("\n\n")[0].split())


def offers() -> Iterator[tuple[Any, str]]:
    """The section of each kind of release, with each mechanism that it may name."""
    for section in get_args(get_args(AnyRelease)[0]):
        for mechanism in options(section, "mechanism"):
            if mechanism != BEST:  # which stands for one of the others
                yield section, mechanism


def theorems() -> Iterator[tuple[str, type[Mechanism]]]:
    """Every mechanism and the number of its theorem: T of the main rooms, P of the papers' package."""
    for letter, mechanisms in (("T", THEOREMS), ("P", OF_PAPERS)):
        for number, mechanism in enumerate(mechanisms, start=1):
            yield f"{letter}{number}", mechanism


def options(section: type[ReleaseSection], key: str) -> tuple[str, ...]:
    """What a section's ``kind`` or ``mechanism`` may be."""
    node = section.model_json_schema()["properties"][key]
    return tuple(node.get("enum") or [node["const"]])


def _laws() -> Iterator[tuple[str, str, str]]:
    for number, mechanism in theorems():
        yield f"[{number}](#{number.lower()})", f"`{mechanism.__name__}`", law(mechanism)


def _offers() -> Iterator[tuple[str, str, str, str]]:
    for section, mechanism in offers():
        (kind,) = options(section, "kind")
        stated = section.model_construct(mechanism=mechanism, bandwidth=1.0)
        spent = ["alpha", *(f for f in ("beta", "gamma") if getattr(stated, f"spends_{f}"))]
        yield f"`{kind}`", f"`{mechanism}`", ", ".join(spent), docstring(section).split("\n\n")[0]
