"""The page that sets every experiment beside what its paper reports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.papers.constructions import constructions_section
from benchmarks.papers.experiment import Experiment, Line

INTRODUCTION = """# The papers' experiments, repeated

This page repeats the experiments of the papers behind dprelease with its own releases. The column "in
the paper" quotes the paper's description of a plot. [All constructions](#all-constructions) of the
papers are listed at the end.
"""


def page(
    experiments: Sequence[Experiment],
    found: Mapping[str, list[Line]],
    images: Path,
    path: Path,
) -> str:
    """Markdown, one section for each experiment."""
    folder = Path(os.path.relpath(images, path.parent)).as_posix()
    sections = [section(each, found.get(each.name), folder) for each in experiments]
    return "\n".join([INTRODUCTION, *sections, constructions_section()])


def section(experiment: Experiment, lines: list[Line] | None, folder: str) -> str:
    """Title, plot, table and what differs; without lines, what was missing."""
    if lines is None:
        return f"""## {experiment.title}

{experiment.source}.

Not run: the public table `{experiment.data}` was not there.
"""
    table = "\n".join(f"| {' | '.join(row)} |" for row in experiment.beside(lines))
    return f"""## {experiment.title}

{experiment.source}.

![The plot]({folder}/papers-{experiment.name}.svg)

| | in the paper | here |
|---|---|---|
{table}

{experiment.differs}
"""
