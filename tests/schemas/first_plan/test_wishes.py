"""Wishes become a plan that serves them, that is accepted, and that says why; others are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dprelease
from dpcore.errors import InputError
from dpcore.releases.models.model import MeasuredModel
from flows.cli import main
from schemas.first_plan.described import ColumnType, Described, with_names
from schemas.first_plan.planner import Draft, first_plan
from schemas.first_plan.sections import ColumnUse, PlannedRelease
from schemas.first_plan.wishes import Said, Wish
from schemas.plan import load_plan
from tasks.explain.analysis import expected_fit, model_error
from tasks.inference.fit import answering
from tests.schemas.first_plan.filled import filled, questions

TEXT = """\
column,type,values,lower,upper,step,unit,missing
health,,poor; fair; good,,,,,
insured,,no; yes,,,,,
region,,1=north; 2=south; 3=east,,,,,
visits,,,0,90,1,visits,
age,,,18,90,1,years,
income,,,0,20000,1,dollars,
wage,,,0,100,0.01,dollars,empty
lon,continuous,,-10,30,,degrees,
lat,continuous,,35,70,,degrees,
day,date,,2023,2024,,,
home,unit,,,5,,,
note,ignored,,,,,,
"""


def planned(folder: Path, said: Said, text: str = TEXT, **known: Any) -> str:
    asked = questions(folder, text)
    columns = dict.fromkeys([*asked, "other"], ColumnType.OPEN)
    return first_plan("d", "t.csv", columns, said, asked, model_error, **known)


def kinds(text: str) -> dict[str, str]:
    return {each["name"]: each["kind"] for each in yaml.safe_load(text)["releases"]}


PERSONS = TEXT.replace("home,unit,,,5,,,\n", "")


OPEN = PERSONS + "profit,,,open,open,,,\njob,,open,,,,,\n"


@pytest.mark.parametrize(
    ("wish", "column"),
    [("{profit < 0}", "profit"), ("{profit > 1000}", "profit"), ("{job == 'cook'}", "job")],
)
def test_a_share_that_what_is_found_may_leave_constant_is_refused_for_that(tmp_path, wish, column):
    for models in ([], ["income ~ age"]):
        with pytest.raises(InputError, match=f"{column} is open, and after the search") as refused:
            planned(tmp_path, Said(means=[f"{wish} by region"], models=models), OPEN)
        assert "--model" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "made"),
    [
        (Said(tables=["health x visits"]), {"table-health-visits": "histogram"}),
        (Said(tables=["health visits"]), {"table-health-visits": "histogram"}),
        (Said(tables=["health x visits", "region"]), {"tables": "margins"}),
        (Said(means=["income by region"]), {"mean-income-by-region": "mean"}),
        (Said(means=["income by region insured"]), {"mean-income-by-region-insured": "mean"}),
        (Said(means=["income"]), {"mean-income": "mean"}),
        (
            Said(densities=["age"], maps=["lon lat"]),
            {"density-age": "density", "map-lon-lat": "density"},
        ),
        (Said(models=["income ~ age + health"]), {"model-income-age-health": "model"}),
        (Said(models=["poisson: visits ~ age"]), {"model-poisson-visits-age": "model"}),
        (
            Said(records=True, tables=["health x insured", "health x insured x region"]),
            {
                "all-pairs": "microdata-margins",
                "shared-values": "heaping",
                "tables": "margins",
            },
        ),
        (
            Said(records=True, tables=["health x income"]),
            {
                "all-pairs": "microdata-margins",
                "shared-values": "heaping",
                "table-health-income": "margins",
            },
        ),
    ],
    ids=str,
)
def test_each_wish_gets_the_kind_that_serves_it(tmp_path, said, made):
    text = planned(tmp_path, said, PERSONS)
    assert kinds(text) == made
    loaded = dprelease.load_plan(filled(text))
    assert sum(isinstance(each, MeasuredModel) for each in loaded.built.values()) == len(
        said.models
    )


def test_a_table_beside_records_has_the_smaller_noise_for_its_share(tmp_path):
    plan = filled(planned(tmp_path, Said(records=True, tables=["health x income"]), PERSONS))
    table = plan["releases"][-1]
    laplace = {k: v for k, v in table.items() if k != "sets"}
    laplace |= {"kind": "histogram", "mechanism": "discrete-laplace"}

    def noise(section):
        changed = plan | {"releases": [*plan["releases"][:-1], section]}
        loaded = dprelease.load_plan(changed)
        return loaded.built[section["name"]].expected_error()[0].value

    assert plan["budget"]["composition"] == "concentrated"
    assert noise(table) < 0.75 * noise(laplace)


def test_a_logistic_model_may_be_called_so(tmp_path):
    text = planned(tmp_path, Said(models=["logistic: insured ~ age"]), PERSONS)
    (model,) = yaml.safe_load(text)["releases"]
    assert (model["formula"], model["family"]) == ("{insured == 'yes'} ~ age", "binomial")


def test_a_condition_on_an_amount_of_many_whole_numbers_is_measured(tmp_path):
    text = PERSONS.replace("income,,,0,20000", "income,,,0,20000000")
    made = planned(tmp_path, Said(models=["{income > 0} ~ age * wage"]), text)
    assert [*kinds(made).values()] == ["model"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "kind"), [("", "histogram"), ("age,,,0,99,,,\n", "microdata-margins")]
)
def test_records_of_few_cells_are_drawn_from_a_histogram_of_them(tmp_path, more, kind):
    header = "column,type,values,lower,upper,unit,missing,special\n"
    text = header + "".join(f"q{i},,yes; no,,,,,\n" for i in range(6)) + more
    made = planned(tmp_path, Said(records=True), text)
    assert next(iter(kinds(made).values())) == kind
    dprelease.load_plan(filled(made))


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("income ~ age + I(age^2)", "income ~ age + {age * age}"),
        ("income ~ age + I(age ** 3)", "income ~ age + {age * age * age}"),
        ("income ~ {wage / age**2}", "income ~ {wage / (age * age)}"),
        ("linear: {income^2} ~ age", "{income * income} ~ age"),
    ],
)
def test_powers_are_written_as_in_r_or_python(tmp_path, written, plain):
    text = planned(tmp_path, Said(models=[written]), PERSONS)
    (model,) = yaml.safe_load(text)["releases"]
    assert model["formula"] == plain


def test_shares_minimise_the_sum_of_errors_and_records_get_a_third(tmp_path):
    """Errors fall with the share, or with its root where Gaussian noise splits the budget by rho."""
    asked = questions(tmp_path, PERSONS)
    columns = dict.fromkeys(asked, ColumnType.OPEN)
    of = Described(*with_names(columns, asked))

    def draft(power: float, errors: dict[str, float]) -> Draft:
        gaussian = {"mechanism": "discrete-gaussian"} if power == 0.5 else {}
        named = {name: Wish(name if name == "records" else "table") for name in errors}
        sections = [
            PlannedRelease({"name": name, "kind": "margins", **gaussian}, wishes=(wish,))
            for name, wish in named.items()
        ]
        known = {repr(each): [errors[each.name]] for each in sections}
        plain = Draft("d", "t", of, ColumnUse(of, []), known=known)
        return replace(plain, sections=(*sections,))

    errors = {"a": 0.002, "b": 0.01, "c": 0.05}
    for power in (0.5, 1.0):
        made = draft(power, errors)
        shares = made._shares
        assert sum(shares.values()) == pytest.approx(1)
        sizes = np.array([*shares.values()])
        costs = [
            float(np.sum(np.array([*errors.values()]) / (sizes + move) ** power))
            for move in (np.zeros(3), *(np.array([-2, 1, 1]) / 200, np.array([1, 1, -2]) / 200))
        ]
        assert made.cost == pytest.approx(costs[0])
        assert costs[0] == min(costs) < min(costs[1:])
        with_records = draft(power, {"records": 0.0001, **errors})._shares
        assert with_records["records"] == pytest.approx(1 / 3)
        assert [with_records[n] * 3 / 2 for n in errors] == pytest.approx([*shares.values()])
        hidden = draft(power, {**errors, "d": 0.3})._shares
        assert hidden["d"] == hidden["a"] == min(hidden.values())


@pytest.mark.slow
def test_many_linear_models_share_moments_and_few_do_not(tmp_path):
    def cheap_alone(plan, formula, family):
        if family == "binomial" and {s.kind for s in plan.releases} == {"moments"}:
            raise InputError("no moments")
        return {"model": 0.1, "moments": 0.2}.get(plan.releases[0].kind, 3.0)

    linear = [f"income ~ {term}" for term in ("age", "health", "insured", "region", "visits")]
    asked = questions(tmp_path, PERSONS)
    columns = dict.fromkeys(asked, ColumnType.OPEN)

    def made(models):
        said = Said(models=models)
        return yaml.safe_load(first_plan("d", "t.csv", columns, said, asked, cheap_alone))

    few, many = made(linear[:2]), made([*linear, "insured ~ age"])
    assert [each["kind"] for each in few["releases"]] == ["model", "model"]
    assert [each["kind"] for each in many["releases"]] == ["moments", "model"]
    assert [each["formula"] for each in many["analyses"]] == linear


def test_a_model_of_a_survey_with_weights_is_measured_for_the_population(tmp_path):
    text = planned(tmp_path, Said(models=["insured ~ age"]), TEXT + "w,weight,,,10,0.1,,\n")
    assert kinds(text) == {"model-insured-age": "model"}
    assert yaml.safe_load(text)["weights"]["column"] == "w"
    assert dprelease.load_plan(filled(text)).built["model-insured-age"].design.weight == "w"


DESIGNED = (
    TEXT.replace("region,,", "region,stratum,") + "point,cluster,,1,80,,,\nw,weight,,,100,1,,\n"
)


def test_means_and_shares_of_a_survey_with_a_design_are_measured_for_the_population(tmp_path):
    said = Said(means=["income by region", "insured by health", "{visits > 3}"], tables=["health"])
    text = planned(tmp_path, said, DESIGNED)
    found = yaml.safe_load(text)
    formulas = [each.get("formula", each.get("weighted")) for each in found["releases"]]
    assert formulas == [
        True,
        "income ~ 0 + C(region)",
        "{insured == 'yes'} ~ 0 + C(health)",
        "{visits > 3} ~ 1",
    ]
    assert (found["strata"], found["cluster"]) == ("region", "point")
    built = dprelease.load_plan(filled(text)).built.values()
    designs = [each.design for each in built if isinstance(each, MeasuredModel)]
    assert {(d.weight, d.strata.name, d.clusters.name) for d in designs} == {
        ("w", "region", "point")
    }


def test_tables_are_weighted_only_where_noise_leaves_something(tmp_path):
    wide = "wide,,,1,9,1,,\nwider,,,1,9,1,,\n"
    all_pairs = planned(tmp_path, Said(), DESIGNED + wide)
    assert not any("weighted" in each for each in yaml.safe_load(all_pairs)["releases"])
    assert "describe the respondents, not the population" in all_pairs.replace("\n  # ", " ")
    one = planned(tmp_path, Said(tables=["health x region"]), DESIGNED + wide)
    assert all(each["weighted"] for each in yaml.safe_load(one)["releases"])
    assert "respondents" not in one
    few = "a,,yes; no,,,,,\nb,,yes; no,,,,,\nw,weight,,,100,1,,\n"
    pair = planned(tmp_path, Said(), TEXT.splitlines()[0] + "\n" + few)
    assert all(each["weighted"] for each in yaml.safe_load(pair)["releases"])


@pytest.mark.parametrize("said", [Said(), Said("tables"), Said("functions")], ids=str)
def test_clusters_are_in_no_release_that_nobody_asked_for(tmp_path, said):
    found = yaml.safe_load(planned(tmp_path, said, DESIGNED))
    assert "point" not in {name for each in found["releases"] for name in each["columns"]}
    assert found["cluster"] == "point"  # no sampling error may ignore it
    only = Said(tables=["point"])  # but in a table that somebody asks for
    assert "point" in yaml.safe_load(planned(tmp_path, only, DESIGNED))["columns"]


@pytest.mark.slow
def test_a_share_by_group_that_noise_may_hide_is_planned(tmp_path):
    """Of a column that not everybody has a value of, in few clusters: the expected error is infinite."""
    points = "; ".join(str(each) for each in range(1, 46))
    survey = (
        "column,type,values,lower,upper,step,unit,missing\n"
        f"point,cluster,{points},,,,,\n"
        f"place,stratum,{points.partition('; 10')[0]},,,,,\n"
        "w,weight,,0,160000,,,\n"
        "high,,0=no; 1=yes,,,,,empty\n"
        f"age,,{points.partition('; 16')[0]},,,,,\n"
    )
    text = planned(tmp_path, Said(means=["high by age"]), survey)
    assert kinds(text) == {"share-high-by-age": "model"}
    several = planned(tmp_path, Said(records=True, means=["high by age"]), survey)
    weights = {each["name"]: each.get("weight") for each in yaml.safe_load(several)["releases"]}
    assert weights == dict.fromkeys(weights)  # not 20 times the other
    assert "weighted" not in several
    assert "records represent the respondents" in several.replace("\n  # ", " ")
    for each in (text, several):
        assert "noise hides this release even with the whole budget" in each.replace("\n  # ", " ")
    seen = planned(tmp_path, Said(records=True, means=["age"], tables=["health"]))
    assert "noise hides" not in seen


def test_a_share_without_a_design_is_computed_from_counts(tmp_path):
    """Of a column, or of a condition, at whose number the counts have an edge."""
    for wish, bins in (
        ("insured by region", {}),
        ("{visits > 10} by region", {"visits": [0, 11, 91]}),
        ("{visits <= 10} by region", {"visits": [0, 11, 91]}),
        ("{visits >= 10} by region", {"visits": [0, 10, 91]}),
        ("{wage > 12.5} by region", {"wage": [0, 12.505, 100]}),
        ("{wage >= 12.5} by region", {"wage": [0, 12.495, 100]}),
        ("{wage > 0} by region", {"wage": [0, 0.005, 100]}),
    ):
        text = planned(tmp_path, Said(means=[wish]), PERSONS)
        (counts,) = (plan := yaml.safe_load(text))["releases"]
        assert counts["kind"] == "histogram"
        assert counts.get("bins", {}) == bins
        (share,) = plan["analyses"]
        name, found = expected_fit(dprelease.load_plan(filled(text)), share["formula"], "gaussian")
        assert name == counts["name"]
        assert len(found.coefficients) == 3
        assert not any("inside their bins" in note for note in found.notes)
    requested = Said(tables=["region x insured"], means=["insured by region"])
    assert kinds(planned(tmp_path, requested, PERSONS)) == {"table-region-insured": "histogram"}
    # From counts the records of a unit would be taken for independent ones.
    units = planned(tmp_path, Said(means=["insured by region"]), TEXT, rows=10**6)
    assert kinds(units) == {"share-insured-by-region": "model"}
    apart = planned(
        tmp_path, Said(means=["{visits > 10} by age"]), PERSONS.replace("18,90", "18,70")
    )
    assert kinds(apart) == {"counts-visits-age": "histogram"}


@pytest.mark.slow
def test_records_of_a_survey_with_weights_are_like_its_respondents(tmp_path):
    alone = yaml.safe_load(planned(tmp_path, Said(records=True), DESIGNED))
    assert "weights" not in alone
    assert alone["columns"]["w"]["bounds"] == [0, 100]
    release = next(each for each in alone["releases"] if each["kind"] == "microdata-margins")
    assert {"w", "region"} < {*release["columns"]}
    assert "point" not in release["columns"]
    assert "weighted" not in release
    dprelease.load_plan(filled(yaml.safe_dump(alone)))
    both = planned(tmp_path, Said(records=True, means=["income"]), DESIGNED)
    assert "records represent the respondents, not the population" in both.replace("\n  # ", " ")
    loaded = dprelease.load_plan(filled(both))
    many = DESIGNED.replace("point,cluster,,1,80", "point,cluster,,1,8000")
    heaped = yaml.safe_load(planned(tmp_path, Said(records=True, means=["income"]), many))
    heaps = [each["columns"] for each in heaped["releases"] if each["kind"] == "heaping"]
    assert not any("point" in columns for columns in heaps)
    assert not any(section.counts_weights for section in loaded.releases)
    assert "w" not in loaded.columns


def test_a_design_that_units_are_too_large_for_is_refused(tmp_path):
    text = DESIGNED.replace("home,unit,,,5", "home,unit,,,60")
    for said in (Said(means=["income"]), Said(models=["income ~ age"])):
        with pytest.raises(InputError, match="at most 50 records of a unit"):
            planned(tmp_path, said, text)


@pytest.mark.slow
def test_values_inside_bins_take_little_from_the_bins_of_records(tmp_path):
    text = planned(tmp_path, Said(records=True), PERSONS)
    weights = {each["kind"]: each["weight"] for each in yaml.safe_load(text)["releases"]}
    assert weights["microdata-margins"] >= 5 * weights["heaping"]


def test_of_units_that_are_too_large_for_a_model_of_its_own_tables_answer(tmp_path):
    text = planned(
        tmp_path, Said(models=["insured ~ age"]), TEXT.replace("home,unit,,,5", "home,unit,,,60")
    )
    assert kinds(text) == {"tables-for-models": "microdata-margins"}


@pytest.mark.slow
def test_the_plan_has_what_the_wishes_need_and_says_why(tmp_path):
    said = Said(tables=["health x insured"], means=["income by region"], models=["insured ~ age"])
    text = planned(tmp_path, said)
    found = yaml.safe_load(text)
    assert list(found["columns"]) == ["health", "insured", "region", "age", "income"]
    assert found["privacy_unit"] == {"column": "home", "max_rows": 5}
    (model,) = (each for each in found["releases"] if each["kind"] == "model")
    assert (model["formula"], model["family"]) == ("{insured == 'yes'} ~ age", "binomial")
    assert "none of these releases: visits, wage, lon, lat, day_year" in text
    weights = {each["name"]: each["weight"] for each in found["releases"]}
    assert weights["table-health-insured"] == 1
    assert max(weights.values()) > 1
    for line in (
        "minimise the sum of the expected errors of all releases",
        "compares them for this plan",
    ):
        assert f"{line}." in text.replace("\n    #", "").replace("\n  #", "")
    assert 'requested    "1" for a first publication' in text


def test_records_of_more_columns_than_they_can_have_are_refused():
    def wide(columns):
        return Described(dict.fromkeys([f"v{i}" for i in range(columns)], ColumnType.WHOLE), {})

    (found,) = Said(records=True).read(wide(200))
    assert len(found.columns) == 200
    with pytest.raises(InputError, match="at most 200 columns, not 201; describe fewer"):
        Said(records=True).read(wide(201))


def test_the_title_of_a_share_says_of_which_answer_it_is(tmp_path):
    asked = questions(tmp_path, PERSONS)
    of = Described(dict.fromkeys(asked, ColumnType.OPEN), asked)
    wishes = Said(means=["insured by region", "insured", "{visits > 2} by region", "income"]).read(
        of
    )
    assert [wish.title for wish in wishes] == [
        "Share: insured = yes by region",
        "Share: insured = yes",
        "Share: {visits > 2} by region",
        "Mean: income",
    ]


def test_a_column_renamed_in_the_plan_is_named_and_backticks_may_surround_any_name(tmp_path):
    text = PERSONS + "1st,,no; yes,,,,,\nbody mass,,,0,9,,,\n"
    asked = questions(tmp_path, text)
    of = Described(*with_names(dict.fromkeys(asked, ColumnType.OPEN), asked))
    with pytest.raises(InputError, match="'1st' is called 'column 1st' in the plan; write that"):
        Said(tables=["1st x health"]).read(of)
    in_backticks = Said(
        tables=["`health` x `body mass`"],
        means=["`body mass` by `health`"],
        densities=["`body mass`"],
    )
    bare = Said(
        tables=["health x body mass"], means=["body mass by health"], densities=["body mass"]
    )
    assert [wish.meaning for wish in in_backticks.read(of)] == [
        wish.meaning for wish in bare.read(of)
    ]


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (
            Said(means=["incme"]),
            r"--mean 'incme': there is no column 'incme'; did you mean 'income'",
        ),
        (
            Said(models=["possion: visits ~ age"]),
            "there is no 'possion' model, only linear, logistic, poisson",
        ),
        (
            Said(models=["{income > 5 and age > 9} ~ sex"]),
            r"join conditions with & or \|, each in brackets",
        ),
        (Said(models=["{income > 5 & age > 9} ~ insured"]), r"join conditions with &"),
        (Said(models=["sqrt(income) ~ age"]), "'sqrt' is not one of the functions C, exp, log"),
        (Said(models=["income/age ~ insured"]), r"arithmetic in braces, such as"),
        (Said(models=["income ~ "]), "write the response, ~ and the terms, such as y ~ a"),
        (
            Said(models=["{income > 30000} ~ age"]),
            r"^--model '\{income > 30000\} ~ age': .* a condition must lie within the bounds",
        ),
        (Said(models=["health ~ age"]), r"name a category.*\{health == 'CATEGORY'\}"),
        (
            Said(means=["region"]),
            r"CATEGORY'\}; for their mean.* by lower and upper instead of values",
        ),
        (Said(means=["income by wage"]), "wage is a column of real numbers, and groups need"),
        (Said(densities=["day"]), "day is a date; name one of its parts: day_year, day_month"),
        (Said(densities=["note"]), "note has the type `ignored` in the questionnaire"),
        (Said(tables=["other x health"]), "the questionnaire does not describe other; add a line"),
        (Said(maps=["income lat"]), "income has more than 4,096 whole values"),
        (Said(means=["x"], densities=["y"]), r"--mean 'x'(.|\n)*--density 'y'"),
    ],
    ids=str,
)
def test_a_wish_that_cannot_be_served_is_refused_with_what_to_do(tmp_path, said, says):
    with pytest.raises(InputError, match=says):
        planned(tmp_path, said)


def test_wishes_on_the_command_line(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("health,visits,age,income\n")
    (tmp_path / "q.csv").write_text(PERSONS)
    base = ["init", str(tmp_path / "t.csv"), "--questionnaire", str(tmp_path / "q.csv")]
    wishes = ["--mean", "income by health", "--mean", "age", "--table", "health x visits"]
    assert main([*base, *wishes, "--out", str(tmp_path / "plan.yaml")]) == 0
    assert list(kinds((tmp_path / "plan.yaml").read_text())) == [
        "table-health-visits",
        "mean-income-by-health",
        "mean-age",
    ]
    assert main([*base, "--maen", "age"]) != 0
    assert "--mean" in capsys.readouterr().err


def made_up(generator: np.random.Generator) -> tuple[str, Said]:
    """A questionnaire of columns of any kind, and wishes over them."""
    lines, numbers, groups = ["column,type,values,lower,upper,step,unit,missing"], [], []
    for i in range(generator.integers(2, 7)):
        name, missing = f"c{i}", generator.choice(["", "", "empty", "-9"])
        if generator.random() < 0.4:
            many = generator.integers(2, 9)
            lines.append(f"{name},,{'; '.join(f'v{k}' for k in range(many))},,,,,{missing}")
            groups.append(name)
            continue
        lower = generator.choice([0, 0, 0, 1, 16, -50, -100000])
        upper = lower + generator.choice([1, 7, 60, 999, 5000, 100000, 1200000])
        steps = ["", "1", "0.01", "0.5"]
        steps += [s for s in ("5", "100") if lower % int(s) == upper % int(s) == 0]
        step = generator.choice(steps)
        whole = step in ("1", "5", "100")
        kind = "integer" if whole else "continuous"
        unit = generator.choice(["", "years", "dollars"])
        lines.append(f"{name},{kind},,{lower},{upper},{step},{unit},{missing}")
        numbers.append((name, whole and upper - lower > 4096))
    if generator.random() < 0.3:
        lines.append(f"home,unit,,,{generator.integers(1, 9)},,,")
    if generator.random() < 0.4:
        largest, step = generator.choice([1, 30, 1200000]), generator.choice(["", "1", "0.5"])
        lines.append(f"weight,weight,,,{largest * 2},{step},,")
    names = [name for name, _ in numbers]
    every = names + groups
    pick = lambda of, k: [str(each) for each in generator.permutation(of)[:k]]  # noqa: E731
    said = {"records": bool(generator.random() < 0.5)}
    said["tables"] = [" x ".join(pick(every, generator.integers(1, 4)))] * bool(
        generator.random() < 0.5
    )
    if names and generator.random() < 0.5:
        by = f" by {pick(groups, 1)[0]}" if groups and generator.random() < 0.5 else ""
        said["means"] = [pick(names, 1)[0] + by]
    if names and generator.random() < 0.4:
        said["densities"] = pick(names, 1)
    if len(names) > 1 and generator.random() < 0.5:
        response, *terms = pick(names, 3)
        said["models"] = [f"{response} ~ {' + '.join(terms)}"]
    fine = [name for name, wide in numbers if not wide]
    if len(fine) > 1 and generator.random() < 0.3:
        said["maps"] = [" ".join(pick(fine, 2))]
    return "\n".join(lines) + "\n", Said(**said)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_no_plan_for_made_up_wishes_is_refused_once_it_is_filled_in(tmp_path, seed):
    generator = np.random.default_rng(seed)
    text, said = made_up(generator)
    plan = planned(tmp_path, said, text)
    for rows, alpha in ((500, "0.5"), (200_000, "3")):
        dprelease.load_plan(filled(plan, rows, alpha))


@pytest.fixture
def good_tables(monkeypatch):
    """Tables that are thought better for models than models measured for themselves."""
    monkeypatch.setattr("tasks.explain.analysis.ASSUMED", 0.001)


@pytest.mark.slow
@pytest.mark.usefixtures("good_tables")
def test_a_model_is_answered_by_the_release_that_has_its_columns(tmp_path):
    """A release of more columns that lack one of the model's would have refused it."""
    said = Said(tables=["health x insured x region", "visits"], models=["poisson: visits ~ age"])
    loaded = dprelease.load_plan(filled(planned(tmp_path, said, PERSONS)))
    assert len(loaded.built["tables"].domain.axes) > len(
        loaded.built["tables-for-models"].domain.axes
    )
    assert expected_fit(loaded, "visits ~ age", "poisson")[0] == "tables-for-models"
    assert answering(loaded)[0].name == "tables"


def test_tables_for_models_keep_those_of_earlier_models_beside_a_requested_table(tmp_path):
    """They replaced them, and the plan was refused."""

    def only_tables(plan, formula, family):
        if plan.releases[0].kind != "microdata-margins":
            raise InputError("not measured")
        return 0.1

    asked = questions(tmp_path, PERSONS)
    columns = dict.fromkeys(asked, ColumnType.OPEN)
    said = Said(tables=["region x insured"], models=["poisson: visits ~ age", "insured ~ income"])
    found = yaml.safe_load(first_plan("d", "t.csv", columns, said, asked, only_tables))
    release = found["releases"][-1]
    assert {*release["columns"]} == {"visits", "age", "insured", "income"}


@pytest.mark.slow
@pytest.mark.usefixtures("good_tables")
def test_only_what_models_need_is_measured_for_them(tmp_path):
    models = ["poisson: visits ~ age * health", "insured ~ age", "poisson: visits ~ region"]
    found = yaml.safe_load(planned(tmp_path, Said(models=models), PERSONS))
    (release,) = found["releases"]
    measured = {frozenset(each) for each in (*release["pairs"], *release.get("also", ()))}
    assert measured >= {frozenset(each) for each in (("age", "insured"), ("region", "visits"))}
    assert frozenset(("visits", "age", "health")) in measured
    assert frozenset(("insured", "region")) not in measured
    assert len(dprelease.load_plan(filled(yaml.safe_dump(found))).analyses) == 3


def test_tables_of_many_columns_are_planned_though_their_histogram_is_too_large(tmp_path):
    names = [f"q{i}" for i in range(11)]
    text = "column,values\n" + "".join(f"{name},1; 2; 3; 4; 5\n" for name in names)
    plan = filled(planned(tmp_path, Said("tables"), text))
    assert [section["kind"] for section in plan["releases"]] == ["margins"]


def test_a_share_is_not_named_like_a_mean(tmp_path):
    said = Said(means=["{visits > 10}", "{visits >= 10} by region", "visits", "insured by region"])
    text = planned(tmp_path, said, PERSONS)
    names = [*kinds(text), *(each["name"] for each in yaml.safe_load(text)["analyses"])]
    assert "share-visits-10" in names
    assert "share-visits-10-by-region" in names
    assert "share-insured-yes-by-region" in names
    assert "mean-visits" in names


@pytest.mark.slow
def test_names_with_dots_need_no_backticks_in_a_wish(tmp_path):
    text = TEXT.replace("income,,,", "gross.income,,,").replace("wage,,,", "net wage,,,")
    plan = planned(tmp_path, Said(models=["gross.income ~ age + net wage"]), text)
    (formula,) = {each["formula"] for each in yaml.safe_load(plan)["releases"] if "formula" in each}
    assert formula == "`gross.income` ~ age + `net wage`"


@pytest.mark.slow
def test_a_column_whose_name_a_plan_cannot_have_gets_one(tmp_path):
    text = TEXT.replace("wage,,,", "Löhne (€/h),,,").replace("health,,", "% fit,,")
    text = text.replace("insured,", "##,")
    found = yaml.safe_load(planned(tmp_path, Said(records=True), text))["columns"]
    assert found["Löhne_h"]["source_name"] == "Löhne (€/h)"
    assert found["fit"]["source_name"] == "% fit"
    assert found["column"]["source_name"] == "##"
    assert "source_name" not in found["income"]


@pytest.mark.slow
def test_who_was_asked_is_known_by_a_column_with_another_name(tmp_path):
    text = TEXT.replace("unit,missing", "unit,missing,universe")
    text = text.replace("insured,,no; yes,,,,,", "% insured,,no; yes,,,,,")
    text = text.replace(
        "wage,,,0,100,0.01,dollars,empty", "wage,,,0,100,0.01,dollars,empty,% insured = yes"
    )
    (records,) = (
        each
        for each in yaml.safe_load(planned(tmp_path, Said(records=True), text))["releases"]
        if each["kind"] == "microdata-margins"
    )
    assert "insured" in str(records["rules"])
    assert "%" not in str(records["rules"])


@pytest.mark.parametrize(
    "others",
    [{"means": ["rent"]}, {"models": ["rent ~ insured"]}, {"maps": ["rent lat"]}],
    ids=str,
)
def test_the_scale_of_a_density_does_not_depend_on_other_wishes(tmp_path, others):
    text = PERSONS + "rent,,,0,9000000,0.01,dollars,\n"
    alone = yaml.safe_load(planned(tmp_path, Said(densities=["rent"]), text))["releases"]
    found = filled(planned(tmp_path, Said(densities=["rent"], **others), text))
    density = next(each for each in found["releases"] if each["name"] == "density-rent")
    density.pop("weight", None)
    assert [density] == alone
    assert density["transform"] == "log1p"
    scaled = load_plan(found).built["density-rent"].domain.axes[0]
    assert scaled.transform == "log1p"


def test_a_plan_says_how_an_amount_in_whole_numbers_gets_a_logarithmic_scale(tmp_path):
    text = planned(tmp_path, Said(densities=["income"]))
    assert "state the type `continuous`" in " ".join(text.replace("#", "").split())
    text = planned(tmp_path, Said(densities=["age"]))
    assert "logarithmic" not in text


def test_a_density_of_two_values_is_refused(tmp_path):
    text = TEXT.replace("visits,,,0,90", "visits,,,0,1")
    with pytest.raises(InputError, match="has only 2 whole values; use --table 'visits'"):
        planned(tmp_path, Said(densities=["visits"]), text)


@pytest.mark.slow
def test_what_becomes_of_each_special_value_is_said(tmp_path):
    """Where each value has a cell of its own anyway, in tables of few bins, and beside labels."""
    text = TEXT.replace("unit,missing", "unit,missing,special").replace(",years,", ",years,,21")
    text += "hours,,0=none,0,80,0.5,,,40\nfee,,,0,90000,10,,,500\n"
    plan = planned(tmp_path, Said(records=True, tables=["age x health"]), text)
    comment = "# special {}: each has a separate cell and needs no key"
    said = yaml.safe_load(plan)
    assert [line for line in plan.splitlines() if "special" in line] == [
        f"    {comment.format(21)}",
        f"    {comment.format(40)}",
    ]
    assert said["columns"]["fee"]["point_masses"] == [0, 500]
    (table,) = (each for each in said["releases"] if "age" in each.get("bins", {}))
    assert {21, 22} <= {*table["bins"]["age"]}
    alone = yaml.safe_load(planned(tmp_path, Said(tables=["age x health"]), text))
    assert alone["columns"]["age"]["point_masses"] == [21]


@pytest.mark.slow
def test_a_share_with_a_special_value_is_no_whole_number(tmp_path):
    text = TEXT.replace("unit,missing", "unit,missing,special") + "part,,,0,1,,,,0\n"
    found = yaml.safe_load(planned(tmp_path, Said(records=True), text))["columns"]["part"]
    assert (found["type"], found["point_masses"]) == ("continuous", [0.0])


@pytest.mark.slow
def test_a_model_that_noise_hides_is_fitted_to_tables(tmp_path):
    """Of many categories; a release of its own would take budget from tables and answer nothing."""
    races = "; ".join(f"race {i}" for i in range(8))
    survey = (
        "column,type,values,lower,upper,step,unit,missing\n"
        f"race,,{races},,,,,empty\n"
        "searched,,no; yes,,,,,empty\n"
        "sex,,f; m; other,,,,,empty\n"
        "north,,,44.88,45.06,,,\n"
        "west,,,-93.34,-93.19,,,\n"
    )
    model = "{searched == 'yes'} ~ race + sex"
    tables, maps = ["race x searched"], ["north x west"]
    said = Said(records=True, tables=tables, maps=maps, models=[model])
    text = planned(tmp_path, said, survey)
    assert "model" not in kinds(text).values()
    assert [each["family"] for each in yaml.safe_load(text)["analyses"]] == ["binomial"]


def test_a_table_of_categories_that_records_would_merge_is_a_release_of_its_own(tmp_path):
    names = "; ".join(f"clinic {i}" for i in range(88))
    survey = (
        "column,type,values,lower,upper,step,unit\n"
        f"clinic,,{names},,,,\n"
        "result,,negative; positive; invalid,,,,\n"
        "age,,,0,130,0.1,years\n"
    )
    text = planned(tmp_path, Said(records=True, tables=["clinic x result"]), survey)
    assert "table-clinic-result" in kinds(text)


def test_numbers_on_both_sides_of_zero_may_concentrate_there(tmp_path):
    survey = "column,lower,upper,step,unit,missing\ndelay,-24,240,0.1,hours,empty\n"
    text = planned(tmp_path, Said(densities=["delay"]), survey)
    (density,) = yaml.safe_load(text)["releases"]
    assert density["bandwidth"] == 0.01
    assert "A fraction of the range (2.6 hours)" in text.replace("\n    # ", " ")


def test_a_known_number_of_records_and_budget_are_written_and_compared(tmp_path):
    said = Said(models=["logistic: insured ~ age"])
    text = planned(tmp_path, said, PERSONS, rows=5000, alpha="0.5")
    plan = yaml.safe_load(text)
    assert plan["rows"] == 5000
    assert (plan["budget"]["requested"]["alpha"], plan["budget"]["granted"]["alpha"]) == (
        "0.5",
        "1.5",
    )
    assert "5,000 records and alpha 0.5" in text
    for rows, beta in (
        (100_000, "1e-6"),
        (100_001, "1e-7"),
        (1_000_000, "1e-7"),
        (None, "FILL-IN"),
    ):
        text = planned(tmp_path, Said(records=True), PERSONS, rows=rows, alpha="1")
        budget = yaml.safe_load(text)["budget"]
        assert budget["requested"]["beta"] == budget["granted"]["beta"] == beta
    assert "dprelease init --rows N --alpha A" in planned(tmp_path, said, PERSONS)
    for known, says in (({"rows": 0}, "--rows 0: must be"), ({"alpha": "x"}, "--alpha x: must be")):
        with pytest.raises(InputError, match=says):
            planned(tmp_path, said, PERSONS, **known)


@pytest.mark.parametrize(
    "wish",
    [
        "insured by clinic",
        "clinic by insured",
        "insured by age",
        "health by clinic",
        "health by region",
    ],
)
def test_shares_of_many_categories_or_groups_are_a_table(tmp_path, wish):
    text = f"{PERSONS}clinic,,{'; '.join(f'c{i}' for i in range(88))},,,,,\n"
    (release,) = yaml.safe_load(planned(tmp_path, Said(means=[wish]), text, rows=10**6))["releases"]
    assert (release["kind"], release["columns"]) == ("histogram", wish.split(" by "))
    assert release["name"].startswith("table-")
    with pytest.raises(
        InputError, match=r"^--mean '\{age > 40\} by clinic': has 88 groups, more than 60"
    ):
        planned(tmp_path, Said(means=["{age > 40} by clinic"]), text)


def test_means_have_gaussian_noise_where_the_budget_is_split_in_rho(tmp_path):
    said = Said(tables=["health x region", "insured x region x sex"], means=["age by region"])
    text = PERSONS + "sex,,f; m,,,,,\n"
    wide = Said(records=True, means=["age by region", "age"])
    for wishes, noise in ((wide, "discrete-gaussian"), (said, "discrete-laplace")):
        plan = yaml.safe_load(planned(tmp_path, wishes, text, rows=1000))
        concentrated = plan["budget"].get("composition") == "concentrated"
        means = [each["mechanism"] for each in plan["releases"] if each["kind"] == "mean"]
        assert means
        assert {*means} == {"discrete-gaussian" if concentrated else "discrete-laplace"} == {noise}
        plan = dprelease.load_plan(filled(yaml.safe_dump(plan)))
        assert all(release.expected_error() for release in plan.built.values())
