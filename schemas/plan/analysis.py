"""What a plan says about models that are fitted to the noisy tables, and published with their errors.

    analyses: [{name: who-works, title: Who works, formula: "{hours > 0} ~ age + sex", family: binomial}]

The library that reads formulas runs what they contain as Python.  Those of a plan may hold columns,
numbers, operators, comparisons with a text and a few functions, but no program.
"""

from collections.abc import Collection
from typing import Literal

from pydantic import Field, StrictStr

from dpcore.model_formula import ModelFormula
from schemas.document import Section
from schemas.releases import Name

FUNCTIONS = ("C", "exp", "log")

MOST_PRODUCTS = 6
"""Interactions of more columns have more terms than a model may have."""


class Analysis(Section):
    """A model, computed from the noisy tables at no cost in privacy."""

    name: Name = Field(description="Names the table of coefficients.")
    title: StrictStr = Field(
        min_length=1, max_length=200, description="The question, as a reader knows it."
    )
    formula: StrictStr = Field(
        max_length=300,
        description="The response, ~ and the terms, as in R: `y ~ a * b`, `{hours > 40} ~ C(code)`, with"
        " columns, numbers, comparisons, `C`, `exp` and `log`. Names with blanks or dots are in"
        " backticks.",
    )
    family: Literal["gaussian", "binomial", "poisson"] = Field(
        default="gaussian",
        description="A linear model; `binomial` a logistic one of a response that is true or false;"
        " `poisson` one of counts.",
    )

    def check(self, columns: Collection[str]) -> None:
        """Raise ``ValueError`` where the formula holds anything but columns and arithmetic."""
        try:
            formula = ModelFormula.read(self.formula)
        except ValueError as error:
            raise ValueError(f"formula: {error}") from None
        before = ""
        for kind, word, called in formula.tokens:
            if kind == "name" and not (called and word in FUNCTIONS):
                if word not in columns:
                    raise ValueError(f"formula: {word!r} is not one of {', '.join(columns)}")
                if called:
                    raise ValueError(
                        f"formula: {word} is not one of the functions {', '.join(FUNCTIONS)}"
                    )
            if kind == "text" and before != "compared":
                raise ValueError(f"formula: {word} may only be compared, with == or !=")
            if before == "text" and kind != "sign":
                raise ValueError(f"formula: {word!r} cannot follow a text")
            before = kind
        if sum(token.kind == "product" for token in formula.tokens) > MOST_PRODUCTS:
            raise ValueError(f"formula: has more than {MOST_PRODUCTS} of * : /")
