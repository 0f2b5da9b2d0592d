"""``explain`` compares the kinds of tables that a plan could draw, and names the best."""

from itertools import combinations

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.advice.kinds import best, compared
from dpcore.advice.records import distances
from dpcore.domain.axes import Categories
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tasks.explain.explain import explain, kinds_text
from tests.conftest import plan_of_every_kind


def plan_of(releases: list[dict], synthesis: tuple[dict, ...] = (), **sizes: int) -> Plan:
    columns = {
        name: {"type": "categorical", "categories": list(range(size))}
        for name, size in sizes.items()
    }
    document = plan_of_every_kind() | {"columns": columns, "releases": releases, "rows": 20_000}
    document["synthesis"] = list(synthesis)
    document["budget"]["requested"] = {"alpha": "1", "beta": "0", "gamma": "0"}
    return Plan.model_validate(document)


def of_all(kind: str, sizes: dict[str, int], **more: object) -> dict:
    return {"name": "r", "kind": kind, "columns": list(sizes), **more}


BINARY = dict.fromkeys("abcdef", 2)
MANY = dict.fromkeys("abcdefghijkl", 2)


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        (BINARY, "r: best for tables of 1, 2 and 3 columns: histogram."),
        (
            dict.fromkeys("abcdef", 10),
            "r: best for tables of 1 and 2 columns: margins, ways: 2; of 3 columns: none is accurate.",
        ),
    ],
)
def test_the_best_kind_is_named(sizes, verdict):
    plan = plan_of([of_all("margins", sizes, ways=2)], **sizes)
    text = kinds_text(plan)
    assert text[-1] == verdict
    assert any("margins, ways: 2 (as planned)" in line for line in text[2].splitlines())
    assert "not measured" in text[2]
    assert text[-1] in explain(plan, None, plan.requested)


def test_records_are_advised_by_what_their_tables_can_bear():
    histogram = of_all("histogram", MANY)
    alone = kinds_text(plan_of([histogram], **MANY))
    records = kinds_text(plan_of([histogram], ({"name": "p", "from": "r", "rows": 9},), **MANY))
    assert alone[-1].endswith("of 3 columns: histogram.")
    assert records[-1].startswith("r: best for records: microdata-margins, ways: 2; for tables of")
    assert "records, 3 columns" in records[2]
    assert "records, 3 columns" not in alone[2]


def test_who_wants_records_of_64_cells_is_sent_to_nearly_the_best():
    """Of a table with the dependence of a latent trait, which is not the one that the advice made up."""
    generator, rows = np.random.default_rng(5), 2000
    trait = generator.normal(size=rows)
    answers = [trait + generator.logistic(size=rows) > cut for cut in (-1, -0.5, 0, 0.3, 0.8, 1.5)]
    codes = np.column_stack(answers).astype(np.int64)
    columns = [Categories(name, (0, 1)) for name in BINARY]
    pairs = tuple(combinations(range(6), 2))
    domain, share = Domain(tuple(columns)), Budget.of("0.3")
    release = Microdata("r", domain, rows, share, pairs, aim="records")
    found = compared(release, records=True)
    assert {"histogram", "microdata-margins, ways: [2, 3]"} <= {kind.name for kind in found}
    shares = np.bincount(domain.pack(codes), minlength=64) / rows
    tally, reached = Tally.of(domain, domain.pack(codes)), {}
    for kind in found:
        exact, mechanism = kind.release.statistic(tally), kind.release.mechanism
        noisy = perturb(exact, mechanism, share, SeededSource(9))
        made = domain.pack(kind.release.sampler(rows).sample(noisy, rows)[1])
        table = np.bincount(made, minlength=64) / rows
        reached[kind.name] = distances(domain, table, shares)[3]
    assert reached[best(found, 3, records=True).name] <= 1.1 * min(reached.values())


def test_nothing_is_advised_where_all_is_noise():
    wide = dict.fromkeys("abcdef", 60)
    plan = plan_of([of_all("margins", wide, ways=2)], **wide)
    assert kinds_text(plan)[-1].endswith("of 2 and 3 columns: none is accurate.")


def test_a_release_without_a_choice_is_not_mentioned():
    two = plan_of([of_all("margins", {"a": 2, "b": 2}, ways=2)], a=2, b=2)
    assert kinds_text(two) == []
