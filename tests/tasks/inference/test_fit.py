"""Models from tables and records: intervals hold, refusals name the sets, and nulls are left out."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import REPLACE_ONE, Adjacency
from dpcore.domain.axes import Bins, Categories, middles
from dpcore.domain.domain import Domain
from dpcore.domain.tally import Tally
from dpcore.errors import InputError
from dpcore.estimates.evidence import Evidence
from dpcore.estimates.model import INSIDE, LEANING
from dpcore.estimates.questions import correlation
from dpcore.line.privacy_line import perturb
from dpcore.post.tables.consistency import Agreement
from dpcore.post.tables.margins import Margin
from dpcore.releases.tables.microdata import Microdata
from dpcore.sampling.source import SeededSource
from schemas.releases.formulas import terms_of
from tasks.bundle.reader import BundleReader
from tasks.inference.fit import fit, fit_of
from tests.chance import mean_squares, shares
from tests.tasks.made_up import opened_once

pytestmark = pytest.mark.usefixtures("short_fits")

ROWS = 4000
DOMAIN = Domain(
    (
        Categories("sex", ("F", "M")),
        Categories("place", ("a", "b", "c")),
        Bins("age", (20.0, 30, 40, 50, 60), integer=True, nullable=True),
        Categories("works", (0, 1)),
    )
)
ALL = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def surveyed(generator, rows: int = ROWS):
    """Codes of records; age is null for one in ten, and work depends on sex and age."""
    sex, place = generator.integers(0, 2, rows), generator.choice(3, rows, p=[0.5, 0.3, 0.2])
    age = np.where(generator.random(rows) < 0.1, 4, generator.integers(0, 4, rows))
    predictor = -0.5 + 0.8 * sex + 0.3 * np.where(age == 4, 1, age)
    works = generator.random(rows) < 1 / (1 + np.exp(-predictor))
    return np.column_stack([sex, place, age, works]).astype(np.int64)


def evidence(codes, seed, alpha="1", adjacency=REPLACE_ONE, sets=ALL):
    release = Microdata(
        "r",
        DOMAIN,
        len(codes),
        Budget.of(alpha, "1e-6"),
        sets,
        "discrete-gaussian",
        adjacency=adjacency,
    )
    cells, counts = np.unique(DOMAIN.pack(codes), return_counts=True)
    exact = release.statistic(Tally(DOMAIN, cells, counts))
    noisy = perturb(exact, release.mechanism, release.share, SeededSource(seed))
    agreement = release.agreement(noisy)
    records = release.sample(noisy, len(codes))[1]
    return Evidence(DOMAIN, agreement, float(agreement.margin(()).table), records, columns(records))


def columns(codes):
    return {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(DOMAIN.axes)}


@pytest.mark.parametrize(
    ("adjacency", "formula", "family"),
    [
        (REPLACE_ONE, "works ~ age + sex", "binomial"),
        pytest.param(
            Adjacency("add-remove"), "age ~ 0 + place", "gaussian", marks=pytest.mark.slow
        ),
    ],
)
def test_intervals_hold_the_population_and_their_parts_are_as_stated(adjacency, formula, family):
    population = surveyed(np.random.default_rng(0), 400_000)
    nothing = Evidence(
        DOMAIN, exact_tables(population), len(population), population, columns(population)
    )
    truth = fit(nothing, formula, family)
    generator, held, errors, stated = np.random.default_rng(1), [], [], []
    surveys = 25
    for seed in range(surveys):
        survey = population[generator.integers(len(population), size=ROWS)]
        found = fit(evidence(survey, seed, adjacency=adjacency), formula, family)
        for ours, exact in zip(found.coefficients, truth.coefficients, strict=True):
            low, high = ours.interval
            held.append(low <= exact.estimate <= high)
            errors.append(ours.estimate - exact.estimate)
            stated.append(ours.standard_error)
    # As if all coefficients of a survey erred together: false alarms once in ten million.
    assert np.mean(held) >= shares(surveys, 0.95)[0]
    least, most = mean_squares(surveys)
    assert least <= np.mean(np.square(np.divide(errors, stated))) <= most


def exact_tables(codes, alpha="1e6"):
    """The exact tables of a population, as if they were noisy."""
    release = Microdata("r", DOMAIN, len(codes), Budget.of(alpha, "1e-6"), ALL, "discrete-gaussian")
    cells, counts = np.unique(DOMAIN.pack(codes), return_counts=True)
    exact = release.statistic(Tally(DOMAIN, cells, counts))
    return release.agreement(perturb(exact, release.mechanism, release.share, SeededSource(0)))


def test_notes_say_which_categories_no_record_has_and_which_enter_as_numbers():
    known = evidence(surveyed(np.random.default_rng(3)), 1)
    assert not fit(known, "age ~ place").notes
    records = known.codes.copy()
    records[records[:, 1] == 2, 1] = 1
    fewer = replace(known, codes=records, columns=columns(records))
    assert fit(fewer, "age ~ place").notes == (
        "no synthetic record has place c, so no coefficient describes it",
    )
    sex, _, *others = DOMAIN.axes
    coded = replace(
        known,
        domain=Domain((sex, Categories("place", (1, 2, 3)), *others)),
        columns=known.columns | {"place": known.codes[:, 1] + 1},
    )
    assert fit(coded, "age ~ place").notes == (
        "place is used as a number, because its categories are numbers; write C(place) for categories",
    )
    assert not fit(coded, "age ~ C(place)").notes


def test_privacy_errors_follow_the_noise_and_sampling_errors_do_not():
    survey = surveyed(np.random.default_rng(2))
    strong, weak = (fit(evidence(survey, 1, alpha), "age ~ sex") for alpha in ("1/2", "4"))
    for more, less in zip(strong.coefficients, weak.coefficients, strict=True):
        assert more.privacy_error > 5 * less.privacy_error
        assert more.sampling_error == pytest.approx(less.sampling_error, rel=0.2)
    assert strong["sex[T.M]"].spanned > 0.95
    assert "95% interval" in str(strong)
    assert list(strong.frame()["term"]) == ["Intercept", "sex[T.M]"]


def test_columns_that_were_not_measured_together_are_named():
    some = evidence(surveyed(np.random.default_rng(3)), 1, sets=((0, 1), (0, 2), (0, 3)))
    with pytest.raises(InputError, match=r"age x works .* also: \[\[age, works\]\]"):
        fit(some, "works ~ age")
    fit(some, "works ~ sex")
    whole = evidence(surveyed(np.random.default_rng(3)), 1)
    with pytest.raises(InputError, match=r"also: \[\[sex, age, works\]\]"):
        fit(whole, "works ~ sex * age")


@pytest.mark.parametrize(
    ("formula", "family", "said"),
    [
        ("works ~ height", "gaussian", "'height' is not a column of the records; did you mean"),
        ("works", "gaussian", "write the response, ~ and the terms"),
        ("works ~ (", "gaussian", "cannot be read as a formula"),
        ("works ~ age | sex", "gaussian", "separates models"),
        ("place ~ age", "gaussian", "for a category write"),
        ("age ~ sex", "binomial", "is true or false"),
        ("works ~ np.log(0 * age - 1)", "gaussian", "cannot be computed"),
        ("works ~ 0", "gaussian", "has no terms"),
        ("works ~ works + sex", "gaussian", "the response is one of the terms"),
        ("works ~ sex", "gamma", "must be one of gaussian, binomial, poisson"),
    ],
)
def test_what_cannot_be_fitted_is_explained(formula, family, said):
    with pytest.raises(InputError, match=said):
        fit(evidence(surveyed(np.random.default_rng(3)), 1), formula, family)


def test_an_estimate_without_an_interval_is_in_the_frame_and_not_printed():
    errors = np.array([np.inf, 0.1])
    found = fit_of(
        "y ~ a", "gaussian", ["Intercept", "a"], (np.array([-2e12, 3]), errors, errors), ""
    )
    hidden, known = str(found).splitlines()[2:4]
    assert re.fullmatch(r"Intercept +- +inf +inf +none", hidden)
    assert re.match(r"a +3 +0.1 +0.1 +2\.\d+ to 3", known)
    assert found.frame()["estimate"].tolist() == [-2e12, 3]


@pytest.mark.parametrize("name", ["Intercept", "C", "np", "exp", "class"])
def test_a_column_whose_name_means_something_in_formulas_is_fitted_like_any_other(name):
    known = evidence(surveyed(np.random.default_rng(3)), 1)
    axes = tuple(replace(a, name=name) if a.name == "age" else a for a in known.domain.axes)
    columns = known.columns | {name: known.columns["age"]}
    named = replace(known, domain=replace(known.domain, axes=axes), columns=columns)
    for formula in ("works ~ {} + sex", "works ~ C(`{}`)", "{} ~ sex", "works ~ exp({} / 100)"):
        same = fit(known, formula.format("age")).coefficients
        found = fit(named, formula.format(name)).coefficients
        assert [c.estimate for c in found] == [c.estimate for c in same]
        shown = "Intercept_" if name == "Intercept" else name
        assert [c.name for c in found] == [re.sub(r"\bage\b", shown, c.name) for c in same]
    with pytest.raises(InputError, match="is zero for every possible value"):
        fit(named, f"works ~ {{sex == '{name}'}} + C(place)")  # a text, and a function


def test_renamed_columns_are_told_from_names_and_categories_that_contain_them():
    known = evidence(surveyed(np.random.default_rng(3)), 1)
    place = known.domain.positions["sex"]
    new_names = {"age": "exp", "sex": "my exp_"}
    axes = tuple(replace(a, name=new_names.get(a.name, a.name)) for a in known.domain.axes)
    odd = tuple(f"b]exp{'_' * i}" for i in range(len(axes[place].categories)))
    axes = tuple(replace(a, categories=odd) if i == place else a for i, a in enumerate(axes))
    columns = {new_names.get(name, name): each for name, each in known.columns.items()}
    was = list(known.domain.axes[place].categories)
    columns["my exp_"] = np.array([odd[was.index(each)] for each in columns["my exp_"]])
    named = replace(known, domain=replace(known.domain, axes=axes), columns=columns)
    found = fit(named, "works ~ exp + `my exp_`").coefficients
    assert [c.name for c in found] == ["Intercept", "exp", f"my exp_[T.{odd[1]}]"]


@pytest.mark.parametrize("name", ["body mass", "age.1"])
def test_a_name_that_is_no_single_word_is_asked_for_in_backticks(name):
    known = evidence(surveyed(np.random.default_rng(3)), 1)
    axes = tuple(replace(a, name=name) if a.name == "age" else a for a in known.domain.axes)
    columns = known.columns | {name: known.columns["age"]}
    named = replace(known, domain=replace(known.domain, axes=axes), columns=columns)
    with pytest.raises(InputError, match=re.escape(f"write works ~ `{name}` + sex")):
        fit(named, f"works ~ {name} + sex")
    fit(named, f"works ~ `{name}` + sex")


@pytest.mark.slow
def test_a_bundle_is_fitted_from_its_draws(plan_document, tmp_path):
    kept = [section for section in plan_document["releases"] if section["name"] == "pairs"]
    records = [section for section in plan_document["synthesis"] if section["name"] == "everybody"]
    kept.append({"name": "wages", "kind": "mean", "column": "income", "by": ["sex"]})
    plan_document |= {"releases": kept, "synthesis": records}
    bundle = opened_once(tmp_path, plan_document)
    found = bundle.fit("income ~ sex + children")
    assert found["Intercept"].sampling_error > 0
    assert all(c.privacy_error > 0 for c in found.coefficients)
    assert str(found) == str(BundleReader.open(bundle.path).fit("income ~ sex + children"))
    told = "table('wages') has the mean of income by sex, measured directly"
    assert any(note.startswith(told) for note in found.notes)
    assert not any(told in note for note in bundle.fit("income ~ children").notes)
    with pytest.raises(InputError, match="'age' is not a column of the records"):
        bundle.fit("income ~ age")


@pytest.mark.parametrize("unit", [100_000])
def test_answers_scale_with_the_unit_of_the_response_and_of_the_terms(unit):
    some = evidence(surveyed(np.random.default_rng(3)), 1)
    plain, scaled = fit(some, "age ~ works + sex"), fit(some, f"{{{unit} * age}} ~ works + sex")
    for one, other in zip(plain.coefficients, scaled.coefficients, strict=True):
        assert other.estimate == pytest.approx(unit * one.estimate, rel=1e-6)
        assert other.privacy_error == pytest.approx(unit * one.privacy_error, rel=1e-6)
    terms = fit(some, f"works ~ {{{unit} * age}}").coefficients[1]
    assert terms.estimate * unit == pytest.approx(
        fit(some, "works ~ age")["age"].estimate, rel=1e-6
    )


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_a_group_whose_records_all_have_one_response_still_has_its_noise(family):
    codes = surveyed(np.random.default_rng(3))
    found = evidence(codes, 1)
    records = found.codes.copy()
    records[records[:, 1] == 2, 3] = 0
    shrunk = Evidence(DOMAIN, found.agreement, ROWS, records, columns(records))
    whole, one_kind = (
        fit(each, "works ~ 0 + place", family)["place[c]"] for each in (found, shrunk)
    )
    assert one_kind.privacy_error > 0.3 * whole.privacy_error
    if family == "gaussian":
        assert one_kind.estimate == pytest.approx(whole.estimate, abs=1e-4)
        assert one_kind.privacy_error == pytest.approx(whole.privacy_error, rel=1e-2)


def test_categories_that_are_numbers_are_written_in_coefficients_as_in_the_plan():
    found = fit(evidence(surveyed(np.random.default_rng(3)), 1), "age ~ C(works)")
    assert found["C(works)[T.1]"] == found.coefficients[1]
    axes = Categories("code", (1, 2)), Categories("text", ("1.0", "2.0")), DOMAIN.axes[3]
    names = terms_of("works ~ 0 + C(code):C(text)", "gaussian", axes).names
    assert names[1] == "C(code)[2]:C(text)[1.0]"


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("works ~ {place == 'z'} + sex", "is zero for every possible value"),
        ("works ~ {age > 1000} + sex", "is zero for every possible value"),
        (
            "{works == '1'} ~ sex",
            "the categories of works are numbers; write {works == 1} ~ sex$",
        ),
        ("works ~ {works != 'yes'}", "are numbers; write works ~ {works != NUMBER}$"),
        ("works ~ {age == '30'} + sex", "the values of age are numbers; write .*age == 30"),
        (
            "{place == 1} ~ sex",
            "the categories of place are texts; write {place == 'CATEGORY'} ~ sex$",
        ),
        ("age ~ {1 / works}", "is not a finite number for some records"),
        ("log(works) ~ sex", r"the response is not a finite number .* write log\(x \+ 1\)$"),
    ],
)
def test_terms_that_cannot_be_meant_are_refused(formula, says):
    found = evidence(surveyed(np.random.default_rng(1), 400), 3)
    with pytest.raises(InputError, match=says):
        fit(found, formula)


def assumed_inside(related, edges, opposed, rows=20_000):
    """Exact tables of two columns in bins, and the slope; inside cells the records' values are
    independent, or ``opposed``: the larger one is, the smaller the other."""
    generator = np.random.default_rng(6)
    x, own = generator.normal(0, 1, (2, rows))
    values = np.clip([x, related * x + (1 - related**2) ** 0.5 * own], edges[0], edges[-1] - 1e-9)
    codes = (np.searchsorted(edges, values, side="right") - 1).T
    records = values.copy()
    for cell in np.unique(codes, axis=0):
        inside = np.flatnonzero(np.all(codes == cell, axis=1))
        here = np.sort(values[:, inside], axis=1)
        records[0, inside] = here[0]
        records[1, inside] = here[1, ::-1] if opposed else generator.permutation(here[1])
    table = np.zeros((len(edges) - 1,) * 2)
    np.add.at(table, tuple(codes.T), 1.0)
    exact = Agreement(table.shape, [Margin((0, 1), table, 1e-6)], float(rows))
    domain = Domain(tuple(Bins(name, edges) for name in "xy"))
    columns = dict(zip("xy", records, strict=True))
    return Evidence(domain, exact, float(rows), codes, columns), np.polyfit(*values, 1)[0]


@pytest.mark.parametrize("related", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("edges", [(-9, -1, 0, 1, 9), (-9, -2, -1.5, -1, -0.5, 0, 0.5, 1, 9)])
@pytest.mark.parametrize("opposed", [False, True])
def test_intervals_hold_whatever_records_assume_inside_bins_of_any_width(related, edges, opposed):
    found, slope = assumed_inside(related, edges, opposed)
    answer = fit(found, "y ~ x")["x"]
    assert answer.interval[0] < slope < answer.interval[1]
    assert answer.privacy_error < 0.25  # and they are not wide for it
    coefficient = correlation(found, "x", "y")
    # Two standard errors are what can be wrong at most, and an interval is a little less than that.
    assert abs(coefficient.estimate - related) < 2.2 * coefficient.standard_error
    assert (LEANING in coefficient.notes[0]) == (coefficient.spanned < 0.9)
    assert coefficient.notes[-1].startswith("x (mean ")
    assert INSIDE in coefficient.notes[-1]


@pytest.mark.parametrize("inside", [(0.0, 0.6), (0.4, 1.0), (0.0, 1.0)])
def test_a_share_below_a_number_inside_the_bin_of_most_records_holds_wherever_they_are(inside):
    generator = np.random.default_rng(8)
    rows, edges = 5000, (0, 100, 200, 500)
    values = generator.choice([50.0, 150.0, 300.0], rows, p=[0.9, 0.07, 0.03])
    codes = np.searchsorted(edges, values, side="right")[:, None] - 1
    records = np.where(values == 50, 100 * generator.random(rows), values)
    truth = np.where(values == 50, 100 * generator.uniform(*inside, rows), values)
    exact = Agreement((3,), [Margin((0,), np.bincount(codes[:, 0]) * 1.0, 1e-6)], float(rows))
    found = Evidence(Domain((Bins("x", edges),)), exact, float(rows), codes, {"x": records})
    for number in (20, 50, 80):
        low, high = fit(found, f"{{x > {number}}} ~ 1")["Intercept"].interval
        assert low <= np.mean(truth > number) <= high
    low, high = fit(found, "{x > 100} ~ 1")["Intercept"].interval
    assert high - low < 0.02


def test_names_that_differ_by_a_dot_alone_stay_apart():
    codes = surveyed(np.random.default_rng(3))
    found = evidence(codes, 1)
    names = {"sex": "a.b", "place": "a_b", "age": "a_b_", "works": "works"}
    axes = tuple(replace(axis, name=names[axis.name]) for axis in DOMAIN.axes)
    renamed = replace(
        found,
        domain=Domain(axes),
        columns={names[name]: values for name, values in found.columns.items()},
    )
    plain, dotted = fit(found, "works ~ sex + age"), fit(renamed, "works ~ `a.b` + a_b_")
    assert [c.estimate for c in dotted.coefficients] == [c.estimate for c in plain.coefficients]


def test_a_fit_says_which_of_two_categories_counts_as_true():
    found = evidence(surveyed(np.random.default_rng(3)), 1)
    turned = fit(found, "sex ~ works", "binomial")
    assert turned.notes[0] == "of the two categories of sex, sex[M] counts as true"
    condition = fit(found, "{sex == 'M'} ~ works", "binomial")
    assert condition["works"].estimate == pytest.approx(turned["works"].estimate)
    assert not any("counts as true" in note for note in condition.notes)


def test_a_column_of_one_category_is_not_rare():
    counts = np.array([[500.0, 700.0, 800.0]])
    codes = np.repeat([[0, 0], [0, 1], [0, 2]], counts[0].astype(int), axis=0)
    domain = Domain((Categories("country", ("FR",)), Categories("children", (0, 1, 2))))
    found = Evidence(
        domain,
        Agreement((1, 3), [Margin((0, 1), counts, 100.0)], 2000.0),
        2000.0,
        codes,
        {"country": np.repeat("FR", 2000), "children": codes[:, 1]},
    )
    assert fit(found, "children ~ 0 + country")["country[FR]"].estimate == pytest.approx(1.15)
    assert np.isfinite(fit(found, "children ~ 0 + country")["country[FR]"].standard_error)


@pytest.mark.parametrize(
    ("formula", "origin", "family"),
    [
        ("works ~ age + sex", 0, "binomial"),
        ("works ~ age + sex", 1980, "binomial"),
        ("age ~ works + sex", 0, "gaussian"),
        ("works ~ age + sex", 1980, "gaussian"),
        ("works ~ age + sex", 100_000, "gaussian"),
        ("works ~ age * sex", 1980, "gaussian"),
        ("works ~ 0 + sex + age", 1980, "gaussian"),
        ("works ~ 0 + sex + age", 1980, "binomial"),
    ],
)
def test_a_model_does_not_depend_on_where_numbers_begin(formula, origin, family):
    """Years around 2000 lost their intervals, or had false and narrow ones, by rounding errors."""
    known = evidence(surveyed(np.random.default_rng(5)), seed=3, sets=(*ALL, (0, 2, 3)))
    near = fit(known, formula.replace("age", "{age - 40}"), family).frame().set_index("term")
    far = fit(known, formula.replace("age", f"{{age + {origin}}}"), family).frame()
    far = far.set_index("term")
    slope = next(name for name in near.index if "age" in name or "works" in name)
    other = next(name for name in far.index if "age" in name or "works" in name)
    assert np.isfinite(near["standard_error"]).all()
    for column in ("estimate", "sampling_error", "privacy_error"):
        assert far.loc[other, column] == pytest.approx(near.loc[slope, column], rel=1e-4)
    if formula == "works ~ age + sex":
        moved = near.loc["Intercept", "estimate"] - (40 + origin) * near.loc[slope, "estimate"]
        assert far.loc["Intercept", "estimate"] == pytest.approx(moved, rel=1e-4, abs=1e-6)
        assert np.isfinite(far.loc["Intercept", "standard_error"])


def test_nulls_in_other_columns_are_counted_where_a_table_has_them():
    """The privacy errors of a model with two nullable columns were up to 27 times too large."""
    random, rows, variance = np.random.default_rng(4), 20_000, 130.0
    axes = [Categories(name, ("a", "b"), nullable=True) for name in ("x", "y")]
    domain = Domain((*axes, Categories("z", ("c", "d"))))
    x, z = random.choice(3, rows, p=[0.6, 0.3, 0.1]), random.integers(0, 2, rows)
    y = np.where(random.random(rows) < 0.1, 2, random.random(rows) < 0.3 + 0.2 * (x == 1) - 0.1 * z)
    counts = np.bincount(np.ravel_multi_index((x, y, z), (3, 3, 2)), minlength=18).astype(float)
    kept = (x < 2) & (y < 2)
    terms = np.column_stack([np.ones(rows), x == 1, z == 1])[kept]
    truth = np.linalg.lstsq(terms, (y == 1)[kept], rcond=None)[0]
    away, stated = [], []
    for _ in range(60):
        noisy = counts + random.normal(0, variance**0.5, 18)
        made = random.choice(18, rows, p=np.maximum(noisy, 0) / np.maximum(noisy, 0).sum())
        codes = np.stack(np.unravel_index(made, (3, 3, 2)), axis=1)
        table = Margin((0, 1, 2), noisy.reshape(3, 3, 2), variance)
        columns = {axis.name: middles(axis)[codes[:, i]] for i, axis in enumerate(domain.axes)}
        agreement = Agreement((3, 3, 2), [table], noisy.sum())
        found = fit(Evidence(domain, agreement, noisy.sum(), codes, columns), "{y == 'b'} ~ x + z")
        away.append([c.estimate for c in found.coefficients] - truth)
        stated.append([c.privacy_error for c in found.coefficients])
    actual = np.sqrt(np.mean(np.square(away), axis=0))
    assert np.all(np.median(stated, axis=0) < 1.6 * actual)
    assert np.all(np.median(stated, axis=0) > 0.7 * actual)
