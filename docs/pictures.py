"""Draw the picture of the README from the published demo bundle: `make pictures`.

    python docs/pictures.py build/demo/published/fair-1978/demo docs/demo.png

Only published files are read, as any analyst would read them.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")
import matplotlib.pyplot as plt

INK, NOISE, RECORDS = "#1f3b57", "#c2571a", "#8fb3c9"


def main(bundle: Path, picture: Path) -> None:
    """Draw three panels: counts with intervals, a density with its band, synthetic records."""
    figure, (counts, density, records) = plt.subplots(1, 3, figsize=(13, 3.8), dpi=110)
    draw_counts(
        counts, pd.read_parquet(bundle / "tables" / "all-pairs.rate_marriage.affairs.parquet")
    )
    draw_density(density, pd.read_parquet(bundle / "densities" / "affairs-density.parquet"))
    draw_records(records, pd.read_parquet(bundle / "microdata" / "respondents.parquet"))
    for axes in (counts, density, records):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(picture)


def draw_counts(axes: plt.Axes, table: pd.DataFrame) -> None:
    """How many of each marriage rating report an affair, with 90% intervals."""
    some = table[table["affairs_from"] >= 0.02]
    sums = some.groupby("rate_marriage")["estimate"].sum()
    # The published cells of one table have equal and nearly independent errors.
    half = 1.645 * some["standard_error"].iloc[0] * (len(some) / len(sums)) ** 0.5
    axes.errorbar(sums.index, sums, yerr=half, fmt="o", color=INK, ecolor=NOISE, capsize=4)
    axes.set(title="Respondents who report an affair", xlabel="marriage rating (5 = very good)")
    axes.set_ylabel("count, with 90% interval of the noise")
    axes.set_ylim(bottom=0)


def draw_density(axes: plt.Axes, grid: pd.DataFrame) -> None:
    """The private density of time spent in affairs."""
    shown = grid[grid["affairs"] < 15]
    axes.fill_between(
        shown["affairs"], shown["lower_90"], shown["upper_90"], color=NOISE, alpha=0.35, lw=0
    )
    axes.plot(shown["affairs"], shown["estimate"], color=INK)
    axes.set(title="Private density of affairs", xlabel="affairs per year of marriage")
    axes.set_ylabel("density, with 90% band of the noise")
    axes.set_ylim(bottom=0)


def draw_records(axes: plt.Axes, records: pd.DataFrame) -> None:
    """A relation between two columns, as the synthetic records have it."""
    means = records.groupby("age")["children"].mean()
    axes.bar([f"{age:g}" for age in means.index], means, color=RECORDS, edgecolor=INK)
    axes.set(title="Synthetic records", xlabel="age", ylabel="mean number of children")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
