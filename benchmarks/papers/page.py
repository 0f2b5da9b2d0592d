"""The page that sets every experiment beside what its paper reports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.papers.constructions import errors_section
from benchmarks.papers.experiment import Experiment, Line

INTRODUCTION = """# The papers' experiments, repeated

Experiments of the papers behind dprelease, repeated with its own releases.
`python -m benchmarks.papers NAME` repeats one; names are in brackets. Hall is his thesis, HRW and RDP
are Hall, Rinaldo and Wasserman, WZ is Wasserman and Zhou, and AKD is Askin, Kutta and Dette.
[Errors in the papers](#errors-in-the-papers) are at the end.
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
    return "\n".join([INTRODUCTION, *sections, errors_section()])


def section(experiment: Experiment, lines: list[Line] | None, folder: str) -> str:
    """Title, plot, figures and what differs; without lines, what was missing."""
    if lines is None:
        return f"""## {experiment.title}

{experiment.source}.

Not run: the public table `{experiment.data}` was not there.
"""
    figures = "\n".join(figure(*row) for row in experiment.beside(lines))
    return f"""## {experiment.title}

{experiment.source} ({experiment.name}).

![{experiment.name}]({folder}/papers-{experiment.name}.svg)

{figures}

{experiment.differs}
"""


def figure(quantity: str, paper: str, here: str) -> str:
    """An item of the list; in brackets what the paper reports, if it does."""
    return f"- {quantity}: {here}" + f" (paper: {paper})" * bool(paper)
