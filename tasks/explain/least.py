"""Rows of a table that compare a plan's errors with the least possible ones."""

from dpcore.advice.least import least_errors
from schemas.plan import Plan


def least_rows(plan: Plan) -> list[dict[str, str]]:
    """One row for each error if its least possible value, or the rate of this value, is known."""
    return [
        {
            "release": name,
            "quantity": error.quantity,
            "expected": f"{error.value:.4g}",
            "least": "-" if error.least is None else f"{error.least:.4g}",
            "on every table": f"{error.on_every_table:.4g}" if error.on_every_table else "-",
            "ratio": "-" if error.ratio is None else f"{error.ratio:.2f}",
            "least among": error.among,
        }
        for name, release in plan.built.items()
        for error in least_errors(release)
    ]
