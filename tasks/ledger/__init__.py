"""The privacy ledger: the grants, the spending and the noisy statistics of each dataset.

A published draw cannot be taken back, so it is charged before it is drawn, and stored with its charge:

    reserve    one transaction counts a whole release against the grant, or refuses all of it
    draw       noise is drawn (the only step outside the ledger)
    commit     one transaction stores the noisy statistic, and its digest with the charge

Only what ``commit`` or ``committed`` returns may be published.  A charge moves one way:

    (absent) --reserve--> RESERVED --commit--> COMMITTED
                              |
                              +--void, by an operator who says why--> VOID

A crash at any point leaves the charge counted.  A retry finds the reservation, which is not charged
again, or the committed draw, which is reused.  Every writing transaction holds the lock of its dataset
from beginning to end, so two processes cannot both spend the same budget.

What the sums mean.  A grant (A, B, G) is fixed before the first release, and each release may be
chosen in view of all earlier ones.  Then everything together is (A, B, G)-randomly differentially
private, and (A, B)-differentially private if nothing spends gamma, for one unit and one relation
(basic composition as a filter: Rogers, Roth, Ullman and Vadhan 2016; under a concentrated grant, the
caps of ``dpcore.accounting.concentrated``; proofs in docs/pages/explanation/composition.md).

An analyst's allowance is a second filter of the same kind, on this analyst's requests.  Allowances
divide the grant and do not change its guarantee.

Sets of probability gamma add up only if they are fixed beforehand: a set chosen in view of a release
need not be small *given that release*.  So only one plan of a dataset may spend gamma: the first that
reserves it while nothing is drawn.  Its later runs have the same sets.  A second plan is refused even if
it was fixed in time, because a release could influence which of the two runs next.

>>> import tempfile
>>> import numpy as np
>>> from dpcore.accounting.budget import Budget
>>> from dpcore.line.statistic import Noisy
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = Ledger(f"sqlite:///{folder.name}/ledger.db")
>>> ledger.first_grant("wages", Budget.of("1"), who="A. Officer", why="survey year 2025")
True
>>> charges = {"by age": Charge(Budget.of("1/3"), {"mechanism": "discrete laplace"})}
>>> request = ChargeRequest("wages", "2025-q1", "plan-digest", charges)
>>> ledger.reserve(request)
['by age']
>>> ledger.reserve(request)  # a retry pays nothing
[]
>>> drawn = Noisy(np.array([12, 7, 9]))
>>> ledger.commit("wages", "2025-q1", "by age", drawn).values.tolist()
[12, 7, 9]
>>> other = Noisy(np.array([11, 8, 9]))  # a slower process: it must use what it gets back
>>> ledger.commit("wages", "2025-q1", "by age", other).values.tolist()
[12, 7, 9]
>>> str(ledger.remaining("wages").alpha)
'2/3'
>>> folder.cleanup()
"""

from tasks.ledger.ledger import Ledger, ledger_if_any
from tasks.ledger.notes import Decision
from tasks.ledger.records import (
    Account,
    Action,
    Allowance,
    Charge,
    ChargeRecord,
    ChargeRequest,
    Fault,
    HistoryRecord,
    Releases,
    State,
    charge_id,
    charges_of,
)

__all__ = [
    "Account",
    "Action",
    "Allowance",
    "Charge",
    "ChargeRecord",
    "ChargeRequest",
    "Decision",
    "Fault",
    "HistoryRecord",
    "Ledger",
    "Releases",
    "State",
    "charge_id",
    "charges_of",
    "ledger_if_any",
]
