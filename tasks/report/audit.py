"""The audit that went before a release, on the page."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpcore.budget import decimal_text
from tasks.report.bars import Bar, bars
from tasks.report.parts import DataTable, Figure
from tasks.report.svg import figure


def audit_figure(audit: Mapping[str, Any]) -> Figure:
    """What is claimed beside what an attacker could show, from the manifest's record."""
    claim, bound = Fraction(audit["claim"]["alpha"]), float(audit["lower_bound"])
    estimate, confidence = float(audit["estimate"]), f"{100 * audit['level']:.4g}%"
    title = "Privacy loss: claimed, and shown by an attack"
    says = (
        f"On made-up neighbouring surveys the attack showed a loss of {figure(bound)} at least, with"
        f" {confidence} confidence; {decimal_text(claim)} is claimed"
    )
    rows = [
        Bar("claimed at most", *(float(claim),) * 3),
        Bar("shown at least", bound, bound, max(estimate, bound)),
    ]
    table = DataTable(
        "Result of the audit",
        ("What", "Value"),
        [
            ("result", "passed" if audit["passed"] else "FAILED"),
            ("claimed alpha", decimal_text(claim)),
            ("beta", decimal_text(Fraction(audit["claim"]["beta"]))),
            ("alpha shown, at least", figure(bound)),
            ("confidence", confidence),
            ("alpha estimated, without confidence", figure(estimate)),
            ("draws on each of two surveys", f"{audit['draws']:,}"),
            ("made-up surveys", audit["pair"]),
        ],
    )
    return Figure(title, says, bars(rows, title, says, "alpha (epsilon)"), table)
