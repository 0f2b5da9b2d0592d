"""The papers' experiments run, measure what they say, and are all on the page."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import bins, rates
from benchmarks.papers.constructions import CONSTRUCTIONS, NOT_BUILT, errors_section
from benchmarks.papers.experiment import experiments, run
from benchmarks.papers.page import figure, section
from tests.conftest import those_slow
from tests.plans import MECHANISMS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", those_slow(experiments(), ["hall-2.2", "hrw-3", "wz-rates", "wz-1"])
)
def test_an_experiment_prints_figures_and_draws_its_plot(name, tmp_path):
    pytest.importorskip("matplotlib")
    experiment = experiments()[name]
    if not experiment.possible:
        pytest.skip(f"{experiment.data} is not here")
    *lines, _ = run(name, tmp_path, trials=6)
    assert (tmp_path / f"papers-{name}.svg").read_text().rstrip().endswith("</svg>")
    written = section(experiment, lines, "images")
    for quantity, paper, here in experiment.beside(lines):
        assert figure(quantity, paper, here) in written
        assert "nan" not in here


def test_the_page_holds_every_experiment_and_its_plot():
    page = (ROOT / "docs/pages/explanation/papers.md").read_text()
    for name, experiment in experiments().items():
        assert f"## {experiment.title}\n" in page
        assert f"(../images/papers-{name}.svg)" in page
        assert (ROOT / f"docs/pages/images/papers-{name}.svg").is_file()
        assert experiment.differs in page
    assert "Not run" not in page


def test_the_page_holds_every_construction_and_what_runs_it_exists():
    offered = {f"{kind}: {mechanism}" for kind, mechanism in MECHANISMS}
    assert len(CONSTRUCTIONS) == len({each.name for each in CONSTRUCTIONS}) == 41
    for each in CONSTRUCTIONS:
        assert bool(each.home) != each.corrected.startswith(NOT_BUILT), each.name
        assert not each.home or (ROOT / each.home).is_file(), each.name
        assert not each.home or each.runs, each.name
        assert not each.runs or each.runs in offered or (ROOT / each.runs).is_file(), each.name
    assert errors_section() in (ROOT / "docs/pages/explanation/papers.md").read_text()


def test_a_section_without_its_data_says_so():
    written = section(experiments()["hall-2.4"], None, "images")
    assert "Not run: the public table `nltcs` was not there." in written
    assert "svg" not in written


def test_squared_errors_are_the_integrals():
    x = (np.arange(60_000) + 0.5) / 60_000
    shares = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]])
    estimate = 5 * shares[0][(x * 5).astype(int)]
    beta = (stats.beta(10, 3).pdf(x) + stats.beta(3, 10).pdf(x)) / 2
    exact = ((estimate - beta) ** 2).mean()
    assert bins.squared_errors("bimodal", shares) == pytest.approx([exact], rel=1e-4)
    exact = ((estimate - 6 * x * (1 - x)) ** 2).mean()
    assert rates.squared_error(shares) == pytest.approx([exact], rel=1e-4)


@pytest.mark.slow
def test_perturbed_histograms_have_their_reference_errors():
    lines = bins.measure(400).lines
    found = {(x["n"], x["alpha"]): x["ise"][1] for x in lines if x["law"] == "Beta(10, 10)"}
    expected = {(100, None): 0.157, (100, "1"): 0.210, (100, "0.1"): 1.70}
    expected |= {(1000, None): 0.087, (1000, "1"): 0.088, (1000, "0.1"): 0.140}
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.slow
def test_fitted_slopes_are_those_of_the_paper():
    *perturbed, by_distance, by_series = rates.measure(20).lines
    for line in perturbed:
        assert line["slope"] == pytest.approx(line["paper_slope"], abs=0.04)
    # What the paper has for the exponential mechanisms are bounds.
    for line in (by_distance, by_series):
        assert line["paper_slope"] - 0.2 < line["slope"] < line["paper_slope"]
