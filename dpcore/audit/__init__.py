"""Statistical audits: lower bounds on the privacy loss of a mechanism, from its outputs alone.

audit       an audit of a mechanism
releases    an audit of a release, or of several together
short       an audit of all releases of a plan, in seconds
width       whether noise is as wide as stated, in every round
fresh       whether noise is drawn anew for every number, in every round
chosen      whether choices are made with the stated chances
price       whether an event costs as much as its draws
replay      whether neighbours change a statistic by more than declared
neighbours  neighbouring tables that are likely to be the worst for a release
fuzz        neighbouring tables at random
draws       many outputs for each side, through the real privacy line
rehearsal   randomness for draws that cannot be published
scores      functions of an output, so that an outcome is "the score is at least s"
learn       scores that are learned from a search sample
outcomes    the outcome that separates the two sides best
bounds      a lower bound from counts that holds for every sample size
results     what an audit found

Nothing here sees a survey: tables are made up, and draws are marked as not fit for publication.
"""

from dpcore.audit.audit import audit_mechanism
from dpcore.audit.draws import Audited, Joint, ReleaseDraws, Simulated
from dpcore.audit.neighbours import Pair, neighbouring_pairs, survey_pairs
from dpcore.audit.releases import audit_release, audit_releases
from dpcore.audit.results import AuditResult
from dpcore.audit.short import short_audit

__all__ = [
    "AuditResult",
    "Audited",
    "Joint",
    "Pair",
    "ReleaseDraws",
    "Simulated",
    "audit_mechanism",
    "audit_release",
    "audit_releases",
    "neighbouring_pairs",
    "short_audit",
    "survey_pairs",
]
