"""Statistical audits: lower bounds on the privacy loss of a mechanism, from its outputs alone.

audit       an audit of a mechanism
releases    of a release, of several together, or only of the scale of noise
neighbours  neighbouring tables that are likely to be the worst for a release
draws       what is audited: many outputs for either side, across the real privacy line
scores      numbers made of an output, so that an event is "the score is at least s"
learn       scores that are learned from a search sample
events      the most telling event
bounds      from counts to a lower bound that holds for every sample size
density     the loss as a difference of log densities (Askin, Kutta & Dette 2022)

Nothing here sees a survey: tables are made up, and draws are marked as not fit for publication.
"""

from dpcore.audit.audit import AuditResult, DensityLoss, audit_mechanism
from dpcore.audit.density import LossCurve
from dpcore.audit.draws import Audited, Joint, LoopedDraws, ReleaseDraws, Simulated
from dpcore.audit.neighbours import Pair, neighbouring_pairs, survey_pairs
from dpcore.audit.releases import audit_release, audit_releases, audit_scale, short

__all__ = [
    "AuditResult",
    "Audited",
    "DensityLoss",
    "Joint",
    "LoopedDraws",
    "LossCurve",
    "Pair",
    "ReleaseDraws",
    "Simulated",
    "audit_mechanism",
    "audit_release",
    "audit_releases",
    "audit_scale",
    "neighbouring_pairs",
    "short",
    "survey_pairs",
]
