"""Processor seconds and memory against the rows, of the lines that runs have printed.

cat *.jsonl | python -m benchmarks.scale.peers.plot peers.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any


def main() -> None:
    """Read the lines from standard input, and draw the picture that the argument names."""
    plot([json.loads(line) for line in sys.stdin], Path(sys.argv[1]))


def plot(lines: list[dict[str, Any]], path: Path) -> None:
    """One curve for each library; where it has several lines of a size, their median."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes, key, label in (
        (left, "cpu_seconds", "processor seconds of a query"),
        (right, "peak_mb", "memory of the processes, MB"),
    ):
        for peer, points in curves(lines, key).items():
            width = 2.5 if peer == "dprelease" else 1.2
            axes.loglog(*zip(*points, strict=True), "o-", linewidth=width, label=peer)
        axes.set(xlabel="records", ylabel=label)
        axes.yaxis.set_minor_formatter("")
    right.set_ylim(100, 20_000)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.savefig(path, dpi=110)


def curves(lines: list[dict[str, Any]], key: str) -> dict[str, list[tuple[int, float]]]:
    """(rows, value) of each library, by rows; what failed has none."""
    found: dict[str, dict[int, list[float]]] = {}
    for line in lines:
        if key in line:
            found.setdefault(line["peer"], {}).setdefault(line["rows"], []).append(line[key])
    return {
        peer: [(rows, median(values)) for rows, values in sorted(sizes.items())]
        for peer, sizes in found.items()
    }


if __name__ == "__main__":
    main()
