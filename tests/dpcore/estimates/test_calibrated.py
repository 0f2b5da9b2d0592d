"""Calibrated estimating equations: against statsmodels, the normal equations, and many surveys."""

import numpy as np
import pytest

from dpcore.estimates.calibrated import Fitted, fit_calibrated
from dpcore.estimates.families import FAMILIES
from dpcore.post.levels import SIGMAS_95

RANDOM = np.random.default_rng(3)
ROWS = 3000
DESIGN = np.column_stack(
    [np.ones(ROWS), RANDOM.integers(0, 2, ROWS), RANDOM.normal(0, 1, ROWS).round(1)]
)
MEANS = {
    "gaussian": (DESIGN @ [1.0, 0.5, -0.3]) + RANDOM.normal(0, 1, ROWS),
    "binomial": (RANDOM.random(ROWS) < 1 / (1 + np.exp(-DESIGN @ [-0.5, 1.0, 0.7]))).astype(float),
    "poisson": RANDOM.poisson(np.exp(DESIGN @ [0.2, 0.4, -0.3])).astype(float),
}


def products(design, response):
    """All products of two of the terms and the response."""
    columns = np.column_stack([design, response])
    first, second = np.triu_indices(columns.shape[1])
    return columns[:, first] * columns[:, second]


def silence(features):
    return np.zeros((features.shape[1],) * 2)


@pytest.mark.parametrize("family", MEANS)
def test_with_the_records_own_totals_it_is_maximum_likelihood(family):
    response = MEANS[family]
    features = products(DESIGN, response)
    found = fit_calibrated(
        DESIGN, response, FAMILIES[family], features, features.mean(axis=0), silence(features), ROWS
    )
    import statsmodels.api as sm  # by this test alone, and takes long

    families = {
        "gaussian": sm.families.Gaussian(),
        "binomial": sm.families.Binomial(),
        "poisson": sm.families.Poisson(),
    }
    expected = sm.GLM(response, DESIGN, family=families[family]).fit(cov_type="HC0")
    np.testing.assert_allclose(found.coefficients, expected.params, atol=1e-5)
    np.testing.assert_allclose(found.sampling, expected.bse, rtol=3e-3)


def test_a_linear_model_solves_the_normal_equations_with_the_tables_moments():
    records = DESIGN[:1000]
    response = RANDOM.normal(0, 1, 1000)  # the records know nothing of the response
    features, truth = products(records, response), products(DESIGN, MEANS["gaussian"])
    totals = truth.mean(axis=0)
    found = fit_calibrated(
        records, response, FAMILIES["gaussian"], features, totals, silence(features), ROWS
    )
    expected = np.linalg.lstsq(DESIGN, MEANS["gaussian"], rcond=None)[0]
    np.testing.assert_allclose(found.coefficients, expected, atol=1e-6)
    np.testing.assert_allclose(found.spanned, 1.0, atol=1e-9)
    # Without sampling, errors are those of the derivatives of the coefficients by the totals.
    change = RANDOM.normal(0, 1e-6, len(totals))
    noise = np.outer(change, change)
    again = fit_calibrated(
        records, response, FAMILIES["gaussian"], features, totals + change, noise, 1e18
    )
    moved = again.coefficients - found.coefficients
    np.testing.assert_allclose(again.privacy, np.abs(moved), rtol=1e-3)


def test_moments_beyond_any_survey_give_finite_coefficients():
    response = MEANS["binomial"]
    features = products(DESIGN, response)
    totals = features.mean(axis=0)
    totals[DESIGN.shape[1]] += 3.0  # a mean of the response far beyond 1
    found = fit_calibrated(
        DESIGN, response, FAMILIES["binomial"], features, totals, silence(features), ROWS
    )
    assert np.all(np.isfinite(found.coefficients))


def test_terms_that_depend_on_each_other_are_refused():
    twice = np.column_stack([DESIGN, DESIGN[:, 1]])
    features = products(twice, MEANS["gaussian"])
    with pytest.raises(ValueError, match="linearly dependent"):
        fit_calibrated(
            twice,
            MEANS["gaussian"],
            FAMILIES["gaussian"],
            features,
            features.mean(axis=0),
            silence(features),
            ROWS,
        )


@pytest.mark.parametrize("spread", [0.0, 0.3, 2.0])
def test_blur_is_the_noise_in_the_derivative(spread):
    """Of an intercept alone the derivative is the number of records times one number."""
    response, ones = MEANS["binomial"], np.ones((ROWS, 1))
    features = np.column_stack([ones, response])
    noise = np.diag([spread**2, 0.1])
    totals = features.mean(axis=0)
    found = fit_calibrated(ones, response, FAMILIES["binomial"], features, totals, noise, ROWS)
    assert found.blur == pytest.approx(spread)
    linear = fit_calibrated(ones, response, FAMILIES["gaussian"], features, totals, noise, ROWS)
    assert linear.blur == 0


def one_predictor(noise_of_square: float) -> Fitted:
    """A slope from noisy totals of 1, x, y, x y and x^2; only the last one has noise."""
    generator = np.random.default_rng(5)
    x = generator.normal(0, 1, 5000)
    x = (x - x.mean()) / x.std()
    y = 2 * x + generator.normal(0, 1, 5000)
    features = np.column_stack([np.ones(5000), x, y, x * y, x * x])
    noise = np.zeros((5, 5))
    noise[4, 4] = noise_of_square**2
    design = np.column_stack([np.ones(5000), x])
    return fit_calibrated(
        design, y, FAMILIES["gaussian"], features, features.mean(axis=0), noise, 1e12
    )


def test_noise_in_a_divisor_counts_as_in_fiellers_set():
    """A slope of 2 = N / W with N = 2 exactly and W = 1 with an error e lies from 2 / (1 + z e) to
    2 / (1 - z e), and anywhere if z e >= 1."""
    for error in (0.001, 0.1, 0.3, 0.5):
        found = one_predictor(error)
        slope = found.coefficients[1]
        upper = slope / (1 - SIGMAS_95 * error)
        assert found.privacy[1] * SIGMAS_95 == pytest.approx(upper - slope, rel=1e-3)
    assert np.isinf(one_predictor(0.52).privacy[1])
