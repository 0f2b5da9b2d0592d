"""The section on the quality of synthetic records in a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr, StrictStr, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.domain import Domain
from dpcore.model_formula import ModelFormula
from dpcore.releases.base import Release
from dpcore.releases.tables.criteria import (
    Contradictions,
    Copies,
    Criterion,
    Distance,
    Largest,
    MeanDifference,
    Prediction,
    values_of,
)
from dpcore.releases.tables.quality import RecordQuality
from dpcore.suggestion import suggestion
from schemas.document import Section, inside
from schemas.releases.base import Name, ReleaseSection, SurveyFacts, listed
from schemas.releases.binning import Edges, binned_domain
from schemas.releases.equal import with_equal
from schemas.releases.rules import RuleSection, build_rules
from schemas.survey.derived import details

KINDS = ("distance", "largest", "contradicts", "model", "means", "copies")
MOST_CRITERIA = 50

MOST_FEATURES, MOST_GROUPS = 1000, 100_000


class CriterionSection(Section):
    """One criterion with its limit."""

    distance: Literal["pairs"] | list[StrictStr] | None = Field(
        default=None,
        description="Columns: the total variation distance between their tables in the synthetic"
        " records and in the rows. Or `pairs`: the mean distance over all pairs of columns.",
    )
    largest: Literal["pairs"] | list[StrictStr] | None = Field(
        default=None,
        description="Columns, or `pairs`: the largest difference between the shares of a cell in their"
        " tables.",
    )
    contradicts: RuleSection | None = Field(
        default=None,
        description="A rule, as in `rules`: the share of synthetic records that break it, minus the"
        " share of rows that do.",
    )
    model: StrictStr | None = Field(
        default=None,
        description="A formula, such as `income ~ age + sex`, fitted to the synthetic records: its"
        " mean error on the rows, minus its mean error on the records. Errors are fractions of the"
        " response's range or, for categories, the probability of wrong categories.",
    )
    means: StrictStr | None = Field(
        default=None,
        description="Such as `income ~ region + sex`: the mean difference between the means of the first"
        " column in each group of the others, as a fraction of its range; of two categories, between"
        " shares. Groups count by their rows.",
    )
    copies: Literal[True] | None = Field(
        default=None,
        description="The share of rows that are the only row in their cell of all columns, if this cell"
        " also contains a synthetic record.",
    )
    at_most: float = Field(gt=0, le=1, description="The largest value that meets the criterion.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise ValueError(f"state one of {', '.join(KINDS)}")
        for kind in ("distance", "largest"):
            if getattr(self, kind) == []:
                raise ValueError(f"{kind}: name at least one column, or write pairs")
        return self

    def build(self, domain: Domain, place: str, columns: Mapping[str, Any]) -> Criterion:
        """Build the criterion over cells of records; messages of ``ValueError`` begin with ``place``."""
        limit = self.at_most
        if self.copies:
            return Copies("share of rows with a copy among the synthetic records", limit)
        if self.contradicts is not None:
            rule = self.contradicts.stated_at(f"{place}.contradicts")
            rules = build_rules([rule], domain, details(list(domain.names), columns))
            if any(each.differences for each in rules):
                raise ValueError(
                    f"{place}.contradicts: an inequality depends on values inside bins, which are not"
                    " compared; state conditions on cells, under if and then"
                )
            return Contradictions(f"contradictions of: {self.contradicts.words}", limit, rules)
        if self.model is not None:
            return self._prediction(domain, place, self.model)
        if self.means is not None:
            return self._of_means(domain, place, self.means)
        kind = "largest" if self.largest else "distance"
        sets, words = self._sets(domain, f"{place}.{kind}", self.largest or self.distance)
        if kind == "largest":
            return Largest(f"largest difference in {words}", limit, sets)
        mean = "mean " * (self.distance == "pairs")
        return Distance(f"{mean}distance of {words}", limit, sets)

    def _sets(
        self, domain: Domain, place: str, columns: Literal["pairs"] | list[str] | None
    ) -> tuple[tuple[tuple[str, ...], ...], str]:
        """The sets of columns of the tables, and words for them."""
        if columns == "pairs":
            if len(domain.names) < 2:
                raise ValueError(f"{place}: one column has no pairs; name the column in a list")
            return (*combinations(domain.names, 2),), "pairs"
        named = _named(domain, place, columns or [])
        domain.select(named).require_one_word("a distance")
        named = tuple(name for name in domain.names if name in named)  # a table has no order
        return (named,), " x ".join(named)

    def _of_means(self, domain: Domain, place: str, formula: str) -> Criterion:
        response, *by = _added(domain, f"{place}.means", formula)
        with inside(f"{place}.means: "):
            domain.select((*by, response)).require_one_word("a table of means")
            if domain.select(tuple(by)).size > MOST_GROUPS:
                raise ValueError(f"more than {MOST_GROUPS:,} groups; leave out the largest column")
            values_of(domain.axes[domain.positions[response]])
        return MeanDifference(
            f"means of {response} by {', '.join(by)}", self.at_most, response, (*by,)
        )

    def _prediction(self, domain: Domain, place: str, formula: str) -> Criterion:
        response, *terms = _added(domain, f"{place}.model", formula)
        features = sum(axis.size for axis in domain.select((response, *terms)).axes)
        if features > MOST_FEATURES:
            raise ValueError(
                f"{place}.model: its columns together have {features:,} categories and bins, more than"
                f" {MOST_FEATURES:,}; leave out the largest column"
            )
        words = f"excess error of {response} by {', '.join(terms)}"
        return Prediction(words, self.at_most, response, (*terms,))


class QualitySection(ReleaseSection):
    """A release that measures the quality of synthetic records before they are published."""

    words: ClassVar[str] = "Quality of synthetic records"
    kind: Literal["quality"]
    records: Name = Field(description="The name of the measured synthetic table.")
    accept: list[CriterionSection] = Field(
        min_length=1,
        max_length=MOST_CRITERIA,
        description="The criteria that the records must meet.",
    )
    otherwise: Literal["withhold", "publish"] = Field(
        default="withhold",
        description="What happens to the records if a criterion is not met. The measurements are"
        " published in any case.",
    )
    mechanism: Literal["discrete-laplace"] = "discrete-laplace"

    # Not keys of the plan, because the release of the records states them already.
    _columns: list[str] = PrivateAttr(default_factory=list)
    _bins: dict[str, Edges] = PrivateAttr(default_factory=dict)
    _equal: list[tuple[str, str]] = PrivateAttr(default_factory=list)
    _rules: list[RuleSection] = PrivateAttr(default_factory=list)

    def of_records(self, synthesis: Sequence[Any], releases: Sequence[ReleaseSection]) -> Self:
        """The section over the cells of its synthetic table; ``ValueError`` without cells."""
        tables = {table.name: table.from_ for table in synthesis}
        if self.records not in tables:
            meant = suggestion(self.records, tables)
            raise ValueError(f"records: the plan has no synthetic table {self.records!r}{meant}")
        source = next((s for s in releases if s.name == tables[self.records]), None)
        columns, bins = (getattr(source, key, None) for key in ("columns", "bins"))
        if source is None or columns is None or bins is None or source.counts_weights:
            raise ValueError(
                f"records: {self.records!r} must be drawn from a histogram, margins or"
                " microdata-margins of records, because cells are compared"
            )
        copy = self.model_copy()
        copy._columns, copy._bins = list(columns), dict(bins)
        copy._equal = list(getattr(source, "often_equal", []))
        copy._rules = list(getattr(source, "rules", []))
        return copy

    @property
    def judges(self) -> str:
        return self.records

    @property
    def subject(self) -> str:
        return f"{len(self.accept)} criteria for {self.records}"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        domain = binned_domain(survey.columns, self._columns, self._bins)
        domain = with_equal(domain, self._equal, survey.columns, self._columns)
        criteria = tuple(
            each.build(domain, f"accept[{i}]", survey.columns) for i, each in enumerate(self.accept)
        )
        kept = {*build_rules(self._rules, domain, details(list(domain.names), survey.columns))}
        for i, each in enumerate(criteria):
            if isinstance(each, Contradictions) and kept.issuperset(each.rules):
                raise ValueError(
                    f"accept[{i}].contradicts: repeats one of the `rules` of the records, which obey it"
                    " anyway; leave it out"
                )
        # Without the limits: criteria that differ only in the limit are one measurement.
        measured = [replace(each, at_most=1.0) for each in criteria]
        for i, each in enumerate(measured):
            if each in measured[:i]:
                raise ValueError(
                    f"accept[{i}]: repeats accept[{measured.index(each)}], and would be charged again;"
                    " leave out one of them"
                )
        own: dict[str, Any] = {"criteria": criteria, "of": self.records}
        own["withholds"] = self.otherwise == "withhold"
        return self.make(RecordQuality, domain, survey, share, **own)


def _added(domain: Domain, place: str, text: str) -> tuple[str, ...]:
    """The response and the columns of a formula that adds up columns of the records."""
    with inside(f"{place}: "):
        formula = ModelFormula.read(text)
    by = formula.added_columns()
    if by is None:
        raise ValueError(
            f"{place}: write a column, ~ and columns that are added up, such as"
            " income ~ age + sex, without C(); categories are recognised"
        )
    return _named(domain, place, [formula.names[0], *by])


def _named(domain: Domain, place: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, after a check that they are different columns of the records."""
    for name in names:
        if name not in domain.names:
            meant = suggestion(name, domain.names)
            raise ValueError(f"{place}: the records have no column {name!r}{meant}")
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"{place}: {listed(list(names), ', ')} must be different columns")
    return tuple(names)
