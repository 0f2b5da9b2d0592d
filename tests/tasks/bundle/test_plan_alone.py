"""What the plan alone shows is refused when it is read; what is read is explained and published."""

import itertools
import json
import random
import time
from bisect import bisect
from pathlib import Path
from typing import get_args

import pytest

from dpcore.accounting.budget import Budget
from dpcore.accounting.concentrated import Composition
from dpcore.audit import short_audit
from dpcore.domain.adjacency import Relation
from dpcore.errors import PlanError
from schemas.plan import Plan, load_plan
from schemas.survey.columns import Invalid
from tasks.explain.explain import explain, explanation
from tests.plans import MECHANISMS, TRIES, document, plan_of
from tests.shortest import document as shortest
from tests.tasks.made_up import publish_made_up

EXPLAINED = 3.0
"""CPU seconds to read and explain a plan."""

MOST = [1, 3, 1000]
"""Records of a unit that is not a row."""

SIZES = [1e-4, 1, 10, 100]
"""Of alpha or rho, which is between 1e-6 and 1000."""

WORK, MUCH_WORK = 0.2, 3.0
"""Seconds: of a plan that says that it takes longer to publish, another one is published instead."""

CORNERS = [
    ("margins", "discrete-gaussian", {"ways": [1, 2], "optimise": "max"}, "1000", {}),
    ("margins", "discrete-laplace", {"ways": [1, 2], "optimise": "max"}, "1000", {}),
    ("margins", "discrete-gaussian", {"columns": ["a", "one", "det"], "ways": 1}, "1", {}),
    ("margins", "discrete-laplace", {"columns": ["a", "one"], "ways": [1, 2]}, "1", {}),
    ("microdata-margins", "discrete-gaussian", {}, "1000", {}),
    ("microdata-margins", "discrete-laplace", {}, "1000", {}),
    ("density", "spectral-gamma", {"bandwidth": 0.2}, "1e-6", {"rows": 1}),
    ("density", "difference-body", {"bandwidth": 0.3}, "1", {}),
    ("density", "best", {"bandwidth": 0.3}, "1", {}),
    ("mean", "random-smooth-laplace", {}, "1e-6", {"rows": 10**7}),
    ("mean", "random-smooth-laplace", {}, "1", {"rows": 10**12}),
    ("count", "approximate-minimax-table", {}, "1000", {"rows": 30}),
    ("sampled-histogram", "smoothed-histogram", {"draws": 1}, "1e-3", {"rows": 10**12}),
    ("near-records", "ks-exponential", {"draws": 500}, "1", {"rows": 10**7}),
    ("near-records", "ks-exponential", {"draws": 1}, "8", {"rows": 10**4}),
]
"""Each of them failed once: kind, mechanism, keys of the release, alpha and keys of the plan."""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mechanism", "keys", "alpha", "more"), CORNERS)
def test_at_corners(tmp_path, kind, mechanism, keys, alpha, more):
    needs_beta = "gaussian" in mechanism or mechanism in ("random-smooth-laplace", CORNERS[11][1])
    amount = {"alpha": alpha, "beta": "1e-6" if needs_beta else "0"}
    amount["gamma"] = "0.9" if mechanism == "random-smooth-laplace" else "0"
    columns = {
        "a": {"type": "categorical", "categories": ["x", "y", "z"]},
        "b": {"type": "categorical", "categories": ["yes", "no"]},
        "one": {"type": "categorical", "categories": ["only"]},
        "det": {"type": "categorical", "categories": list("defghi")},
        "x": {"type": "continuous", "bounds": [0, 1], "grid": 4096},
    }
    of_kind = {
        "density": {"columns": ["x"]},
        "mean": {"column": "x"},
        "near-records": {"column": "x", "bins": {"x": 5}},
        "count": {"condition": {"column": "b", "categories": ["yes"]}},
    }.get(kind, {"columns": ["a", "b", "det"]})
    release = {"name": "r", "kind": kind, "mechanism": mechanism, **of_kind, **keys}
    carried(shortest(columns, [release], **amount, **{"rows": 12} | more), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mechanism"), MECHANISMS)
def test_a_plan_of_every_mechanism_is_refused_or_published(tmp_path, kind, mechanism):
    """There is an ordinary plan of it that is published, and one of extreme numbers is either."""
    explained(plan_of(kind, mechanism, "ordinary", ordinary=True))
    any_number(tmp_path, kind, mechanism, 0, audited=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mechanism"),
    # Whose audit trains machines for twenty seconds, in the tests of audits too.
    [each for each in MECHANISMS if each != ("classifier", "noisy-gradients")],
)
def test_another_plan_of_every_mechanism_is_audited_too(tmp_path, kind, mechanism):
    any_number(tmp_path, kind, mechanism, 1, audited=True)


@pytest.mark.slow
def test_plans_of_every_mechanism_unit_and_relation_are_explained_in_three_seconds_each():
    """All of random numbers at their extremes."""
    seen: set[object] = set()
    most = itertools.cycle(MOST)
    for kind, mechanism in MECHANISMS:
        for relation, several in itertools.product(get_args(Relation), (False, True)):
            unit = {"column": "who", "max_rows": next(most)} if several else "row"
            seed, wanted = f"{relation} {several}", {"neighbours": relation, "privacy_unit": unit}
            plan = plan_of(kind, mechanism, seed, **wanted)
            explained(plan)
            asked, records = plan.budget.requested, plan.adjacency.most
            amount = asked.alpha if asked.rho is None else asked.rho
            stated = (plan.neighbours, plan.budget.composition, plan.invalid)
            seen |= {*stated, ("records", records), ("size", bisect(SIZES, amount))}
    assert seen >= {*itertools.chain(*map(get_args, (Relation, Composition, Invalid)))}
    assert seen >= {*(("records", n) for n in MOST), *(("size", i) for i in range(len(SIZES) + 1))}


def any_number(folder: Path, kind: str, mechanism: str, seed: int, audited: bool) -> None:
    """Carry out the first of some plans that is not refused."""
    chance = random.Random(f"{seed} {kind} {mechanism}")
    for _ in range(TRIES):
        plan = document(kind, mechanism, chance, ordinary=False)
        if carried(plan, folder, audited, MUCH_WORK if audited else WORK):
            return
    raise AssertionError("every plan was refused or takes too long")


def carried(plan: dict, folder: Path, audited: bool = True, most: float = MUCH_WORK) -> bool:
    """Whether it was published: explained in time, audited, drawn; else it was refused when read."""
    start = time.process_time()
    try:
        read = load_plan(plan)
    except PlanError:
        assert time.process_time() - start < EXPLAINED, plan
        return False
    explained(read)
    if sum(release.work.seconds for release in read.built.values()) > most:
        return False
    if audited:
        short_audit(list(read.built.values()), seconds=0.05)
    publish_made_up(read, "r1", folder / "out")
    return True


def explained(plan: Plan) -> None:
    """Read it again, as ``dprelease explain`` does, and explain it as text and as JSON.

    The least of three times counts: processor seconds are longer where the caches are shared.
    """
    for _ in range(3):
        start = time.process_time()
        again = Plan.model_validate({**plan.public(), "source": "none.csv"})
        times = [time.process_time() - start]
        for form in (explain, explanation):
            start = time.process_time()
            json.dumps(form(again, None, Budget()), allow_nan=False)
            times.append(time.process_time() - start)
        if times[0] + max(times[1:]) < EXPLAINED:
            return
    raise AssertionError(plan.public())
