"""The audit before a release, on the page."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpcore.accounting.budget import decimal_text
from tasks.charts.svg import figure
from tasks.report.parts import DataTable, Drawn

TRIED = (
    "The audit ran the program on made-up neighbouring surveys, just as for a release. It compared the"
    " width of each release's noise with the stated width, and measured how much one unit changes each"
    " exact statistic. It cannot detect random numbers that another program can predict, outputs with a"
    " probability below about 1 / (number of draws), effects on other surveys, or anything outside the"
    " program. The loss shown is usually far below the claim.",
)
"""What the audit did, and what no audit of outputs can detect."""

WORDS = (
    "The plan promises never to lose more than the claim. The attack gives a lower bound for the true"
    " loss, at the stated confidence. A bound above the claim would disprove the promise. With more"
    " draws the lower bound would be closer to the true loss.",
    "The attacker sees everything that would be published and reduces it to one number, the score that"
    " best distinguishes the two surveys. Then the attacker looks for scores that are more frequent on"
    " one survey than on the other. A log-ratio is the logarithm of the ratio of the probabilities of"
    " the published numbers on the two surveys. If the noise is as stated, no score distinguishes the"
    " surveys better.",
)


def draw_audit(audit: Mapping[str, Any], of_each: Sequence[Mapping[str, Any]]) -> Drawn:
    """Tables of the claimed privacy loss and of the lower bounds from attacks."""
    tables = [_together(audit), *([_alone(of_each)] if of_each else [])]
    return Drawn((), (*TRIED, *WORDS), tables)


def in_one_sentence(audit: Mapping[str, Any]) -> str:
    """A sentence on the loss found by an attack, and the claim."""
    claim, bound = Fraction(audit["claim"]["alpha"]), _number(audit["lower_bound"])
    shown = "could not show any privacy loss"
    if bound > 0:
        shown = f"showed a privacy loss of at least {figure(bound)}"
    return (
        f"Before anything was drawn from the survey, an attack on {audit['draws']:,} draws from made-up"
        f" surveys {shown} ({100 * audit['level']:.4g}% confidence). The claimed loss is at most"
        f" {math.ceil(claim * 1000) / 1000:g}. A smaller loss in an attack does not prove the claim."
    )


def _alone(of_each: Sequence[Mapping[str, Any]]) -> DataTable:
    return DataTable(
        "Each release alone: width of the noise, and largest change from one unit",
        (
            "Release",
            "Result",
            "Alpha claimed at most",
            "Alpha shown at least",
            "Noise width, upper bound, relative to the stated width",
            "Change from one unit, relative to the declared sensitivity",
            "Draws",
        ),
        [
            (
                audit["name"],
                "passed" if audit["passed"] else "FAILED",
                decimal_text(Fraction(audit["claim"]["alpha"])),
                figure(_number(audit["lower_bound"])),
                _found(audit["width"], "at_most"),
                _found(audit["replay"], "moved"),
                f"{audit['draws']:,}",
            )
            for audit in of_each
        ],
    )


def _together(audit: Mapping[str, Any]) -> DataTable:
    claim = Fraction(audit["claim"]["alpha"])
    return DataTable(
        "Result of the audit",
        ("What", "Value"),
        [
            ("result", "passed" if audit["passed"] else "FAILED"),
            ("claimed alpha", decimal_text(claim)),
            ("beta", decimal_text(Fraction(audit["claim"]["beta"]))),
            ("alpha shown, at least", figure(_number(audit["lower_bound"]))),
            ("confidence", f"{100 * audit['level']:.4g}%"),
            ("alpha, best guess", figure(_number(audit["estimate"]))),
            ("draws on each of two surveys", f"{audit['draws']:,}"),
            ("program's name of the made-up surveys", audit["pair"]),
            ("program's name of the score", audit["score"]),
        ],
    )


def _found(part: Mapping[str, Any] | None, name: str) -> str:
    """One result of an audit; empty if the mechanism or the draws allow no bound."""
    return "" if part is None or part[name] is None else figure(part[name])


def _number(value: float | None) -> float:
    """A number of the manifest, in which null means infinity."""
    return math.inf if value is None else float(value)
