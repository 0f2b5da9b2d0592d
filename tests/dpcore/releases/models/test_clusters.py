"""Where noise hides how clusters differ, errors are too large and not too small."""

import numpy as np
import pytest

from dpcore.domain.tally import Tally
from dpcore.line.privacy_line import perturb
from dpcore.sampling.source import SeededSource
from schemas.plan import Plan
from tests.shortest import from_yaml

ROWS, CLUSTERS, DRAWS = 4500, 100, 40
PLAN = f"""
rows: {ROWS}
neighbours: add-remove
alpha: "1"
beta: "1e-6"
columns:
  place: {{type: integer, bounds: [1, {CLUSTERS}]}}
  works: {{type: categorical, categories: ["no", "yes"]}}
  age: {{type: integer, bounds: [18, 79]}}
releases:
  - name: m
    kind: model
    formula: "{{works == 'yes'}} ~ age"
    family: binomial
    mechanism: noisy-scores
"""


@pytest.mark.slow
def test_no_error_of_a_model_is_far_below_that_of_the_survey():
    random = np.random.default_rng(2)
    age = random.integers(18, 80, ROWS)
    works = random.random(ROWS) < 1 / (1 + np.exp(0.03 * (age - 40) - 1))
    place = np.repeat(np.arange(CLUSTERS), ROWS // CLUSTERS)
    by_column = {"age": age - 18, "works": works.astype(int), "place": place}
    release = Plan.model_validate(from_yaml(PLAN, cluster="place")).built["m"]
    assert release.terms is not None
    records = np.column_stack([by_column[axis.name] for axis in release.terms.axes])[:, None, :]
    packed = release.design.packed(records, np.ones((ROWS, 1)), place[:, None], release.domain)
    exact = release.statistic(Tally.of(release.domain, packed, np.ones(ROWS, dtype=np.int64)))
    terms = np.column_stack([np.ones(ROWS), age])
    chance = 1 / (1 + np.exp(0.03 * (age - 40) - 1))
    own = np.sqrt(np.diag(np.linalg.inv((terms.T * chance * (1 - chance)) @ terms)))
    ratios = []
    for seed in range(DRAWS):
        noise = SeededSource(seed)
        fit = release.fitted(perturb(exact, release.mechanism, release.share, noise))
        ratios.append(np.sqrt(np.diag(fit.sampling + fit.privacy)) / own)
    assert np.mean(np.array(ratios) < 0.9) < 0.1
