"""Synthetic microdata from margins in a plan."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StrictInt, StrictStr, StringConstraints, model_validator

from dpcore.accounting.budget import Budget
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.post.records.columns import RecordColumns
from dpcore.post.records.nested import Nested, tied, with_groups
from dpcore.post.records.rules import Rule
from dpcore.releases.base import Release
from dpcore.releases.tables.allocation import MOST_WAYS
from dpcore.releases.tables.compressed_microdata import CompressedMicrodata
from dpcore.releases.tables.compression import usual_categories, usual_groups
from dpcore.releases.tables.microdata import Microdata
from dpcore.suggestion import suggestion
from schemas.document import Section, absent
from schemas.numbers import WrittenRational
from schemas.releases.base import CountingSection, SurveyFacts
from schemas.releases.binning import Bins, binned_domain
from schemas.releases.compared import with_compared
from schemas.releases.equal import equal_column, rules_of_equal, with_equal
from schemas.releases.margins import sets_of
from schemas.releases.optimise import Optimise, aim_of
from schemas.releases.rules import RuleSection, build_rules
from schemas.survey.derived import details

Memory = Annotated[
    str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}(\.[0-9]{1,3})? [MG]iB$", strict=True)
]


class CompressSection(Section):
    """Measures pairs of wide columns between groups of their categories or bins. A noisy table of each
    wide column alone determines its groups.
    """

    keep: StrictInt | None = Field(
        default=None,
        ge=2,
        description="The number of groups of a wide column; every column with more categories or bins is"
        " wide. Null is a separate group. Default: a number that suits the noise in a pair and the"
        " number of records; for columns of categories four times as many, up to 64.",
    )
    share: WrittenRational = Field(
        default=Fraction(1, 4),
        description="The share of the release's budget for tables of single wide columns.",
    )


class MicrodataSection(CountingSection):
    """Synthetic records that follow noisy tables of pairs, triples or larger sets of columns."""

    words: ClassVar[str] = "Tables for synthetic microdata"
    kind: Literal["microdata-margins"]
    columns: list[StrictStr] = Field(
        min_length=1, description="The columns of the synthetic records."
    )
    pairs: list[tuple[StrictStr, StrictStr]] | None = Field(
        default=None,
        description="Measure only these pairs of columns. Fewer pairs have less noise each, but nothing"
        " is measured about other pairs. Default: all pairs.",
    )
    ways: Literal[1, 2, 3] | list[Literal[1, 2, 3]] = Field(
        default=2,
        description="2: all pairs of the columns. 3: all triples, for many columns with few"
        " categories. Or a list of both. If all columns together have few cells, a histogram is"
        " better.",
    )
    also: list[list[StrictStr]] = Field(
        default_factory=list,
        description="Additional sets of up to six columns, for relations among three or more columns,"
        " such as income by sex and marital status. Records follow these tables and all tables inside"
        " them.",
    )
    optimise: Optimise = None
    compress: CompressSection | None = Field(
        default=None,
        description="For columns with hundreds of categories or many bins: their pairs are measured"
        " between groups, so that memory and noise stay small. All categories in a group are assumed"
        " to have the same relation to other columns.",
    )
    rules: list[RuleSection] = Field(
        default_factory=list,
        description="Rules that are true for every record, such as that children have no income."
        " Every synthetic record follows them. They cost no budget, and are never taken from the data.",
    )
    often_equal: list[tuple[StrictStr, StrictStr]] = Field(
        default_factory=list,
        exclude_if=absent,
        description="Pairs of numeric columns that are often equal, such as the weights of a person"
        " and of a household. A yes-or-no column on their equality is measured with every other column;"
        " synthetic records with yes have equal values.",
    )
    memory: Memory = Field(
        default="4 GiB",
        description="The largest memory for the model, the fit and the records, such as 2 GiB or 500"
        " MiB. A plan that may need more is refused.",
    )
    bins: Bins
    mechanism: Literal["discrete-laplace", "discrete-gaussian"] = "discrete-gaussian"

    def build(self, survey: SurveyFacts, share: Budget) -> Release:
        follow = details(self.columns, survey.columns)
        names = [*self.columns, *(group for group in follow if group not in self.columns)]
        domain = binned_domain(survey.columns, names, self.bins)
        domain = with_equal(domain, self.often_equal, survey.columns, self.columns)
        names = list(domain.names)
        nested = tuple(_nested(domain, group, *follow[group]) for group in follow)
        sets, rules = self._sets(names, nested), self._rules(domain, survey)
        make = partial(
            self.make,
            domain=domain,
            survey=survey,
            share=share,
            sets=sets,
            noise=self.mechanism,
            memory=_bytes(self.memory),
            rules=rules,
            nested=nested,
        )
        if self.compress is not None:
            stated = self.compress.keep
            keep = stated or usual_groups(
                domain,
                RecordColumns.of(domain, rules, nested),
                survey.rows,
                share,
                sets,
                self.mechanism,
                first_share=self.compress.share,
                adjacency=survey.adjacency,
            )
            # Without a wide column nothing is compressed, and one-way tables get no share.
            if keep:
                if self.mechanism == "discrete-gaussian":
                    domain, sets = with_compared(domain, survey.columns, sets, rules, keep)
                compressed = partial(
                    CompressedMicrodata, keep=keep, categories=stated or usual_categories(keep)
                )
                return make(compressed, domain=domain, sets=sets, first_share=self.compress.share)
        return make(Microdata, aim=aim_of(self.optimise, sets, names, "records"))

    def _rules(self, domain: Domain, survey: SurveyFacts) -> tuple[Rule, ...]:
        equal = rules_of_equal(domain, self.often_equal)
        return build_rules([*self.rules, *equal], domain, details(self.columns, survey.columns))

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.ways != 2 and self.pairs is not None:
            raise ValueError(
                "ways: not available with `pairs`; leave it out, and write larger sets under `also`"
            )
        if self.optimise is not None and self.compress:
            raise ValueError("optimise: not available with `compress`; leave one of them out")
        return self

    def _sets(self, names: Sequence[str], nested: Sequence[Nested]) -> tuple[tuple[int, ...], ...]:
        """The measured sets, as positions in ``names``, with groups that follow from these columns."""
        if self.pairs is None:
            free = [place for place in range(len(names)) if not _follows(place, nested)]
            # A single column has only its own table.
            every = sets_of(1 if len(free) == 1 else self.ways, len(free))
            usual = tuple(tuple(free[place] for place in places) for places in every)
        else:
            usual = tuple(
                self._places(pair, f"pairs[{i}]", "two different names", names, nested)
                for i, pair in enumerate(self.pairs + self._equal_pairs)
            )
            if len(set(usual)) != len(usual) or not usual:
                raise ValueError("pairs: list at least one pair, and no pair twice")
        usual = with_groups(usual + self._more(usual, names, nested), nested)
        if alone := set(range(len(names))) - {place for places in usual for place in places}:
            raise ValueError(
                f"pairs: no pair contains {[names[place] for place in sorted(alone)]}; add pairs, or"
                " leave these out of columns"
            )
        return usual

    def _more(
        self, usual: tuple[tuple[int, ...], ...], names: Sequence[str], nested: Sequence[Nested]
    ) -> tuple[tuple[int, ...], ...]:
        """The sets of ``also``, as positions in ``names``."""
        found: list[tuple[int, ...]] = []
        measured = with_groups(usual, nested)
        for i, columns in enumerate(self.also):
            key = f"also[{i}]"
            if not 2 <= len(columns) <= MOST_WAYS:
                raise ValueError(f"{key}: {columns} must have two to {MOST_WAYS} columns")
            places = self._places(columns, key, "different names", names, nested)
            if places in measured or places in found:
                raise ValueError(
                    f"{key}: {columns} are measured together already; leave the set out"
                )
            found.append(places)
        return tuple(found)

    @property
    def _equal_pairs(self) -> list[tuple[str, str]]:
        """Pairs of an equality column and either of its two columns."""
        return [(equal_column(pair), name) for pair in self.often_equal for name in pair]

    def _places(
        self,
        columns: Sequence[str],
        key: str,
        what: str,
        names: Sequence[str],
        nested: Sequence[Nested],
    ) -> tuple[int, ...]:
        for name in columns:
            if name not in names:
                raise ValueError(
                    f"{key}: {name!r} is not among the columns of the release"
                    f"{suggestion(name, names)}"
                )
        if len(set(columns)) != len(columns):
            raise ValueError(f"{key}: {list(columns)} must be {what}")
        places = tuple(sorted(names.index(name) for name in columns))
        if tied(places, nested):
            raise ValueError(
                f"{key}: one of {list(columns)} follows from another; leave the set out"
            )
        return places


def _follows(place: int, nested: Sequence[Nested]) -> bool:
    return any(each.group == place for each in nested)


def _nested(domain: Domain, group: str, detail: str, of: Mapping[Any, Any]) -> Nested:
    """The cell of the group for each cell of the detailed column; null belongs to null."""
    places = domain.positions[group], domain.positions[detail]
    groups, details = (domain.axes[place] for place in places)
    assert isinstance(groups, Categories)
    assert isinstance(details, Categories)
    cells = [groups.categories.index(of[category]) for category in details.categories]
    return Nested(*places, (*cells, *([groups.size - 1] if details.nullable else [])))


def _bytes(memory: str) -> int:
    number, unit = memory.split()
    return int(Fraction(number) * 2 ** {"MiB": 20, "GiB": 30}[unit])
