"""The privacy ledger: what each dataset was granted, what it has spent, and what was drawn for it.

A draw cannot be taken back, so it is paid for before it is made and is kept with its receipt:

    reserve    one transaction counts a whole release against the grant, or refuses all of it
    draw       noise is drawn (the only step outside the ledger)
    commit     one transaction stores the noisy statistic, and its digest with the charge

Only what ``commit`` or ``committed`` returns may be published.  A charge moves one way:

    (absent) --reserve--> RESERVED --commit--> COMMITTED
                              |
                              +--void, by an operator who says why--> VOID

A crash at any point leaves the charge counted.  A retry finds the reservation, which is not
charged again, or the committed draw, which is used again.  The lock of a dataset is held for the
whole of every writing transaction, so two processes never both pass a check that one may pass.

>>> import tempfile
>>> import numpy as np
>>> from dpcore.budget import Budget
>>> from dpcore.statistic import Noisy
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = Ledger(f"sqlite:///{folder.name}/ledger.db")
>>> ledger.first_grant("wages", Budget.of("1"), who="A. Officer", why="survey year 2025")
True
>>> charges = {"by age": Charge(Budget.of("1/3"), {"mechanism": "discrete laplace"})}
>>> ledger.reserve("wages", "2025-q1", "plan-digest", charges)
['by age']
>>> ledger.reserve("wages", "2025-q1", "plan-digest", charges)  # a retry pays nothing
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

from tasks.ledger.ledger import Ledger, upgrade
from tasks.ledger.notes import Decision
from tasks.ledger.records import (
    Action,
    Charge,
    ChargeRecord,
    Fault,
    HistoryRecord,
    State,
    charge_id,
)

__all__ = [
    "Action",
    "Charge",
    "ChargeRecord",
    "Decision",
    "Fault",
    "HistoryRecord",
    "Ledger",
    "State",
    "charge_id",
    "upgrade",
]
