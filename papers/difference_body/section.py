"""``mechanism: difference-body`` of densities in a plan."""

from papers.difference_body.release import BodyDensity
from schemas.releases.density import MECHANISMS, DensityMechanism

MECHANISMS["difference-body"] = DensityMechanism(BodyDensity)
