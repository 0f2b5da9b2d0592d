"""What an installation holds, and for which dependency.

    PYTHONPATH=. ENVIRONMENT/bin/python -m benchmarks.installed

prints a line for each dependency that ``pyproject.toml`` states: ``packages`` and ``mb`` that it alone
brings into this environment, in the order below (what two need belongs to the first), then what else
is installed.  Files that Python compiled are not counted.
"""

import json
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FIRST = ("numpy", "scipy", "pandas", "pyarrow", "duckdb", "prefect")
"""What the mission names comes first, Prefect last of it: it brings along what others ask for too."""


def main() -> None:
    """Print the lines."""
    stated = [requirement.name for requirement in _needed(distribution("dprelease"), set())]
    seen = {"dprelease"}
    for name in sorted(stated, key=lambda each: FIRST.index(each) if each in FIRST else len(FIRST)):
        _show(name, list(_with_needs(name, seen)))
    _show("dprelease", [distribution("dprelease")])
    others = (d for d in distributions() if canonicalize_name(d.metadata["Name"]) not in seen)
    _show("not needed", list(others))


def _needed(one: Distribution, extras: set[str]) -> Iterator[Requirement]:
    """The requirements of a distribution in this environment, with some of its extras."""
    for text in one.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield requirement


def _with_needs(
    name: str, seen: set[str], extras: frozenset[str] = frozenset()
) -> Iterator[Distribution]:
    """A distribution and all that it needs, without those that were seen."""
    name = canonicalize_name(name)
    if name in seen:
        return
    try:
        one = distribution(name)
    except PackageNotFoundError:
        return
    seen.add(name)
    yield one
    for requirement in _needed(one, set(extras)):
        yield from _with_needs(requirement.name, seen, frozenset(requirement.extras))


def _show(name: str, those: list[Distribution]) -> None:
    size = sum(map(_size, those))
    print(json.dumps({"for": name, "packages": len(those), "mb": round(size / 1e6, 1)}))


def _size(one: Distribution) -> int:
    paths = (Path(str(one.locate_file(file))) for file in one.files or () if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    main()
