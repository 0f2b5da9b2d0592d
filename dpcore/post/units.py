r"""An upper bound for sampling errors if a unit has several records, which are not independent.

Units are independent draws from a population; the records of one unit are not.  A record changes an
estimate by its influence psi.  With at most m records in a unit the sampling variance is to first order

    sum over units of (sum of psi)^2  <=  m * sum over records of psi^2          (Cauchy & Schwarz)

which is m times that of independent records, with equality if all records of every unit are the same.
No released statistic shows how similar they are, but m is public.  So variances are stated with the
factor m: coverage is at least as stated, and higher if records of a unit differ.  The bound also holds
for covariance matrices, so joint tests are conservative too.
"""

from __future__ import annotations

from collections.abc import Iterator


def assumptions(most: int, weights: str | None = None, strata: str | None = None) -> Iterator[str]:
    """What a stated sampling error assumes in addition to independent records, in sentences.

    ``most``: the most records of one unit; ``weights``, ``strata``: the columns of survey weights and of
    strata, which are not used here.
    """
    if most > 1:
        yield (
            f"One unit may have {most} records, and their similarity is unknown. So the sampling error"
            f" is an upper bound, {most} times the variance of independent records, and the 95% interval"
            " is right at least 19 times in 20."
        )
    if weights is not None:
        yield (
            f"Except in measured models and weighted tables, every record counts once, whatever its"
            f" {weights}: estimates and intervals describe the population that the records are drawn"
            " from, not the weighted one."
        )
    if strata is not None:
        yield (
            f"Except in measured models, strata ({strata}) are not used, so sampling errors may be too"
            " large."
        )
