"""The plan's section on models that are fitted to the noisy tables and published with their errors.

analyses: [{name: who-works, title: Who works, formula: "{hours > 0} ~ age + sex", family: binomial}]
"""

from pydantic import Field, StrictStr

from schemas.document import Section
from schemas.releases import Name
from schemas.releases.formulas import FamilyName, WrittenFormula


class Analysis(Section):
    """A model, computed from the noisy tables at no cost in privacy."""

    name: Name = Field(description="The name of the table of coefficients.")
    title: StrictStr = Field(
        min_length=1,
        max_length=200,
        description="The question that the model answers, in plain words.",
    )
    formula: WrittenFormula
    family: FamilyName = "gaussian"
