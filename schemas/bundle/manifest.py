"""The manifest of a published bundle.

<dataset>/<release_id>/
  manifest.json        this document
  tables/*.parquet     histograms and margins; also as CSV, unless the plan wants none;
                       one file for a release of more than 1,000 tables
  replicates/*.parquet  the numbers of the table of the same name, row by row, with noise drawn again;
                       small files also as CSV
  replicates/README.md  how to compute errors with them, in pandas, R or SQL
  densities/*.parquet  grids and coefficients
  classifiers/*.parquet
  microdata/*.parquet  synthetic records
  microdata/*.members.parquet  with `linked`: the members of the synthetic units
  microdata/*.implicates.parquet  several versions of the records, to show the effect of noise
  microdata/*.support.parquet  which margins of the records the release determines, and how well
  draws/*.parquet      the noisy statistics, from which everything else is computed
  analyses/*.parquet   coefficients of models, with their errors from sampling and from noise
  report.html          a report for readers
  README.md            how to open these tables, in pandas, R or SQL
  datapackage.json, registry.yaml, dcat.json, croissant.json, ddi.xml, codebook.csv   (schemas.documents)
  SHA256SUMS           digests of all files above
  SHA256SUMS.sig       a signature of SHA256SUMS, if the agency signs
"""

import math
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from dpcore.accounting.budget import Budget, total
from dpcore.accounting.concentrated import Composition
from schemas.bundle.table_file import TableFile
from schemas.document import Section
from schemas.numbers import Rational
from schemas.plan import Plan

REPLICATES = (
    "Each replicate contains the published numbers with their noise drawn again, jointly for all tables"
    " of a release. The standard error of any function of the numbers is the root mean square, over"
    " replicates, of its difference from the published value."
)


IMPLICATES = (
    "Each implicate has as many records as the survey, and the implicates differ from each other as"
    " privacy noise would make them. Do not analyse them as one file, and do not use only one: repeat"
    " the analysis in each of the M implicates as if it were the survey. With the estimates q and"
    " squared standard errors u, the estimate is mean(q), and its variance mean(u) + (1 + 1/M) var(q)"
    " includes sampling and privacy noise, with (M - 1) (1 + mean(u) / ((1 + 1/M) var(q)))^2 degrees of"
    " freedom. mitools::MIcombine in R and `combine` in the Python reader compute this. It is valid for"
    " questions about columns that were measured together; the table of spread lists the pairs for which"
    " implicates differ too little."
)


class Guarantee(Section):
    """The privacy guarantee: its unit, its neighbouring relation and its budget."""

    privacy_unit: str
    neighbours: str
    alpha: Rational
    beta: Rational
    gamma: Rational
    composition: Composition = Field(
        description="How the prices of the dataset's releases add up: `basic` adds alphas, and"
        " `concentrated` adds rhos of zero-concentrated differential privacy."
    )
    epsilon: Rational = Field(description="Another name of alpha.")
    delta: Rational = Field(description="Another name of beta.")
    statement: str
    domain: str = Field(description="The set of tables to which the guarantee applies.")

    @property
    def budget(self) -> Budget:
        """The guarantee in numbers."""
        return Budget(self.alpha, self.beta, self.gamma)


def privacy_statement(plan: Plan) -> str:
    """The guarantee of a release, in words and numbers."""
    kept, protection = plan.promise, plan.protection
    form = "randomly differentially private" if kept.gamma else "differentially private"
    words = [
        f"All numbers of this release together are {form} with {kept}"
        f" (alpha is also called epsilon, beta delta), for tables {protection.difference};"
        f" {protection.size}. It is for {protection.domain}."
    ]
    if plan.requested.rho:
        words.append(
            "The prices of releases add up by zero-concentrated differential privacy. This release cost"
            f" {total(plan.prices.values())}. All releases charged to the same grant cost at most"
            f" {plan.budget.caps}; together they guarantee {plan.budget.granted.budget}."
        )
    if kept.gamma:
        words.append(_meaning_of_gamma(kept.gamma, protection.rows))
    return " ".join(words)


def _meaning_of_gamma(gamma: Fraction, rows: int) -> str:
    return (
        "Random differential privacy is weaker than differential privacy: it assumes that the records"
        " are independent draws from one population, and it protects a record and its replacement"
        f" drawn at random, except with probability gamma. Up to about {math.ceil(gamma * rows)} of the"
        f" {rows} people, those with rare answers in the published tables, may have no protection. gamma"
        " bounds that probability because the ledger accepts it"
        " only from a plan that was fixed before the dataset's first release."
    )


class ReleaseRecord(Section):
    """One release: its price, its noise and its files."""

    name: str
    kind: str
    title: str
    mechanism: str
    alpha: Rational
    beta: Rational
    gamma: Rational
    rho: Rational = Field(description="The price under concentrated composition; replaces alpha.")
    event: dict[str, str]
    draw_sha256: str
    errors: dict[str, float] = Field(description="Expected errors, computed before the draw.")
    error_notes: dict[str, str] = Field(
        default={}, description="The assumptions of some of these errors."
    )
    facts: dict[str, Any]
    files: list[TableFile]
    draw: TableFile = Field(description="The noisy statistic from which the files were computed.")

    @property
    def tables(self) -> list[TableFile]:
        """Every table; tables that share a file are listed separately."""
        return [table for file in self.files for table in file.tables]

    @property
    def price(self) -> Budget:
        """The charge to the ledger."""
        return Budget(self.alpha, self.beta, self.gamma, self.rho)


class Understated(Section):
    """Factors by which standard errors are too small if one treats the records as a survey.

    The median and the 90% quantile over the slopes of one column on another, for all pairs of columns
    measured together.
    """

    median: float
    one_in_ten: float = Field(description="The factor that one pair of columns in ten exceeds.")


class SynthesisRecord(Section):
    """One synthetic table."""

    name: str
    source: str = Field(description="The release that the records were drawn from.")
    refined_by: dict[str, str] = Field(
        description="For each column with bins: the name of the release that values inside bins follow."
    )
    followed: list[str] = Field(
        default=[], description="Further releases whose tables the records follow."
    )
    file: TableFile
    members: TableFile | None = Field(
        default=None, description="With `linked`, the members of the units in `file`."
    )
    support: TableFile = Field(
        description="How well the records follow the release, for sets of columns."
    )
    pairs: dict[str, int] = Field(
        default={}, description="The number of pairs of columns by their grade in `support`."
    )
    understated: Understated | None = Field(
        default=None,
        description="Factors by which standard errors from the records are too small; null if unknown.",
    )
    rows_per_unit: int = Field(
        default=1,
        description="The largest number of records, or of linked members, of one privacy unit.",
    )
    cluster: str | None = Field(
        default=None, description="The column of the survey's clusters, if the plan states them."
    )
    implicates: TableFile | None = Field(
        default=None,
        description="Several versions of the records, which differ as privacy noise would make them;"
        " the column `implicate` numbers them.",
    )
    spread: TableFile | None = Field(
        default=None,
        description="Pairs of columns; their grade says whether implicates differ enough.",
    )

    @property
    def warning(self) -> str:
        """A warning for everybody who computes with the records."""
        start = (
            "Use these records for charts and for trying out programs. Their shares, means and"
            " correlations are rough guides where the table of support grades the columns accurate or"
            " rough, and say nothing where it grades them noise. Amounts that very few have are lost in"
            " noise, so means of such columns may be too low or too high. The records are not a survey:"
            " if you treat them as one, standard errors, margins of error and p-values ignore privacy"
            " noise and are too small"
        )
        if self.rows_per_unit > 1:
            start = (
                f"One unit may have {self.rows_per_unit} of the survey's records, which are not"
                " independent. For this reason alone, standard errors of independent records may be too"
                f" small by a factor of up to {self.rows_per_unit**0.5:.2g}. {start}"
            )
        if self.cluster:
            return (
                f"{start}, by an unknown factor: people of a cluster ({self.cluster}) are similar."
            )
        if self.understated is None:
            return f"{start}, by an unknown factor."
        return (
            f"{start}. The standard error of a slope of one column on another is too small by a factor"
            f" of about {self.understated.median:.2g}, and for one pair of columns in ten by"
            f" {self.understated.one_in_ten:.2g} or more (less where smoothing removed noise from large"
            " tables). For columns that were not measured together, the records follow an"
            " assumption of the model, and the error is unknown. The Python reader's function fit"
            " computes models from the noisy tables, with correct errors."
        )

    @property
    def rules(self) -> str:
        """Rules for the analysis of implicates."""
        if self.rows_per_unit == 1:
            return IMPLICATES
        return (
            f"{IMPLICATES} One unit may have {self.rows_per_unit} of the survey's records, which are not"
            f" independent: compute standard errors as if they were, and take {self.rows_per_unit} times"
            f" their squares as u (`combine(q, u, rows_per_unit={self.rows_per_unit})`)."
        )

    @property
    def microdata(self) -> list[TableFile]:
        """The tables of synthetic records."""
        return [self.file, self.members] if self.members else [self.file]

    @property
    def listed(self) -> list[TableFile]:
        """All tables."""
        return [*self.microdata, *filter(None, (self.implicates, self.spread)), self.support]

    @property
    def warnings(self) -> dict[str, str]:
        """Warnings for everybody who computes with synthetic records, by the path of their file."""
        found = {file.path: self.warning for file in self.microdata}
        return found | ({self.implicates.path: self.rules} if self.implicates else {})


class AnalysisRecord(Section):
    """One model that was fitted to the noisy tables."""

    name: str
    title: str
    formula: str
    family: str
    source: str = Field(description="The release of the columns that the model relates.")
    notes: list[str] = Field(description="Notes on the model for readers.")
    file: TableFile = Field(
        description="A table with one row for each coefficient; null if there is"
        " none and a note gives the reason."
    )


class Approval(Section):
    """A disclosure officer's decision to publish, as the ledger records it."""

    who: str = Field(description="The name that the officer typed; it is not verified.")
    why: str
    at: str = Field(description="When it was recorded, UTC.")


class Manifest(Section):
    """The whole manifest."""

    format: Literal[1]
    dataset: str
    release_id: str
    title: str
    drawn_at: str = Field(description="When the last draw was committed, UTC.")
    plan_digest: str
    plan: dict[str, Any]
    guarantee: Guarantee
    releases: list[ReleaseRecord]
    synthesis: list[SynthesisRecord]
    analyses: list[AnalysisRecord] = Field(default=[], description="Models, with their errors.")
    findings: list[str] = Field(
        default=[], description="The sentences with which the report opens, made from these tables."
    )
    request: Literal["open", "allowance"] | None = Field(
        default=None,
        description="Set if somebody requested the release: whether the requester's `allowance` was"
        " charged, or only the part of the grant that the plan opens to requests.",
    )
    scheduled: bool = Field(
        default=False,
        description="Whether the plan ran on a schedule, so that more releases of it follow.",
    )
    audit: dict[str, Any] = Field(
        description="A short audit of all releases together, on made-up surveys, before the draw"
        " (dpcore.audit.AuditResult); null means infinite or unknown."
    )
    audit_of_each: list[dict[str, Any]] = Field(
        default=[],
        description="For each release, a test that its noise has the stated scale.",
    )
    approval: Approval | None = Field(
        default=None, description="Set if the plan asks for approval."
    )
    versions: dict[str, str]

    @property
    def draws(self) -> dict[str, str]:
        """The digest of each release's draw, by its name."""
        return {record.name: record.draw_sha256 for record in self.releases}

    @property
    def tables(self) -> list[TableFile]:
        """Every table of the bundle, in order."""
        files = [file for record in self.releases for file in (*record.files, record.draw)]
        files += [file for record in self.synthesis for file in record.listed]
        return files + [record.file for record in self.analyses]
