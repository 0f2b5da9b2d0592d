"""Pages that can be run: ``console`` blocks are sessions, blocks with a title are files.

    ```yaml title="plan.yaml"      written to the folder of the page
    ```console                     `$ command` is run there; what follows must be its output, in which
                                   `...` matches anything (as in a doctest)
    <!-- slow -->                  before a block: run it with the slow tests

``# exits with N`` after a command states an exit code other than 0.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

from tests.flows.served import BRIEFLY
from tests.waiting import SECONDS

BLOCK = re.compile(
    r"(?P<slow><!-- slow -->\n)?```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)```",
    re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """A command of a page, and the output that the page shows ('' if it shows none)."""

    line: str
    shown: str
    slow: bool

    @property
    def code(self) -> int:
        stated = re.search(r"# exits with (\d+)$", self.line)
        return int(stated[1]) if stated else 0

    def run(self, folder: Path) -> None:
        """Run it in the folder; fails where the page shows something else."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        modules = os.pathsep.join(filter(None, (BRIEFLY, os.environ.get("PYTHONPATH"))))
        own = {"PATH": path, "PYTHONPATH": modules, "NO_COLOR": "1"}
        done = subprocess.run(
            self.line, shell=True, cwd=folder, env=os.environ | own,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == self.code, f"{self.line}\n{done.stdout}"
        shown_so = OutputChecker().check_output(self.shown, done.stdout, ELLIPSIS)
        assert not self.shown or shown_so, f"{self.line}\nshown:\n{self.shown}\ngot:\n{done.stdout}"


def files(page: Path) -> dict[str, str]:
    """The files that a page asks readers to save, by name."""
    return {b["title"]: b["text"] for b in BLOCK.finditer(page.read_text()) if b["title"]}


def commands(page: Path) -> Iterator[Command]:
    """The commands of a page, in order."""
    for block in BLOCK.finditer(page.read_text()):
        if block["kind"] == "console":
            for session in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
                line, _, shown = session.partition("\n")
                yield Command(line, shown, block["slow"] is not None)
