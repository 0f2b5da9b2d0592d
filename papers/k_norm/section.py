"""``mechanism: spectral-gamma`` of densities in a plan."""

from papers.k_norm.release import GammaDensity
from schemas.releases.density import MECHANISMS, DensityMechanism

MECHANISMS["spectral-gamma"] = DensityMechanism(GammaDensity)
