"""The measurements of growth measure what they say, on small sizes."""

import pytest

from benchmarks import tally as tally_benchmark
from benchmarks.scale import sparse
from dpcore.sampling.source import SeededSource


@pytest.mark.slow
def test_the_tally_benchmark_releases_all_margins(tmp_path):
    kind = "histogram"
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
