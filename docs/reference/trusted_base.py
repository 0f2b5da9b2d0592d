"""The page of the trusted base: what an outside reviewer must read, with its lines counted."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from docs.reference.markdown import table

ROOT = Path(__file__).parent.parent.parent

REVIEWED = "Reviewed by nobody outside the project so far."


@dataclass(frozen=True)
class Part:
    """Files that guarantee something together.

    ``files``: patterns, relative to the repository; ``unproved``: what of the guarantee no proof covers.
    """

    title: str
    files: tuple[str, ...]
    guarantees: str
    unproved: str

    def paths(self) -> list[Path]:
        """The files that have a content, by folder."""
        found = {path for pattern in self.files for path in ROOT.glob(pattern)}
        tests = {path for path in found if path.name.startswith("test_")}
        held = (path for path in found - tests if path.stat().st_size)
        return sorted(held, key=lambda path: (path.parent, path.name))


PARTS = (
    Part(
        "The privacy line",
        (
            "dpcore/line/privacy_line.py",
            "dpcore/line/mechanism.py",
            "dpcore/line/statistic.py",
        ),
        "Exact values are read only here, and no draw costs more than its share. `Exact` does not print,"
        " compare or pickle",
        "Python has no private attributes: only review stops a caller who reads `_statistic`. Exact"
        " fractions and 64-bit integers are trusted to Python and numpy",
    ),
    Part(
        "Mechanisms",
        (
            "dpcore/mechanisms/*.py",
            "papers/*/mechanism.py",
            "papers/near_records/[bpt]*.py",
            "papers/minimax_count/[pt]*.py",
            "papers/k_norm/sampler.py",
            "papers/difference_body/body.py",
            "papers/sampled_histogram/urn.py",
            "papers/u_statistic/kernels.py",
        ),
        "Each file is a [theorem](../reference/mechanisms.md#theorems), from a given sensitivity to"
        " (alpha, beta, gamma) and zCDP",
        "The proofs are by hand; no machine has checked them. Time and memory of a draw may depend on"
        " the statistic",
    ),
    Part(
        "Samplers",
        ("dpcore/sampling/*.py",),
        "Exactly the stated laws, by integer arithmetic on words of the operating system's generator",
        "We assume that the generator is uniform and independent. The fast path assumes that `exp` and"
        " `log` of doubles are right to a stated margin; beyond it whole numbers decide. Rejection takes"
        " a random time",
    ),
    Part(
        "Numerics of accounting",
        ("dpcore/accounting/*.py",),
        "A price is never rounded towards the cheaper side: decimals of 50 digits, rounded up",
        "We assume that Python's `decimal` rounds `exp` and `ln` as documented",
    ),
    Part(
        "Neighbours, cells and lattices",
        (
            "dpcore/domain/adjacency.py",
            "dpcore/domain/axes.py",
            "dpcore/domain/domain.py",
            "dpcore/domain/words.py",
            "dpcore/domain/texts.py",
            "dpcore/domain/tally.py",
            "dpcore/domain/transforms.py",
            "dpcore/domain/regions.py",
            "dpcore/domain/lattice.py",
            "dpcore/domain/curves.py",
            "dpcore/domain/step_values.py",
            "dpcore/domain/series.py",
            "dpcore/arrays.py",
        ),
        "The largest change of a sum by one unit; exact tallies; real vectors in whole steps, with"
        " rounding counted in the sensitivity",
        "The error of a transform is bounded by a lemma about algorithms of the kind that scipy uses;"
        " its compiled code was tested against the bound, not verified",
    ),
    Part(
        "Statistics and their sensitivities",
        ("dpcore/releases/**/*.py",),
        "Each release's `statistic` moves by at most the sensitivity that it gives to its mechanism."
        " Read only `statistic`, the functions that it calls, and `mechanism`: `publish` sees noisy"
        " numbers only",
        "Sensitivities of densities are floats, raised by 1e-12 for their own rounding. We assume that"
        " numpy's and LAPACK's elementary functions are within a few units of their last digit",
    ),
    Part(
        "Kernel machines",
        ("dpcore/machines/*.py",),
        "Weights within a public tolerance of the minimiser, certified with all roundings counted; the"
        " features of a record depend on that record alone",
        "Underflow below 1e-300 is ignored. The solver ended in thousands of problems, but no proof says"
        " that it ends for every table, and its time depends on the table",
    ),
    Part(
        "What a plan means",
        (
            "schemas/plan/budget.py",
            "schemas/plan/__init__.py",
            "schemas/plan/contents.py",
            "schemas/plan/digest.py",
            "schemas/plan/coherence.py",
            "schemas/plan/searches.py",
            "schemas/plan/best.py",
            "schemas/plan/analysis.py",
            "dpcore/model_formula.py",
            "schemas/plan/publication.py",
            "schemas/document.py",
            "schemas/survey/public_files.py",
            "schemas/numbers.py",
            "schemas/survey/columns.py",
            "schemas/survey/cells.py",
            "schemas/survey/keys.py",
            "schemas/survey/number_column.py",
            "schemas/survey/reading.py",
            "schemas/survey/found.py",
            "schemas/survey/dates.py",
            "schemas/survey/formats.py",
            "schemas/survey/curves.py",
            "schemas/plan/series.py",
            "schemas/plan/linked.py",
            "schemas/survey/unit.py",
            "schemas/survey/source.py",
            "schemas/survey/checks.py",
            "schemas/survey/engine.py",
            "schemas/plan/protection.py",
            "schemas/releases/*.py",
        ),
        "The bounds, categories, shares and neighbours of the plan reach the releases unchanged, and"
        " unknown keys are errors",
        "Only the author of the plan can ensure that these numbers are public knowledge",
    ),
    Part(
        "From the source to the tally",
        (
            "tasks/survey/**/*.py",
            "tasks/draw.py",
            "tasks/budget/charge.py",
            "tasks/workplace/home.py",
            "tasks/workplace/job.py",
            "tasks/workplace/places.py",
            "tasks/workplace/plans.py",
            "tasks/workplace/schedule.py",
            "tasks/workplace/step.py",
        ),
        "Every step acts on each record or each unit alone, or is a sum ([stability"
        " map](stability-map.md)). No private value reaches a log, an error or the result of a task",
        "We trust DuckDB, PostgreSQL or Spark with their SQL, and Ibis with writing it. Tables that do"
        " not fit the plan are refused, and the refusal is visible. Times depend on the data",
    ),
    Part(
        "The ledger",
        ("tasks/ledger/*.py", "tasks/budget/checkpoint.py", "tasks/bundle/folders.py"),
        "Charges never exceed the grant, and each charge shows one draw ([composition"
        " theorem](composition.md))",
        "We assume that SQLite or PostgreSQL is serialisable and durable, that the disk keeps what it"
        " confirmed, and that nobody restores an older copy of the ledger, which only a checkpoint on"
        " another disk detects",
    ),
)
"""From the line outwards."""

UNREAD = {
    "dpcore/errors.py": "names of errors",
    "dpcore/domain/cell_values.py": "numbers inside cells of synthetic records",
    "dpcore/formula.py": "formulas over synthetic records",
    "dpcore/progress.py": "counts of finished steps",
    "dpcore/suggestion.py": "close names in error messages",
    "dpcore/post/**/*.py": "sees noisy statistics alone",
    "schemas/survey/blanks.py": "a plan that is not filled in",
    "schemas/survey/derived.py": "columns of synthetic records that follow from others",
    "schemas/first_plan/described.py": "describes columns by their names and types",
    "schemas/first_plan/question.py": "what a questionnaire says of a column, for a first plan",
    "schemas/plan/operation.py": "schedules and approval",
    "schemas/plan/synthesis.py": "synthetic records, from noisy statistics",
    "tasks/bundle/digests.py": "digests of published files",
    "schemas/text.py": "refuses text that is not what it looks like",
    "tasks/bundle/sign.py": "Ed25519, of the library cryptography",
    "tasks/workplace/room.py": "the room that is left on disks",
    "tasks/workplace/events.py": "appends public words to a file",
    "tasks/bundle/verify.py": "compares digests of published files",
}
"""What the files of the trusted base import and a reviewer of privacy may leave out, and why."""

HEAD = f"""\
# The trusted base

!!! warning "{REVIEWED}"

To check the privacy claim without trusting its authors, read these files; no others matter. A test
follows the imports of each file: each import is on this page, or listed at the end with the reason
why it need not be read. Lines include comments and docstrings. For a plan with one
kind of release, read from the three longest lists only its file, its mechanism and the samplers that
these import.

All parts trust the processor and its floating-point arithmetic, the operating system, the Python
interpreter, numpy and scipy, and an installation of the code that was read."""


def trusted_base_page() -> str:
    """What each part guarantees and what no proof covers, then every file of it."""
    summary = [
        (f"[{p.title}](#{_anchor(p)})", f"{sum(map(lines, p.paths())):,}", p.guarantees, p.unproved)
        for p in PARTS
    ]
    total = sum(lines(path) for path in trusted())
    sections = [HEAD, table(["part", "lines", "guarantees", "not proved"], summary)]
    sections.append(f"Together {len(trusted())} files of {total:,} lines.")
    for part in PARTS:
        sections += [f"## {part.title}", table(["folder", "lines", "files"], _folders(part))]
    sections += ["## What need not be read", table(["files", "why"], _unread())]
    return "\n\n".join(sections) + "\n"


def trusted() -> list[Path]:
    """Every file of the trusted base."""
    return [path for part in PARTS for path in part.paths()]


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _unread() -> Iterator[tuple[str, str]]:
    for pattern, why in UNREAD.items():
        yield f"`{pattern}`", why


def _folders(part: Part) -> Iterator[tuple[str, str, str]]:
    """Each folder with its lines and files: what a file holds is its own first sentence."""
    for folder, group in groupby(part.paths(), lambda path: path.parent):
        paths = list(group)
        files = " ".join(path.stem for path in paths)
        yield (
            f"`{folder.relative_to(ROOT).as_posix()}`",
            f"{sum(map(lines, paths)):,}",
            f"`{files}`",
        )


def _anchor(part: Part) -> str:
    return part.title.lower().replace(",", "").replace(" ", "-")
