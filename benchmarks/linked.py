"""How near pairs of members of synthetic units are to those of real ones.

    python -m benchmarks.linked --alpha 1 --draws 3

prints, for households of the survey on income and living conditions (the worked plan ``eusilc_linked``;
left out where the table is absent) and for made-up persons and their hospital stays, the total
variation between synthetic and real tables of two members, and that of real units drawn anew with
replacement, which is not private.  A pair such as ``age.1 x age.2`` is among the units that have both
members; ``age x pl030`` is of all members.  Units and members are read from the two published tables.

``--method mst`` and ``--method aim`` draw them by ``dpsynth.relational`` instead, in an environment that
has dpsynth (github.com/google/dpsynth) beside dprelease: the same cells, alpha, beta and greatest number
of members, with groups sliced by size (its other way was worse) and a tenth of the budget for single
columns.  It knows no order of members, so they are sorted by their cells afterwards, those of equal
cells at random.  ``--rounds`` limits AIM, which otherwise takes 16 for each column.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmarks import DATA
from dpcore.arrays import Floats, Integers
from dpcore.domain.axes import Categories
from dpcore.line.privacy_line import perturb
from dpcore.post.tables.simplex import project_to_simplex
from dpcore.sampling.source import SystemSource
from schemas.plan import Plan, load_plan
from schemas.plan.linked import NUMBER, PLACE, SIZE
from schemas.survey.columns import CategoricalColumn
from tasks.bundle.records import synthetic_records
from tasks.draw import tally_releases
from tasks.survey.ingest import ingest
from tasks.survey.validate import validate

RESAMPLES = 20
PLANS = Path(__file__).parents[1] / "deployments" / "plans"

Place = tuple[str, int]
HOUSEHOLDS: Sequence[tuple[Place, Place]] = (
    (("age", 1), ("age", 2)),
    (("pl030", 1), ("pl030", 2)),
    (("rb090", 1), ("rb090", 2)),
    (("age", 1), ("age", 3)),
    (("age", 2), ("age", 3)),
    (("pl030", 1), ("pl030", 3)),
    (("pl030", 2), ("pl030", 3)),
    (("age", 3), ("age", 4)),
    (("age", 1), ("pl030", 2)),
)
"""Members 1 and 2 are mostly partners, member 3 mostly a child."""

STAYS: Sequence[tuple[Place, Place]] = (
    (("ward", 1), ("ward", 2)),
    (("ward", 2), ("ward", 3)),
    (("days", 1), ("days", 2)),
    (("days", 2), ("days", 3)),
    (("month", 1), ("month", 2)),
    (("ward", 1), ("days", 2)),
)

STAYS_PLAN = """
dprelease: 1
dataset: stays
source: withheld
rows: 10000
privacy_unit: {column: person, max_rows: 5, name: person}
neighbours: add-remove
linked: {order: [month], shared: [sex, born]}
budget:
  granted: {alpha: "100", beta: "1e-6", gamma: "0"}
  requested: {alpha: "1", beta: "1e-6", gamma: "0"}
columns:
  sex: {type: categorical, categories: [F, M]}
  born: {type: integer, bounds: [1920, 2009]}
  month: {type: integer, bounds: [1, 12]}
  ward: {type: categorical, categories: [surgery, heart, birth, children, other]}
  days: {type: integer, bounds: [0, 60], outside: clamp}
releases:
  - name: stays
    kind: microdata-margins
    columns: [sex, born, month, ward, days]
    bins: {born: 9, month: 4, days: [0, 1, 3, 7, 14, 61]}
synthesis: [{name: stays, from: stays, rows: 10000}]
publication: {title: Hospital stays}
"""


@dataclass(frozen=True, eq=False)
class Units:
    """``codes``: by column of members (units, places) codes, -1 where there is no such member."""

    codes: Mapping[str, Integers]
    cells: Mapping[str, int]

    def table(self, one: Place, other: Place, weights: Floats) -> Floats:
        """Shares of the pairs of two members, of units that have both; ``weights``: (units,)."""
        values = [self.codes[name][:, place - 1] for name, place in (one, other)]
        return self._shares(one[0], other[0], values, weights)

    def both(self, one: Place, other: Place) -> int:
        """How many units have both members."""
        return int(np.prod([self.codes[c][:, k - 1] >= 0 for c, k in (one, other)], axis=0).sum())

    def of_all(self, one: str, other: str, weights: Floats) -> Floats:
        """Shares of two columns of the same member, of all members."""
        repeated = np.repeat(weights, self.codes[one].shape[1])
        return self._shares(one, other, [self.codes[n].ravel() for n in (one, other)], repeated)

    def _shares(self, one: str, other: str, values: list[Integers], weights: Floats) -> Floats:
        there = (values[0] >= 0) & (values[1] >= 0)
        cells = values[0][there] * self.cells[other] + values[1][there]
        counts = np.bincount(cells, weights[there], self.cells[one] * self.cells[other])
        return np.asarray(counts / max(counts.sum(), 1))

    @property
    def number(self) -> int:
        return len(next(iter(self.codes.values())))


def main() -> None:
    options = _options()
    changes = {"budget.requested.alpha": options.alpha, "budget.granted.alpha": "1000"}
    with TemporaryDirectory() as folder:
        eusilc = DATA / "eusilc_households" / "eusilc.parquet"
        if eusilc.is_file():
            plan = load_plan(PLANS / "eusilc_linked.yaml", changes | {"source": str(eusilc)})
            _report("households", plan, HOUSEHOLDS, ("age", "pl030"), options, folder)
        else:
            print(f"{eusilc}: not found; set DPRELEASE_TEST_DATA", file=sys.stderr)
        source, stated = Path(folder) / "stays.parquet", Path(folder) / "stays.yaml"
        made_up_stays().to_parquet(source)
        stated.write_text(yaml.safe_dump(yaml.safe_load(STAYS_PLAN)))
        plan = load_plan(stated, changes | {"source": str(source)})
        _report("stays", plan, STAYS, ("ward", "days"), options, folder)


def _report(
    name: str,
    plan: Plan,
    pairs: Sequence[tuple[Place, Place]],
    own: tuple[str, str],
    options: argparse.Namespace,
    folder: str,
) -> None:
    real = _coded(*_real_tables(plan), plan)
    if options.method == "dprelease":
        drawn = synthetic_tables(plan, options.draws, Path(folder) / name)
        made = [_coded(*tables, plan) for tables in drawn]
    else:
        made = [their_units(plan, real, options, draw) for draw in range(options.draws)]
    random, ones = np.random.default_rng(1), np.ones(real.number)
    again = [
        np.bincount(random.integers(real.number, size=real.number), minlength=real.number) * 1.0
        for _ in range(RESAMPLES)
    ]

    (release,) = plan.built.values()
    spread = np.sqrt(release.cell_variances(release.tables)).tolist()
    names = [tuple(release.domain.names[axis] for axis in axes) for axes in release.tables]
    noise = dict(zip(names, spread, strict=True))

    def as_measured(one: Place, other: Place) -> float:
        """Of the noisy table alone, even if it were known which of its cells are empty."""
        counts = real.table(one, other, ones) * real.both(one, other)
        found, total = counts[counts > 0], counts.sum()
        noisy = random.normal(found, noise[_name(one), _name(other)], (RESAMPLES, len(found)))
        return float(np.abs(project_to_simplex(noisy, total) - found).sum() / 2 / RESAMPLES / total)

    def line(label: str, of: Any, table: float = np.nan) -> None:
        exact = of(real, ones)
        far = np.mean([np.abs(of(m, np.ones(m.number)) - exact).sum() / 2 for m in made])
        near = np.mean([np.abs(of(real, weights) - exact).sum() / 2 for weights in again])
        print(
            f"{name:11} {label:18} {far:9.4f} {near:9.4f} {far / near:6.1f} {table:9.4f}",
            flush=True,
        )

    print(f"{'':11} {'pair':18} {'synthetic':>9} {'bootstrap':>9} {'ratio':>6} {'measured':>9}")
    for one, other in pairs:
        label, measured = " x ".join(map(_name, (one, other))), (_name(one), _name(other)) in noise
        line(
            label,
            lambda units, weights, p=(one, other): units.table(*p, weights),
            as_measured(one, other) if measured else np.nan,
        )
    line(" x ".join(own), lambda units, weights: units.of_all(*own, weights))


def _name(place: Place) -> str:
    return f"{place[0]}.{place[1]}"


def synthetic_tables(
    plan: Plan, draws: int, workspace: Path
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Units and members of each draw, from the survey through the privacy line."""
    database = ingest(str(plan.source), plan.read_columns, plan.rows, workspace, plan.adjacency)
    validate(database, plan.read_columns)
    (name,) = plan.built
    release = plan.built[name]
    exact = release.statistic(tally_releases(plan, [name], database)[name])
    for _ in range(draws):
        noisy = perturb(exact, release.mechanism, release.share, SystemSource())
        records = synthetic_records(plan, plan.synthesis[0], lambda _, drawn=noisy: drawn)
        units, members = (
            pd.DataFrame({column: values.tolist() for column, values in table.columns.items()})
            for table in records.linked_tables(name, plan)
        )
        require_whole(units, members)
        yield units, members


def their_units(plan: Plan, real: Units, options: argparse.Namespace, draw: int) -> Units:
    """Units and members by dpsynth, from the coded survey."""
    from dpsynth import discrete_mechanisms as library  # only in an environment of its own
    from dpsynth.domain import CategoricalAttribute
    from dpsynth.relational import ForeignKeyRelation, MultiTableConfig

    assert plan.unit
    assert plan.linked
    key, budget = "number", plan.budget.requested
    units, _ = _real_tables(plan)
    (release,) = plan.built.values()
    shared = {
        name: release.domain.axes[release.domain.names.index(name)] for name in plan.linked.shared
    }
    ordered = units.sort_values(NUMBER)
    parents = {
        name: pd.Categorical(ordered[name], axis.categories).codes
        if isinstance(axis, Categories)
        else np.searchsorted(axis.edges, ordered[name].to_numpy(float), side="right") - 1
        for name, axis in shared.items()
    }
    there = next(iter(real.codes.values())) >= 0
    children = {key: np.nonzero(there)[0]} | {name: c[there] for name, c in real.codes.items()}

    def domain(sizes: Mapping[str, int]) -> dict[str, Any]:
        return {n: CategoricalAttribute(possible_values=list(range(k))) for n, k in sizes.items()}

    aim = library.AIMConfig(max_rounds=options.rounds)
    inner = aim if options.method == "aim" else library.MSTConfig()
    config = MultiTableConfig(
        domains={
            "units": domain({name: axis.size for name, axis in shared.items()}),
            "members": domain(real.cells),
        },
        foreign_keys=[
            ForeignKeyRelation(
                parent_table="units",
                parent_primary_key=key,
                child_table="members",
                child_foreign_key=key,
                max_children_per_parent=plan.unit.max_rows,
            )
        ],
        discrete_mechanism=library.DiscreteConfig(mechanism=inner),
        exploration_strategy="size_sliced",
    )
    mechanism = config.calibrate(epsilon=float(budget.alpha), delta=float(budget.beta))
    tables = {
        "units": pd.DataFrame({key: np.arange(real.number)} | parents),
        "members": pd.DataFrame(children),
    }
    found = mechanism(np.random.default_rng(draw), tables).synthetic_tables
    members = found["members"].sample(frac=1, random_state=draw)
    rising = [True, *(not falls for _, falls in plan.linked.sorted_by)]
    by = [key, *(name for name, _ in plan.linked.sorted_by)]
    members = members.astype(dict.fromkeys(real.codes, np.int64))
    members = members.sort_values(by, ascending=rising, kind="stable")
    rows = pd.Index(found["units"][key]).get_indexer(members[key])
    places = members.groupby(key).cumcount().to_numpy()
    codes = {name: np.full((len(found["units"]), plan.unit.max_rows), -1) for name in real.codes}
    for name, values in codes.items():
        values[rows, places] = members[name]
    return Units(codes, real.cells)


def require_whole(units: pd.DataFrame, members: pd.DataFrame) -> None:
    """Exit where a member has no unit, or a unit has other members than its size says."""
    counted = members.groupby(NUMBER)[PLACE].agg(["size", "min", "max"])
    sizes = units.set_index(NUMBER)[SIZE].astype(np.int64)
    alike = counted.index.equals(sizes.index) and (counted["min"] == 1).all()
    if not alike or not (counted["size"] == sizes).all() or not (counted["max"] == sizes).all():
        sys.exit("the tables do not fit together")


def _real_tables(plan: Plan) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The survey in the form of the published tables; computed without the engine."""
    assert plan.unit
    assert plan.linked
    frame = pd.read_parquet(str(plan.source))
    order = dict.fromkeys(plan.columns, False) | dict(plan.linked.sorted_by)
    keys = sorted(order, key=lambda name: name not in dict(plan.linked.sorted_by))
    rising = [not order[name] for name in keys]
    frame = frame.sort_values(keys, ascending=rising, na_position="first")
    frame[PLACE] = frame.groupby(plan.unit.column).cumcount() + 1
    frame[NUMBER] = frame.groupby(plan.unit.column).ngroup() + 1
    members = frame[frame[PLACE] <= plan.unit.max_rows]
    return members[members[PLACE] == 1], members


def _coded(units: pd.DataFrame, members: pd.DataFrame, plan: Plan) -> Units:
    assert plan.unit
    assert plan.linked
    (release,) = plan.built.values()
    codes, cells = {}, {}
    rows, places = members[NUMBER].to_numpy(int) - 1, members[PLACE].to_numpy(int) - 1
    for name, column in plan.columns.items():
        if name in plan.linked.shared:
            continue
        values = members[name]
        if isinstance(column, CategoricalColumn):
            found = pd.Categorical(values, column.categories).codes.astype(np.int64)
            cells[name] = len(column.categories) + 1
        else:
            axis = release.domain.axes[release.domain.names.index(f"{name}.1")]
            numbers = values.to_numpy(float).clip(*column.bounds)
            found = np.searchsorted(axis.edges, numbers, side="right") - 1  # type: ignore[union-attr]
            cells[name] = axis.size + 1
        codes[name] = np.full((len(units), plan.unit.max_rows), -1)
        codes[name][rows, places] = np.where(found < 0, cells[name] - 1, found)
    return Units(codes, cells)


def made_up_stays() -> pd.DataFrame:
    """Stays of 10,000 people: who stays long stays again, mostly on the same ward."""
    random = np.random.default_rng(5)
    people = 10_000
    sex, born = random.choice(["F", "M"], people), random.integers(1920, 2010, people)
    wards = np.array(["surgery", "heart", "birth", "children", "other"])
    child, mother = born > 1995, (sex == "F") & (born > 1965) & (born <= 1990)
    usual = np.where(child, 3, np.where(mother & (random.random(people) < 0.5), 2, 0))
    usual = np.where((usual == 0) & (born < 1950), 1, usual)
    length = random.gamma(2.0, np.where(born < 1950, 4.0, 1.5))
    number = 1 + random.poisson(np.minimum(length / 4, 3))
    who = np.repeat(np.arange(people), number)
    same = random.random(len(who)) < 0.7
    ward = np.where(same, usual[who], random.choice([0, 1, 4], len(who)))
    return pd.DataFrame(
        {
            "person": who,
            "sex": sex[who],
            "born": born[who],
            "month": random.integers(1, 13, len(who)),
            "ward": wards[ward],
            "days": np.minimum(random.poisson(length[who]), 60),
        }
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.linked", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--alpha", default="1", help="for a household, or a person; default: 1")
    parser.add_argument("--draws", type=int, default=3, help="default: 3")
    parser.add_argument("--method", choices=("dprelease", "mst", "aim"), default="dprelease")
    parser.add_argument("--rounds", type=int, help="of AIM; default: the library's")
    return parser.parse_args()


if __name__ == "__main__":
    main()
