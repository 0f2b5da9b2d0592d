"""``mechanism: random-proportion`` of counts in a plan, which spends gamma."""

from papers.random_proportion.release import RandomCount
from schemas.releases.count import MECHANISMS, CountMechanism

MECHANISMS["random-proportion"] = CountMechanism(RandomCount, spends_gamma=True)
