"""Terms of a model: a basis without correlations, short rows, and what is refused."""

import numpy as np
import pytest

from dpcore.domain.axes import Categories, Grid
from schemas.releases.formulas import terms_of

AXES = (
    Grid("age", 18, 81, 63, integer=True),
    Categories("sex", ("F", "M"), nullable=True),
    Categories("place", ("a", "b", "c")),
    Grid("pay", 0.0, 100.0, 64),
)


def every_code(axes):
    sizes = [axis.size for axis in axes]
    return np.indices(sizes).reshape(len(sizes), -1).T


@pytest.mark.parametrize(
    ("formula", "other", "same"),
    [
        ("pay ~ age + place", "pay ~ place + age", True),
        ("pay ~ age + place", "pay ~ age + C(place)", True),
        ("pay ~ age + place", "pay ~ 0 + place + age", True),
        ("pay ~ age + place", "pay ~ {age - 40} + C(place, contr.treatment(base='b'))", True),
        ("pay ~ age + place", "pay ~ age + {place == 'a'} + {place == 'c'}", True),
        ("pay ~ age + {age*age}", "pay ~ I(age**2) + age", True),
        ("pay ~ sex * age", "pay ~ 0 + sex + sex:age", True),
        ("pay ~ 0 + place + age", "pay ~ place + {age - 50}", True),
        ("pay ~ 0 + C(sex):C(place)", "pay ~ sex * place", True),
        ("pay ~ {age + 1974} + {(age + 1974) * (age + 1974)}", "pay ~ age + {age * age}", True),
        ("pay ~ age + {age * age}", "pay ~ {age - 80} + {(age - 80) * (age - 80)}", True),
        ("pay ~ {age/1e6} + {age/1e6 * age/1e6}", "pay ~ age + {age * age}", True),
        ("pay ~ age + place", "pay ~ age + {place == 'a'} + {place == 'a'} * 2", False),
        ("pay ~ age + {age*age}", "pay ~ age + {age*age*age}", False),
        ("pay ~ sex * age", "pay ~ sex + age + {age*age}", False),
        ("pay ~ age + place", "{pay + 1} ~ age + place", False),
        ("{pay > 50} ~ age", "{pay > 60} ~ age", False),
        ("pay ~ sex + age", "pay ~ age + {(sex == 'M') & (age > 30)} + {age > 30}", False),
    ],
)
def test_the_same_model_in_other_words_has_the_same_predictors(formula, other, same):
    axes = tuple(axis for axis in AXES if axis.name in formula)
    terms = terms_of(formula, "gaussian", axes)
    try:
        asked = terms_of(other, "gaussian", axes)
    except ValueError:
        assert not same
        return
    change = terms.change_to(asked)
    assert (change is not None) == same
    if not same:
        return
    codes = every_code(axes)
    codes = codes[terms.kept(codes)]
    # Every term changes the predictor by about 1, however small or large its values are.
    beta = np.random.default_rng(1).normal(size=terms.size) / terms._largest
    found = [
        sum(g.values[of._at(g, codes)] @ numbers[list(g.places)] for g in of.groups)
        for of, numbers in ((terms, beta), (asked, change @ beta))
    ]
    assert np.allclose(*found, atol=1e-6)


@pytest.mark.parametrize(
    "formula",
    ["pay ~ age + {age*age} + place", "pay ~ sex * age", "pay ~ 0 + C(place) + age", "pay ~ 1"],
)
def test_rows_in_the_new_basis_give_the_same_predictors_and_are_short(formula):
    names = [name for name in ("age", "sex", "place", "pay") if name in formula]
    axes = tuple(axis for axis in AXES if axis.name in names)
    terms = terms_of(formula, "gaussian", axes)
    codes = every_code(axes)
    codes = codes[terms.kept(codes)]
    rows = terms.rows(codes)
    assert np.all(np.sum(rows**2, axis=1) <= terms.norm_squared * (1 + 1e-12))
    theta = np.random.default_rng(0).normal(size=terms.size)
    beta = terms.basis[0] @ theta
    predictor = np.zeros(len(codes))
    for group in terms.groups:
        predictor += group.values[terms._at(group, codes)] @ beta[list(group.places)]
    assert np.allclose(predictor, rows @ theta)


def test_records_with_a_null_in_a_column_of_the_model_are_left_out():
    axes = AXES[1:2] + AXES[3:]
    terms = terms_of("pay ~ sex", "gaussian", axes)
    assert terms.kept(np.array([[0, 0], [1, 5], [2, 5]])).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("formula", "family", "reason"),
    [
        ("pay ~ age + {2*age}", "gaussian", "or a linear combination of other terms"),
        ("log(pay - 100) ~ age", "gaussian", "no finite value somewhere inside the bounds of pay"),
        ("pay ~ age", "binomial", "true or false"),
        ("{pay - 5} ~ age", "poisson", "the bounds allow negative numbers"),
        ("{pay > 1000} ~ age", "binomial", "the same in every cell"),
        ("place ~ age", "gaussian", "for a category write"),
        ("pay ~ age:pay:sex:place", "gaussian", "together have .* cells"),
    ],
)
def test_what_the_plan_shows_to_be_wrong_is_refused(formula, family, reason):
    wide = (*AXES[:3], Grid("pay", 0.0, 100.0, 65536))
    axes = tuple(axis for axis in wide if axis.name in formula)
    with pytest.raises(ValueError, match=reason):
        terms_of(formula, family, axes)
