"""The page of mechanisms: what plans may ask for, and the theorem that opens each mechanism's file."""

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
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

A mechanism turns an exact statistic into a noisy one that may be published. The page of each kind of
release says which mechanism to choose.

## Kinds and mechanisms of a plan

All spend alpha. Beta or gamma in brackets: the mechanism spends this too. With
`composition: concentrated`, only mechanisms that may fail spend beta.

[base]: ../explanation/trusted-base.md"""

THEOREMS_HEAD = """\
## Theorems

Each mechanism is a theorem. Here is its claim; its preconditions, which the code checks before a draw,
and its proof are at the top of its file. alpha is epsilon and beta is delta; gamma is the probability
of random differential privacy; rho-zCDP is zero-concentrated differential privacy. All noise is drawn
from its stated law by integer arithmetic. What is wrong in the papers is
[listed](../explanation/papers.md#errors-in-the-papers)."""

PARTS = ("Claim", "Preconditions", "Proof", "Ranges", "Source")
"""What every theorem states, in this order."""


def mechanisms_page() -> str:
    """The kinds and mechanisms of a plan, then the claim and the source of every theorem."""
    parts = [HEAD, table(["kind", "mechanisms", "release"], _offers()), THEOREMS_HEAD]
    for number, mechanism in theorems():
        title, _, theorem = docstring(inspect.getmodule(mechanism)).partition("\n\n")
        _, *stated = re.split(rf"^({'|'.join(PARTS)})\.  ", theorem, flags=re.M)
        found = dict(zip(stated[::2], stated[1::2], strict=True))
        source, *_ = found["Source"].split("\n\n")
        parts += [
            f"## {number}: {title.rstrip('.')} {{#{number.lower()}}}",
            f"`{mechanism.__module__}.{mechanism.__name__}`",
            found["Claim"].strip(),
            f"Source: {source.strip()}",
        ]
    return "\n\n".join(parts) + "\n"


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


def _offers() -> Iterator[tuple[str, str, str]]:
    for section, group in groupby(offers(), lambda offer: offer[0]):
        (kind,) = options(section, "kind")
        mechanisms = ", ".join(_spending(section, mechanism) for _, mechanism in group)
        yield f"`{kind}`", mechanisms, docstring(section).split("\n\n")[0]


def _spending(section: Any, mechanism: str) -> str:
    stated = section.model_construct(mechanism=mechanism, bandwidth=1.0)
    spent = ["beta"] * stated.spends_beta("basic") + ["gamma"] * stated.spends_gamma
    return f"`{mechanism}`" + f" ({', '.join(spent)})" * bool(spent)
