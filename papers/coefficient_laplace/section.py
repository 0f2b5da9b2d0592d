"""``mechanism: coefficient-laplace`` of densities in a plan."""

from papers.coefficient_laplace.release import CoefficientDensity
from schemas.releases.density import MECHANISMS, DensityMechanism

MECHANISMS["coefficient-laplace"] = DensityMechanism(CoefficientDensity, truncated=True)
