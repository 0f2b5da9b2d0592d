"""The measurements of growth measure what they say, on small sizes."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import tally as tally_benchmark
from benchmarks.scale import after_tally, engines, sparse
from dpcore.releases.densities.spectral_density import SpectralDensity
from dpcore.sampling.source import SeededSource
from tasks.survey.tally import tallies


@pytest.mark.parametrize("kind", ["histogram", pytest.param("margins", marks=pytest.mark.slow)])
def test_the_tally_benchmark_releases_all_margins(tmp_path, kind):
    domain = tally_benchmark.domain_of((2, 2, 2, 2, 3, 4))
    database = tally_benchmark.make_survey(tmp_path, domain, 2000)
    line = tally_benchmark.measure(database, domain, 2000, kind, repeats=1)
    assert (line["tables"], line["cells"]) == (21, 192)
    assert 100 < line["occupied"] <= 192
    assert line["ratio"] == pytest.approx(line["release"] / line["packed"], rel=0.2)
    assert line["ratio_cpu"] == pytest.approx(line["release_cpu"] / line["packed_cpu"], rel=0.2)
    published = tally_benchmark.releases_of(domain, 2000, kind)
    assert float(sum(release.share.alpha for release in published)) == 1


@pytest.mark.parametrize("bits", [8, 60])
def test_the_sparse_benchmark_fills_the_cells_it_states(bits, monkeypatch):
    monkeypatch.setattr(sparse, "OCCUPIED", 500)
    monkeypatch.setattr(sparse, "SystemSource", lambda: SeededSource(1))
    line = sparse.measure(bits, draws=2)
    assert line["occupied"] == min(500, 2**bits)
    # A thousand records in each are far above the threshold; no empty cell is.
    assert line["published"] == pytest.approx(line["occupied"], abs=5)


def test_the_exact_estimator_is_the_one_that_the_grid_approaches(tmp_path):
    database = after_tally.make_survey(tmp_path, 3000)
    records = after_tally.read(database, ["x", "y"])
    for cells, error in ((8, 1e-1), (256, 2e-4)):
        axes = [after_tally.Grid(name, 0.0, 1.0, cells) for name in "xy"]
        domain = after_tally.Domain(tuple(axes))
        release = SpectralDensity("d", domain, 3000, after_tally.SHARE, bandwidths=(0.2, 0.2))
        exact, _ = after_tally.exact_coefficients(release, records)
        naive = [
            scale * np.mean(np.prod(np.where(k, np.sqrt(2), 1) * np.cos(np.pi * k * records), 1))
            for k, scale in zip(release.basis.frequencies, release.basis.lambdas, strict=True)
        ]
        np.testing.assert_allclose(exact, naive, atol=1e-12)
        grid = after_tally.grid_coefficients(release, tallies(database, [domain], 3000)[0])
        assert np.abs(grid - exact).max() < error


def test_what_comes_after_the_tally_is_measured_on_the_records_it_states():
    lines = list(after_tally.measure(3000, exact=True))
    assert [line["release"] for line in lines] == ["density 1-D", "density 2-D", "classifier"]
    for line in lines:
        assert line["rows"] == 3000
        assert 100 < line["occupied"] <= 3000
        assert line["after"] > 0
    for line in lines[:2]:
        assert 0 < line["grid_error"] < line["noise"]
    # Ten times the records, a tenth of the noise: a hundredth of its square.
    more = list(after_tally.measure(30_000, exact=False))
    assert more[0]["noise"] == pytest.approx(lines[0]["noise"] / 100, rel=0.02)
    assert "grid_error" not in more[0]


@pytest.mark.slow
def test_the_engines_of_the_benchmark_tally_the_same_records(tmp_path):
    domain = tally_benchmark.domain_of(tally_benchmark.SHAPES[100_000])
    source = str(tally_benchmark.write_survey(tmp_path, domain, 500))
    program = [sys.executable, "-m", "benchmarks.scale.engines", "--measure"]
    lines = []
    for engine in engines.ENGINES:
        done = subprocess.run([*program, engine, source, "500"], check=True, capture_output=True)
        lines.append(json.loads(done.stdout))
    assert [line["engine"] for line in lines] == ["duckdb", "spark"]
    assert lines[0]["tallies"] == lines[1]["tallies"]
    # The work of Spark is done in another process, and counted.
    assert lines[1]["start_cpu"] > 1
