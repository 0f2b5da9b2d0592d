"""``mechanism: minimax-table`` and ``approximate-minimax-table`` of counts in a plan.

Both tables have the least worst-case loss; the approximate one spends beta.
"""

from papers.minimax_count.release import MinimaxCount
from schemas.releases.count import MECHANISMS, CountMechanism

MECHANISMS["minimax-table"] = CountMechanism(MinimaxCount)
MECHANISMS["approximate-minimax-table"] = CountMechanism(MinimaxCount, may_fail=True)
