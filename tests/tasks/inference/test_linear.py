"""Linear models from moments: formulas that they answer, those that tables answer, and those refused."""

import numpy as np
import pandas as pd
import pytest

from dpcore.errors import InputError, PlanError
from dpcore.releases.numbers.moments import HIDDEN
from schemas.plan import load_plan
from tasks.bundle.analyses import coefficients_table
from tasks.explain.analysis import check_analyses, expected_fit
from tests.tasks.made_up import opened
from tests.tasks.report.pages import page_of, part_of

MOMENTS = {"name": "sums", "kind": "moments", "columns": ["income", "age", "sex", "children"]}


def planned(document, *releases, models=(), **changes):
    kept = [section for section in document["releases"] if section["name"] in releases]
    document |= {"releases": [*kept, MOMENTS | changes], "synthesis": [], "analyses": [*models]}
    return load_plan(document)


def test_a_bundle_of_moments_alone_answers_linear_models(plan_document, tmp_path):
    model = {"name": "pay", "title": "Pay", "formula": "income ~ age + sex"}
    plan = planned(plan_document, models=[model])
    bundle = opened(plan, tmp_path)
    found = bundle.fit("income ~ age + sex")
    assert [c.name for c in found.coefficients] == ["Intercept", "age", "sex[T.M]"]
    (record,) = bundle.manifest.analyses
    assert record.source == "sums"
    for key, values in found.frame().items():
        assert np.array_equal(np.ma.getdata(bundle.table("analyses/pay")[key]), values)
    table = pd.DataFrame(bundle.table("sums"))
    means = table[(table["statistic"] == "mean") & table["other"].isna()]
    only = bundle.fit("income ~ 1")["Intercept"]
    assert only.estimate == pytest.approx(means.set_index("column")["estimate"]["income"])
    page = page_of(bundle.path)
    assert "from the noisy moments of sums. It costs no further budget." in page.words
    for words in ("mean of income where sex is F", "variance of age", "share of sex = M"):
        assert words in part_of(page, "release-sums").words


def test_a_term_that_noise_hides_has_a_reason_instead_of_an_estimate(plan_document):
    plan_document["budget"]["requested"]["alpha"] = "0.1"
    plan = planned(plan_document)
    _, found = expected_fit(plan, "income ~ age + sex", "gaussian")
    table = coefficients_table("pay", found).columns
    hidden = np.isinf([each.standard_error for each in found.coefficients])
    assert hidden.any()
    assert np.array_equal(hidden, ~np.ma.getmaskarray(table["reason"]))
    assert set(table["reason"][hidden]) == {HIDDEN}
    for name in ("estimate", "lower_95"):
        assert np.array_equal(hidden, np.ma.getmaskarray(table[name]))


@pytest.mark.parametrize(
    ("formula", "family", "says"),
    [
        ("income ~ age:sex", "gaussian", "age:sex.* is not a sum of columns of sums"),
        ("{income > 2000} ~ age", "gaussian", "the response is not a sum of columns of sums"),
        ("income ~ age + C(age)", "gaussian", "is not a sum of columns|cannot be computed"),
        ("income ~ region", "gaussian", "'region' is not a column of the records; did you mean"),
        ("income ~ sex + {sex == 'M'}", "gaussian", "some terms are sums of others"),
        ("sex ~ age", "binomial", "add a release of kind microdata-margins"),
    ],
)
def test_what_moments_cannot_answer_is_refused_with_what_would(
    plan_document, formula, family, says
):
    plan = planned(plan_document)
    with pytest.raises(InputError, match=says):
        expected_fit(plan, formula, family)
    model = {"name": "m", "title": "M", "formula": formula, "family": family}
    if "region" not in formula:
        with pytest.raises(PlanError, match=r"analyses\[0\].formula"):
            check_analyses(planned(plan_document, models=[model]))


def test_tables_answer_what_moments_cannot(plan_document):
    plan = planned(plan_document, "pairs")
    assert expected_fit(plan, "income ~ children", "gaussian")[0] == "sums"
    assert expected_fit(plan, "income ~ region", "gaussian")[0] == "pairs"
    assert expected_fit(plan, "{income > 3600} ~ sex", "gaussian")[0] == "pairs"
    assert expected_fit(plan, "sex ~ children", "binomial")[0] == "pairs"
