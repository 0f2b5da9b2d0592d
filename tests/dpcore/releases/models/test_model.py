"""Coefficients of measured models: near the survey's own, in intervals that hold, without a crash."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from dpcore.accounting.budget import Budget
from dpcore.domain.adjacency import Adjacency
from dpcore.domain.axes import Categories, Grid
from dpcore.domain.domain import Domain
from dpcore.estimates.families import FAMILIES
from dpcore.post.levels import SIGMAS_95
from dpcore.releases.models.design import SurveyDesign
from dpcore.releases.models.model import MeasuredModel
from schemas.releases.formulas import terms_of
from tests.chance import FALSE_ALARM
from tests.dpcore.releases.contract import drawn

AGE, SEX = Grid("age", 18, 81, 63, integer=True), Categories("sex", ("F", "M"))
RESPONSES = {
    "gaussian": ("pay", Grid("pay", 0.0, 100.0, 256)),
    "binomial": ("{works == 'yes'}", Categories("works", ("no", "yes"))),
    "poisson": ("visits", Grid("visits", 0, 31, 31, integer=True)),
}
TRUTH = {"gaussian": (20.0, 0.4, 8.0), "binomial": (-1.0, 0.03, 0.5), "poisson": (-0.5, 0.02, 0.3)}


def model(family, rows, alpha="1", formula="age + sex", adjacency=None):
    name, axis = RESPONSES[family]
    axes = (AGE, SEX, axis)
    written = f"{name} ~ {formula}"
    terms = terms_of(written, family, axes)
    facts = ("m", Domain(axes), rows, Budget.of(alpha, "1e-6"), written, family, terms)
    return MeasuredModel(*facts, adjacency=adjacency or Adjacency())


def people(family, rows, seed=0):
    """(rows, 3) codes: the model holds."""
    random = np.random.default_rng(seed)
    age, sex = random.integers(0, 63, rows), random.integers(0, 2, rows)
    one, slope, more = TRUTH[family]
    predictor = one + slope * (age + 18) + more * sex
    mean = FAMILIES[family].mean(predictor)
    if family == "gaussian":
        answer = np.clip((random.normal(mean, 10) * 2.56).astype(int), 0, 255)
    elif family == "binomial":
        answer = (random.random(rows) < mean).astype(int)
    else:
        answer = np.minimum(random.poisson(mean), 30)
    return np.column_stack([age, sex, answer])


@pytest.mark.parametrize("family", RESPONSES)
def test_with_much_budget_it_is_the_model_of_the_records(family):
    release = model(family, 20_000, "200")
    codes = people(family, 20_000)
    found = release.fitted(drawn(release, release.domain.pack(codes)))
    error = np.sqrt(np.diag(found.sampling))
    # Six standard errors are exceeded by chance once in 500 million.
    assert np.all(np.abs(found.values - TRUTH[family]) < 6 * error)
    assert np.all(np.diag(found.privacy) < 0.1 * np.diag(found.sampling))


@pytest.mark.slow
@pytest.mark.parametrize("family", RESPONSES)
def test_intervals_hold_what_the_records_are_drawn_from(family):
    release, surveys = model(family, 5_000), 40
    held = np.zeros(3)
    for seed in range(surveys):
        noisy = drawn(release, release.domain.pack(people(family, 5_000, seed)), seed)
        found = release.fitted(noisy)
        error = np.sqrt(np.diag(found.sampling) + np.diag(found.privacy))
        held += np.abs(found.values - TRUTH[family]) <= SIGMAS_95 * error
    assert np.all(binom.cdf(held, surveys, 0.95) > FALSE_ALARM)
    assert error[1] < 5 * np.sqrt(found.sampling[1, 1])


AMOUNTS = {
    "lognormal": lambda random, rows: np.exp(random.normal(size=rows)),
    "Pareto": lambda random, rows: random.pareto(1.8, rows) + 1,
    "most are zero": lambda random, rows: (
        (random.random(rows) < 0.3) * np.exp(1.2 * random.normal(size=rows))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["1", "sex"])
@pytest.mark.parametrize("law", AMOUNTS)
def test_intervals_of_amounts_with_long_tails_hold(law, formula):
    """Those of a mean held 10 to 60 times in 100, when the longest scores were taken to be few."""
    draw, rows, surveys = AMOUNTS[law], 5_000, 40
    everybody = draw(np.random.default_rng(1), 200_000)
    top = float(np.quantile(everybody, 0.9995))
    axes, written = (SEX, Grid("amount", 0.0, top, 1024)), f"amount ~ {formula}"
    terms = terms_of(written, "gaussian", axes)
    budget = Budget.of("1", "1e-6")
    release = MeasuredModel("m", Domain(axes), rows, budget, written, "gaussian", terms)
    codes = (np.minimum(everybody, top * 0.9999) / top * 1024).astype(int)
    truth = np.array([(codes.mean() + 0.5) * top / 1024, 0.0])[: terms.size]
    held = np.zeros(terms.size)
    for seed in range(surveys):
        random = np.random.default_rng(seed)
        chosen = np.column_stack([random.integers(0, 2, rows), random.choice(codes, rows)])
        found = release.fitted(drawn(release, release.domain.pack(chosen), seed))
        error = np.sqrt(np.diag(found.sampling) + np.diag(found.privacy))
        held += np.abs(found.values - truth) <= SIGMAS_95 * error
    assert np.all(binom.cdf(held, surveys, 0.95) > FALSE_ALARM)


@pytest.mark.slow
def test_intervals_hold_where_a_column_fills_little_of_its_bounds():
    """Farms of 24 hectares, bounds of 2,000: when moments were relative to bounds, noise hid them, and
    the slope came out as a quarter."""
    kinds, farms, surveys = Categories("kind", tuple("abcdef")), 1_200, 30
    axes = (Grid("area", 0.0, 2000.0, 2**16), kinds, Grid("profit", -2e5, 8e5, 2**16))
    written = "profit ~ area + kind"
    terms = terms_of(written, "gaussian", axes)
    for alpha, least in (("2", 4), ("16", 24)):
        budget = Budget.of(alpha, "1e-6")
        release = MeasuredModel("m", Domain(axes), farms, budget, written, "gaussian", terms)
        given = held = 0
        for seed in range(surveys):
            random = np.random.default_rng(seed)
            area = np.minimum(np.exp(random.normal(3.1, 1.1, farms)), 1999.0)
            profit = 350 * area + random.normal(0, 17_000, farms)
            codes = [
                area / 2000 * 2**16,
                random.integers(0, 6, farms),
                (profit + 2e5) / 1e6 * 2**16,
            ]
            cells = np.clip(np.column_stack(codes), 0, 2**16 - 1).astype(int)
            found = release.fitted(drawn(release, release.domain.pack(cells), seed))
            error = np.sqrt(found.sampling[1, 1] + found.privacy[1, 1])
            given += not found.hidden[1]
            held += not found.hidden[1] and abs(found.values[1] - 350) <= SIGMAS_95 * error
        assert given >= least
        assert binom.cdf(held + surveys - given, surveys, 0.95) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "given"), [("2", 15), ("8", 24)])
def test_intervals_of_a_square_hold_where_a_column_fills_little_of_its_bounds(alpha, given):
    """When squares were measured over all bounds, 6 of 30 had intervals, of which 5 were wrong."""
    axes = (Grid("area", 0.0, 2000.0, 2**12), Grid("profit", -5e3, 5e3, 2**12))

    def farms(random):
        area = np.exp(random.normal(3, 0.6, 1_200))
        profit = 3 * area + random.normal(0, 40, len(area))
        return np.column_stack([area / 2000 * 2**12, (profit + 5e3) / 1e4 * 2**12]).astype(int)

    written, truth = "profit ~ area + {area*area}", np.array([0.0, 3.0, 0.0])
    held, shown = coverage("gaussian", axes, written, farms, alpha, truth)
    assert shown[:, 1].sum() >= given
    for term in range(3):
        many = int(shown[:, term].sum())
        assert binom.cdf(int((held & shown)[:, term].sum()), many, 0.95) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_intervals_of_a_square_hold_though_the_model_is_wrong(family):
    """Hours and work change with age, but not as a square: when few old people counted less, 5 of 30
    intervals of the square held, and none in the logistic model."""
    hours = ("hours", Grid("hours", 0.0, 100.0, 100))
    response, axis = hours if family == "gaussian" else RESPONSES[family]
    axes = (Grid("age", 17, 91, 74, integer=True), axis)

    def people(random, rows=50_000):
        age = np.minimum(17 + random.gamma(2.5, 7.0, rows), 90).astype(int)
        mean = 44 - 12 * np.exp(-(age - 17) / 4) - 18 / (1 + np.exp(-(age - 63) / 3))
        answer = np.clip(random.normal(mean, 9 + 8 * (age > 60)), 0, 99)
        if family == "binomial":
            answer = random.random(rows) < 0.2 + 0.4 / (1 + np.exp(-(age - 25) / 3))
        return np.column_stack([age - 17, answer]).astype(int)

    many = people(np.random.default_rng(10), 500_000)
    decades, answer = (many[:, 0] + 17) / 10, many[:, 1] + 0.5 * (family == "gaussian")
    truth = survey_answer(family, np.column_stack([decades**0, decades, decades**2]), answer)
    written = f"{response} ~ age + {{age*age}}"
    held, shown = coverage(family, axes, written, people, "1", truth / [1, 10, 100])
    assert shown.all()
    assert np.all(held.sum(axis=0) >= 22)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_intervals_of_a_skew_amount_hold_though_the_model_is_wrong(family):
    """The logarithm of the amount matters, not the amount: none of 30 intervals of the slope held in
    the linear model, and 6 in the logistic one."""
    name, axis = RESPONSES[family]
    axes = (Grid("amount", 0.0, 1000.0, 4000), axis)

    def people(random, rows=20_000):
        amount = np.minimum(np.exp(random.normal(3.5, 0.8, rows)), 999)
        if family == "gaussian":
            answer = np.clip(random.normal(5 * np.log(amount) + 40, 5), 0, 99) * 2.56
        else:
            answer = random.random(rows) < 1 / (1 + np.exp(4 - np.log(amount)))
        return np.column_stack([amount * 4, answer]).astype(int)

    many = people(np.random.default_rng(10), 500_000)
    answer = many[:, 1] + 0.5 if family == "gaussian" else many[:, 1]
    answer = answer / 2.56 if family == "gaussian" else answer
    truth = survey_answer(
        family, np.column_stack([np.ones(len(many)), (many[:, 0] + 0.5) / 400]), answer
    )
    held, shown = coverage(family, axes, f"{name} ~ amount", people, "1", truth / [1, 100])
    assert shown.all()
    assert held[:, 1].sum() >= {"gaussian": 12, "binomial": 15}[family]


def survey_answer(family, rows, answer):
    """The coefficients (p,) that solve the model's equation."""
    found = np.zeros(rows.shape[1])
    for _ in range(20):
        mean = FAMILIES[family].mean(rows @ found)
        curved = (rows * FAMILIES[family].slope(mean)[:, None]).T @ rows
        found = found + np.linalg.solve(curved, rows.T @ (answer - mean))
    return found


def coverage(family, axes, written, records, alpha, truth, surveys=30):
    """How many intervals (surveys, p) hold, and which are given, in surveys of ``records(random)``."""
    rows = len(records(np.random.default_rng(0)))
    terms, budget = terms_of(written, family, axes), Budget.of(alpha, "1e-6")
    release = MeasuredModel("m", Domain(axes), rows, budget, written, family, terms)
    fits = [
        release.fitted(drawn(release, release.domain.pack(records(np.random.default_rng(i))), i))
        for i in range(surveys)
    ]
    errors = np.array([np.sqrt(np.diag(fit.sampling + fit.privacy)) for fit in fits])
    given = np.array([~fit.hidden for fit in fits])
    return np.abs(np.array([fit.values for fit in fits]) - truth) <= SIGMAS_95 * errors, given


@pytest.mark.slow
def test_intervals_of_a_logistic_model_hold_where_bounds_are_wide():
    """When moments were relative to bounds, 14 of 30 slopes had an interval, of which one held."""
    axes = (
        Grid("area", 0.0, 2000.0, 2**12),
        Categories("kind", tuple("abc")),
        RESPONSES["binomial"][1],
    )

    def records(random):
        area = (np.exp(random.normal(3, 0.6, 1_200)) * 2**12 / 2000).astype(int)
        kind = random.choice(3, 1_200, p=[0.7, 0.25, 0.05])
        predictor = 0.08 * (area + 0.5) * 2000 / 2**12 + 0.4 * (kind == 1) - 2
        return np.column_stack([area, kind, random.random(1_200) < 1 / (1 + np.exp(-predictor))])

    truth = [-2.0, 0.08, 0.4, 0.0]
    held, given = coverage("binomial", axes, "{works == 'yes'} ~ area + kind", records, "6", truth)
    assert given.mean() > 0.8
    held, given = (held & given).sum(axis=0), given.sum(axis=0)
    assert np.all(binom.cdf(held, given, 0.95) > FALSE_ALARM)


@pytest.mark.slow
def test_intervals_hold_where_few_have_an_amount_far_from_zero():
    """3% care for somebody, for 20 to 60 hours.  When the interval of the term was that of 95% of the
    records, the others counted for nothing, and no interval of 30 held."""
    axes = Grid("hours", 0.0, 100.0, 1_000), Grid("z", -5.0, 5.0, 1_000), RESPONSES["poisson"][1]
    rows = 15_000

    def records(random):
        hours = np.where(random.random(rows) < 0.97, 0, random.integers(200, 600, rows))
        z = np.clip(random.normal(500, 100, rows), 0, 999).astype(int)
        mean = np.exp(-0.1 + 0.03 * (hours + 0.5) / 10 + 0.03 * (z - 499.5) / 10)
        return np.column_stack([hours, z, np.minimum(random.poisson(mean), 30)])

    held, given = coverage("poisson", axes, "visits ~ hours + z", records, "1", [-0.1, 0.03, 0.3])
    assert given.mean() > 0.9
    assert np.all(binom.cdf(held.sum(axis=0), len(held), 0.95) > FALSE_ALARM)


@pytest.mark.slow
def test_intervals_hold_where_a_rare_category_has_low_counts():
    """Its few positive counts have long scores, which follow no law of tails: they are counted.  Before,
    no interval of 40 held, with a width below that of the survey itself."""
    axes = Categories("kind", ("usual", "rare")), Grid("visits", 0.0, 40.0, 40, integer=True)

    def records(random):
        kind = (random.random(40_000) < 0.05).astype(int)
        return np.column_stack([kind, random.poisson(0.4 * np.exp(-0.8 * kind))])

    truth = [np.log(0.4), -0.8]
    held, given = coverage("poisson", axes, "visits ~ kind", records, "6", truth)
    assert given.all()
    assert np.all(binom.cdf(held.sum(axis=0), len(held), 0.95) > FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("members", [1, 4])
def test_intervals_of_totals_by_weights_that_few_units_have_hold(members):
    """3% have an amount, and weights vary as much as their mean.  When few long scores were taken for
    noise, 32 and 52 of 80 intervals held."""
    axes, rows, steps, surveys = (Grid("amount", 0.0, 20.0, 128),), 5_000, 8, 80
    design = SurveyDesign(members, 10 * steps, float(steps), weight="w", unit="u" * (members > 1))
    terms = terms_of("amount ~ 1", "gaussian", axes)
    facts = "m", design.domain(axes), rows, Budget.of("1", "1e-6"), "amount ~ 1", "gaussian"
    unit = {"unit": "u"} if members > 1 else {}
    release = MeasuredModel(*facts, terms, design, adjacency=Adjacency(**unit))

    def units(random, count):
        """Cells (count, members, 1) of similar records, and their weights (count, members)."""
        common = random.random(count)[:, None]
        amounts = (common < 0.06) * (random.random((count, members)) < 0.5)
        amounts = amounts * np.exp(random.normal(size=(count, members)))
        weights = np.exp(np.sqrt(np.log(2)) * random.normal(size=(count, 1))) / np.sqrt(2)
        whole = np.clip(np.rint(steps * weights), 0, 10 * steps) / steps
        cells = np.minimum(amounts / 20 * 128, 127).astype(int)
        return cells[:, :, None], np.repeat(whole, members, axis=1)

    cells, weights = units(np.random.default_rng(1_000), 400_000)
    truth = np.average((cells[:, :, 0] + 0.5) * 20 / 128, weights=weights)
    held = 0
    for seed in range(surveys):
        cells, weights = units(np.random.default_rng(seed), rows // members)
        groups = np.zeros((len(cells), 0), dtype=int)
        packed = design.packed(cells, weights, groups, release.domain)
        found = release.fitted(drawn(release, packed, seed))
        error = np.sqrt(found.sampling[0, 0] + found.privacy[0, 0])
        held += abs(found.values[0] - truth) <= SIGMAS_95 * error
    assert binom.cdf(held, surveys, 0.95) > FALSE_ALARM


@pytest.mark.slow
def test_the_share_of_a_panel_has_the_error_of_its_persons_not_of_its_records():
    """1,500 persons with equal answers in five waves; of 7,500 records the error would be smaller."""
    axes, persons, surveys = (RESPONSES["binomial"][1],), 1_500, 60
    design, written = SurveyDesign(members=5, unit="person"), "{works == 'yes'} ~ 1"
    neighbours = Adjacency("add-remove", unit="person")
    facts = "m", design.domain(axes), 5 * persons, Budget.of("1", "1e-6"), written, "gaussian"
    terms = terms_of(written, "gaussian", axes)
    release = MeasuredModel(*facts, terms, design, adjacency=neighbours)
    held, own = 0, np.sqrt(0.4 * 0.6 / persons)
    for seed in range(surveys):
        yes = (np.random.default_rng(seed).random(persons) < 0.4).astype(int)
        codes, groups = np.repeat(yes[:, None, None], 5, axis=1), np.zeros((persons, 0), dtype=int)
        cells = design.packed(codes, np.ones((persons, 5)), groups, release.domain)
        found = release.fitted(drawn(release, cells, seed))
        error = np.sqrt(found.sampling[0, 0] + found.privacy[0, 0])
        held += abs(found.values[0] - 0.4) <= SIGMAS_95 * error
        assert 0.8 * own < np.sqrt(found.sampling[0, 0]) < 1.3 * own
    assert binom.cdf(held, surveys, 0.95) > FALSE_ALARM
    assert error < 1.3 * own


@pytest.mark.parametrize("family", RESPONSES)
@pytest.mark.parametrize("table", ["empty", "one cell", "separated"])
def test_a_table_that_says_nothing_has_wide_intervals_or_none(family, table):
    release = model(family, 300, "1", "age * sex")
    codes = {"empty": people(family, 0), "one cell": 0 * people(family, 300)}.get(table)
    if codes is None:
        codes = people(family, 300)
        codes[:, 2] = np.where(codes[:, 0] > 30, release.domain.shape[2] - 1, 0)
    noisy = drawn(release, release.domain.pack(codes))
    found = release.fitted(noisy)
    assert all(np.isfinite(each).all() for each in found)
    main, _ = release.publish(noisy).tables
    assert np.array_equal(np.ma.getmaskarray(main.columns["lower_95"]), found.hidden)


@pytest.mark.parametrize(("formula", "cut"), [("1", True), ("0 + C(sex)", True), ("sex", False)])
def test_intervals_of_means_and_no_others_are_cut_to_what_is_possible(formula, cut):
    release = model("gaussian", 3000, "1", formula)
    codes = people("gaussian", 3000) * [1, 1, 0]  # nobody is paid anything
    main, _ = release.publish(drawn(release, release.domain.pack(codes))).tables
    names = "estimate", "standard_error", "lower_95"
    estimate, error, lower = (np.ma.filled(main.columns[name], np.nan) for name in names)
    least, uncut = release.terms.response.values.min(), estimate - SIGMAS_95 * error
    assert np.any(uncut < least)
    assert np.allclose(lower, np.maximum(uncut, least) if cut else uncut)


@pytest.mark.slow
def test_errors_of_a_rare_answer_know_that_curvature_changes_on_the_way():
    axes = (AGE, SEX, Categories("works", ("no", "yes")))
    written, truth = "{works == 'yes'} ~ age + sex", np.array([-4.0, 0.0, 0.3])
    terms = terms_of(written, "binomial", axes)
    release = MeasuredModel(
        "m", Domain(axes), 20_000, Budget.of("1", "1e-6"), written, "binomial", terms
    )
    z = []
    for seed in range(150):
        random = np.random.default_rng(seed)
        age, most = random.integers(0, 63, 20_000), random.random(20_000) < 0.85
        mean = FAMILIES["binomial"].mean(truth[0] + truth[2] * most)
        codes = np.column_stack([age, most, random.random(20_000) < mean]).astype(np.int64)
        found = release.fitted(drawn(release, release.domain.pack(codes), seed))
        z.append((found.values - truth) / np.sqrt(np.diag(found.sampling + found.privacy)))
    # Of those 15% who are "F", 55 say yes.  Without regard to curvature it is 2.0.
    assert np.sqrt(np.mean(np.square(z), axis=0)).max() < 1.7


def test_an_answer_and_its_noise_are_the_stated_average_of_both_last_steps():
    release = model("gaussian", 5_000)
    noisy = drawn(release, release.domain.pack(people("gaussian", 5_000)))
    scores, sums = release.scores, release.mechanism.by_round(noisy.values[None, :])
    (point,) = release.first_point(1)
    for each in sums[:-1]:
        point = scores.next_point(point, each)
    # Nothing but noise is in the privacy part.
    doubts, step, weight = replace(point.doubts, tail=np.zeros(1)), point.last, 0.7
    point = replace(point, last=replace(step, blur=np.zeros(1)))
    middle = point.theta[0] + point.unit[0] * point.white[0] @ (step.aimed[0] - step.moved[0])
    last, both = (
        replace(point, doubts=replace(doubts, trusted=np.array([each]))) for each in (1.0, weight)
    )
    ends = [scores.next_point(each, sums[-1]) for each in (last, both)]
    expected = weight * ends[0].theta[0] + (1 - weight) * middle
    assert np.any(np.abs(middle - ends[0].theta[0]) > 1e-3)
    np.testing.assert_allclose(ends[1].theta[0], expected, rtol=1e-9)
    privacy = [
        np.diag(release._of(start, end).privacy)
        for start, end in zip((last, both), ends, strict=True)
    ]
    noise = float(scores.per_step("scores", point)[0]) * scores.stddev
    stated = weight**2 + ((1 - weight) * float(step.heard[0]) / noise) ** 2
    np.testing.assert_allclose(privacy[1], stated * privacy[0], rtol=1e-9)


def test_a_step_far_from_all_before_it_has_no_interval():
    release = model("binomial", 5_000)
    noisy = drawn(release, release.domain.pack(people("binomial", 5_000)))
    (before,), (point,) = release._ends(noisy)
    assert not release._of(before, point).hidden.any()
    step = replace(point.last, moved=np.full_like(point.last.moved, 3.0))
    far = replace(point, last=step)
    assert release._of(before, far).hidden.all()


@pytest.mark.slow
def test_a_rare_category_takes_the_intervals_of_no_other_term():
    """1% of the records are in it.  When long steps were cut coordinate by coordinate of the basis, and
    hid all terms, one draw in four had no interval, and those of the constant held too rarely."""
    form, works = Categories("form", tuple("abcde")), RESPONSES["binomial"]
    axes, written, rows, draws = (form, SEX, works[1]), f"{works[0]} ~ form + sex", 20_000, 60
    terms = terms_of(written, "binomial", axes)
    budget = Budget.of("4/3", "5e-7")
    release = MeasuredModel("m", Domain(axes), rows, budget, written, "binomial", terms)
    random, truth = np.random.default_rng(0), np.array([-0.5, 0, 0, 0, 0, -2.0])
    shares = [0.55, 0.38, 0.01, 0.03, 0.03]
    forms, sexes = random.choice(5, rows, p=shares), (random.random(rows) < 0.92).astype(int)
    answers = (random.random(rows) < 1 / (1 + np.exp(0.5 + 2 * sexes))).astype(int)
    cells = release.domain.pack(np.column_stack([forms, sexes, answers]))
    fits = [release.fitted(drawn(release, cells, seed)) for seed in range(draws)]
    common = [0, 1, 5]
    assert not any(fit.hidden[common].any() for fit in fits)
    errors = np.array([np.sqrt(np.diag(fit.sampling + fit.privacy)) for fit in fits])
    held = np.abs([fit.values for fit in fits] - truth) <= SIGMAS_95 * errors
    assert np.all(binom.cdf(held.sum(axis=0), draws, 0.95) > FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_category_that_nobody_has_widens_the_intervals_of_no_other_term(family):
    """A codebook lists it.  The unknown size of its coefficient made the others' errors 20 to 100 times
    as large as sampling errors."""
    origin = Categories("origin", ("here", "near", "far"))
    response = Grid("pay", -10.0, 10.0, 400), Categories("works", ("no", "yes"))
    last, written = (
        response[family == "binomial"],
        ("pay", "{works == 'yes'}")[family == "binomial"],
    )
    axes = origin, Grid("age", 20.0, 80.0, 60, integer=True), SEX, last

    def records(random):
        near = (random.random(20_000) < 0.08).astype(int)
        age = np.clip(random.normal(25, 12, len(near)), 0, 59).astype(int)
        men = random.integers(0, 2, len(near))
        mean = -0.5 * near + 0.02 * (age - 25) + 0.3 * men
        if family == "gaussian":
            answer = np.clip((mean + random.normal(size=len(near)) + 10) * 20, 0, 399).astype(int)
        else:
            answer = (random.random(len(near)) < 1 / (1 + np.exp(-mean))).astype(int)
        return np.column_stack([near, age, men, answer])

    terms = terms_of(f"{written} ~ origin + age + sex", family, axes)
    facts = "m", Domain(axes), 20_000, Budget.of("2", "1e-6"), written, family
    release, held = MeasuredModel(*facts, terms), []
    for seed in range(20):
        cells = release.domain.pack(records(np.random.default_rng(seed)))
        fit = release.fitted(drawn(release, cells, seed))
        others = [terms.names.index(name) for name in ("origin[T.near]", "age", "sex[T.M]")]
        assert fit.hidden.tolist() == ["far" in name for name in terms.names]
        sampling, privacy = (np.diag(each)[others] for each in (fit.sampling, fit.privacy))
        assert np.all(privacy < 9 * sampling)
        held.append(
            np.abs(fit.values[others] - [-0.5, 0.02, 0.3]) <= 2 * np.sqrt(sampling + privacy)
        )
    assert np.all(binom.cdf(np.sum(held, axis=0), 20, 0.95) > FALSE_ALARM)


def test_a_model_that_cuts_no_score_counts_none():
    for family, cuts in (("gaussian", True), ("binomial", False), ("poisson", True)):
        assert ("counts" in model(family, 5_000).scores.parts_of("middle")) == cuts
