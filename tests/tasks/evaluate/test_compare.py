"""An evaluation says what is true of tables whose distance is known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpcore.errors import InputError
from tasks.evaluate import classifiers
from tasks.evaluate.compare import Evaluation, evaluate
from tasks.evaluate.sections import evaluation_page, evaluation_text
from tasks.evaluate.tables import TablePair, read_pair
from tests.tasks.report.pages import read_page

pytest.importorskip("sklearn")
ROWS, FEW = 1500, 300
"""Of tables whose distances are known, and of those where any will do."""


def people(seed: int, rows: int = ROWS) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    age = random.integers(0, 90, rows)
    income = np.where(age < 15, np.nan, np.round(random.gamma(2, 10 + age) * 10))
    return pd.DataFrame(
        {
            "sex": random.choice(["F", "M"], rows),
            "region": random.choice(["north", "south", None], rows),
            "age": age,
            "income": income,
            "retired": (age > 65) ^ (random.random(rows) < 0.02),
        }
    )


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    """The same columns, and nothing between them."""
    random = np.random.default_rng(9)
    return pd.DataFrame({name: random.permutation(table[name]) for name in table})


def compared(folder: Path, synthetic: pd.DataFrame, **options: object) -> Evaluation:
    return evaluate(paired(folder, synthetic), **options)


def paired(folder: Path, synthetic: pd.DataFrame, most_cells: int = 20) -> TablePair:
    people(1, len(synthetic)).to_parquet(folder / "real.parquet")
    synthetic.to_parquet(folder / "synthetic.parquet")
    return read_pair(folder / "real.parquet", folder / "synthetic.parquet", most_cells)


@pytest.mark.slow
def test_another_sample_of_the_same_people_cannot_be_told_apart(tmp_path):
    found = compared(tmp_path, people(2))
    assert abs(found.propensity_auc - 0.5) < 0.05
    assert found.margins[1].worst < 0.06
    assert found.correlations.worst < 0.08
    assert found.classifier.label == "retired"
    assert found.classifier.trained_on_synthetic > 0.9
    assert abs(found.classifier.trained_on_synthetic - found.classifier.trained_on_real) < 0.05
    assert found.quantiles["age"].largest < 0.15


@pytest.mark.slow
def test_columns_that_lost_their_relations_are_told_apart_by_everything_but_one_way_margins(
    tmp_path,
):
    found = compared(tmp_path, shuffled(people(1)))
    assert found.margins[1].worst == pytest.approx(0, abs=1e-12)
    assert found.margins[2].worst > 0.3
    assert found.propensity_auc > 0.8
    assert found.classifier.trained_on_synthetic < 0.6
    assert found.classifier.trained_on_real > 0.9
    assert found.correlations.worst_at == ("age", "income")
    assert found.quantiles["income"].largest == 0


@pytest.mark.slow
def test_text_and_page_show_what_was_found(tmp_path):
    found = compared(tmp_path, shuffled(people(2, FEW)))
    text = evaluation_text(found)
    html = evaluation_page(found, "a < b", "NOT FOR RELEASE")
    numbers = [f"{found.propensity_auc:.3f}", f"{found.classifier.trained_on_real:.3f}"]
    numbers += [f"{found.margins[3].mean:.4f}", f"{found.correlations.worst:.3f}"]
    for number in numbers:
        assert number in text
        assert number in html
    page = read_page(html)
    drawn = [svg.children[0].words for svg in page.all("svg") if "role" in svg.attributes]
    assert drawn[:3] == ["Distance of the tables of one and two columns", "age", "income"]
    assert len(drawn) == 3
    assert "a < b" in page.words
    assert "NOT FOR RELEASE" in page.words
    assert "NOT FOR RELEASE" not in evaluation_page(found, "a", None)


def test_without_scikit_learn_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(classifiers, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"dprelease\[evaluation\]"):
        compared(tmp_path, people(2, FEW))
