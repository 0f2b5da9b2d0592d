"""The page of mechanisms, from what plans may ask for and from the docstrings of ``dpcore``."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args

import dpcore.mechanisms
from docs.reference.markdown import docstring, table
from docs.reference.proofs import proofs
from schemas.releases import AnyRelease

HEAD = """\
# Mechanisms

What stands between an exact statistic and a published one. alpha is epsilon and beta is delta of
differential privacy; gamma is the chance of random differential privacy. All noise is drawn from the
stated law by integer arithmetic. Letters after METHODS name sections of the [method sheet][sheet],
where every constant is derived or checked and where the papers differ. [Which mechanism does
what][which] says how to choose.

[sheet]: method-sheet.md
[which]: ../explanation/mechanisms.md"""

TESTED = """\
Contract tests hold every mechanism, in every release that uses it, to the same claims: sensitivity by
all neighbouring tables of a small domain, noise of the stated scale and of no other, what an audit
finds, the price at the privacy line. Other tests are those of `tests/dpcore` in files that name the
mechanism or such a release; a file that names several counts for each. Both are counted by pytest when
this page is built."""


def mechanisms_page() -> str:
    """What a plan may ask for, then every mechanism with its formula."""
    parts = [
        HEAD,
        "## What a plan may ask for",
        table(["kind", "mechanism", "spends", "what is released"], _offers()),
        "## How each is tested",
        TESTED,
        proofs(mechanisms()),
    ]
    for mechanism in mechanisms():
        parts += [f"## {mechanism.__name__}", *map(docstring, _lineage(mechanism))]
        module = inspect.getmodule(mechanism)
        if list(_classes(module)) == [mechanism]:
            parts.append(docstring(module))
    return "\n\n".join(parts) + "\n"


def mechanisms() -> list[type]:
    """The classes that the privacy line may call, by name."""
    public = (getattr(dpcore.mechanisms, name) for name in dpcore.mechanisms.__all__)
    return [c for c in public if isinstance(c, type) and not getattr(c, "_is_protocol", False)]


def offers() -> Iterator[tuple[Any, str]]:
    """The section of each kind of release, with each mechanism that it may name."""
    for section in get_args(get_args(AnyRelease)[0]):
        for mechanism in get_args(section.model_fields["mechanism"].annotation):
            yield section, mechanism


def _offers() -> Iterator[tuple[str, str, str, str]]:
    for section, mechanism in offers():
        kind = get_args(section.model_fields["kind"].annotation)[0]
        stated = section.model_construct(mechanism=mechanism, bandwidth=1.0)
        spent = ["alpha", *(f for f in ("beta", "gamma") if getattr(stated, f"spends_{f}"))]
        yield f"`{kind}`", f"`{mechanism}`", ", ".join(spent), docstring(section).split("\n\n")[0]


def _lineage(mechanism: type) -> Iterator[type]:
    """The class and those of ours that it inherits from: the law may stand in either."""
    return (c for c in mechanism.__mro__ if c.__module__.startswith("dpcore."))


def _classes(module: Any) -> Iterator[type]:
    for thing in vars(module).values():
        if isinstance(thing, type) and thing.__module__ == module.__name__:
            yield thing
