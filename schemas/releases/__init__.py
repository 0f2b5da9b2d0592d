"""What a plan says about each release, and how it becomes one of ``dpcore``.

One module per kind.  ``build`` gets the facts of the survey and the share of the budget; a
``ValueError`` from it begins with the place inside the section.
"""

from typing import Annotated

from pydantic import Field

from schemas.releases.base import Name, SurveyFacts
from schemas.releases.classifier import ClassifierSection
from schemas.releases.count import CountSection
from schemas.releases.density import DensitySection
from schemas.releases.function import FunctionSection
from schemas.releases.histogram import HistogramSection
from schemas.releases.margins import MarginsSection
from schemas.releases.mean import MeanSection
from schemas.releases.microdata import MicrodataSection
from schemas.releases.names import STATISTICS, check_names
from schemas.releases.near_records import NearRecordsSection
from schemas.releases.quantiles import QuantilesSection
from schemas.releases.regression import RegressionSection
from schemas.releases.sampled_histogram import SampledHistogramSection

AnyRelease = Annotated[
    HistogramSection
    | SampledHistogramSection
    | NearRecordsSection
    | MarginsSection
    | MeanSection
    | MicrodataSection
    | DensitySection
    | FunctionSection
    | ClassifierSection
    | RegressionSection
    | QuantilesSection
    | CountSection,
    Field(discriminator="kind"),
]

__all__ = ["STATISTICS", "AnyRelease", "MarginsSection", "Name", "SurveyFacts", "check_names"]
