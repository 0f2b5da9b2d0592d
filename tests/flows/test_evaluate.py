"""``dprelease evaluate`` on the command line."""

import json

import pandas as pd
import pytest

from dpcore.accounting.budget import Budget
from flows.cli import main
from tasks.ledger import Ledger
from tasks.workplace.home import ledger_url
from tests.conftest import made_up_survey

pytest.importorskip("sklearn")


@pytest.fixture
def tables(tmp_path):
    survey = made_up_survey()
    survey.to_parquet(tmp_path / "real.parquet")
    shuffled = {name: survey[name].sample(frac=1, random_state=1).to_list() for name in survey}
    pd.DataFrame(shuffled).to_csv(tmp_path / "synthetic.csv", index=False)
    return [str(tmp_path / "synthetic.csv"), str(tmp_path / "real.parquet")]


@pytest.fixture
def known(own_home):
    Ledger(ledger_url()).grant("survey", Budget.of("1"), who="A. Officer", why="a test")


@pytest.mark.slow
def test_a_public_table_is_compared_and_drawn(tables, tmp_path, capsys):
    assert main(["evaluate", *tables, "--page", str(tmp_path / "page.html")]) == 0
    out = capsys.readouterr().out
    assert "400 real and 400 synthetic records, 5 columns" in out
    assert "NOT FOR RELEASE" not in out
    assert "NOT FOR RELEASE" not in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_table_that_may_be_private_is_refused_before_anything_is_computed(
    tables, known, tmp_path, capsys
):
    page = tmp_path / "page.html"
    for words in ([], ["--dataset", "survey"]):
        assert main(["evaluate", *tables, *words, "--page", str(page)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "--not-for-release" in printed.err
    assert not page.exists()
    assert main(["evaluate", *tables, "--dataset", "another", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_for_release"] is False


@pytest.mark.slow
def test_what_is_said_of_a_private_table_is_marked(tables, known, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["evaluate", *tables, "--not-for-release", "--page", str(page)]) == 0
    assert capsys.readouterr().out.startswith("NOT FOR RELEASE: ")
    assert ">NOT FOR RELEASE: " in page.read_text()
    assert main(["evaluate", *tables, "--not-for-release", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_for_release"] is True
