"""The privacy of a release in plain words, and its limits.

For any test between two neighbouring tables, differential privacy bounds both errors:
    1 - false negatives <= e^alpha false positives + beta, and the same with the errors exchanged.
So a guess between two equally likely tables is right with probability at most
(e^alpha + beta) / (1 + e^alpha) (Kairouz, Oh and Viswanath 2015, section 3).
"""

import math
from collections.abc import Sequence

from dpcore.accounting.budget import decimal_text
from schemas.bundle.manifest import Guarantee
from schemas.plan import Plan
from schemas.plan.protection import RULES
from schemas.plan.searches import search_words
from tasks.report.parts import DataTable

NEARLY = 1.2
LARGEST_FACTOR = 100_000


def best_guess(guarantee: Guarantee) -> float:
    """The largest probability to guess the right one of two neighbouring tables, with all other
    knowledge."""
    alpha, beta = float(guarantee.alpha), float(guarantee.beta)
    return 1 - (1 - beta) / (1 + math.exp(min(alpha, 700.0)))


def how_often(guarantee: Guarantee) -> str:
    """Words for the largest ratio of probabilities between two neighbouring tables, rounded up."""
    factor = math.exp(min(float(guarantee.alpha), 700.0))
    beta = guarantee.beta
    chance = f", except with a chance of one in {math.floor(1 / beta):,}" if beta else ""
    if factor > LARGEST_FACTOR:
        return f"but their probability could differ by a factor of more than {LARGEST_FACTOR:,}{chance}"
    digits = 2 if factor < 2 else 1 if factor < 100 else 0
    # Rounded up, but a number that is round already must not become the next one.
    most = math.ceil(factor * 10**digits - 1e-9) / 10**digits
    nearly = "nearly as often: " if factor < NEARLY else ""
    return f"{nearly}with a probability that differs by a factor of at most {most:,g}{chance}"


def in_short(plan: Plan, guarantee: Guarantee) -> str:
    """The promise in one or two sentences."""
    return (
        f"Noise protects {plan.protection.who}. Suppose somebody knows everything else, and only two"
        f" possibilities for one {plan.protection.one} remain. A blind guess is right 50% of the time;"
        f" with this release, at most {_percent(best_guess(guarantee))}. With less knowledge, a guess"
        " is even less certain."
        + (
            f" This fails for a share gamma = {decimal_text(guarantee.gamma)} of the people."
            if guarantee.gamma
            else ""
        )
    )


def in_plain_words(plan: Plan, guarantee: Guarantee) -> Sequence[str]:
    """Paragraphs on what the promise means for the people in the survey."""
    guess, alpha = best_guess(guarantee), float(guarantee.alpha)
    one, replaced = plan.protection.one, plan.protection.replaces
    doubt = (
        f"all other {one}s, and two possibilities for the last one"
        if replaced
        else f"all other {one}s, but not whether one more {one} took part"
    )
    words = [
        "Everything computed from the survey was changed at random, with known probabilities, before it"
        f" left the agency. This noise hides the contribution of any one {one}: had one {one} been"
        f" {plan.protection.fate}, the same numbers could have resulted, {how_often(guarantee)}.",
        f"Suppose somebody knows {doubt}, both equally likely. A blind guess is right 50% of the time."
        " With everything published here, however it is used, a guess is right at most"
        f" {_percent(guess)} of the time."
        + (" This bounds the worst case, and it is not small." if alpha > 3 else ""),
        "The promise holds whatever else is known, now or later, and whatever is computed from the"
        " published files. It covers only what one participation adds. Facts about people in general"
        " can still be learnt, also about people who did not answer.",
    ]
    if plan.protection.total:
        words.append(
            "The promise holds for any records that the survey may contain. A rule fixed beforehand"
            f" makes all records valid: {RULES[plan.invalid]}."
        )
    else:
        words.append(
            f"The promise is for {plan.protection.domain}. Other tables are refused, and nothing is"
            " published about them. So the release itself shows that every record of the survey fits."
            " No noise hides this fact: one invalid record would have stopped the release."
        )
    if guarantee.gamma:
        exposed = math.ceil(guarantee.gamma * plan.rows)
        words.append(
            "Not everybody is protected in this way. Part of this release keeps a weaker promise,"
            " random differential privacy. It protects people drawn at random from a population, and"
            f" fails for a share gamma = {decimal_text(guarantee.gamma)} of them. Up to about"
            f" {exposed:,} of the {plan.rows:,} people, those with rare answers, may have no protection"
            " at all. gamma is known because this plan was fixed before the first release of the"
            " dataset. If earlier results had influenced the plan, gamma would be unknown."
        )
    return words


def _percent(share: float) -> str:
    """A share in percent, rounded up because it is an upper bound."""
    return f"{math.ceil(share * 1000 - 1e-6) / 10:g}%"


def in_symbols(plan: Plan, guarantee: Guarantee) -> DataTable:
    """A table of the promise in the usual symbols."""
    gamma = (
        "0: the promise holds for all these tables, not only for likely tables"
        if not guarantee.gamma
        else f"{decimal_text(guarantee.gamma)}: probability, over the draw of people from the"
        " population, that the promise does not hold for them (random differential privacy)"
    )
    return DataTable(
        "The guarantee in symbols",
        ("Symbol", "Value"),
        [
            ("privacy unit", plan.protection.who),
            ("neighbouring tables D, D′", f"{guarantee.neighbours}: {plan.protection.neighbours}"),
            ("tables covered", plan.protection.domain),
            (
                "n",
                f"{plan.protection.records} records,"
                f" {'public' if plan.adjacency.public_rows else 'a public guess'}",
            ),
            ("α (alpha), also ε (epsilon)", decimal_text(guarantee.alpha)),
            ("β (beta), also δ (delta)", decimal_text(guarantee.beta)),
            ("γ (gamma)", gamma),
            ("releases charged to the same grant", _together(plan)),
            (
                "promise",
                "P[M(D) ∈ S] ≤ exp(α) P[M(D′) ∈ S] + β for all D, D′"
                f"{'' if plan.protection.total else ' that fit the plan'} and sets S of results",
            ),
        ],
    )


def _together(plan: Plan) -> str:
    """Words on how prices add up, and on the joint promise of all releases if the grant never grows."""
    if plan.budget.composition == "basic":
        return "their α, β and γ add up to at most the grant"
    return (
        f"their ρ add up to at most {decimal_text(plan.budget.caps.rho)} (zero-concentrated"
        f" differential privacy); together they guarantee {plan.budget.granted.budget}"
    )


def limits(plan: Plan) -> tuple[str, ...]:
    """Sentences on the limits of the numbers and the promise."""
    counted = (
        "Counts are of records in the survey, not estimates for a population, unless the description"
        " says otherwise."
    )
    if plan.weights:
        counted = (
            f"Weights ({plan.weights.column}) are rounded to multiples of"
            f" {decimal_text(plan.weights.step)} and cut at {decimal_text(plan.weights.largest)}; error"
            " statements do not include this cut. All other counts are of records in the survey, not"
            " estimates for a population."
        )
    made_up = (SYNTHETIC,) if plan.synthesis else ()
    fitted = (FITTED, *plan.assumed) if plan.includes_sampling else ()
    return counted, *LIMITS, *fitted, *made_up, *plan.protection.limits, *search_words(plan)


LIMITS = (
    "Error bars, bands and intervals cover privacy noise only: not sampling, non-response, wrong"
    " answers or, for densities, smoothing.",
    "A 90% interval misses the number without noise one time in ten. Among many intervals, some miss.",
)
FITTED = (
    "Intervals of models and moments are the exception: they also include sampling error, for units"
    " drawn independently from a population. They do not include non-response, wrong answers or a"
    " wrong model."
)
SYNTHETIC = (
    "Synthetic records are drawn from noisy statistics. No record is a real person. A relation that no"
    " released table shows may be missing or made up."
)
