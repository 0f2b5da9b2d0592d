"""Random plans of every kind and mechanism, at ordinary public numbers and at extreme ones.

A section is filled field by field: by the field's name where ``FIELDS`` knows it, else by its type.  So
a kind that is added is covered as it is; only a field of an unknown form needs a line in ``FIELDS``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from docs.reference.mechanisms import options
from dpcore.errors import PlanError
from schemas.plan import Plan, load_plan
from schemas.releases import sections

SECTIONS = {get_args(each.model_fields["kind"].annotation)[0]: each for each in sections()}
MECHANISMS = [
    (kind, mechanism)
    for kind, section in SECTIONS.items()
    if kind != "quality"  # of another release's records: ``tests.dprelease.test_quality``
    for mechanism in options(section, "mechanism")
]
NUMBERS, CATEGORIES = ["x", "y", "age"], ["sex", "region", "wide"]
TRIES = 200

Values = Mapping[str, Any]


def columns(chance: random.Random, kind: str) -> dict[str, Any]:
    """Columns of a few cells, or of many."""
    span = 10 ** chance.uniform(-3, 6)
    low = chance.choice([0.0, -1.0, 1e-3, 1e6])
    of_x = {"bounds": [low, low + span], "grid": chance.choice([2, 16, 1000, 4096, 2**16])}
    many = chance.choice([1, 2, 5, 40, 300])
    found = {}
    if kind == "found-categories":
        most = chance.choice([1, 7, 1000])
        found = {"told": {"type": "categorical", "categories": "open", "at_most": most}}
    elif kind == "found-bounds":
        found = {"free": {"type": "continuous", "bounds": "open"}}
    return {
        "sex": {"type": "categorical", "categories": ["F", "M"]},
        "region": {"type": "categorical", "categories": list("abcd"), "nullable": True},
        "wide": {"type": "categorical", "categories": [f"c{i}" for i in range(many)]},
        "age": {"type": "integer", "bounds": [0, chance.choice([1, 9, 99])]},
        "x": {"type": "continuous", **of_x},
        "y": {"type": "continuous", "bounds": [0, 1], "nullable": chance.random() < 0.2},
        **(of_curves(of_x, chance) if kind == "mean-curve" else found),
    }


def of_curves(of_x: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    gaps = {"nullable": chance.random() < 0.3}
    hours = {f"h{i}": {"type": "continuous", **of_x, **gaps} for i in range(4)}
    return {**hours, "older": {"type": "integer", "bounds": [5, chance.choice([5, 300])]}}


def curves(chance: random.Random) -> dict[str, Any]:
    """Curves of like and of unlike columns, some with a largest step that is small, large or none."""
    step = chance.choice([{}, {"step_at_most": chance.choice([1e-9, 0.5, 3, 1e9])}])
    return {
        "load": {"columns": [f"h{i}" for i in range(4)], "time": [0, 0.5, 7, 1e9], **step},
        "of-ages": {"columns": ["age", "older"], **step},
        "mixed": {"columns": chance.sample(NUMBERS, 2)},
    }


def several(chance: random.Random, names: list[str], most: int) -> list[str]:
    return chance.sample(names, chance.randint(1, min(most, len(names))))


def some_columns(chance: random.Random, kind: str, so_far: Values) -> list[str]:
    if chance.random() < 0.5:
        return several(chance, NUMBERS, 2)
    return several(chance, NUMBERS + CATEGORIES, 4)


def bins(chance: random.Random, kind: str, so_far: Values) -> dict[str, int]:
    named = so_far.get("columns", [so_far.get("column")])
    return {name: chance.choice([1, 2, 5, 100]) for name in ("x", "y") if name in named}


def bandwidth(chance: random.Random, kind: str, so_far: Values) -> Any:
    if chance.random() < 0.2:
        rule = chance.choice(["quantiles", "error"])
        return {"private": rule, "smallest": chance.choice([0.002, 0.05, 0.3, 1])}
    return round(10 ** chance.uniform(-2.5, 0.7), 4)


def regularisation(chance: random.Random, kind: str, so_far: Values) -> Any:
    if chance.random() < 0.2:
        return {
            "private": "loss",
            "candidates": chance.choice([[0.01, 1], [1e-7, 0.1], [0.2, 0.1]]),
        }
    return 10 ** chance.uniform(-5, 0)


def points(chance: random.Random, kind: str, so_far: Values) -> Any:
    if kind != "asked-function":
        return chance.choice([1, 2, 9])
    return [[chance.choice([0, 0.5, 1, 5]) for _ in so_far["columns"]] for _ in range(3)]


def condition(chance: random.Random, kind: str, so_far: Values) -> dict[str, Any]:
    return chance.choice(
        [
            {"column": "sex", "categories": ["F"]},
            {"column": "age", "below": 1},
            {"column": "region", "categories": list("abcd")},
        ]
    )


def label(chance: random.Random, kind: str, so_far: Values) -> dict[str, Any]:
    return chance.choice([{"column": "sex", "positive": ["F"]}, {"column": "y", "at_least": 0.5}])


def hierarchy(chance: random.Random, kind: str, so_far: Values) -> dict[str, Any]:
    return {"columns": ["region", "sex"], "members": [["a", "F"], ["a", "M"], ["b", "F"]]}


def formula(chance: random.Random, kind: str, so_far: Values) -> str:
    """A model that may be separated, collinear, of one category or of a constant."""
    response = chance.choice(["y", "x", "age", "{sex == 'F'}", "{y > 0.5}", "{age > 3}"])
    terms = [*NUMBERS, *CATEGORIES, "I(x ** 2)", "C(age)", "sex:y", "np.log1p(age)"]
    return f"{response} ~ {' + '.join(several(chance, terms, 4))}"


FIELDS: dict[str, Callable[[random.Random, str, Values], Any]] = {
    "name": lambda chance, kind, so_far: "r",
    "title": lambda chance, kind, so_far: "Made up",
    "weight": lambda chance, kind, so_far: 1,
    "columns": some_columns,
    "column": lambda chance, kind, so_far: (
        {"found-categories": "told", "found-bounds": "free"}.get(kind) or chance.choice(NUMBERS)
    ),
    "by": lambda chance, kind, so_far: several(chance, ["sex", "region", "age"], 2),
    "features": lambda chance, kind, so_far: several(chance, ["x", "age", "region", "wide"], 3),
    "target": lambda chance, kind, so_far: chance.choice(["y", "age"]),
    "label": label,
    "condition": condition,
    "bins": bins,
    "bandwidth": bandwidth,
    "hierarchy": hierarchy,
    "formula": formula,
    "family": lambda chance, kind, so_far: chance.choice(["gaussian", "binomial", "poisson"]),
    "levels": lambda chance, kind, so_far: chance.choice([["0.5"], ["1/4", "0.5", "0.999999"]]),
    "functions": lambda chance, kind, so_far: {
        f"g{i}": [chance.random() for _ in range(chance.choice([1, 2, 5]))] for i in range(2)
    },
    "draws": lambda chance, kind, so_far: chance.choice([1, 10, 500]),
    "terms": lambda chance, kind, so_far: chance.choice([1, 2, 5]),
    "ways": lambda chance, kind, so_far: chance.choice([1, 2, 3, [1, 2]]),
    "optimise": lambda chance, kind, so_far: chance.choice(["mean", "max", "alike", {"1": "1e6"}]),
    "regularisation": regularisation,
    "frequencies": lambda chance, kind, so_far: chance.choice([1, 4, 16]),
    "prior": lambda chance, kind, so_far: chance.choice([1e-9, 0.3, 1 - 1e-9, "uniform"]),
    "compress": lambda chance, kind, so_far: {"keep": chance.choice([2, 4]), "share": "1/1000"},
    "points": points,
    "weights": lambda chance, kind, so_far: chance.choice(["balanced", 0.001, 1000.0]),
    "curve": lambda chance, kind, so_far: chance.choice(["load", "of-ages", "mixed"]),
    "occupied": lambda chance, kind, so_far: (
        chance.choice([1, 2, 40]) if so_far["mechanism"] == "thresholded-laplace" else None
    ),
}


def filled(kind: str, mechanism: str, chance: random.Random) -> dict[str, Any]:
    """A section of this kind and mechanism, valid or not."""
    section: dict[str, Any] = {"kind": kind, "mechanism": mechanism}
    for name, field in SECTIONS[kind].model_fields.items():
        if name in section or not (field.is_required() or name == "bins" or chance.random() < 0.25):
            continue
        if name in FIELDS:
            section[name] = FIELDS[name](chance, kind, section)
        elif options := _choices(field.annotation):
            section[name] = chance.choice(options)
        elif field.is_required():
            raise AssertionError(f"{kind}.{name}: say in FIELDS of {__name__} how it is filled")
    return section


def _choices(annotation: Any) -> list[Any]:
    """All values of a closed type; none of an open one."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if annotation is bool or bool in get_args(annotation):
        return [False, True]
    inner = [each for each in get_args(annotation) if each is not NoneType]
    return [value for each in inner for value in _choices(each)]


ALPHAS, BETAS = ["1e-6", "1e-3", "1", "30", "1000"], ["1e-50", "1e-20", "1e-6", "0.3"]
ROWS = [1, 2, 30, 10**4, 10**7, 10**12]


def document(kind: str, mechanism: str, chance: random.Random, ordinary: bool) -> dict[str, Any]:
    """A plan with one release of it, whose numbers are ``ordinary`` or anything."""
    section = filled(kind, mechanism, chance)
    alpha = "1" if ordinary else chance.choice([*ALPHAS, f"{10 ** chance.uniform(-6, 3):.6f}"])
    beta = "1e-6" if ordinary else chance.choice(BETAS)
    needs = SECTIONS[kind].model_construct(**section)
    concentrated = chance.random() < 0.3
    rule = "concentrated" if concentrated else "basic"
    amounts = {"beta": beta} if _spends(needs, rule) else {}
    if needs.spends_gamma:
        amounts["gamma"] = "0.05" if ordinary else chance.choice(["1e-50", "1e-6", "0.9"])
    asked = {"rho" if concentrated else "alpha": alpha}
    unit = chance.choice(["row", {"column": "who", "max_rows": chance.choice([1, 3, 1000])}])
    rows = chance.choice([20, 10**4]) if ordinary else chance.choice(ROWS)
    total = chance.choice([1, 8]) * rows
    weights = {"column": "w", "largest": "8", "step": "1/4", "total": total}
    return {
        "dprelease": 1,
        "dataset": "made-up",
        "source": "none.csv",
        "rows": rows,
        "privacy_unit": unit,
        "neighbours": chance.choice(["replace-one", "add-remove"]),
        "invalid": chance.choice(["refuse", "clamp", "own-cell", "drop"]),
        **({"weights": weights} if section.get("weighted") else {}),
        "budget": {
            "composition": rule,
            "granted": {"alpha": "1000", "beta": "0.5", "gamma": "0.99"},
            "requested": asked | amounts,
        },
        "columns": columns(chance, kind),
        **({"curves": curves(chance)} if kind == "mean-curve" else {}),
        "releases": [section],
        "publication": {"title": "Made up", "replicates": chance.choice([0, 2])},
    }


def _spends(section: Any, composition: Literal["basic", "concentrated"]) -> bool:
    try:
        return bool(section.spends_beta(composition))
    except AttributeError:  # a part that is still a mapping: of a bandwidth that is drawn
        return True


def plan_of(
    kind: str, mechanism: str, seed: object, ordinary: bool = False, **wanted: object
) -> Plan:
    """The first random plan of it that is read without a refusal.

    ``wanted``: keys that it has, unless none of the first plans is valid with them.
    """
    chance = random.Random(f"{kind} {mechanism} {seed}")
    for number in range(10 * TRIES):  # of those of difference-body one in 200 is valid
        if number == TRIES // 4:
            wanted = {}
        try:
            return load_plan(document(kind, mechanism, chance, ordinary) | wanted)
        except PlanError:
            continue
    raise AssertionError(f"none of {10 * TRIES} plans of {kind} by {mechanism} is valid")
