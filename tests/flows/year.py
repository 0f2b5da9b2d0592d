"""A year of scheduled runs of a series, some of which are killed and started again.

    python -m tests.flows.year FOLDER PLAN SOURCE KILLED

runs the plan at the twelve due times of its schedule, each under the id of the scheduled run, and kills
run k, for each k in KILLED (such as 3,7), at a boundary of its own before it is run again.  Prints the
ids of the releases, and how often a process was killed, as JSON.
"""

import json
import os
import sys
from itertools import islice
from pathlib import Path

from schemas.plan import load_plan
from tasks.workplace.schedule import beginning, due_times, run_id
from tests.bare import release
from tests.flows.kills import Boundaries, install


def main() -> None:
    """Run the year."""
    folder, plan, source = (Path(argument) for argument in sys.argv[1:4])
    killed = [int(number) for number in sys.argv[4].split(",")]
    boundaries = Boundaries()
    install(boundaries)
    loaded = load_plan(plan)
    schedule = loaded.operation.schedule
    assert schedule is not None
    begins = beginning(schedule, plan, ())
    assert begins is not None
    ids, kills = [], 0
    for number, due in enumerate(islice(due_times(schedule, begins), 12), 1):
        ids.append(run_id(plan, due))
        for fatal in [10 * killed.index(number) + 9, 0] if number in killed else [0]:
            child = os.fork()
            if child == 0:
                boundaries.fatal = fatal
                boundaries.report = os.open(os.devnull, os.O_WRONLY)
                release(plan, ids[-1], folder / "out", source=str(source))
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if fatal:
                assert os.WIFSIGNALED(status), f"run {number} came to its end"
                kills += 1
            else:
                assert status == 0, f"run {number} failed"
    print(json.dumps({"ids": ids, "kills": kills}))


if __name__ == "__main__":
    main()
