"""Checks that the sections of a plan are consistent; an error names the place and the remedy."""

import re
from collections.abc import Callable, Sequence

from dpcore.releases.models.design import MOST_CLUSTERS, MOST_STRATA
from dpcore.suggestion import suggestion
from schemas.document import inside
from schemas.plan.contents import PlanDocument
from schemas.plan.series import NO_DESIGN
from schemas.releases import check_names
from schemas.releases.formulas import checked_columns
from schemas.survey.columns import CategoricalColumn, nameable
from schemas.survey.derived import check_groups
from schemas.survey.reading import sources

LARGEST_SHARE_BITS = 6000
"""An exact share's denominator has at most this many bits, so that shares fit in a manifest."""

LEAST_CLUSTERS = 10
"""The smallest number of clusters minus strata, which is the degrees of freedom of sampling errors."""


def require_coherent(plan: PlanDocument) -> None:
    """Raise a ``ValueError`` that begins with the place if sections of a plan contradict each other."""
    for check in _CHECKS:
        check(plan)


def _source(plan: PlanDocument) -> None:
    if isinstance(plan.source, str) and re.match("(?!package:)[a-z0-9+]+://", plan.source):
        raise ValueError(
            "source: write a database as {postgresql: URL, table: SCHEMA.TABLE}, and remote files"
            " as {spark: MASTER, parquet: URL}"
        )


def _left_out(plan: PlanDocument) -> None:
    if plan.invalid == "drop" and plan.adjacency.public_rows:
        raise ValueError(
            "invalid: drop makes the number of records private; it needs neighbours: add-remove, or"
            " a privacy unit of several records"
        )


def _columns(plan: PlanDocument) -> None:
    lowered: dict[str, str] = {}
    for key, named in (("columns", plan.columns), ("curves", plan.curves)):
        for name in named:
            if not nameable(name):
                raise ValueError(
                    f"{key}.{name}: a name must begin with a letter and contain only letters, digits,"
                    " blanks and _ . -"
                )
    for name in plan.columns:
        if lowered.setdefault(name.lower(), name) != name:
            raise ValueError(
                f"columns.{name}: differs from {lowered[name.lower()]!r} only in capitals"
            )


def _unpublished(plan: PlanDocument) -> None:
    """Refuse wrong names and other uses of columns that are read but not published."""
    taken = {name.lower() for name in (*plan.columns, *sources(plan.columns).values())}
    read = sources(plan.read_columns)
    for place, name in plan.unpublished.items():
        if not nameable(name):
            raise ValueError(f"{place}: is not a valid column name")
        if {name.lower(), read[name].lower()} & taken:
            raise ValueError(
                f"{place}: {name!r} is already used; remove it from columns, or copy the column at"
                " the source"
            )
        taken |= {name.lower(), read[name].lower()}
    if plan.counts and (plan.unit or plan.weights):
        raise ValueError(
            "counts: if a row has several records, their units and weights are unknown; use a table"
            f" with one record per row, or remove {'privacy_unit' if plan.unit else 'weights'}"
        )
    if plan.weights and not any(s.counts_weights or s.by_design for s in plan.releases):
        raise ValueError("weights: no release is `weighted` or a model; remove the weights")


def _weights(plan: PlanDocument) -> None:
    """Refuse weights if the largest value or the step does not fit the mean weight, total / rows."""
    weights = plan.weights
    if weights is None:
        return
    mean = weights.total / plan.rows
    if weights.largest < mean:
        raise ValueError(
            f"weights.largest: is below the mean weight, {float(mean):.4g} (total / rows), so that"
            " most weights would be cut; state the design's largest weight, or correct the total"
        )
    if weights.step > mean:
        raise ValueError(
            f"weights.step: is above the mean weight, {float(mean):.4g} (total / rows), so that most"
            " weights would be rounded to 0; state a smaller step, or correct the total"
        )


def _design(plan: PlanDocument) -> None:
    """Refuse strata and clusters that models cannot use."""
    models = any(section.by_design for section in plan.releases)
    for key, most in (("strata", MOST_STRATA), ("cluster", MOST_CLUSTERS)):
        name = getattr(plan, key)
        if name is None:
            continue
        if plan.series:
            raise ValueError(f"{key}: {NO_DESIGN}")
        if plan.linked:
            raise ValueError(f"{key}: not available with linked; remove one of them")
        if name not in plan.columns:
            meant = suggestion(name, [*plan.columns])
            raise ValueError(f"{key}: {name!r} is not under `columns`; describe it there{meant}")
        column = plan.columns[name]
        if column.type == "continuous" or (models and column.axis(name).size > most):
            raise ValueError(
                f"{key}: {name!r} must have at most {most:,} categories or whole numbers; name a coarser"
                " column"
            )
    strata = plan.columns[plan.strata].axis(plan.strata).size if plan.strata else 1
    listed = plan.columns[plan.cluster].axis(plan.cluster).size if plan.cluster else 0
    if plan.clusters and plan.clusters > listed:
        raise ValueError(
            f"clusters: {plan.clusters} is more than the {listed} values of the column `cluster`"
            if plan.cluster
            else "clusters: needs `cluster`, the column with the clusters; name it"
        )
    if models and plan.cluster and (plan.clusters or listed) < strata + LEAST_CLUSTERS:
        raise ValueError(
            f"cluster: {plan.cluster!r} has too few clusters to estimate a sampling error; at least"
            f" {LEAST_CLUSTERS} more than strata are needed. Name the column of the units that were"
            " drawn first, or leave cluster out. If each stratum numbers its clusters from 1, make a"
            " column that numbers all clusters"
        )


def _open(plan: PlanDocument) -> None:
    """Refuse settings that cannot be combined with open categories or bounds."""
    if not plan.open_columns:
        return
    place = f"columns.{plan.open_columns[0]}"
    for key in ("linked", "series"):
        if getattr(plan, key):
            raise ValueError(f"{place}: `open` cannot be combined with {key}; state public values")
    if any(section.spends_gamma for section in plan.releases):
        raise ValueError(f"{place}: `open` is not available with mechanisms that spend gamma")
    searches = [section for section in plan.releases if section.finds]
    if any(section.may_fail for section in searches) and not plan.requested.beta:
        below = f"1e-{len(str(plan.rows)) + 1}"  # the largest power of ten that is
        raise ValueError(
            f"{place}.categories: open costs beta, the probability that the category of a single person"
            " is found:"
            f' write a budget.requested.beta of at most 1/(10 x rows), here "{below}"'
        )
    columns = [section.finds for section in searches]
    for column in columns:
        if columns.count(column) > 1:
            raise ValueError(f"releases: two of them search for {column!r}; remove one")


def _nothing_found(plan: PlanDocument) -> None:
    """Refuse a plan that would be invalid if nothing were found for its open columns."""
    least = plan.with_found({})
    if all(plan.columns[name] == least.columns[name] for name in plan.open_columns):
        return
    with inside("if nothing is found for open columns, "):
        for check in _CHECKS:
            check(least)


def _linked(plan: PlanDocument) -> None:
    if plan.linked is None:
        return
    for place in ("weights", "series"):
        if getattr(plan, place):
            raise ValueError(
                f"linked: not available with {place}; write another plan, without `linked`"
            )
    for i, table in enumerate(plan.synthesis):
        if table.implicates:
            raise ValueError(f"synthesis[{i}].implicates: not available for linked records")
        if table.derived:
            raise ValueError(
                f"synthesis[{i}].derived: not available for linked records; use the two tables"
            )
        kinds = {section.name: section.kind for section in plan.releases}
        if kinds.get(table.from_, "microdata-margins") != "microdata-margins":
            raise ValueError(
                f"synthesis[{i}].from: draw linked tables from microdata-margins; only its records obey"
                " rules"
            )
    for name, column in plan.columns.items():
        if isinstance(column, CategoricalColumn) and column.refines:
            raise ValueError(
                f"columns.{name}.refines: not available with linked; leave the group out"
            )
    plan.linked.check(plan.columns, plan.unit, plan.invalid)


def _series(plan: PlanDocument) -> None:
    if plan.series is None:
        return
    plan.series.check(plan.columns, plan.adjacency, plan.weights is not None)
    for key in ("synthesis", "analyses"):
        if getattr(plan, key) and plan.series.measures == "to-date":
            raise ValueError(
                f"{key}: need counts of single periods, which runs with `measures: to-date` do not have;"
                " remove measures from series"
            )
    if plan.operation.schedule and plan.operation.schedule.since is None:
        raise ValueError(
            "operation.schedule.since: state the first day of the first period of the series"
        )


def _requests(plan: PlanDocument) -> None:
    requests = plan.operation.requests
    if requests is None:
        return
    if plan.series:
        raise ValueError(
            "operation.requests: remove it; a series is released as a whole, on its schedule"
        )
    names = [section.name for section in plan.releases]
    for name in requests.releases:
        if name not in names:
            raise ValueError(
                f"operation.requests.releases: there is no release {name!r}{suggestion(name, names)}"
            )
    if requests.columns:
        _opened(plan, requests.columns)


def _opened(plan: PlanDocument, columns: Sequence[str]) -> None:
    """Refuse opened columns if a plan with only these columns could not release anything."""
    place = "operation.requests.columns"
    if plan.linked:
        raise ValueError(f"{place}: not available with linked; open releases")
    for name in (*columns, *plan.design_columns):
        if name not in plan.columns:
            meant = suggestion(name, [*plan.columns])
            raise ValueError(f"{place}: there is no column {name!r}{meant}")
        if plan.columns[name].open:
            raise ValueError(f"{place}: {name!r} is `open`; state public values, or leave it out")
    opened = {name: plan.columns[name] for name in (*columns, *plan.design_columns)}
    with inside(f"{place}: also open the columns to which these columns refer: "):
        check_groups(opened)


def _names(plan: PlanDocument) -> None:
    for place in ("releases", "synthesis", "analyses"):
        names = [part.name for part in getattr(plan, place)]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise ValueError(f"{place}[{i}].name: {name!r} is repeated")


def _analyses(plan: PlanDocument) -> None:
    for i, analysis in enumerate(plan.analyses):
        with inside(f"analyses[{i}]."):
            checked_columns(analysis.formula, plan.record_columns)


def _spending(plan: PlanDocument) -> None:
    """Refuse a request above the grant, and a beta or gamma that is missing or cannot be spent."""
    requested, composition = plan.requested, plan.budget.composition
    if not plan.budget.caps.covers(requested):
        raise ValueError(
            f"budget: requested is more than granted: a release costs {requested}, but the grant allows"
            f" only {plan.budget.caps}"
        )
    beta = [section.spends_beta(composition) for section in plan.releases]
    gamma = [section.spends_gamma for section in plan.releases]
    for name, spenders in (("beta", beta), ("gamma", gamma)):
        amount = getattr(requested, name)
        if amount and not any(spenders):
            raise ValueError(
                f"budget.requested.{name}: no mechanism of this plan can spend {name}; write 0"
            )
        for i, section in enumerate(plan.releases):
            if spenders[i] and not amount:
                raise ValueError(
                    f"releases[{i}].mechanism: {section.mechanism} spends {name}, but"
                    f" budget.requested.{name} is 0"
                )


def _shares(plan: PlanDocument) -> None:
    parts = [part for share in plan.shares for part in (share.alpha, share.beta, share.gamma)]
    if any(part.denominator.bit_length() > LARGEST_SHARE_BITS for part in parts):
        raise ValueError("releases: the weights together have too many digits; shorten them")


def _releases(plan: PlanDocument) -> None:
    for i, release in enumerate(plan.built.values()):
        with inside(f"releases[{i}]."):
            check_names(release, plan.publication.replicates > 0)
        with inside(f"releases[{i}]: "):
            release.require_publishable()


def _synthesis(plan: PlanDocument) -> None:
    for i, table in enumerate(plan.synthesis):
        with inside(f"synthesis[{i}]."):
            if table.implicates and plan.cluster:
                raise ValueError(
                    "implicates: not available with a cluster, because sampling errors from them would"
                    " be too small; remove implicates, and measure models (kind: model)"
                )
            release = table.sampler(plan.of_period)
            table.refining(plan.of_period)
            table.check_values(release.domain)
            table.deriving(release, plan.record_columns)


def _quality(plan: PlanDocument) -> None:
    for place in ("linked", "series"):
        if plan.judging and getattr(plan, place):
            raise ValueError(f"releases: kind quality is not available with {place}; remove it")


def _judged(plan: PlanDocument) -> None:
    """Refuse to measure records that were not drawn from the cells of the plan's columns and bins."""
    sources = {table.name: table.from_ for table in plan.synthesis}
    for name in plan.judging:
        source = plan.built[sources[plan.section(name).judges]]
        # The source may also have columns that compare two others, which no criterion is about.
        if not set(plan.built[name].domain.axes) <= set(source.domain.axes):
            raise ValueError(
                f"releases: {name!r} cannot compare the records of {source.name!r}, which has different"
                " cells; draw them from a histogram, margins or microdata-margins"
            )


_CHECKS: tuple[Callable[[PlanDocument], None], ...] = (
    _source,
    _left_out,
    _columns,
    _unpublished,
    _design,
    lambda plan: check_groups(plan.columns),
    _open,
    _linked,
    _series,
    _quality,
    _requests,
    _weights,
    _names,
    _analyses,
    _spending,
    _shares,
    _releases,
    _synthesis,
    _judged,
    _nothing_found,
)
"""The checks in order: a later check may rely on earlier checks."""
