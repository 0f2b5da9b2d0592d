"""One release of the plan: tally, statistic, privacy line, ledger."""

from pathlib import Path

from dpcore.errors import LedgerError
from dpcore.privacy_line import perturb
from dpcore.sampling.source import RandomSource, SystemSource
from schemas.plan import Plan
from tasks.home import ledger_url
from tasks.ledger import Ledger, State
from tasks.step import step
from tasks.tally import tally


@step("draw", run_name="{title}")
def draw(
    plan: Plan,
    release_id: str,
    name: str,
    title: str,
    database: Path,
    source: RandomSource | None = None,
) -> None:
    """Draw the noisy statistic of one release, once: it goes to the ledger, and nowhere else.

    ``title`` is what an operator sees.  ``source`` is for tests; production draws from the
    operating system.  Raises ``LedgerError`` where nothing was reserved.
    """
    ledger = Ledger(ledger_url())
    charge = ledger.release(plan.dataset, release_id).get(name)
    if charge is not None and charge.state is State.COMMITTED:
        return
    if charge is None or charge.state is not State.RESERVED:
        raise LedgerError(f"{name}: nothing is reserved for this release, so nothing may be read")
    release = plan.built[name]
    exact = release.statistic(tally(database, release.domain, plan.rows))
    noisy = perturb(exact, release.mechanism, charge.budget, source or SystemSource())
    ledger.commit(plan.dataset, release_id, name, noisy)
